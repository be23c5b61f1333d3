"""Keyword arguments of the public functions: their types, defaults, checks and signatures."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, TypeVar

from speechlab._arguments import build_argument_error, is_bool, is_number, is_whole_number, propose_name
from speechlab._brief import shorten_tracebacks
from speechlab.batch._plan.parameters import (
    Column,
    SynthesisParameters,
    TranscriptionParameters,
    TranslationParameters,
    Value,
    collect_annotation_texts,
)
from speechlab.batch._run.progress import Progress, Watcher
from speechlab.batch._run.rules import Budget
from speechlab.batch._store_options import CHUNK_ROWS, STORES_ALLOWED, KeepingOptions, is_store
from speechlab.client import Client
from speechlab.errors import InvalidRequestError
from speechlab.text import Lexicon

if TYPE_CHECKING:
    from speechlab.contract import Voice

F = TypeVar("F", bound="Callable[..., Any]")
# Maximum number of concurrent attempts. The client's scheduler begins with fewer, and may stay below it.
DEFAULT_CONCURRENCY = 16
_REQUIRED_TYPE = re.compile(r"Required\[(.*)\]")


class _Option(NamedTuple):
    """The default of an option, and the check of its value that needs neither a row nor an operation."""

    default: Any = None
    fits: Callable[[Any], bool] = bool
    allowed: str = ""


def _is_count(value: object) -> bool:
    return is_whole_number(value) and value >= 1


def _is_optional_share(value: object) -> bool:
    return value is None or (is_number(value) and 0 <= value <= 1)


# Options with a default other than None, or with a check before the first call.
_OPTIONS = {
    "text": _Option("text"),
    "audio": _Option("audio"),
    "voice": _Option("voice"),
    "vad": _Option("off"),
    "stream": _Option(default=False, fits=is_bool, allowed="True or False"),
    "keywords": _Option(()),
    "repeat": _Option(0, lambda value: is_whole_number(value) and value >= 0, "a whole number of at least 0"),
    "store": _Option(None, is_store, STORES_ALLOWED),
    "respell": _Option(
        None, lambda value: isinstance(value, Lexicon | None), "a Lexicon, as sl.text.Lexicon.read gives it"
    ),
    "prefix": _Option("", lambda value: isinstance(value, str), "a string"),
    "columns": _Option("all", lambda value: value in ("all", "result"), "'all' or 'result'"),
    "chunk_rows": _Option(CHUNK_ROWS, _is_count, "a whole number of at least 1"),
    "concurrency": _Option(DEFAULT_CONCURRENCY, _is_count, "a whole number of at least 1"),
    "progress": _Option(
        True,
        lambda value: isinstance(value, bool | Watcher) or callable(value),
        "True, False, a function of (calls done, calls in all), or a watcher such as BatchPreview()",
    ),
    "on_error": _Option("row", lambda value: value in ("row", "raise"), "'row' or 'raise'"),
    "retry_failed": _Option(default=True, fits=is_bool, allowed="True or False"),
    "max_error_share": _Option(0.5, _is_optional_share, "a number from 0 to 1, or None"),
    "budget": _Option(
        None, lambda value: isinstance(value, Budget | None), "a speechlab.batch.Budget, or None"
    ),
    "check": _Option(
        None, lambda value: isinstance(value, Client | None), "the client that recognizes the speech, or None"
    ),
    "takes": _Option(3, _is_count, "a whole number of at least 1"),
    "rate": _Option(
        None,
        lambda value: value is None or (is_number(value) and value > 0),
        "a number of calls per second above 0, or None",
    ),
    "give_up_after_s": _Option(
        None,
        lambda value: value is None or (is_number(value) and value >= 0),
        "a number of seconds of at least 0, or None",
    ),
}


# Options of the client that also apply to batches.
_CLIENT_OPTIONS = frozenset(
    {
        *("connect_timeout_s", "default_headers", "max_retries", "mode", "on_event", "patience_s"),
        *("read_timeout_s", "timeout"),
    }
)


class WaitingOptions(TypedDict, total=False):
    """The maximum wait for a service that cannot be reached or asks to wait, and the display of the wait."""

    progress: Progress
    give_up_after_s: float | None


class CallingOptions(WaitingOptions, total=False):
    """Options of a run; none of them can change a result."""

    concurrency: int
    on_error: Literal["row", "raise"]
    retry_failed: bool
    max_error_share: float | None
    budget: Budget | None
    executor: Any
    rate: float | None


class CheckingOptions(TypedDict, total=False):
    """Options of a check of each line, after which it may be spoken again."""

    check: Client | None
    takes: int
    fallback_voice: str | Voice | Column | Value | None
    language: str | Column | Value | None


class SynthesisPlanOptions(SynthesisParameters, KeepingOptions, WaitingOptions, total=False):
    """Arguments of :func:`speechlab.batch.plan_synthesis`."""


class TranscriptionPlanOptions(TranscriptionParameters, KeepingOptions, WaitingOptions, total=False):
    """Arguments of :func:`speechlab.batch.plan_transcription`."""


class TranslationPlanOptions(TranslationParameters, KeepingOptions, WaitingOptions, total=False):
    """Arguments of :func:`speechlab.batch.plan_translation`."""


class SynthesisOptions(SynthesisPlanOptions, CallingOptions, CheckingOptions, total=False):
    """Arguments of :func:`speechlab.batch.synthesize`."""


class TranscriptionOptions(TranscriptionPlanOptions, CallingOptions, total=False):
    """Arguments of :func:`speechlab.batch.transcribe`."""


class TranslationOptions(TranslationPlanOptions, CallingOptions, total=False):
    """Arguments of :func:`speechlab.batch.translate`."""


def expose_options(options: type, **other: object) -> Callable[[F], F]:
    """Show the keyword arguments behind a function's ``**options`` in ``help`` and in tab completion."""
    types, keyword = collect_annotation_texts(options), inspect.Parameter.KEYWORD_ONLY
    keywords = [
        inspect.Parameter(name, keyword, default=default, annotation=_REQUIRED_TYPE.sub(r"\1", types[name]))
        for name, default in {**_collect_option_defaults(options), **other}.items()
    ]

    names = {parameter.name for parameter in keywords}

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        direct = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD and parameter.name not in names
        ]
        function.__signature__ = signature.replace(parameters=[*direct, *keywords])  # type: ignore[attr-defined]  # help() and editors read it
        return shorten_tracebacks(function)

    return decorate


def check_idle_options(given: Mapping[str, Any]) -> None:
    """Refuse options of a check in a batch without one, where they would change nothing."""
    idle = [name for name in CheckingOptions.__annotations__ if given.get(name) is not None]
    if idle:
        message = (
            f"{idle[0]} has no effect without check; give check=lab, the client that recognizes the speech, or leave "
            f"out {', '.join(idle)}"
        )
        raise InvalidRequestError(message, parameter=idle[0])


def check_option_names(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse names that are no options of a call, with those that are meant by them."""
    known = sorted(set(known))
    if not (unknown := sorted(set(given).difference(known))):
        return
    of_client = [f"{name}=..." for name in unknown if name in _CLIENT_OPTIONS]
    hints = [f"give it to the client: lab.with_options({', '.join(of_client)})"] if of_client else []
    if others := [name for name in unknown if name not in _CLIENT_OPTIONS]:
        proposals = [propose_name(known, name).removeprefix("; ") for name in others]
        hints += filter(None, proposals)
        hints += [] if all(proposals) else [f"the options are {', '.join(known)}"]
    message = f"{', '.join(map(repr, unknown))} is no option of {what}; {'; '.join(hints)}"
    raise InvalidRequestError(message, parameter=unknown[0])


def list_call_options(operation: str) -> list[str]:
    """Return the names of what may be given on with a batch's calls: parameters of them, and options of the run."""
    kinds = {"transcribe": TranscriptionParameters, "translate": TranslationParameters}
    return [*kinds[operation].__annotations__, *CallingOptions.__annotations__]


def check_and_sort_options(what: str, given: Mapping[str, Any], *lists: type) -> tuple[Any, ...]:
    """Check the options of a call, and sort them by the TypedDict that lists each."""
    defaults = {
        name: default for options in lists for name, default in _collect_option_defaults(options).items()
    }
    check_option_names(what, given, defaults)
    for name, default in defaults.items():
        if default is inspect.Parameter.empty and given.get(name) is None:
            message = f"{what} needs {name}: a value for all rows, or the name of a column"
            raise InvalidRequestError(message, parameter=name)
    for name, value in given.items():
        option = _OPTIONS.get(name, _Option())
        if option.allowed and not option.fits(value):
            raise build_argument_error(name, value, option.allowed)
    complete = {**defaults, **given}
    return tuple({name: complete[name] for name in options.__annotations__} for options in lists)


@cache
def _collect_option_defaults(options: type) -> dict[str, Any]:
    """Return the defaults of the options of a TypedDict; ``Parameter.empty`` for required options."""
    return {
        name: inspect.Parameter.empty
        if _REQUIRED_TYPE.fullmatch(kind)
        else _OPTIONS.get(name, _Option()).default
        for name, kind in collect_annotation_texts(options).items()
    }
