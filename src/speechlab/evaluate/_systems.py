"""Systems of a study: services, settings of one, or both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from speechlab._arguments import refused
from speechlab.errors import (
    APIConnectionError,
    AuthenticationError,
    ContractError,
    InvalidRequestError,
    PermissionDeniedError,
    ServerError,
)

if TYPE_CHECKING:
    from speechlab.client import Client

UNUSABLE = (APIConnectionError, AuthenticationError, PermissionDeniedError, ServerError, ContractError)
"""What a service is that cannot be asked at all."""


def services_of(lab: Client | Mapping[str, Client]) -> dict[str, Client]:
    """The clients of a study by name; one without a name where a client was given.

    Raises:
        InvalidRequestError: What is given is no such thing, or there is nothing in it.
    """
    return _named("lab", lab, "a client for each name") if isinstance(lab, Mapping) else {"": lab}


def services_with_settings(
    lab: Client | Mapping[str, Client],
    settings: object,
    options: Mapping[str, Any],
    allowed: str,
) -> dict[str, tuple[Client, dict[str, Any]]]:
    """Each service with each of the settings, by name; the name is empty where neither has one.

    Args:
        lab: A client, or clients by name.
        settings: Parameters by name, which go before ``options``; None for one setting.
        options: Parameters of all of them.
        allowed: What settings are, for whom gives something else.

    Raises:
        InvalidRequestError: What is given is no such thing, there is nothing in it, or two names are alike.
    """
    chosen: dict[str, Any] = {"": {}} if settings is None else _named("settings", settings, allowed)
    found: dict[str, tuple[Client, dict[str, Any]]] = {}
    for service, client in services_of(lab).items():
        for setting, own in chosen.items():
            if not isinstance(own, Mapping):
                raise refused(f"settings[{setting!r}]", own, allowed)
            name = ", ".join(filter(None, (service, setting)))
            if name in found:
                message = f"two systems are called {name!r}; give services and settings other names"
                raise InvalidRequestError(message, parameter="settings")
            found[name] = (client, {**options, **own})
    return found


def _named(argument: str, given: Any, allowed: str) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not given or not all(isinstance(one, str) and one for one in given):
        raise refused(argument, given, allowed)
    if len({name.strip() for name in given}) < len(given):
        message = f"two names of {argument} are alike: {', '.join(map(repr, given))}"
        raise InvalidRequestError(message, parameter=argument)
    return dict(given)
