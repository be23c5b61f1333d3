"""What was used: a ledger with one row for each operation that reached an engine, and counters for Prometheus.

Keys appear by their ids, never in plain text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Literal

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from speechlab.service._accounts.database import Database

# Outcome of an operation: as in ``tts.usage``, and ``cancelled`` if the client left.
Status = Literal["completed", "backend_error", "partial_backend_error", "cancelled"]

# Columns by which usage can be summed; days are those of UTC.
GROUP_COLUMNS = {
    "key": "key_id",
    "operation": "operation",
    "provider": "provider",
    "model": "model",
    "status": "status",
    "day": "date(time, 'unixepoch')",
}


@dataclass(slots=True)
class UsageRow:
    """The usage of one operation; its time is the Unix time in seconds of its end."""

    time: float
    key_id: str
    operation: str
    transport: str
    provider: str = ""
    model: str = ""
    characters: int = 0
    input_bytes: int = 0
    audio_bytes: int = 0
    audio_s: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    status: Status = "cancelled"


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """The summed usage of several operations; ``group`` has their common values, in the order of ``by``."""

    group: tuple[str, ...]
    operations: int
    failed: int
    cancelled: int
    characters: int
    input_bytes: int
    audio_bytes: int
    audio_s: float
    prompt_tokens: int
    completion_tokens: int


_COLUMNS = tuple(field.name for field in fields(UsageRow))
_INSERT_SQL = f"INSERT INTO usage ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608 - names of columns and placeholders; values are bound
_FILTER_SQL = "WHERE time >= ? AND (? IS NULL OR key_id = ?)"
_SUMMED_COLUMNS = (
    "characters",
    "input_bytes",
    "audio_bytes",
    "audio_s",
    "prompt_tokens",
    "completion_tokens",
)


class Ledger:
    """The usage of a data folder."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def queue_row(self, row: UsageRow) -> None:
        """Write a row later, without waiting."""
        self._database.write_later(_INSERT_SQL, tuple(asdict(row).values()))

    def list_rows(self, *, since: float = 0.0, key_id: str | None = None) -> list[UsageRow]:
        rows = self._database.read(
            f"SELECT {', '.join(_COLUMNS)} FROM usage {_FILTER_SQL} ORDER BY time, id",  # noqa: S608 - our own names
            (since, key_id, key_id),
        )
        return [UsageRow(*row) for row in rows]

    def sum_usage(
        self, by: tuple[str, ...] = ("key", "operation"), *, since: float = 0.0, key_id: str | None = None
    ) -> list[UsageTotal]:
        """Sum the rows by common values."""
        for name in by:
            if name not in GROUP_COLUMNS:
                raise InvalidRequestError(
                    f"usage cannot be summed by {name!r}; it can by {', '.join(GROUP_COLUMNS)}"
                )
        groups = [GROUP_COLUMNS[name] for name in by]
        ended = "sum(status LIKE '%error'), sum(status = 'cancelled')"
        # Rounded: sums of seconds would otherwise end in 0000000001.
        sums = ", ".join(
            f"round(sum({name}), 6)" if name == "audio_s" else f"sum({name})" for name in _SUMMED_COLUMNS
        )
        grouping = f"GROUP BY {', '.join(groups)} ORDER BY {', '.join(groups)}" if by else ""
        rows = self._database.read(
            f"SELECT {', '.join([*groups, ''])} count(*), {ended}, {sums} "  # noqa: S608 - names of columns and placeholders; values are bound
            f"FROM usage {_FILTER_SQL} {grouping}",
            (since, key_id, key_id),
        )
        return [UsageTotal(tuple(row[: len(by)]), *(value or 0 for value in row[len(by) :])) for row in rows]


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS_S = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_OWNER_LABELS = ("operation", "provider", "key")
# Fields of a row, and the name and description of the counter that sums each.
_AMOUNT_COUNTERS = {
    "characters": ("characters", "Unicode code points of texts given."),
    "input_bytes": ("input_bytes", "Bytes of texts and recordings given."),
    "audio_bytes": ("audio_bytes", "Bytes of audio made."),
    "audio_s": ("audio_seconds", "Seconds of audio synthesized or recognized."),
    "prompt_tokens": ("prompt_tokens", "Tokens read."),
    "completion_tokens": ("completion_tokens", "Tokens written."),
}


def build_gauge(name: str, text: str, values: dict[str, float] | float) -> GaugeMetricFamily:
    """Return a gauge with a current value, or one value for each engine."""
    if not isinstance(values, dict):
        return GaugeMetricFamily(name, text, value=values)
    family = GaugeMetricFamily(name, text, labels=["engine"])
    for engine, measured in values.items():
        family.add_metric([engine], measured)
    return family


class Counters:
    """The service's counters; used from the event loop only."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()

        def add_counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"speechlab_{name}", text, labels, registry=registry)

        def add_histogram(name: str, text: str, label: str) -> Histogram:
            return Histogram(f"speechlab_{name}", text, [label], buckets=_BUCKETS_S, registry=registry)

        self._requests = add_counter("requests", "Requests by route and status.", "route", "method", "status")
        self._seconds = add_histogram(
            "request_seconds", "Seconds from the head of a request to the end of its reply.", "route"
        )
        self.first_audio = add_histogram(
            "first_audio_seconds", "Seconds from the admission of a text to its first sound.", "engine"
        )
        refused = "Operations that a rate limit refused, by whose limit it is."
        self.refused = add_counter("refused", refused, "scope")
        self._operations = add_counter(
            "operations",
            "Operations that reached an engine, by key id.",
            *_OWNER_LABELS,
            "transport",
            "status",
        )
        self._amounts = {
            name: add_counter(metric, text, *_OWNER_LABELS)
            for name, (metric, text) in _AMOUNT_COUNTERS.items()
        }

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def count_usage(self, row: UsageRow) -> None:
        whose = (row.operation, row.provider, row.key_id)
        self._operations.labels(*whose, row.transport, row.status).inc()
        for name, counter in self._amounts.items():
            if amount := getattr(row, name):
                counter.labels(*whose).inc(amount)

    def format_metrics(self, gauges: Iterable[Metric]) -> bytes:
        return generate_latest(_MetricsCollector(self._registry, gauges))


class _MetricsCollector:
    """Gauges, and counters without their start times."""

    def __init__(self, registry: CollectorRegistry, gauges: Iterable[Metric]) -> None:
        self._registry = registry
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        for family in self._registry.collect():
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family
        yield from self._gauges
