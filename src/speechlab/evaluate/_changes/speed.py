"""Changes of speed between two reports: paired times of the same items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from speechlab._arguments import is_missing
from speechlab.evaluate._changes.tested import paired
from speechlab.evaluate._made import SIDES
from speechlab.evaluate._report import ALIKE
from speechlab.evaluate._statistics import paired_ratio
from speechlab.evaluate._writing.columns import Shown, View, chance, count, number, p_words, text
from speechlab.metrics import holm

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from speechlab.evaluate._report import Report

SLOWER, FASTER = "slower", "faster"
_LEVEL = 0.95
_TIMES = {
    "first_byte_s": "time to the first samples",
    "first_audible_s": "time to the first sound",
    "first_word_s": "time to the first word",
    "total_s": "time to the end",
}
_NAMES = ("voice_name", "language")
_DIRECTION = ("source_lang", "target_lang")
_COLUMNS = ("group", "measure", "calls", "earlier_s", "now_s", "ratio", "ratio_low", "ratio_high", "p")
OF_THOSE_DAYS = (
    "Intervals of speed are of these calls alone: machines, their load and the network may have been others."
)


def speed_changes(now: Report, earlier: Report) -> pd.DataFrame:
    """Compare the calls that both reports timed, voice by voice or system by system.

    Returns:
        One row for each group and time, as :class:`speechlab.evaluate.Changes` describes it; without rows where one
        of the reports measured no speed.
    """
    later, former = _calls(now), _calls(earlier)
    found: list[dict[str, Any]] = []
    if len(later) and len(former):
        times = [name for name in _TIMES if name in later.columns and name in former.columns]
        alike = _names_twice(later) or _names_twice(former)
        keys = ("_group", *SIDES, *(["voice"] if alike else []), "file", "text")
        both, _, _ = paired(later, former, keys, times)
        for group, calls in both.groupby("_group", sort=False):
            found += [
                {"group": str(group), "measure": _TIMES[name], **_compared(calls, name)} for name in times
            ]
    out = pd.DataFrame(found, columns=list(_COLUMNS))
    out = out[out["calls"] > 0].reset_index(drop=True)
    out = out.astype({"calls": "int64"} | dict.fromkeys(_COLUMNS[3:], "float64"))
    out["p_holm"] = holm(out["p"].to_numpy(dtype=np.float64))
    sure = out["p_holm"] < 1 - _LEVEL
    out["verdict"] = np.select([sure & (out["ratio"] > 1), sure], [SLOWER, FASTER], ALIKE)
    return out


def _calls(report: Report) -> pd.DataFrame:
    """Timed calls without errors, each with its group."""
    timed = getattr(report, "speed", None)
    if not isinstance(timed, pd.DataFrame) or "error" not in timed.columns:
        return pd.DataFrame()
    calls = timed[timed["error"].isna()]
    parts = [calls[name].astype(str) for name in (*SIDES, *_NAMES) if name in calls.columns]
    if set(_DIRECTION) <= set(calls.columns):
        parts = [calls["system"].astype(str)] if (calls["system"] != "").any() else []
        parts.append(calls["source_lang"].astype(str) + " → " + calls["target_lang"].astype(str))
    group = parts[0].str.cat(pd.DataFrame(dict(enumerate(parts[1:]))), sep=", ") if parts[1:] else parts[0]
    return _by_turn(calls.assign(_group=group).reset_index(drop=True))


def _by_turn(calls: pd.DataFrame) -> pd.DataFrame:
    """Calls that began together as one, with the geometric means of their times: they share what slows them."""
    many = (
        calls["concurrency"] > 1
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
        return {"calls": 0}
    found = paired_ratio(now, before, _LEVEL)
    return {
        "calls": len(both),
        "earlier_s": float(np.median(before)),
        "now_s": float(np.median(now)),
        "ratio": found.ratio,
        "ratio_low": found.low,
        "ratio_high": found.high,
        "p": found.p,
    }


def told_of_speed(speed: pd.DataFrame) -> str:
    """The changes of speed in sentences; empty if no calls were compared."""
    said = []
    for verdict in (SLOWER, FASTER, ALIKE):
        rows = [_words(row) for row in speed.to_dict("records") if row["verdict"] == verdict]
        if rows:
            named = f"{verdict} in speed" if verdict == ALIKE else verdict
            said.append(f"{named.capitalize()}: {'; '.join(rows)}.")
    return " ".join([*said, OF_THOSE_DAYS]) if said else ""


def _words(row: Mapping[Hashable, Any]) -> str:
    told = [f"{row['measure']} × {row['ratio']:.2f}"]
    if interval := _interval(row):
        told.append(f"95 % interval {interval}")
    if not is_missing(row["p_holm"]):
        told.append(p_words(row["p_holm"]))
    told.append(f"{row['calls']} {'pair' if row['calls'] == 1 else 'pairs'} of calls")
    return f"{row['group']} ({', '.join(told)})"


def speed_view(speed: pd.DataFrame, names: tuple[str, str]) -> View:
    """Return the times of both, and their ratios."""
    columns = [
        text("group", "group", strong=True),
        text("time", "measure"),
        count("calls", "calls"),
        number(f"{names[0]} (s)", "earlier_s"),
        number(f"{names[1]} (s)", "now_s"),
        number("ratio", "ratio", strong=True),
        Shown("95 % interval", _interval, figure=True),
        chance("p (Holm)", "p_holm"),
        text("verdict", "verdict"),
    ]
    note = f"Medians, and the geometric mean of the ratios of the same items. {OF_THOSE_DAYS}"
    return View("Speed", columns, speed.to_dict("records"), note)


def _interval(row: Mapping[Hashable, Any]) -> str | None:
    low, high = row["ratio_low"], row["ratio_high"]
    return None if is_missing(low) else f"{low:.2f} to {high:.2f}"
