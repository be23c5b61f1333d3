"""The outcome of a call, and what it cost; and whom a warning about it concerns."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from speechlab.errors import SpeechLabError
    from speechlab.store import Attempt, Stored


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call.

    Attributes:
        status: One of ``STATUSES``.
        stored: The result, if there is one.
        error: The error of a call that failed just now.
        error_text: What to say where there is no error object: of an earlier run, or why it was not asked.
        error_type: Name of the error's class in that case.
        http_status: Its HTTP status in that case.
        attempts: How often it was sent now.
        latency_s: Seconds from the call to the end of its reply, waits and retries included.
        first_byte_s: Seconds from the last sending to the head of its reply.
        characters: Characters sent now, once for all attempts.
        audio_s: Seconds of audio made or heard now.
        tokens: Tokens read and written now.
    """

    status: str
    stored: Stored | None = None
    error: SpeechLabError | None = None
    error_text: str | None = None
    error_type: str | None = None
    http_status: int | None = None
    attempts: int = 0
    latency_s: float | None = None
    first_byte_s: float | None = None
    characters: int = 0
    audio_s: float = 0.0
    tokens: int = 0

    @classmethod
    def failed_before(cls, attempt: Attempt, status: str) -> Outcome:
        """The outcome of a call that failed in an earlier run and was not made again."""
        return cls(
            status,
            error_text=attempt.error or "failed before",
            error_type=attempt.error_type,
            http_status=attempt.http_status,
        )


def calls_from_outside() -> int:
    """Return the ``stacklevel`` of a warning that concerns the line that called speechlab."""
    level, frame = 1, sys._getframe(1)  # noqa: SLF001 - as warnings do; inspect.stack reads files
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "speechlab":
        level, frame = level + 1, frame.f_back
    return level


def advise(error: SpeechLabError, text: str) -> None:
    """Let an error also say what to do about it, after what it says already."""
    error.advice = f"{error.advice}; {text}" if error.advice else text
