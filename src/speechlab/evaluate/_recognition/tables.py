"""Tables of a report of recognition: differences of systems, and hotwords."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing
from speechlab.evaluate._report import ALIKE
from speechlab.evaluate._speech.summary import ENOUGH
from speechlab.evaluate._writing.columns import Shown, View, chance, count, rate, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd


def pairs_view(pairs: pd.DataFrame) -> View:
    """Return the differences of all pairs of systems, with test results."""
    sides = [
        name for name in ("language", "condition") if name in pairs.columns and pairs[name].nunique() > 1
    ]
    columns = [
        *(text(name, name) for name in sides),
        Shown("systems", lambda row: f"{row['b']} − {row['a']}", strong=True),
        count("recordings", "utterances"),
        Shown("difference (points)", lambda row: _points(row, ""), figure=True, strong=True),
        Shown("95 % interval", _interval, figure=True),
        chance("p (Holm)", "p_holm"),
        Shown("verdict", _verdict),
    ]
    note = (
        "On the recordings that all systems have: below 0, the first named makes fewer errors. P is exact, paired by "
        f"recording, and corrected for all rows of a language. An interval takes {ENOUGH} recordings."
    )
    return View("Differences of systems", columns, pairs.to_dict("records"), note)


def hotwords_view(hotwords: pd.DataFrame) -> View:
    """Return the counts of hotwords and the error rates of the rest, with p against the setting without."""
    sides = [name for name in ("language", "condition", "system") if name in hotwords.columns]
    columns = [
        *(text(name, name) for name in sides),
        count("hotwords said", "hotwords_said"),
        count("came through", "hotwords_hit"),
        rate("recall", "recall", strong=True),
        chance("p (recall)", "p_missed", optional=True),
        count("put in", "hotwords_added"),
        chance("p (put in)", "p_added", optional=True),
        rate("errors of the rest", "rest_rate"),
        chance("p (rest)", "p_rest", optional=True),
        text("verdict", "verdict", optional=True),
    ]
    note = (
        "How many hotwords of those said came through, and how many were put where nobody said them. Each p is "
        "exact, paired by recording, against the setting without them, and corrected for all of these."
    )
    return View("Hotwords", columns, hotwords.to_dict("records"), note)


def _points(row: Mapping[Any, Any], end: str) -> str:
    points = round(100 * row[f"difference{end}"], 1) + 0.0  # -0.0 becomes 0.0
    return f"{points:+.1f}" if points else "0.0"


def _interval(row: Mapping[Any, Any]) -> str | None:
    if is_missing(row["difference_low"]):
        return None
    return f"{_points(row, '_low')} to {_points(row, '_high')}"


def _verdict(row: Mapping[Any, Any]) -> str:
    better = row["a"] if row["difference"] > 0 else row["b"]
    return f"{better} is better" if row["significant"] else ALIKE
