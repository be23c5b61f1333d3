"""Systems of a study: services, settings of a service, and outputs that exist."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from speechlab import batch
from speechlab._arguments import build_argument_error, is_bool, require_columns
from speechlab.client import Client, get_service
from speechlab.errors import (
    APIConnectionError,
    AuthenticationError,
    ContractError,
    InvalidRequestError,
    PermissionDeniedError,
    ServerError,
    SpeechLabError,
)
from speechlab.evaluate._study_arguments import check_client

if TYPE_CHECKING:
    import pandas as pd


T = TypeVar("T")
# Errors of a service that cannot be asked at all.
UNUSABLE_ERRORS = (APIConnectionError, AuthenticationError, PermissionDeniedError, ServerError, ContractError)


def resolve_services(lab: Client | Mapping[str, Client]) -> dict[str, Client]:
    """Return the clients of a study by name; a single client has no name."""
    if isinstance(lab, list | tuple) and lab:
        names = ", ".join(f"{name!r}: …" for name in "abcdefgh"[: len(lab)])
        message = f"lab is a {type(lab).__name__} of {len(lab)}; give each a name for the report: {{{names}}}"
        raise InvalidRequestError(message, parameter="lab")
    return (
        _check_named_mapping("lab", lab, "a client for each name") if isinstance(lab, Mapping) else {"": lab}
    )


def ask_each_service(
    clients: Mapping[str, Client], ask: Callable[[str, Client], T], *, needed: bool = True
) -> tuple[dict[str, T], dict[str, str]]:
    """Ask the client of each system. If a service cannot be asked, the others continue."""
    answers: dict[str, T] = {}
    errors: dict[int, SpeechLabError] = {}
    for name, client in clients.items():
        if id(client) in errors:
            continue
        try:
            answers[name] = ask(name, client)
        except UNUSABLE_ERRORS as error:
            errors[id(client)] = error
    if needed and errors and not answers:
        raise next(iter(errors.values()))
    return answers, {name: str(errors[id(client)]) for name, client in clients.items() if name not in answers}


def process_in_turns(
    requests: Mapping[str, batch.TableRequest], *, needed: bool = True
) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """Have systems process tables row by row in turns. If a service cannot be asked, the others continue."""
    with batch.suppress_failure_warnings():
        tables, errors = batch.process_in_turns(requests, UNUSABLE_ERRORS)
    if needed and errors and not tables:
        raise next(iter(errors.values()))
    return tables, {name: str(errors[name]) for name in requests if name in errors}


def describe_unreachable_services(unreachable: Mapping[str, str]) -> list[str]:
    """Return a sentence with the reason for each system that could not be asked."""
    return [
        f"{name or 'The service'} could not be asked: {why.rstrip('.')}." for name, why in unreachable.items()
    ]


def combine_services_and_settings(
    lab: Client | Mapping[str, Client] | None,
    settings: object,
    options: Mapping[str, Any],
    allowed: str,
    existing: Collection[str],
    **others: object,
) -> dict[str, tuple[Client, dict[str, Any]]]:
    """Return each service with each setting by name, which is empty if neither has one; none without a client."""
    if lab is None:
        _check_no_settings(settings=settings, **others, **options)
        if not existing:
            raise build_argument_error("lab", None, "a Client, clients by name, or None with hypotheses=")
        return {}
    chosen: dict[str, Any] = (
        {"": {}} if settings is None else _check_named_mapping("settings", settings, allowed)
    )
    systems: dict[str, tuple[Client, dict[str, Any]]] = {}
    for service, client in resolve_services(lab).items():
        check_client("lab", client, "; pass several as a dict by name")
        for setting, parameters in chosen.items():
            if not isinstance(parameters, Mapping):
                raise build_argument_error(f"settings[{setting!r}]", parameters, allowed)
            name = ", ".join(filter(None, (service, setting)))
            if name in systems:
                message = f"two systems are called {name!r}; give services and settings other names"
                raise InvalidRequestError(message, parameter="settings")
            systems[name] = (client, {**options, **parameters})
    if existing:
        systems = {name or "lab": system for name, system in systems.items()}
    if twice := set(systems).intersection(existing):
        message = f"two systems are called {min(twice)!r}; give one another name in hypotheses="
        raise InvalidRequestError(message, parameter="hypotheses")
    return systems


def to_status_columns(texts: pd.Series[Any]) -> dict[str, Any]:
    """Return how rows with outputs that exist ended: ``status`` and ``error``."""
    is_missing = texts.isna()
    reasons = {True: "the table has no output of this system", False: None}
    return {"status": is_missing.map({True: "error", False: "cached"}), "error": is_missing.map(reasons)}


def resolve_existing_outputs(frame: pd.DataFrame, hypotheses: object, **others: object) -> dict[str, str]:
    """Return the columns of outputs that exist, by the names of their systems."""
    if hypotheses is None:
        return {}
    columns = [hypotheses] if isinstance(hypotheses, str) else hypotheses
    by_name = {str(column): column for column in columns} if isinstance(columns, list | tuple) else columns
    columns_by_name = _check_named_mapping(
        "hypotheses", by_name, "the column of each system, as in {'a': 'text_a'}"
    )
    frame = require_columns(frame, *columns_by_name.values())
    _check_no_settings(**others)
    return columns_by_name


def _check_no_settings(**others: object) -> None:
    """Refuse arguments that change what a system is asked, where its outputs exist already."""
    if setting := next((name for name, value in others.items() if value), None):
        message = f"{setting}= needs systems that can be asked, and hypotheses= has outputs that exist; leave one out"
        raise InvalidRequestError(message, parameter=setting)


def _check_named_mapping(argument: str, mapping: Any, allowed: str) -> dict[str, Any]:
    if not isinstance(mapping, Mapping) or not mapping or not all(isinstance(k, str) and k for k in mapping):
        raise build_argument_error(argument, mapping, allowed)
    if len({name.strip() for name in mapping}) < len(mapping):
        message = f"two names of {argument} are alike: {', '.join(map(repr, mapping))}"
        raise InvalidRequestError(message, parameter=argument)
    return dict(mapping)


class System(NamedTuple):
    """A recognizer: a client with its settings.

    ``name`` is empty if it is the only one, ``lab`` None for outputs that exist, which stand in the column ``had``.
    """

    name: str
    lab: Client | None
    options: dict[str, Any]
    had: str = ""

    @property
    def is_streaming(self) -> bool:
        """Whether it recognizes recordings while they are spoken."""
        return bool(self.options.get("stream"))

    def find_unstreamed_system(self, systems: Iterable[System]) -> System | None:
        """Return the same system with whole recordings; None if it is not among the others."""
        options = {**self.options, "stream": True}
        return next(
            (
                system
                for system in systems
                if not system.is_streaming
                and system.lab is self.lab
                and {**system.options, "stream": True} == options
                and not system.had
            ),
            None,
        )

    @property
    def hotwords(self) -> list[str]:
        """The hotwords for all of its rows."""
        hotwords = self.options.get("hotwords")
        return list(hotwords) if isinstance(hotwords, list | tuple | set | frozenset) else []


def build_systems(
    lab: Client | Mapping[str, Client] | None,
    settings: object,
    existing: Mapping[str, str],
    *,
    stream: bool,
    options: Mapping[str, Any],
) -> list[System]:
    """Return the systems: each service with each of the settings, and those whose outputs exist."""
    if not is_bool(stream):
        raise build_argument_error("stream", stream, "True or False")
    asking: Mapping[str, Any] = combine_services_and_settings(
        lab, settings, options, _PARAMETERS, existing, stream=stream
    )
    if stream:
        asking = _add_streaming_variants(asking)
    systems = [System(name, client, parameters) for name, (client, parameters) in asking.items()]
    systems += [System(name, None, {}, f"{EXISTING_PREFIX}{column}") for name, column in existing.items()]
    return systems if len(systems) > 1 else [systems[0]._replace(name="")]


def _add_streaming_variants(asking: Mapping[str, Any]) -> dict[str, Any]:
    """Return each system with whole recordings and with streams, as far as it can."""
    systems = {}
    for name, (client, parameters) in asking.items():
        check_client("lab", client)
        functions = get_service(client).functions or {"transcribe"}
        for form, function in (("whole", "transcribe"), ("streamed", "transcribe_stream")):
            if function in functions:
                arguments = {**parameters, "stream": True} if form == "streamed" else parameters
                systems[", ".join(filter(None, (name, form)))] = (client, dict(arguments))
    if not any(parameters.get("stream") for _, parameters in systems.values()):
        message = "stream=True needs a system that recognizes streams: sl.system(name, transcribe_stream=f)"
        raise InvalidRequestError(message, parameter="stream")
    return systems


# Prefix of the columns of outputs that exist, during a study.
EXISTING_PREFIX = "speechlab: had "
_PARAMETERS = "parameters of Client.transcribe for each name, as in {'plain': {}, 'skipping': {'vad': 'on'}}"
