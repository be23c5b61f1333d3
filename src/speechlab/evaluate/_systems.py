"""Systems of a study: services, settings of a service, or both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from speechlab._arguments import refused, require_columns
from speechlab.errors import (
    APIConnectionError,
    AuthenticationError,
    ContractError,
    InvalidRequestError,
    PermissionDeniedError,
    ServerError,
    SpeechLabError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from speechlab.client import Client

T = TypeVar("T")
UNUSABLE = (APIConnectionError, AuthenticationError, PermissionDeniedError, ServerError, ContractError)
"""Errors of a service that cannot be asked at all."""


def services_of(lab: Client | Mapping[str, Client]) -> dict[str, Client]:
    """Return the clients of a study by name; a single client has no name."""
    return _named("lab", lab, "a client for each name") if isinstance(lab, Mapping) else {"": lab}


def asked_of_each(
    clients: Mapping[str, Client], ask: Callable[[str, Client], T], *, needed: bool = True
) -> tuple[dict[str, T], dict[str, str]]:
    """Ask the client of each system. If a service cannot be asked, the others continue."""
    found: dict[str, T] = {}
    errors: dict[int, SpeechLabError] = {}
    for name, client in clients.items():
        if id(client) in errors:
            continue
        try:
            found[name] = ask(name, client)
        except UNUSABLE as error:
            errors[id(client)] = error
    if needed and errors and not found:
        raise next(iter(errors.values()))
    return found, {name: str(errors[id(client)]) for name, client in clients.items() if name not in found}


def told_gone(gone: Mapping[str, str]) -> list[str]:
    """Return a sentence with the reason for each system that could not be asked."""
    return [f"{name or 'The service'} could not be asked: {why.rstrip('.')}." for name, why in gone.items()]


def services_with_settings(
    lab: Client | Mapping[str, Client],
    settings: object,
    options: Mapping[str, Any],
    allowed: str,
) -> dict[str, tuple[Client, dict[str, Any]]]:
    """Return each service with each of the settings, by name; the name is empty if neither has one."""
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


def existing_of(frame: pd.DataFrame, argument: str, given: object, **others: object) -> dict[str, str]:
    """Return the columns of outputs that exist, by the names of their systems."""
    if given is None:
        return {}
    columns = [given] if isinstance(given, str) else given
    named = {str(one): one for one in columns} if isinstance(columns, list | tuple) else columns
    found = _named(argument, named, "the column of each system, as in {'a': 'text_a'}")
    require_columns(frame, *found.values())
    without_settings(argument, **others)
    return found


def without_settings(argument: str, **others: object) -> None:
    """Refuse arguments that change what a system is asked, where its outputs exist already."""
    if wrong := next((name for name, value in others.items() if value), None):
        message = (
            f"{wrong}= needs systems that can be asked, and {argument}= has outputs that exist; leave one out"
        )
        raise InvalidRequestError(message, parameter=wrong)


def _named(argument: str, given: Any, allowed: str) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not given or not all(isinstance(one, str) and one for one in given):
        raise refused(argument, given, allowed)
    if len({name.strip() for name in given}) < len(given):
        message = f"two names of {argument} are alike: {', '.join(map(repr, given))}"
        raise InvalidRequestError(message, parameter=argument)
    return dict(given)
