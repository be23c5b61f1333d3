"""Answers that count, and tables of systems, of pairs of systems and of listeners from them."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from speechlab._platform import text_dtype
from speechlab.evaluate._listening.statistics import (
    answers_needed,
    binomial_p,
    detectable,
    guesses_told_apart,
    krippendorff_alpha,
    more_needed,
    two_way,
    two_way_bootstrap,
)
from speechlab.listening import HIDDEN_REFERENCE_LEAST, METHODS, pair_scale
from speechlab.metrics import BETTER, POINTS, judge

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from speechlab.evaluate._listening.statistics import TwoWay


_LEVEL = 0.95
_SUMMARY = ("system", "role", "measure", "mean", "low", "high", "median", "answers", "listeners", "items")


def counted(table: pd.DataFrame) -> pd.DataFrame:
    """Return the answers that are not excluded."""
    return table[(table["excluded"] == "") & (table["role"] != "check")]


def summary_of(table: pd.DataFrame, method: str, draws: int, seed: int) -> pd.DataFrame:
    """Return a row for each system, or for each pair in ABX, with its interval."""
    if method == "ab":
        mirrored = table.assign(system=table["other"].astype(text_dtype()), score=-table["score"])
        scores = pd.concat([table, mirrored], ignore_index=True).assign(role="test")
        scores["score"] = (scores["score"] + 1) / 2
    else:
        scores = table
    if method == "abx":
        scores = scores.assign(
            system=scores["system"].astype(text_dtype()) + " or " + scores["other"].astype(text_dtype())
        )
    rows = []
    for system, part in scores.groupby("system", sort=False):
        values, listeners, items = part["score"].to_numpy(), _codes(part["listener"]), _codes(part["item"])
        low, high = two_way_bootstrap(values, listeners, items, level=_LEVEL, draws=draws, seed=seed)
        counts = len(part), part["listener"].nunique(), part["item"].nunique()
        median = float(np.median(values))
        rows.append(
            (system, part["role"].iloc[0], METHODS[method].measure, values.mean(), low, high, median, *counts)
        )
    made = pd.DataFrame(rows, columns=list(_SUMMARY))
    return made.sort_values("mean", ascending=False, kind="stable", ignore_index=True)


def differences_of(table: pd.DataFrame, method: str, smallest: float) -> pd.DataFrame:
    """Return the difference of each pair of systems; of ABX, of right answers from guesses."""
    rows = [
        _told_apart(first, second, part, smallest)
        if method == "abx"
        else _rated(first, second, part, method, smallest)
        for first, second, part in _compared(table, method)
    ]
    measure = {"measure": METHODS[method].measure, "unit": "answer" if method == "abx" else POINTS}
    more = "told apart" if method == "abx" else BETTER
    return judge([{**row, **measure} for row in rows], level=_LEVEL, more=more)


def _compared(table: pd.DataFrame, method: str) -> list[tuple[str, str, pd.DataFrame]]:
    if method in {"ab", "abx"}:
        pairs = table.groupby(
            [table["system"].astype(text_dtype()), table["other"].astype(text_dtype())], sort=False
        )
        return [(str(first), str(second), part) for (first, second), part in pairs]
    tested = table[table["role"] == "test"]
    systems = tested.groupby("system")["score"].mean().sort_values(ascending=False, kind="stable").index
    return [
        (one, other, tested[tested["system"].isin([one, other])]) for one, other in combinations(systems, 2)
    ]


def _difference(part: pd.DataFrame, first: str) -> tuple[float, NDArray[np.float64]]:
    """Return the difference of the means of two systems, and the contribution of each answer to it."""
    score, own = part["score"].to_numpy(), (part["system"] == first).to_numpy()
    means = score[own].mean(), score[~own].mean()
    shares = np.where(own, (score - means[0]) / own.sum(), -(score - means[1]) / (~own).sum())
    return float(means[0] - means[1]), shares


def _rated(first: str, second: str, part: pd.DataFrame, method: str, smallest: float) -> dict[str, Any]:
    """Return how much better the first of two systems is than the second."""
    if method == "ab":
        mean = float(part["score"].mean())
        shares, values = (part["score"].to_numpy() - mean) / len(part), {}
    else:
        mean, shares = _difference(part, first)
        means = part.groupby(part["system"].astype(str))["score"].mean()
        values = {"value_a": means[second], "value_b": means[first]}
    found = two_way(mean, shares, _codes(part["listener"]), _codes(part["item"]), _LEVEL)
    listeners, items = more_needed(found, smallest)
    more = {"detectable": detectable(found), "more_listeners": listeners, "more_items": items}
    test = {"p": found.p, "test": "Student's t, two-way clustered"}
    return {"a": second, "b": first, **values, **_facts(found, part, method), **test, **more}


def _told_apart(first: str, second: str, part: pd.DataFrame, smallest: float) -> dict[str, Any]:
    """Test a pair of ABX. X is random, so guesses of all listeners are independent, and the test is exact."""
    asked, right = len(part), int(part["score"].sum())
    shares = (part["score"].to_numpy() - right / asked) / asked
    found = two_way(right / asked - 0.5, shares, _codes(part["listener"]), _codes(part["item"]), _LEVEL)
    needed = answers_needed(smallest)
    more = {
        "detectable": guesses_told_apart(asked),
        "more_listeners": max(math.ceil(needed / found.items) - found.listeners, 0),
        "more_items": max(math.ceil(needed / found.listeners) - found.items, 0),
    }
    values = {"value_a": 0.5, "value_b": right / asked}
    test = {"p": binomial_p(right, asked), "test": "exact binomial, one-sided"}
    return {"a": first, "b": second, **values, **_facts(found, part, "abx"), **test, **more}


def _facts(found: TwoWay, part: pd.DataFrame, method: str) -> dict[str, Any]:
    largest = METHODS[method].largest
    return {
        "n": len(part),
        "difference": found.mean,
        "low": float(np.maximum(found.low, -largest)),
        "high": float(np.minimum(found.high, largest)),
        "listeners": found.listeners,
        "items": found.items,
    }


def listeners_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each listener: answers, checks, agreement with the others, and the reason of an exclusion."""
    rows = []
    counts = table["excluded"] == ""
    good = table.loc[counts, "listener"].unique()
    # the counted answers of listeners who are not excluded, and all answers of the others
    table = table[counts | ~table["listener"].isin(good)]
    matrix = _matrix(table[table["role"] != "check"]).reindex(table["listener"].unique())
    counting = matrix[matrix.index.isin(good)]
    sums, answers = counting.sum(), counting.notna().sum()
    for listener, part in table.groupby("listener", sort=False):
        why, own = part["excluded"].iloc[0], matrix.loc[listener]
        others = sums / answers if why else (sums - own.fillna(0)) / (answers - own.notna())
        attention = part["attention"].dropna().astype(bool)
        asked = part[part["role"] != "check"]
        rows.append(
            {
                "listener": listener,
                "excluded": why,
                "answers": len(asked),
                "finished": bool(part["finished"].any()),
                "checks": len(attention),
                "checks_failed": int((~attention).sum()),
                "mean": asked["score"].mean(),
                "agreement": _correlation(own, others),
                "same_answer": asked["score"].value_counts(normalize=True).max() if len(asked) else math.nan,
                "minutes": part.drop_duplicates("trial")["time_s"].sum() / 60,
            }
        )
    return pd.DataFrame(rows)


def scale_of(table: pd.DataFrame, method: str, draws: int, seed: int) -> pd.DataFrame | None:
    """Return the systems of A/B on one scale; None for other methods."""
    return pair_scale(table, draws=min(draws, 1_000), seed=seed) if method == "ab" else None


def agreement_of(table: pd.DataFrame, method: str) -> float:
    """Return Krippendorff's alpha of the counted answers."""
    return krippendorff_alpha(_matrix(table).to_numpy(), METHODS[method].scale)


def _matrix(table: pd.DataFrame) -> pd.DataFrame:
    """Return the answers, shape (listeners, rated units)."""
    other = table["other"].astype("object").where(table["other"].notna(), "")
    rated = [table["item"], table["system"], other]
    first = table["score"].groupby([table["listener"], *rated]).first()
    return first.unstack([1, 2, 3])


def _correlation(one: Any, others: Any) -> float:
    both = pd.concat([one, others], axis=1).dropna().to_numpy()
    if len(both) < 3 or both.std(0).min() < 1e-12:
        return math.nan
    return float(np.corrcoef(both.T)[0, 1])


def _codes(names: Sequence[Any] | pd.Series[Any]) -> NDArray[np.int64]:
    return np.asarray(pd.factorize(pd.Series(names))[0], dtype=np.int64)


_MAX_MISSED = 0.15
"""Maximum share of items with a missed hidden reference; source: ITU-R BS.1534-3, 4.1.2 (post-screening)."""
_TOO_GOOD = 0.25
"""Share of listeners above which an anchor counts as not worse than its reference; source: as above."""
_TOLD = 5


def screened(table: pd.DataFrame, max_failed_checks: int) -> tuple[pd.DataFrame, list[str]]:
    """Return the answers with a column ``excluded`` (the reason, or empty), and sentences about the exclusions."""
    told: list[str] = []
    same = [name for name in table.columns if name != "finished"]
    twice = table.duplicated(same)
    if twice.any():
        who = _names(table.loc[twice, "listener"])
        told.append(f"{int(twice.sum())} of {len(table)} answers were given twice and count once: {who}")
        table = table[~twice].reset_index(drop=True)
    table = table.assign(excluded="")
    _exclude_later_sessions(table, told)
    _exclude_inattentive(table, max_failed_checks, told)
    if (table["method"] == "mushra").any():
        _exclude_by_reference(table, told)
        _exclude_by_anchor(table, told)
    finished = table[table["excluded"] == ""].groupby("listener", sort=False)["finished"].any()
    if not finished.all():
        who = _names(finished.index[~finished])
        told.append(
            f"{(~finished).sum()} of {len(finished)} listeners did not finish; their answers count: {who}"
        )
    return table, told


def _exclude(table: pd.DataFrame, rows: pd.Series[bool], why: str) -> None:
    table.loc[rows & (table["excluded"] == ""), "excluded"] = why


def _exclude_later_sessions(table: pd.DataFrame, told: list[str]) -> None:
    first = table.groupby("listener")["session"].transform("min")
    later = table["session"] != first
    if later.any():
        _exclude(table, later, "a later session of the same listener")
        who = _names(table.loc[later, "listener"])
        told.append(
            f"later sessions of listeners who had answered before are excluded: {who}; if they are other "
            "people of the same name, give them names of their own in the files"
        )


def _exclude_inattentive(table: pd.DataFrame, allowed: int, told: list[str]) -> None:
    checks = table[(table["role"] == "check") & (table["excluded"] == "")]
    failed = (
        (~checks["attention"].fillna(value=True).astype(bool))
        .groupby(checks["listener"])
        .agg(["sum", "size"])
    )
    for listener, (wrong, asked) in failed[failed["sum"] > allowed].iterrows():
        why = f"attention: {int(wrong)} of {int(asked)} checks failed"
        _exclude(table, table["listener"] == listener, why)
        told.append(f"{_names([str(listener)])} is excluded: {why}")


def _exclude_by_reference(table: pd.DataFrame, told: list[str]) -> None:
    hidden = table[(table["role"] == "reference") & (table["excluded"] == "")]
    missed = (hidden["score"] < HIDDEN_REFERENCE_LEAST).groupby(hidden["listener"]).mean()
    for listener, share in missed[missed > _MAX_MISSED].items():
        why = f"hidden reference below {HIDDEN_REFERENCE_LEAST:.0f} in {share:.0%} of the items (BS.1534-3)"
        _exclude(table, table["listener"] == listener, why)
        told.append(f"{_names([str(listener)])} is excluded: {why}")


def _exclude_by_anchor(table: pd.DataFrame, told: list[str]) -> None:
    """Apply the rule of the mid-range anchor, which is the best of the anchors."""
    anchors = table[(table["role"] == "anchor") & (table["excluded"] == "")]
    names = sorted(
        anchors["system"].unique(), key=lambda one: anchors.loc[anchors["system"] == one, "score"].mean()
    )
    if len(names) < 2:
        return
    middle = anchors[anchors["system"] == names[-1]]
    high = middle["score"] > HIDDEN_REFERENCE_LEAST
    undamaged = high.groupby(middle["item"]).mean() > _TOO_GOOD
    if undamaged.any():
        items = _names(undamaged[undamaged].index)
        told.append(
            f"the anchor {names[-1]!r} is hardly worse than the reference, and excludes nobody, in: {items}"
        )
    judged = ~middle["item"].isin(undamaged[undamaged].index)
    missed = high[judged].groupby(middle.loc[judged, "listener"]).mean()
    for listener, share in missed[missed > _MAX_MISSED].items():
        why = f"anchor above {HIDDEN_REFERENCE_LEAST:.0f} in {share:.0%} of the items (BS.1534-3)"
        _exclude(table, table["listener"] == listener, why)
        told.append(f"{_names([str(listener)])} is excluded: {why}")


def _names(listeners: Iterable[object]) -> str:
    names = list(dict.fromkeys(str(one)[:60] for one in listeners))
    more = f" and {len(names) - _TOLD} more" if len(names) > _TOLD else ""
    return ", ".join(map(repr, names[:_TOLD])) + more
