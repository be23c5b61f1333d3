"""Changes of speed between two reports: paired times of the same items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from speechlab.evaluate._changes.tested import paired
from speechlab.evaluate._made import SIDES
from speechlab.evaluate._statistics import paired_ratio
from speechlab.metrics import RATIO

if TYPE_CHECKING:
    from speechlab.evaluate._writing.contents import Contents

_LEVEL = 0.95
_TIMES = {
    "first_byte_s": "time to the first samples",
    "first_audible_s": "time to the first sound",
    "first_word_s": "time to the first word",
    "total_s": "time to the end",
    "first_partial_s": "time to the first partial",
    "finalization_s": "time from the end of speech to the final text",
}
_NAMES = ("voice_name", "language")
_DIRECTION = ("source_lang", "target_lang")


def speed_changes(now: Contents, earlier: Contents) -> list[dict[str, Any]]:
    """Compare the calls that both reports timed, voice by voice or system by system."""
    later, former = _calls(now), _calls(earlier)
    if not len(later) or not len(former):
        return []
    times = [name for name in _TIMES if name in later.columns and name in former.columns]
    alike = _names_twice(later) or _names_twice(former)
    keys = ("_group", *SIDES, *(["voice"] if alike else []), "file", "text")
    both, _, _ = paired(later, former, keys, times)
    rows = [
        {"group": str(group), "measure": _TIMES[name], **_compared(calls, name)}
        for group, calls in both.groupby("_group", sort=False)
        for name in times
    ]
    return [row for row in rows if row["n"]]


def _calls(report: Contents) -> pd.DataFrame:
    """Timed calls without errors, each with its group."""
    timed = report.speed
    if "error" not in timed.columns or not len(timed):
        return pd.DataFrame()
    calls = timed[timed["error"].isna()]
    names = [*SIDES, *(_NAMES[1:] if report.study == "recognition" else _NAMES)]
    parts = [calls[name].astype(str) for name in names if name in calls.columns]
    if set(_DIRECTION) <= set(calls.columns):
        parts = [calls["system"].astype(str)] if (calls["system"] != "").any() else []
        parts.append(calls["source_lang"].astype(str) + " → " + calls["target_lang"].astype(str))
    group = parts[0].str.cat(pd.DataFrame(dict(enumerate(parts[1:]))), sep=", ") if parts[1:] else parts[0]
    return _by_turn(calls.assign(_group=group).reset_index(drop=True))


def _by_turn(calls: pd.DataFrame) -> pd.DataFrame:
    """Calls that began together as one, with the geometric means of their times: they share what slows them."""
    many = (
        (calls["concurrency"] > 1).fillna(value=False)
        if "concurrency" in calls.columns
        else pd.Series(data=False, index=calls.index)
    )
    if not many.any():
        return calls
    items = [name for name in ("file", "text") if name in calls.columns]
    keys = [name for name in ("_group", "concurrency", "turn", *SIDES, "voice") if name in calls.columns]
    times = {name: _geometric for name in _TIMES if name in calls.columns}
    turns = calls[many].groupby(keys, observed=True, sort=False)
    joined: dict[str, Any] = dict.fromkeys(items, lambda part: "\x1f".join(sorted(part.astype(str))))
    together = turns.agg({**times, **joined}).reset_index()
    together["_group"] += ", " + together["concurrency"].astype(str) + " at once"
    return pd.concat([calls[~many], together], ignore_index=True)


def _geometric(times: pd.Series[float]) -> float:
    known = times.dropna().astype("float64")
    return float(np.exp(np.log(known[known > 0]).mean()))


def _names_twice(calls: pd.DataFrame) -> bool:
    """Whether several voices have the same name, so that only their ids differ."""
    if "voice" not in calls.columns:
        return False
    return bool(calls.drop_duplicates(["_group", "voice"])["_group"].duplicated().any())


def _compared(calls: pd.DataFrame, name: str) -> dict[str, Any]:
    both = calls[[name, f"{name}_earlier"]].astype("float64").dropna()
    both = both[(both > 0).all(axis=1)]
    now, before = (both[column].to_numpy() for column in both.columns)
    if not len(both):
        return {"n": 0}
    found = paired_ratio(now, before, _LEVEL)
    return {
        "unit": RATIO,
        "n": len(both),
        "value_a": float(np.median(before)),
        "value_b": float(np.median(now)),
        "difference": found.ratio,
        "low": found.low,
        "high": found.high,
        "p": found.p,
        "test": "Student's t of the logarithms",
        "more": "slower",
    }
