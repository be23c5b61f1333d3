"""Systems of a study: services, settings of a service, and outputs that exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from speechlab._arguments import is_bool, refused, require_columns
from speechlab.client import functions_of
from speechlab.errors import (
    APIConnectionError,
    AuthenticationError,
    ContractError,
    InvalidRequestError,
    PermissionDeniedError,
    ServerError,
    SpeechLabError,
)
from speechlab.evaluate._arguments import check_client

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

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


def systems_asked(
    lab: Client | Mapping[str, Client] | None,
    settings: object,
    options: Mapping[str, Any],
    allowed: str,
    had: Collection[str],
    **others: object,
) -> dict[str, tuple[Client, dict[str, Any]]]:
    """Return the systems to ask beside those whose outputs exist: none where no client is given."""
    if lab is None:
        without_settings("hypotheses", settings=settings, **others, **options)
        if not had:
            raise refused("lab", None, "a Client, clients by name, or None beside hypotheses=")
        return {}
    systems = services_with_settings(lab, settings, options, allowed)
    if had:
        systems = {name or "lab": asked for name, asked in systems.items()}
    if twice := set(systems).intersection(had):
        message = f"two systems are called {min(twice)!r}; give one another name in hypotheses="
        raise InvalidRequestError(message, parameter="hypotheses")
    return systems


def existing_outputs(texts: pd.Series[Any]) -> dict[str, Any]:
    """Return how rows with outputs that exist ended: ``status`` and ``error``."""
    missing = texts.isna()
    told = {True: "the table has no text here", False: None}
    return {"status": missing.map({True: "error", False: "cached"}), "error": missing.map(told)}


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
    def streams(self) -> bool:
        """Whether it recognises recordings while they are spoken."""
        return bool(self.options.get("stream"))

    def beside(self, others: Iterable[System]) -> System | None:
        """The same system with whole recordings; None if it is not among the others."""
        how = {**self.options, "stream": True}
        return next(
            (
                one
                for one in others
                if not one.streams
                and one.lab is self.lab
                and {**one.options, "stream": True} == how
                and not one.had
            ),
            None,
        )

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
    stream: bool,
    options: Mapping[str, Any],
) -> list[System]:
    """Return the systems: each service with each of the settings, and those whose outputs exist."""
    if not is_bool(stream):
        raise refused("stream", stream, "True or False")
    options = {"identify": identify, **options}
    asking: Mapping[str, Any] = systems_asked(lab, settings, options, _PARAMETERS, had, stream=stream)
    if stream:
        asking = _in_both_ways(asking)
    found = [System(name, client, bool(own.pop("identify")), own) for name, (client, own) in asking.items()]
    found += [System(name, None, False, {}, f"{HAD}{column}") for name, column in had.items()]
    return found if len(found) > 1 else [found[0]._replace(name="")]


def _in_both_ways(asking: Mapping[str, Any]) -> dict[str, Any]:
    """Each system with whole recordings and with streams, as far as it can."""
    found = {}
    for name, (client, own) in asking.items():
        check_client("lab", client)
        functions = functions_of(client)[0] or {"transcribe"}
        for way, function in (("whole", "transcribe"), ("streamed", "transcribe_stream")):
            if function in functions:
                how = {**own, "stream": True} if way == "streamed" else own
                found[", ".join(filter(None, (name, way)))] = (client, dict(how))
    if not any(own.get("stream") for _, own in found.values()):
        message = "stream=True needs a system that recognises streams: sl.system(name, transcribe_stream=f)"
        raise InvalidRequestError(message, parameter="stream")
    return found


HAD = "speechlab: had "
"""Prefix of the columns of outputs that exist, during a study."""
_PARAMETERS = "parameters of Client.transcribe for each name, as in {'plain': {}, 'skipping': {'vad': 'on'}}"
