"""Systems of a study of recognition: services, settings of one, or both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab.evaluate._systems import services_with_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from speechlab.client import Client


class System(NamedTuple):
    """A recogniser: a client with its settings.

    Attributes:
        name: What it is called; empty where it is the only one.
        lab: The client.
        identify: Whether it must identify the language instead of being told.
        options: Parameters of ``Client.transcribe``.
    """

    name: str
    lab: Client
    identify: bool
    options: dict[str, Any]

    @property
    def words(self) -> list[str]:
        """The hotwords that all of its rows have."""
        given = self.options.get("hotwords")
        return list(given) if isinstance(given, list | tuple | set | frozenset) else []


def systems_of(
    lab: Client | Mapping[str, Client], settings: object, *, identify: bool, options: Mapping[str, Any]
) -> list[System]:
    """Return the systems: each service with each of the settings.

    Args:
        lab: A client, or clients by name.
        settings: Parameters by name, which go before ``options``; None for one setting.
        identify: For settings that do not say it.
        options: Parameters of all of them.

    Raises:
        InvalidRequestError: What is given is no such thing, or there is nothing in it.
    """
    asking = services_with_settings(lab, settings, {"identify": identify, **options}, _PARAMETERS)
    return [System(name, client, bool(own.pop("identify")), own) for name, (client, own) in asking.items()]


_PARAMETERS = "parameters of Client.transcribe for each name, as in {'plain': {}, 'skipping': {'vad': 'on'}}"
