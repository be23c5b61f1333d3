"""The failed rows of a table by their reasons, of which the commonest are told when a run has ended."""

from __future__ import annotations

import re
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing
from speechlab.batch._plan.columns import make_column

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

_TOLD = 3
"""Reasons that are told, each by its first row."""
_LONGEST = 200
_SHAPES = 10_000
"""Reasons that are told apart; what comes after them counts by its kind alone."""
_VARIES = re.compile(r"'[^']*'|\"[^\"]*\"|\S*[/\\]\S*|\d+(?:[.,]\d+)*")
"""What differs between errors of one reason: quoted values, paths, numbers."""
_TRIES = re.compile(r" \(after \d+ attempts\)|(?<=\()after \d+ attempts; ")
"""What an error says of its attempts, which makes no other reason of it."""
_told_here: ContextVar[bool] = ContextVar("told_here", default=True)
_COLUMNS = {"rows": "int64", "error_type": "string", "http_status": "Int64", "error": "string"}


@contextmanager
def failures_told_elsewhere() -> Iterator[None]:
    """Have the batches of this block say nothing of failed rows, as their caller says it in words of its own.

    Why a batch stopped is told in any case.
    """
    before = _told_here.set(False)
    try:
        yield
    finally:
        _told_here.reset(before)


@dataclass
class Failures:
    """Failed rows, counted by their reasons as pieces of a table come.

    Attributes:
        prefix: What goes before the names of the result columns.
        rows: Rows in all.
        failed: Rows that failed now.
        skipped: Rows that failed before and were not asked again.
    """

    prefix: str = ""
    rows: int = 0
    failed: int = 0
    skipped: int = 0
    _reasons: dict[tuple[str, Any, str], list[Any]] = field(default_factory=dict)

    def add(self, frame: pd.DataFrame) -> None:
        """Count the rows of a piece."""
        statuses = frame[self.prefix + "status"]
        self.rows += len(frame)
        self.skipped += int((statuses == "skipped").sum())
        wrong = (statuses == "error").to_numpy().nonzero()[0]
        self.failed += len(wrong)
        if not len(wrong):
            return
        # the user's own columns may be of kinds of which Arrow can take no rows
        told = frame[[self.prefix + name for name in ("error_type", "http_status", "error")]].iloc[wrong]
        labels = frame.index.tolist()
        cells = (told[name].tolist() for name in told.columns)
        for row, kind, status, error in zip(wrong.tolist(), *cells, strict=True):
            label = labels[row]
            known = None if is_missing(status) else int(status)
            reason = str(kind), known, _VARIES.sub("…", _TRIES.sub("", str(error)))
            if reason not in self._reasons and len(self._reasons) >= _SHAPES:
                reason = str(kind), known, ""
            self._reasons.setdefault(reason, [0, str(error), label])[0] += 1

    def table(self) -> pd.DataFrame:
        """Return the reasons, the commonest first; see ``speechlab.batch.failures``."""
        import pandas as pd

        ordered = sorted(self._reasons.items(), key=lambda item: -item[1][0])
        lines = [(count, kind, status, error) for (kind, status, _), (count, error, _) in ordered]
        index = pd.RangeIndex(len(lines))
        cells = list(zip(*lines, strict=True)) or [()] * len(_COLUMNS)
        made: dict[str, Any] = {
            name: make_column(list(values), kind, index)
            for (name, kind), values in zip(_COLUMNS.items(), cells, strict=True)
        }
        made["first"] = pd.Series(
            [label for _, (_, _, label) in ordered], index=index, dtype=object
        ).infer_objects()
        return pd.DataFrame(made)

    def told(self, where: str, rows: str = "") -> str:
        """Return what a user should hear of it: nothing if all is well.

        Args:
            where: What to give :func:`speechlab.batch.failures` to see all reasons.
            rows: What gives the rows that failed, if anything does.
        """
        if not _told_here.get():
            return ""
        said = []
        if self.failed:
            said.append(f"{self.failed:,} of {self.rows:,} rows failed{self._commonest()}")
        if self.skipped:
            said.append(
                f"{self.skipped:,} of {self.rows:,} rows failed in an earlier run, and were not asked again"
            )
        if not said:
            return ""
        see = f"sl.batch.failures({where}) lists the reasons"
        return f"{'. '.join(said)}. {see}{f', {rows} the rows' if rows else ''}"

    def _commonest(self) -> str:
        ordered = sorted(self._reasons.values(), key=lambda reason: -reason[0])
        told = [f"{count:,} like {error[:_LONGEST]!r}" for count, error, _ in ordered[:_TOLD]]
        more = sum(count for count, *_ in ordered[_TOLD:])
        return ": " + "; ".join([*told, *([f"{more:,} for other reasons"] if more else [])])
