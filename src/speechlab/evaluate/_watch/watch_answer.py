"""The answer of a watch: what became worse, from when to when, and whether it is back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._arguments import is_missing
from speechlab.display import format_count
from speechlab.evaluate._changes.changes_answer import name_group
from speechlab.evaluate._changes.tested import FAILURES_MEASURE
from speechlab.evaluate._writing.contents import Conclusion
from speechlab.evaluate._writing.sentences import capitalize_unless_name, join_fitting_clauses
from speechlab.metrics import POINTS, RATIO, format_value

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

# Fewest runs at the end that have to be as before, for a series to be back.
_FEWEST_BACK = 2
# Most lines on series.
_MAX_LINES = 3


def find_change(values: NDArray[np.float64], alarm: int, sign: float) -> tuple[int, int | None]:
    """Return the run, from 0, with which a series most likely became worse, and the one since which it is back.

    The first is the split of least squares of the runs up to the alarm, the second that from which on all runs are
    nearer to those before than to the worse ones. ``sign`` is 1 if more is worse.
    """
    seen = values[: alarm + 1]
    splits = {
        at: sum(float(np.nansum((part - np.nanmean(part)) ** 2)) for part in (seen[:at], seen[at:]))
        for at in range(1, alarm + 1)
        if not (np.isnan(seen[:at]).all() or np.isnan(seen[at:]).all())
    }
    onset = min(splits, key=lambda at: splits[at]) if splits else alarm
    halfway = (np.nanmean(seen[:onset]) + np.nanmean(seen[onset:])) / 2 if splits else np.nan
    back = len(values)
    while back > alarm + 1 and sign * values[back - 1] < sign * halfway:
        back -= 1
    return onset, back if len(values) - back >= _FEWEST_BACK else None


def build_watch_conclusion(summary: pd.DataFrame, dates: Sequence[str], alpha: float) -> Conclusion:
    """Return what became worse and when, with a line for each series; or the largest rise that may be chance."""
    runs = len(dates)
    promise = f"At most {alpha:.0%} of such watches ever raise a false alarm, however many runs they have."
    if runs == 1:
        return Conclusion("This is the first run.", "Each later run is compared with all before it.")
    worse = summary[summary["changed"]].to_dict("records")
    if not worse:
        row = max(
            summary.to_dict("records"), key=lambda row: (row["usual"] != row["now"], float(row["evidence"]))
        )
        values = " → ".join(format_value(row[name], row["unit"]) for name in ("usual", "now"))
        evidence = f"evidence {row['evidence']:.1f} of {row['needed']:.0f}"
        nearest = f"Nearest to an alarm: {_name_series(row)}, {values} ({evidence})."
        return Conclusion(f"Nothing is shown to have become worse in {runs:,} runs.", f"{nearest}\n{promise}")
    lines = [
        f"{capitalize_unless_name(_describe_figures(row, dates, alone=len(worse) == 1))}." for row in worse
    ]
    more = len(lines) - _MAX_LINES
    lines = lines[:_MAX_LINES] + ([f"{more} more became worse, too."] if more > 0 else [])
    title = f"{describe_change(worse[0])}."
    if len(worse) > 1:
        earliest = min(int(row["onset"]) for row in worse)
        title = f"{format_count(len(worse), 'series', 'series')} became worse, the first with about run {earliest}."
    return Conclusion(title, "\n".join([*lines, promise]))


def describe_change(row: Mapping[Any, Any]) -> str:
    """Return when a series was worse, as a sentence."""
    onset, back = int(row["onset"]), row["back"]
    over = not is_missing(back)
    when = f"from about run {onset} to {int(back) - 1}" if over else f"since about run {onset}"
    if row["measure"] == FAILURES_MEASURE:
        return f"More rows {'failed' if over else 'have failed'} {when}"
    words = {POINTS: "lower", RATIO: "longer"}.get(str(row["unit"]), "higher")
    return f"The {_name_series(row)} {'was' if over else 'has been'} {words} {when}"


def _name_series(row: Mapping[Any, Any]) -> str:
    if row["measure"] == FAILURES_MEASURE:
        return "share of rows that failed"
    return f"{row['measure']} of {name_group(row)}"


def _describe_figures(row: Mapping[Any, Any], dates: Sequence[str], *, alone: bool) -> str:
    """Return the values before and while a series was worse, the alarm, and where it is now."""
    usual, worst, now = (format_value(row[name], row["unit"]) for name in ("usual", "worst", "now"))
    alarm = int(row["alarm"])
    clauses = [f"{usual} before, {worst} {'then' if not is_missing(row['back']) else 'since'}"]
    if not alone:
        clauses[0] = f"{_name_series(row)}: {clauses[0]}, from about run {row['onset']}"
    date = f", {dates[alarm - 1][:10]}" if dates[alarm - 1] else ""
    clauses.append(f"alarm at run {alarm}{date}")
    if not is_missing(row["back"]):
        clauses.append(f"back since run {row['back']}, now {now}")
    return join_fitting_clauses(clauses)
