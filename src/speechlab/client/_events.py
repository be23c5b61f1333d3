"""Timings of results and errors, totals of usage, events for hooks, and a hook that makes spans of OpenTelemetry."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from speechlab._require import require

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer, TracerProvider

    from speechlab.errors import SpeechLabError


logger = logging.getLogger("speechlab.client")


@dataclass(frozen=True, slots=True)
class Timing:
    """Duration of a call and its parts, in seconds.

    Attributes:
        attempts: Number of requests sent.
        latency_s: From the call to the end of the reply, retries and waits included.
        first_byte_s: From the last request to the headers of its reply, or None if none came.
        queued_s: Wait in this client for a free place below its limit; part of ``latency_s``.
        processing_s: Time of the service's engine, as it reports it (``Server-Timing: engine;dur=…``), or None.
        service_queued_s: Wait in the service's queue, as it reports it (``queue;dur=…``), or None; part of
            ``first_byte_s``.

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


@dataclass(frozen=True, slots=True)
class CallEvent:
    """A step of a call, for the ``on_event`` hook.

    Attributes:
        kind: ``request`` before each request, ``response`` at the headers of each reply, ``retry`` before each wait.
            The last event is ``done`` when the reply is complete (for a stream: its headers), or ``error`` when the
            call fails or is cancelled.
        operation: ``voices``, ``synthesize``, ``stream_speech``, ``transcribe``, ``translate``,
            ``stream_translation`` or ``request``.
        attempt: Number of the attempt, from 1.
        status: HTTP status of a reply.
        delay_s: Seconds until the next attempt.
        elapsed_s: Seconds since the start of the call.
        error: Name of the error's class.
        call_id: A random id, the same for all events of a call; it separates concurrent calls.

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


def attach_timing(error: SpeechLabError, timing: Timing) -> None:
    """Attach the timing to an error, and the number of attempts if the error has that field."""
    error.timing = timing
    if hasattr(error, "attempts"):
        error.attempts = timing.attempts


@dataclass(frozen=True, slots=True)
class CallTotals:
    """Totals of the usage of a client, as far as requests and replies show it.

    Attributes:
        calls: Calls that succeeded.
        synthesized_chars: Code points of spoken text.
        audio_bytes: Bytes of audio received.
        recognized_s: Seconds of audio transcribed.
        translated_chars: Code points of translated text.
        prompt_tokens: Tokens of prompts, if the service reports them.
        completion_tokens: Tokens of translations, if the service reports them.
        possibly_metered: Calls with an attempt that failed after it was sent in full and may have been billed. They
            may have succeeded or failed in the end.

    Example:
        >>> CallTotals(calls=2, synthesized_chars=40).synthesized_chars
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


def opentelemetry_hook(tracer_provider: TracerProvider | None = None) -> Callable[[CallEvent], None]:
    """Return a hook for a client's ``on_event`` that makes an OpenTelemetry span for each attempt of each call.

    A span is named ``speechlab <operation>``. It ends with the complete reply, or with the headers of a stream. Its
    parent is the current span of the caller, for ``Client`` and for ``AsyncClient``. Its attributes are
    ``speechlab.operation``, ``speechlab.attempt``, ``http.response.status_code``, and after a failure ``error.type``
    and ``speechlab.retry_delay_s``. It contains no text, audio, key or address. Results from the store make no span.
    Several clients may share a hook.

    Args:
        tracer_provider: Provider of the spans; None is the global provider.

    Raises:
        MissingDependencyError: opentelemetry-api is not installed (``pip install 'speechlab[otel]'``).
    """
    trace = require("opentelemetry.trace")
    tracer: Tracer = trace.get_tracer("speechlab", tracer_provider=tracer_provider)
    spans: dict[str, Span] = {}

    def hook(event: CallEvent) -> None:
        if event.kind == "request":
            # The parent is the span that is current in the context of the call.
            spans[event.call_id] = tracer.start_span(
                f"speechlab {event.operation}",
                kind=trace.SpanKind.CLIENT,
                attributes={"speechlab.operation": event.operation, "speechlab.attempt": event.attempt},
            )
        elif event.kind == "response":
            span = spans.get(event.call_id)
            if span is not None and event.status is not None:
                span.set_attribute("http.response.status_code", event.status)
        elif (span := spans.pop(event.call_id, None)) is not None:
            failure = event.error
            if failure is None and event.status is not None and event.status >= 400:
                failure = str(event.status)  # of ``request``, for which every status is a reply
            if event.delay_s is not None:
                span.set_attribute("speechlab.retry_delay_s", event.delay_s)
            if failure is not None:
                span.set_attribute("error.type", failure)
                span.set_status(trace.StatusCode.ERROR)
            span.end()

    return hook
