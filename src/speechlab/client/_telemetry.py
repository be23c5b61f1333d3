"""OpenTelemetry spans from the events of a client; the package is imported on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._require import require

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.trace import Span, Tracer, TracerProvider

    from speechlab.client._events import CallEvent


class _Spans:
    """Turns events into spans: one for each attempt of each call."""

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
            failure = str(event.status)  # of ``request``, for which every status is a reply
        if event.delay_s is not None:
            span.set_attribute("speechlab.retry_delay_s", event.delay_s)
        if failure is not None:
            span.set_attribute("error.type", failure)
            span.set_status(self._trace.StatusCode.ERROR)
        span.end()


def opentelemetry_hook(tracer_provider: TracerProvider | None = None) -> Callable[[CallEvent], None]:
    """A hook for a client's ``on_event`` that makes an OpenTelemetry span for each attempt of each call.

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
    return _Spans(trace, trace.get_tracer("speechlab", tracer_provider=tracer_provider))
