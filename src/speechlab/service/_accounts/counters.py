"""Counters in Prometheus' text form (version 0.0.4). Keys appear by their ids, never as they are."""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from speechlab.service._accounts.ledger import UsageRow

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS_S = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)

Labels = tuple[tuple[str, str], ...]


class Family:
    """One metric, as its samples by their labels.

    Args:
        name: Its name, with its unit.
        kind: ``"counter"``, ``"gauge"`` or ``"histogram"``.
        text: Its description.
    """

    def __init__(self, name: str, kind: str, text: str) -> None:
        self.name = name
        self._head = f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
        self._samples: dict[tuple[str, Labels], float] = defaultdict(float)

    def add(self, amount: float, labels: Mapping[str, str] | None = None, suffix: str = "") -> None:
        """Add to a sample."""
        self._samples[suffix, tuple((labels or {}).items())] += amount

    def set(self, value: float, labels: Mapping[str, str] | None = None) -> None:
        """Set a sample."""
        self._samples["", tuple((labels or {}).items())] = value

    def text(self) -> str:
        """The family in Prometheus' form."""
        lines = [
            f"{self.name}{suffix}{_labels(labels)} {_number(value)}\n"
            for (suffix, labels), value in self._samples.items()
        ]
        return self._head + "".join(lines)


class Counters:
    """The service's counters; used from the event loop only."""

    def __init__(self) -> None:
        self._requests = Family("speechlab_requests_total", "counter", "Requests by route and status.")
        self._seconds = Family(
            "speechlab_request_seconds",
            "histogram",
            "Seconds from the head of a request to the end of its reply.",
        )
        self._refused = Family(
            "speechlab_refused_total",
            "counter",
            "Operations that a rate limit refused, by whose limit it is.",
        )
        self._operations = Family(
            "speechlab_operations_total", "counter", "Operations that reached an engine, by key id."
        )
        self._amounts = [
            (name, Family(f"speechlab_{metric}_total", "counter", text))
            for name, metric, text in (
                ("characters", "characters", "Unicode code points of texts given."),
                ("input_bytes", "input_bytes", "Bytes of texts and recordings given."),
                ("audio_bytes", "audio_bytes", "Bytes of audio made."),
                ("audio_s", "audio_seconds", "Seconds of audio made or heard."),
                ("prompt_tokens", "prompt_tokens", "Tokens read."),
                ("completion_tokens", "completion_tokens", "Tokens written."),
            )
        ]

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request that is over.

        Args:
            route: One of our own paths, or a word for all others.
            method: Its method.
            status: Status of the reply; 499 if the client left before it.
            seconds: How long it took.
        """
        self._requests.add(1, {"route": route, "method": method, "status": str(status)})
        chosen = bisect.bisect_left(_BUCKETS_S, seconds)
        for number, bound in enumerate((*_BUCKETS_S, math.inf)):
            labels = {"route": route, "le": _number(bound)}
            self._seconds.add(float(number >= chosen), labels, "_bucket")
        self._seconds.add(seconds, {"route": route}, "_sum")
        self._seconds.add(1, {"route": route}, "_count")

    def refused(self, scope: str) -> None:
        """Count an operation that a limit refused."""
        self._refused.add(1, {"scope": scope})

    def used(self, row: UsageRow) -> None:
        """Count an operation that reached an engine."""
        whose = {"operation": row.operation, "provider": row.provider, "key": row.key_id}
        self._operations.add(1, {**whose, "transport": row.transport, "status": row.status})
        for name, family in self._amounts:
            if amount := getattr(row, name):
                family.add(amount, whose)

    def text(self, gauges: Iterable[Family]) -> str:
        """All counters, and what was measured for this reply."""
        amounts = [family for _, family in self._amounts]
        families = [self._requests, self._seconds, self._refused, self._operations, *amounts, *gauges]
        return "".join(family.text() for family in families)


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
