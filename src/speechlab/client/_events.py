"""Timings of results and errors, events for hooks, and sums of what was spent."""

from __future__ import annotations

import logging
import threading
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from speechlab.errors import SpeechLabError

logger = logging.getLogger("speechlab.client")


@dataclass(frozen=True, slots=True)
class Timing:
    """Duration of a call and its parts, in seconds.

    Attributes:
        attempts: How often it was sent.
        latency_s: From the call to the end of the reply, with retries and waits.
        first_byte_s: From the last sending to the head of its reply, or None if none came.
        queued_s: Waiting here for a free place under the client's limit; part of ``latency_s``.
        processing_s: What the service says that its engine took (``Server-Timing: engine;dur=…``), or None.
        service_queued_s: How long the call waited in the service's queue, as it says (``queue;dur=…``), or None; part
            of ``first_byte_s``.

    Example:
        >>> timing = Timing(attempts=2, latency_s=1.5, queued_s=0.5)
        >>> timing.attempts, timing.latency_s - timing.queued_s
        (2, 1.0)
    """

    attempts: int = 1
    latency_s: float = 0.0
    first_byte_s: float | None = None
    queued_s: float = 0.0
    processing_s: float | None = None
    service_queued_s: float | None = None


def server_timing_s(headers: Mapping[str, str], wanted: str) -> float | None:
    """Seconds of a part of the service's work, by its ``Server-Timing`` header; None where it does not tell.

    Args:
        headers: Headers, names in lower case.
        wanted: Name of the part.
    """
    for entry in headers.get("server-timing", "").split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if name == wanted and key.strip() == "dur":
                try:
                    milliseconds = float(value.strip().strip('"'))
                except ValueError:
                    return None
                return milliseconds / 1000 if 0 <= milliseconds < float("inf") else None
    return None


@dataclass(frozen=True, slots=True)
class CallEvent:
    """A step of a call, for the ``on_event`` hook.

    Attributes:
        kind: ``request`` before each sending, ``response`` at the head of each reply, ``retry`` before each wait.
            The last event is ``done`` when the reply is there (of a stream: its head), or ``error`` when the call
            is given up or cancelled.
        operation: ``voices``, ``synthesize``, ``stream_speech``, ``transcribe``, ``translate``,
            ``stream_translation`` or ``request``.
        attempt: Number of the sending, from 1.
        status: HTTP status of a reply.
        delay_s: Seconds to wait before the next sending.
        elapsed_s: Seconds since the call began.
        error: Name of the error's class.
        call_id: The same for all events of a call, and random: tells calls apart that run at once.

    Example:
        >>> event = CallEvent("retry", "synthesize", attempt=1, status=429, delay_s=2.0)
        >>> f"{event.operation}: again in {event.delay_s} s"
        'synthesize: again in 2.0 s'
    """

    kind: Literal["request", "response", "retry", "error", "done"]
    operation: str
    attempt: int
    status: int | None = None
    delay_s: float | None = None
    elapsed_s: float = 0.0
    error: str | None = None
    call_id: str = ""


def emit(hook: Callable[[CallEvent], None] | None, event: CallEvent) -> None:
    """Log an event and hand it to the hook; a hook that fails must not fail the call."""
    logger.debug(
        "%s %s attempt=%d status=%s delay=%s elapsed=%.3f error=%s",
        event.operation,
        event.kind,
        event.attempt,
        event.status,
        event.delay_s,
        event.elapsed_s,
        event.error,
    )
    if hook is None:
        return
    try:
        hook(event)
    except BaseException as error:
        # sys.exit() would end the loop of all synchronous clients; on the main thread it may be a real Ctrl-C
        if not isinstance(error, Exception) and threading.current_thread() is threading.main_thread():
            raise
        logger.exception("the on_event hook failed; the call goes on")


def attach_timing(error: SpeechLabError, timing: Timing) -> None:
    """Put the timing, and the attempts where the error has them, on an error."""
    error.timing = timing
    if hasattr(error, "attempts"):
        error.attempts = timing.attempts


@dataclass(frozen=True, slots=True)
class CallTotals:
    """Sums of what was spent through a client, as far as requests and replies tell.

    Attributes:
        calls: Calls that succeeded.
        synthesized_chars: Code points of text that were spoken.
        audio_bytes: Bytes of audio received.
        recognized_s: Seconds of audio transcribed.
        translated_chars: Code points of text that were translated.
        prompt_tokens: Tokens of prompts, where the service tells.
        completion_tokens: Tokens of translations, where the service tells.
        possibly_metered: Calls of which an attempt failed after it had been sent in full, and may have been billed:
            beside the calls that succeeded, or among those that did not.

    Example:
        >>> CallTotals(calls=2, synthesized_chars=40).as_dict()["synthesized_chars"]
        40
    """

    calls: int = 0
    synthesized_chars: int = 0
    audio_bytes: int = 0
    recognized_s: float = 0.0
    translated_chars: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    possibly_metered: int = 0

    def as_dict(self) -> dict[str, float]:
        """The sums by name."""
        return asdict(self)


class RunningTotals:
    """Sums, added to from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums = CallTotals()

    def add(self, **amounts: float) -> None:
        """Add to the named sums."""
        with self._lock:
            sums = {name: getattr(self._sums, name) + amount for name, amount in amounts.items()}
            self._sums = replace(self._sums, **sums)

    @property
    def sums(self) -> CallTotals:
        """The sums so far."""
        return self._sums
