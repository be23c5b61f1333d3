"""The failed rows of a table by their reasons. A warning at the end of a run has the most frequent ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.batch._plan.columns import make_frame

_TOLD = 3
"""Maximum number of reasons in the warning, each with its first row."""
_LONGEST = 200
_SHAPES = 10_000
"""Maximum number of separate reasons; further errors are counted by their class only."""
_VARIES = re.compile(r"'[^']*'|\"[^\"]*\"|\S*[/\\]\S*|\d+(?:[.,]\d+)*")
"""What differs between errors of one reason: quoted values, paths, numbers."""
_TRIES = re.compile(r" \(after \d+ attempts\)|(?<=\()after \d+ attempts; ")
"""The part of a message about attempts, which does not distinguish reasons."""
_told_here: ContextVar[bool] = ContextVar("told_here", default=True)
_COLUMNS = {"rows": "int64", "error_type": "string", "http_status": "Int64", "error": "string"}


@contextmanager
def failures_told_elsewhere() -> Iterator[None]:
    """Suppress the warning about failed rows, not of a stop, for a block whose caller reports them."""
    before = _told_here.set(False)
    try:
        yield
    finally:
        _told_here.reset(before)


@dataclass
class Failures:
    """Failed rows counted by their reasons, piece by piece."""

    prefix: str = ""
    statuses: Counter[str] = field(default_factory=Counter)
    _reasons: dict[tuple[str, Any, str], list[Any]] = field(default_factory=dict)

    def add(self, frame: pd.DataFrame) -> None:
        """Count the rows of a piece."""
        statuses = frame[self.prefix + "status"]
        self.statuses.update(map(str, statuses))
        failed = (statuses == "error").to_numpy().nonzero()[0]
        if not len(failed):
            return
        # the user's own columns may have types from which Arrow cannot select rows
        reasons = frame[[self.prefix + name for name in ("error_type", "http_status", "error")]].iloc[failed]
        labels = frame.index.tolist()
        cells = (reasons[name].tolist() for name in reasons.columns)
        for row, kind, status, error in zip(failed.tolist(), *cells, strict=True):
            label = labels[row]
            code = None if is_missing(status) else int(status)
            reason = str(kind), code, _VARIES.sub("…", _TRIES.sub("", str(error)))
            if reason not in self._reasons and len(self._reasons) >= _SHAPES:
                reason = str(kind), code, ""
            self._reasons.setdefault(reason, [0, str(error), label])[0] += 1

    def table(self) -> pd.DataFrame:
        """Return the reasons, the most frequent first; see ``speechlab.batch.failures``."""
        ordered = sorted(self._reasons.items(), key=lambda item: -item[1][0])
        lines = [(count, kind, status, error) for (kind, status, _), (count, error, _) in ordered]
        table = make_frame(lines, _COLUMNS)
        table["first"] = pd.Series([label for _, (_, _, label) in ordered], dtype=object).infer_objects()
        return table

    def told(self, where: str, expression: str) -> str:
        """Return the message about failed rows; empty if no row failed."""
        if not _told_here.get():
            return ""
        sentences = []
        failed, skipped, count = self.statuses["error"], self.statuses["skipped"], self.statuses.total()
        if failed:
            reasons = sorted(self._reasons.values(), key=lambda reason: -reason[0])
            examples = [f"{rows:,} like {error[:_LONGEST]!r}" for rows, error, _ in reasons[:_TOLD]]
            if more := sum(rows for rows, *_ in reasons[_TOLD:]):
                examples.append(f"{more:,} for other reasons")
            sentences.append(f"{failed:,} of {count:,} rows failed: {'; '.join(examples)}")
        if skipped:
            sentences.append(
                f"{skipped:,} of {count:,} rows failed in an earlier run, and were not asked again"
            )
        if not sentences:
            return ""
        see = f"sl.batch.failures({where}) lists the reasons"
        return f"{'. '.join(sentences)}. {see}{f', {expression} the rows' if expression else ''}"
