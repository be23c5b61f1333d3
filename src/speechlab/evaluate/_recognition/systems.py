"""Systems of a study of recognition: services, settings of a service, or both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab.evaluate._systems import services_with_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from speechlab.client import Client


class System(NamedTuple):
    """A recogniser: a client with its settings.

    Attributes:
        name: Name of the system; empty if it is the only one.
        lab: The client.
        identify: Whether it must identify the language, which is then not sent.
        options: Parameters of ``Client.transcribe``.
    """

    name: str
    lab: Client
    identify: bool
    options: dict[str, Any]

    @property
    def words(self) -> list[str]:
        """The hotwords for all of its rows."""
        given = self.options.get("hotwords")
        return list(given) if isinstance(given, list | tuple | set | frozenset) else []


def systems_of(
    lab: Client | Mapping[str, Client], settings: object, *, identify: bool, options: Mapping[str, Any]
) -> list[System]:
    """Return the systems: each service with each of the settings.

    Args:
        lab: A client, or clients by name.
        settings: Parameters by name of the setting, which override ``options``; None for one setting.
        identify: Value of ``identify`` for settings without it.
        options: Parameters of all settings.

    Raises:
        InvalidRequestError: An argument has a wrong type, or is empty.
    """
    asking = services_with_settings(lab, settings, {"identify": identify, **options}, _PARAMETERS)
    return [System(name, client, bool(own.pop("identify")), own) for name, (client, own) in asking.items()]


_PARAMETERS = "parameters of Client.transcribe for each name, as in {'plain': {}, 'skipping': {'vad': 'on'}}"
