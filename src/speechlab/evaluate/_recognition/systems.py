"""Systems of a study of recognition: services, settings of a service, or both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab._arguments import refused
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._systems import services_with_settings, without_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from speechlab.client import Client


class System(NamedTuple):
    """A recogniser: a client with its settings.

    Attributes:
        name: Name of the system; empty if it is the only one.
        lab: The client; None for outputs that exist.
        identify: Whether it must identify the language, which is then not sent.
        options: Parameters of ``Client.transcribe``.
        had: Column of its outputs, if they exist.
    """

    name: str
    lab: Client | None
    identify: bool
    options: dict[str, Any]
    had: str = ""

    @property
    def words(self) -> list[str]:
        """The hotwords for all of its rows."""
        given = self.options.get("hotwords")
        return list(given) if isinstance(given, list | tuple | set | frozenset) else []


def systems_of(
    lab: Client | Mapping[str, Client] | None,
    settings: object,
    had: Mapping[str, str],
    *,
    identify: bool,
    options: Mapping[str, Any],
) -> list[System]:
    """Return the systems: each service with each of the settings, and those whose outputs exist.

    Args:
        lab: A client, or clients by name; None for outputs that exist alone.
        had: Columns of outputs that exist, by the names of their systems.
        settings: Parameters by name of the setting, which override ``options``; None for one setting.
        identify: Value of ``identify`` for settings without it.
        options: Parameters of all settings.

    Raises:
        InvalidRequestError: An argument has a wrong type, or is empty.
    """
    asking: dict[str, Any] = {}
    if lab is None:
        without_settings("hypotheses", settings=settings, identify=identify, **options)
        if not had:
            raise refused("lab", None, "a Client, clients by name, or None beside hypotheses=")
    else:
        asking = services_with_settings(lab, settings, {"identify": identify, **options}, _PARAMETERS)
    found = [System(name, client, bool(own.pop("identify")), own) for name, (client, own) in asking.items()]
    found = [one._replace(name=one.name or "lab") for one in found] if had else found
    found += [System(name, None, False, {}, f"{HAD}{column}") for name, column in had.items()]
    names = [one.name for one in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        message = f"two systems are called {twice!r}; give one another name in hypotheses="
        raise InvalidRequestError(message, parameter="hypotheses")
    return found if len(found) > 1 else [found[0]._replace(name="")]


HAD = "speechlab: had "
"""Prefix of the columns of outputs that exist, during a study."""
_PARAMETERS = "parameters of Client.transcribe for each name, as in {'plain': {}, 'skipping': {'vad': 'on'}}"
