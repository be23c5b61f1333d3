"""The failed rows of a table by their reasons. A warning at the end of a run has the most frequent ones."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.batch._outcome import is_warning
from speechlab.batch._plan.columns import build_frame

# Maximum number of reasons in the warning, each with its first row.
_MAX_REASONS_SHOWN = 3
_MAX_MESSAGE = 200
# Maximum number of separate reasons; further errors are counted by their class only.
_MAX_REASONS = 10_000
# What differs between errors of one reason: quoted values, paths, numbers.
_VARIABLE_PART = re.compile(r"'[^']*'|\"[^\"]*\"|\S*[/\\]\S*|\d+(?:[.,]\d+)*")
# The part of a message about attempts, which does not distinguish reasons.
_ATTEMPTS_PART = re.compile(r" \(after \d+ attempts\)|(?<=\()after \d+ attempts; ")
_COLUMNS = {"rows": "int64", "error_type": "string", "http_status": "Int64", "error": "string"}


@dataclass
class FailureCounter:
    """Failed rows counted by their reasons, piece by piece."""

    prefix: str = ""
    statuses: Counter[str] = field(default_factory=Counter)
    _reasons: dict[tuple[str, Any, str], list[Any]] = field(default_factory=dict)

    def count_failures(self, frame: pd.DataFrame) -> None:
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
            reason = str(kind), code, _VARIABLE_PART.sub("…", _ATTEMPTS_PART.sub("", str(error)))
            if reason not in self._reasons and len(self._reasons) >= _MAX_REASONS:
                reason = str(kind), code, ""
            self._reasons.setdefault(reason, [0, str(error), label])[0] += 1

    def to_table(self) -> pd.DataFrame:
        """Return the reasons, the most frequent first; see ``speechlab.batch.failures``."""
        ordered = sorted(self._reasons.items(), key=lambda item: -item[1][0])
        lines = [(count, kind, status, error) for (kind, status, _), (count, error, _) in ordered]
        table = build_frame(lines, _COLUMNS)
        table["first"] = pd.Series([label for _, (_, _, label) in ordered], dtype=object).infer_objects()
        return table

    def describe_failures(self, where: str, expression: str) -> str:
        """Return the message about failed rows; empty if no row failed."""
        if not is_warning():
            return ""
        sentences = []
        failed, skipped, count = self.statuses["error"], self.statuses["skipped"], self.statuses.total()
        if failed:
            reasons = sorted(self._reasons.values(), key=lambda reason: -reason[0])
            examples = [
                f"{rows:,} like {error[:_MAX_MESSAGE]!r}" for rows, error, _ in reasons[:_MAX_REASONS_SHOWN]
            ]
            if more := sum(rows for rows, *_ in reasons[_MAX_REASONS_SHOWN:]):
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
