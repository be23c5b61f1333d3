"""Screening of answers: repeated sessions, failed attention checks, and the post-screening of MUSHRA."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab.listening import HIDDEN_REFERENCE_LEAST

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

_MAX_MISSED = 0.15
"""Maximum share of items with a missed hidden reference; source: ITU-R BS.1534-3, 4.1.2 (post-screening)."""
_TOO_GOOD = 0.25
"""Share of listeners above which an anchor counts as not worse than its reference; source: as above."""
_TOLD = 5


def screened(table: pd.DataFrame, max_failed_checks: int) -> tuple[pd.DataFrame, list[str]]:
    """Return the answers with a column ``excluded`` (the reason, or empty), and sentences about the exclusions.

    Args:
        table: The tidy answers.
        max_failed_checks: Maximum number of attention checks that a listener may fail.
    """
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
