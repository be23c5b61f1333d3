"""The arguments of a batch: by type for checkers, by signature for notebooks, and checked."""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict, TypeVar

from speechlab.batch._run.progress import Progress, Watcher
from speechlab.batch._run.rules import Budget, Rules, Stop
from speechlab.errors import InvalidRequestError
from speechlab.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from speechlab.batch._plan.parameters import Column
    from speechlab.contract import Voice

CHUNK_ROWS = 5_000
"""Rows of a file or stream that are in memory at once."""

DEFAULT_CONCURRENCY = 8
"""Calls under way at once; the client's limiter begins with fewer, and may stay below."""

StoreLike = Store | str | os.PathLike[str] | None
"""A store, the folder of one, or None for the user's own."""

F = TypeVar("F", bound="Callable[..., Any]")


class RunOptions(TypedDict, total=False):
    """How a plan is run; none of these can change a result."""

    concurrency: int
    progress: Progress
    on_error: Literal["row", "raise"]
    retry_failed: bool
    max_error_share: float | None
    budget: Budget | None
    executor: Any
    rate: float | None


class KeepingOptions(TypedDict, total=False):
    """Where results go, and how the table is read."""

    store: StoreLike
    prefix: str
    chunk_rows: int


class SynthesisPlanOptions(KeepingOptions, total=False):
    """Arguments of :func:`speechlab.batch.plan_synthesis`."""

    text: str
    voice: str | Voice | Column
    format: str | Column
    sample_rate: int | str | Column | None
    temperature: float | str | Column | None
    repeat: int


class TranscriptionPlanOptions(KeepingOptions, total=False):
    """Arguments of :func:`speechlab.batch.plan_transcription`."""

    audio: str
    language: str | Column | None
    hotwords: Sequence[str] | str | Column | None
    vad: str | int | Column
    min_silence_gap: int | str | Column | None
    segment_padding: int | str | Column | None
    initial_segment_padding_ms: int | str | Column | None
    speech_pad_ms: int | str | Column | None
    min_segment_duration: float | str | Column | None
    temperature: float | str | Column | None
    top_p: float | str | Column | None
    frequency_penalty: float | str | Column | None
    repetition_penalty: float | str | Column | None
    session_id: str | Column | None
    repeat: int


class TranslationPlanOptions(KeepingOptions, total=False):
    """Arguments of :func:`speechlab.batch.plan_translation`."""

    text: str
    source_lang: Required[str | Column]
    target_lang: Required[str | Column]
    keywords: Sequence[str] | str | Column
    context: str | Column | None
    model: str | Column | None
    repeat: int


class SynthesisOptions(SynthesisPlanOptions, RunOptions, total=False):
    """Arguments of :func:`speechlab.batch.synthesize`."""


class TranscriptionOptions(TranscriptionPlanOptions, RunOptions, total=False):
    """Arguments of :func:`speechlab.batch.transcribe`."""


class TranslationOptions(TranslationPlanOptions, RunOptions, total=False):
    """Arguments of :func:`speechlab.batch.translate`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """The same as :class:`KeepingOptions`, checked."""

    store: StoreLike = None
    prefix: str = ""
    chunk_rows: int = CHUNK_ROWS

    def __post_init__(self) -> None:
        check_store(self.store)
        if not isinstance(self.prefix, str):
            raise _refused("prefix", self.prefix, "a string")
        if not _is_whole(self.chunk_rows) or self.chunk_rows < 1:
            raise _refused("chunk_rows", self.chunk_rows, "a whole number of at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The same as :class:`RunOptions`, checked; see :func:`speechlab.batch.run`."""

    concurrency: int = DEFAULT_CONCURRENCY
    progress: Progress = True
    on_error: Literal["row", "raise"] = "row"
    retry_failed: bool = True
    max_error_share: float | None = 0.5
    budget: Budget | None = None
    executor: Any = None
    rate: float | None = None

    def __post_init__(self) -> None:
        if not _is_whole(self.concurrency) or self.concurrency < 1:
            raise _refused("concurrency", self.concurrency, "a whole number of at least 1")
        if not _is_progress(self.progress):
            kinds = (
                "True, False, a function of (calls done, calls in all), or a watcher such as BatchPreview()"
            )
            raise _refused("progress", self.progress, kinds)
        if self.on_error not in ("row", "raise"):
            raise _refused("on_error", self.on_error, "'row' or 'raise'")
        if not isinstance(self.retry_failed, bool):
            raise _refused("retry_failed", self.retry_failed, "True or False")
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise _refused("budget", self.budget, "a speechlab.batch.Budget, or None")
        if self.rate is not None and not (_is_number(self.rate) and self.rate > 0):
            raise _refused("rate", self.rate, "a number of calls per second above 0, or None")
        Rules(Budget(), self.max_error_share, Stop())


def check_store(store: object) -> None:
    """Refuse what is no store.

    Raises:
        InvalidRequestError: It is none.
    """
    if store is not None and not isinstance(store, Store | str | os.PathLike):
        raise _refused("store", store, "a store, the path of its folder, or None for your own")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_progress(value: object) -> bool:
    return isinstance(value, bool | Watcher) or callable(value)


def _refused(name: str, value: object, allowed: str) -> InvalidRequestError:
    return InvalidRequestError(f"{name} is {value!r}; it must be {allowed}", parameter=name)


def explicit(*sources: Callable[..., Any]) -> Callable[[F], F]:
    """Show the keyword arguments that a function's ``**options`` stands for: to ``help``, and to a tab.

    Args:
        *sources: Where they are written down: their keyword-only parameters become the function's.
    """

    def show(function: F) -> F:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        shown = {
            name: one
            for source in sources
            for name, one in inspect.signature(source).parameters.items()
            if one.kind is one.KEYWORD_ONLY
        }
        function.__signature__ = signature.replace(parameters=[*own, *shown.values()])  # type: ignore[attr-defined]
        return function

    return show


def split(what: str, options: Mapping[str, Any], *sources: Callable[..., Any]) -> tuple[dict[str, Any], ...]:
    """Hand out the arguments of a call to those that take them.

    Args:
        what: What was called, for the message.
        options: The arguments.
        *sources: Who takes them.

    Raises:
        InvalidRequestError: One is unknown, or one that is needed is missing.
    """
    taken = [
        {
            name: one
            for name, one in inspect.signature(source).parameters.items()
            if one.kind is one.KEYWORD_ONLY
        }
        for source in sources
    ]
    known = {name: one for names in taken for name, one in names.items()}
    if unknown := sorted(set(options) - set(known)):
        message = (
            f"{', '.join(map(repr, unknown))} is no option of {what}; they are {', '.join(sorted(known))}"
        )
        raise InvalidRequestError(message, parameter=unknown[0])
    for name, one in known.items():
        if one.default is one.empty and name not in options:
            message = f"{what} needs {name}: a value for all rows, or the name of a column"
            raise InvalidRequestError(message, parameter=name)
    return tuple({name: options[name] for name in names if name in options} for names in taken)
