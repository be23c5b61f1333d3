"""Systems of a study of recognition: services, settings of one, or both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab._arguments import refused
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from speechlab.client import Client


class System(NamedTuple):
    """What recognises.

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


def systems_of(lab: object, settings: object, *, identify: bool, options: Mapping[str, Any]) -> list[System]:
    """Return the systems: each service with each of the settings.

    Args:
        lab: A client, or clients by name.
        settings: Parameters by name, which go before ``options``; None for one setting.
        identify: For settings that do not say it.
        options: Parameters of all of them.

    Raises:
        InvalidRequestError: What is given is no such thing, or there is nothing in it.
    """
    services: Mapping[str, Any] = (
        _named("lab", lab, "a client for each name") if _is_mapping(lab) else {"": lab}
    )
    chosen: Mapping[str, Any] = {"": {}} if settings is None else _named("settings", settings, _PARAMETERS)
    found = []
    for service, client in services.items():
        for setting, own in chosen.items():
            if not _is_mapping(own):
                raise refused(f"settings[{setting!r}]", own, _PARAMETERS)
            way = {"identify": identify, **options, **own}
            asks = bool(way.pop("identify"))
            found.append(System(", ".join(filter(None, (service, setting))), client, asks, way))
    return found


_PARAMETERS = "parameters of Client.transcribe for each name, as in {'plain': {}, 'skipping': {'vad': 'on'}}"


def _named(argument: str, given: Any, allowed: str) -> Mapping[str, Any]:
    if not _is_mapping(given) or not given or not all(isinstance(name, str) and name for name in given):
        raise refused(argument, given, allowed)
    if len({name.strip() for name in given}) < len(given):
        message = f"two names of {argument} are alike: {', '.join(map(repr, given))}"
        raise InvalidRequestError(message, parameter=argument)
    checked: Mapping[str, Any] = given
    return checked


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)
