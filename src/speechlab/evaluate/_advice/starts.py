"""Which of several systems starts sooner, where that is no chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab.evaluate._speech.speed import select_least_concurrent_calls
from speechlab.evaluate._speech.summary import choose_start_time_column
from speechlab.evaluate._writing.sentences import quote_name

if TYPE_CHECKING:
    import pandas as pd

# Timed calls of each from which one that is sooner in all of them is so beyond chance (2 of 70 orders).
_MIN_CALLS = 4
# Ratio of starting times from which a sentence tells it.
_MIN_SPEED_RATIO = 1.5


def summarize_start_times(speed: pd.DataFrame) -> pd.DataFrame:
    """When the timed calls of each system had their first sound, or their text: median, lowest, highest (s)."""
    start = choose_start_time_column(speed)
    if start not in speed.columns or "system" not in speed.columns:
        speed = speed.reindex(columns=["system", start, "error"])
    calls = select_least_concurrent_calls(speed)
    calls = calls[calls["error"].isna()]
    return calls.groupby("system", observed=True)[start].agg(["median", "min", "max", "count"]).dropna()


def describe_earlier_start(first: str, second: str, starts: pd.DataFrame) -> str:
    """Return how much sooner a system starts than another one, if it does so in every call; otherwise empty."""
    if not {first, second} <= set(starts.index) or starts["count"].loc[[first, second]].min() < _MIN_CALLS:
        return ""
    mine, theirs = (starts.loc[name].astype("float64").to_dict() for name in (first, second))
    if mine["max"] >= theirs["min"] or theirs["median"] < _MIN_SPEED_RATIO * mine["median"]:
        return ""
    ratio = theirs["median"] / max(mine["median"], 1e-3)
    times = f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"
    return f"{times} times sooner ({mine['median']:.2f} s, {quote_name(second)} {theirs['median']:.2f} s)"


def describe_start_difference(best: str, candidates: list[str], starts: pd.DataFrame) -> str:
    """Return whether a system starts sooner or later than the next one that was timed."""
    rival = next((name for name in candidates if name in starts.index), "")
    if words := describe_earlier_start(best, rival, starts):
        return f"and starts {words}"
    words = describe_earlier_start(rival, best, starts)
    return f"{quote_name(rival)} starts {words}" if words else ""
