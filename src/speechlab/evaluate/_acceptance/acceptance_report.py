"""The report of a checked batch: its lines by state, and the bound of a sample that was heard."""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.batch import UNRECOGNIZED
from speechlab.display import format_count
from speechlab.evaluate._writing.columns import (
    View,
    build_count_column,
    build_language_column,
    build_text_column,
)
from speechlab.evaluate._writing.contents import Conclusion, Contents, ShownRows
from speechlab.evaluate._writing.methods import describe_methods
from speechlab.metrics import compute_count_bound

RIGHT, WRONG = "right", "wrong"
DECISION, SAMPLED = "decision", "sampled"
# How the error of a line begins whose sound cannot be read.
LOST = "its sound cannot be read: "
_MAX_REASON = 160
# Lines of a sample that shows, if none is wrong, that at most 5% are (95%).
SAMPLE_SIZE = 60
READY = "ready"
# The states of lines, exceptions first, as clauses have them of one line and of several.
_CLAUSES = {
    "needs an ear": ("needs an ear", "need an ear"),
    "wrong": ("is wrong", "are wrong"),
    "failed": ("failed", "failed"),
    "not asked": ("was not asked", "were not asked"),
    READY: ("is ready", "are ready"),
}
_STATES = tuple(_CLAUSES)


class HeardSample(NamedTuple):
    """The lines that the check accepted, those of the sample, and what was decided; equal ones count once."""

    accepted: int
    sampled: int
    decided: int
    wrong: int
    is_random: bool

    @property
    def bound(self) -> int | None:
        """The most wrong lines among those that count as ready; None without a random sample that was heard whole."""
        if not self.sampled or self.decided < self.sampled or not self.is_random:
            return None
        return compute_count_bound(self.accepted, self.sampled, self.wrong) - self.wrong


def build_acceptance_report(
    title: str, rows: pd.DataFrame, columns: Mapping[str, str], record: Mapping[str, Any]
) -> Contents:
    """Report the lines of a checked batch, with what was heard of them."""
    states = [_find_state(row) for row in rows[["check", "status", DECISION]].to_dict("records")]
    order = pd.Series(states).map(_STATES.index).sort_values(kind="stable").index
    table = rows.assign(state=pd.array(states, dtype="string")).iloc[order]
    table["why"] = table["why"].fillna(table["error"])
    counts = {state: states.count(state) for state in _STATES}
    groups = [name for name in ("voice", columns.get("language")) if name in table.columns]
    flags = {state.replace(" ", "_"): table["state"] == state for state in _STATES}
    flags |= {"lines": table["state"].notna(), "taken_again": (table["takes"] > 1).fillna(value=False)}
    by = [table[name] for name in groups] or pd.Series(0, table.index)
    summary = pd.DataFrame(flags).astype(int).groupby(by, sort=False, dropna=False, observed=True).sum()
    summary = summary.reset_index(drop=not groups).rename(columns={columns.get("language", ""): "language"})
    sample = _measure_sample(table)
    shown = [columns["text"], "state", "why", "transcript", "take", "takes", DECISION]
    options = {"columns": shown, "reference": columns["text"], "hypotheses": ["transcript"]}
    return Contents(
        title,
        table,
        summary,
        Conclusion(_describe_lines(counts, table), _describe_bound(sample, counts[READY], rows)),
        "acceptance",
        tables={
            "bound": pd.DataFrame([{**sample._asdict(), "bound": sample.bound}]).astype({"bound": "Int64"})
        },
        columns=dict(columns),
        views=(View.from_rows("lines", _COLUMNS, summary, _NOTE),),
        shown=ShownRows(options=options),
        said=describe_methods(title),
        record=record,
    )


def _measure_sample(table: pd.DataFrame) -> HeardSample:
    keys = _list_sample_keys(table)
    sampled = table[table["key"].isin(keys) & table[SAMPLED].astype(bool)].drop_duplicates("key")
    decided = sampled[DECISION].dropna()
    is_random = set(keys[: len(sampled)]) == set(sampled["key"])
    return HeardSample(len(keys), len(sampled), len(decided), int((decided == WRONG).sum()), is_random)


def _list_sample_keys(table: pd.DataFrame) -> list[str]:
    """Return the accepted lines in an order made by chance, so that a longer sample keeps a shorter one."""
    accepted = table.loc[table["check"] == READY, "key"].dropna().unique()
    return sorted(accepted, key=lambda key: sha256(f"sample {key}".encode()).digest())


def select_lines_to_hear(table: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return the exceptions that have a sound, and a sample of the accepted lines, with what was decided."""
    has_sound = (table["check"] != READY) & table["key"].notna() & table["audio"].notna()
    is_drawn = table["key"].isin(_list_sample_keys(table)[:count]) & ~table["key"].duplicated()
    return table[has_sound | is_drawn].assign(note=table[DECISION].astype(object).fillna(""))


def _find_state(row: Mapping[Any, Any]) -> str:
    if is_missing(row["check"]):
        return "not asked" if row["status"] == "cancelled" else "failed"
    is_right = row["check"] == READY if is_missing(row[DECISION]) else row[DECISION] == RIGHT
    return READY if is_right else "needs an ear" if is_missing(row[DECISION]) else "wrong"


def _describe_lines(counts: Mapping[str, int], table: pd.DataFrame) -> str:
    """Return the first sentence: how many lines are ready, what the others need, and what was not there for it."""
    total, ready = sum(counts.values()), counts[READY]
    if ready == total:
        texts = {0: "There are no lines.", 1: "The line is ready."}
        return texts.get(total, f"All {total:,} lines are ready.")
    others = [
        f"{counts[state]} {_CLAUSES[state][counts[state] > 1]}" for state in _STATES[:-1] if counts[state]
    ]
    parts = [", ".join(others)]
    lost = [
        error[len(LOST) :] for error in table["error"] if isinstance(error, str) and error.startswith(LOST)
    ]
    if lost:
        parts.append(f"the sound of {format_count(len(lost), 'line')} cannot be read: {_shorten(lost[0])}")
    waiting = table[(table["state"] == "needs an ear") & table["transcript"].isna()]
    reasons = [why.partition(UNRECOGNIZED)[2] for why in waiting["why"] if isinstance(why, str)]
    if reasons := [reason for reason in reasons if reason]:
        of = f"{len(reasons):,} of {format_count(total, 'line')}"
        parts.append(f"the recognizer failed for {of}: {_shorten(reasons[0])}")
    is_or_are = "is" if total == 1 else "are"
    return f"{ready:,} of {format_count(total, 'line')} {is_or_are} ready; {'; '.join(parts)}."


def _shorten(reason: str) -> str:
    return (reason if len(reason) <= _MAX_REASON else f"{reason[: _MAX_REASON - 1]}…").rstrip(". ")


def _describe_bound(sample: HeardSample, ready: int, rows: pd.DataFrame) -> str:
    """Return how many of the ready lines may be wrong, rounded up; or what it takes to know."""
    if not ready:
        return ""
    if not sample.sampled:
        count = min(SAMPLE_SIZE, sample.accepted)
        return f"How many of the ready ones are wrong is not known; report.sample({count}) gives the lines to hear."
    if not sample.is_random:
        return "What was heard is no sample that report.sample drew from these lines, and says nothing of the others."
    if sample.bound is None:
        left = format_count(sample.sampled - sample.decided, "line")
        return f"Not decided yet: {left} of the sample, without which there is no bound."
    if sample.sampled == sample.accepted:
        return "All were heard."
    noun = "ones" if rows["key"].dropna().is_unique else "recordings, equal ones counted once,"
    known = sample.accepted - sample.wrong + int(((rows["check"] != READY) & (rows[DECISION] == RIGHT)).sum())
    percent = math.ceil(1000 * sample.bound / known - 1e-9) / 10
    return f"At most {percent:g}% of the ready {noun} are wrong (95%)."


_COLUMNS = (
    build_text_column("voice", "voice", strong=True, optional=True),
    build_language_column(optional=True),
    build_count_column("lines", "lines"),
    build_count_column("ready", "ready"),
    build_count_column("need an ear", "needs_an_ear"),
    *(
        build_count_column(name.replace("_", " "), name, optional=True)
        for name in ("wrong", "failed", "not_asked", "taken_again")
    ),
)
_NOTE = "Need an ear: the check could not repair or judge them. Wrong: so decided by ear."
