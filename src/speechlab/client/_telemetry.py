"""Spans of OpenTelemetry for the calls of a client, made from its events; the package is loaded on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._require import require

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.trace import Span, Tracer, TracerProvider

    from speechlab.client._events import CallEvent


class _Spans:
    """Turns events into spans: one for each sending of each call."""

    def __init__(self, trace: Any, tracer: Tracer) -> None:
        self._trace = trace
        self._tracer = tracer
        self._open: dict[str, Span] = {}

    def __call__(self, event: CallEvent) -> None:
        if event.kind == "request":
            # The parent is the span that is current in the context of the call.
            self._open[event.call_id] = self._tracer.start_span(
                f"speechlab {event.operation}",
                kind=self._trace.SpanKind.CLIENT,
                attributes={"speechlab.operation": event.operation, "speechlab.attempt": event.attempt},
            )
        elif event.kind == "response":
            span = self._open.get(event.call_id)
            if span is not None and event.status is not None:
                span.set_attribute("http.response.status_code", event.status)
        else:
            span = self._open.pop(event.call_id, None)
            if span is not None:
                self._end(span, event)

    def _end(self, span: Span, event: CallEvent) -> None:
        failure = event.error
        if failure is None and event.status is not None and event.status >= 400:
            failure = str(event.status)  # a reply that was asked for as it is
        if event.delay_s is not None:
            span.set_attribute("speechlab.retry_delay_s", event.delay_s)
        if failure is not None:
            span.set_attribute("error.type", failure)
            span.set_status(self._trace.StatusCode.ERROR)
        span.end()


def opentelemetry_hook(tracer_provider: TracerProvider | None = None) -> Callable[[CallEvent], None]:
    """A function for a client's ``on_event`` that makes a span of OpenTelemetry for each sending of each call.

    A span is named ``speechlab <operation>``. It ends with the whole reply, or with the head of a stream, and its
    parent is the span that is current where the call is made, with ``Client`` as with ``AsyncClient``. It has the
    attributes ``speechlab.operation``, ``speechlab.attempt``, ``http.response.status_code``, and where the sending
    failed ``error.type`` and ``speechlab.retry_delay_s``: no text, audio, key or address. Results that come from
    the store make no span. One hook may serve several clients.

    Args:
        tracer_provider: Where the spans go; None for the global provider.

    Raises:
        MissingDependencyError: opentelemetry-api is not installed (``pip install 'speechlab[otel]'``).
    """
    trace = require("opentelemetry.trace")
    return _Spans(trace, trace.get_tracer("speechlab", tracer_provider=tracer_provider))
