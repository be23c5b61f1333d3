"""Counters of the service for Prometheus, in its text form. Keys appear by their ids, never in plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.core import Metric

    from speechlab.service._accounts.ledger import UsageRow

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS_S = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_WHOSE = ("operation", "provider", "key")
_AMOUNTS = {
    "characters": ("characters", "Unicode code points of texts given."),
    "input_bytes": ("input_bytes", "Bytes of texts and recordings given."),
    "audio_bytes": ("audio_bytes", "Bytes of audio made."),
    "audio_s": ("audio_seconds", "Seconds of audio made or heard."),
    "prompt_tokens": ("prompt_tokens", "Tokens read."),
    "completion_tokens": ("completion_tokens", "Tokens written."),
}
"""Fields of a row, and the name and description of the counter that sums each."""


def gauge(name: str, text: str, values: dict[str, float] | float, label: str = "engine") -> GaugeMetricFamily:
    """Return a gauge with a current value, or one value for each value of a label."""
    if not isinstance(values, dict):
        return GaugeMetricFamily(name, text, value=values)
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, measured in values.items():
        family.add_metric([value], measured)
    return family


class Counters:
    """The service's counters; used from the event loop only."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"speechlab_{name}", text, labels, registry=registry)

        def seconds(name: str, text: str, label: str) -> Histogram:
            return Histogram(f"speechlab_{name}", text, [label], buckets=_BUCKETS_S, registry=registry)

        self._requests = counter("requests", "Requests by route and status.", "route", "method", "status")
        self._seconds = seconds(
            "request_seconds", "Seconds from the head of a request to the end of its reply.", "route"
        )
        self._first = seconds(
            "first_audio_seconds", "Seconds from the admission of a text to its first sound.", "engine"
        )
        self._refused = counter(
            "refused", "Operations that a rate limit refused, by whose limit it is.", "scope"
        )
        self._operations = counter(
            "operations", "Operations that reached an engine, by key id.", *_WHOSE, "transport", "status"
        )
        self._amounts = {name: counter(metric, text, *_WHOSE) for name, (metric, text) in _AMOUNTS.items()}

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def first_audio(self, engine: str, seconds: float) -> None:
        """Record the time to the first sound of a text."""
        self._first.labels(engine).observe(seconds)

    def refused(self, scope: str) -> None:
        """Count an operation that a limit refused."""
        self._refused.labels(scope).inc()

    def used(self, row: UsageRow) -> None:
        whose = (row.operation, row.provider, row.key_id)
        self._operations.labels(*whose, row.transport, row.status).inc()
        for name, counter in self._amounts.items():
            if amount := getattr(row, name):
                counter.labels(*whose).inc(amount)

    def text(self, gauges: Iterable[Metric]) -> bytes:
        return generate_latest(_Collected(self._registry, gauges))


class _Collected:
    """Gauges, and counters without their start times."""

    def __init__(self, registry: CollectorRegistry, gauges: Iterable[Metric]) -> None:
        self._registry = registry
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        for family in self._registry.collect():
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family
        yield from self._gauges
