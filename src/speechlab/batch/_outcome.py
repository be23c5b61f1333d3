"""A planned call, its result and its outcome, and helpers for warnings and errors about them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speechlab.client import Operation, Timing
    from speechlab.errors import SpeechLabError
    from speechlab.store import Attempt, Blob, StoredResult


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call to make for a row, or for several equal rows."""

    key: str
    operation: Operation[Any] = field(repr=False)  # with the path of a recording, not its audio
    options: dict[str, Any]  # canonical, and shared by calls with equal ones
    content: dict[str, Any] = field(repr=False)  # the text, or the digest of the recording
    characters: int = 0  # of the text, in code points
    audio_s: float = 0.0  # of the recording, by its header; 0 if unknown

    @property
    def size(self) -> float:
        """Characters of the text, or seconds of the recording, with which the time of a call goes."""
        return self.characters or self.audio_s

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters that can change the result."""
        return {**self.options, **self.content}


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call, as the store keeps it."""

    request: dict[str, Any]
    response: dict[str, Any]
    timing: Timing
    files: Mapping[str, tuple[bytes, str] | Blob]
    audio_s: float = 0.0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call; times and amounts are those of this run."""

    status: str  # one of ``STATUSES``
    stored: StoredResult | None = None
    error: SpeechLabError | None = None  # of a call that failed in this run
    error_text: str | None = None  # where there is no error: of an earlier run, or why the call was not made
    error_type: str | None = None  # name of the error's class in that case
    http_status: int | None = None
    attempts: int = 0
    latency_s: float | None = None  # from the call to the end of its reply, waits and retries included
    first_byte_s: float | None = None  # from the last attempt's start to the head of its reply
    failed_at: float | None = None  # Unix time in seconds; a result has its own
    characters: int = 0  # sent, counted once for all attempts
    audio_s: float = 0.0  # synthesized or transcribed
    tokens: int = 0  # read and written

    @classmethod
    def from_earlier_failure(cls, attempt: Attempt, status: str) -> Outcome:
        """Return the outcome of a call that failed in an earlier run and was not made again."""
        return cls(
            status,
            error_text=(attempt.error or "failed before").partition("\n\n")[0],  # without the traceback
            error_type=attempt.error_type,
            http_status=attempt.http_status,
            failed_at=attempt.started + (attempt.latency_s or 0.0),
        )


def find_user_stacklevel() -> int:
    """Return the ``stacklevel`` for a warning at the line of the user's code that called speechlab."""
    level, frame = 1, sys._getframe(1)  # noqa: SLF001 - as warnings do; inspect.stack reads files
    ours = {"speechlab", "contextlib"}
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ours:
        level, frame = level + 1, frame.f_back
    return level


def add_advice(error: SpeechLabError, text: str) -> None:
    """Add advice to an error, after the advice that it has."""
    error.advice = f"{error.advice}; {text}" if error.advice else text


# How the reason begins for which a take could not be judged, if it is the recognizer's; reports look for it.
UNRECOGNIZED = "the recognizer failed: "
_warns_here: ContextVar[bool] = ContextVar("warns_here", default=True)


@contextmanager
def suppress_failure_warnings() -> Iterator[None]:
    """Suppress the warning about failed rows, not of a stop, for a block whose caller reports them."""
    before = _warns_here.set(False)
    try:
        yield
    finally:
        _warns_here.reset(before)


def is_warning() -> bool:
    """Return whether this block is to warn about rows."""
    return _warns_here.get()
