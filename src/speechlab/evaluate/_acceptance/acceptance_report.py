"""The report of a checked batch: its lines by state, and the bound of a sample that was heard."""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from speechlab._arguments import is_missing
from speechlab._pandas import pd
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
# Lines of a sample that shows, if none is wrong, that at most 5% are (95%).
SAMPLE_SIZE = 60
READY, NEEDS_EAR, IS_WRONG, FAILED = "ready", "needs an ear", "wrong", "failed"
# The states of lines, exceptions first.
_STATES = (NEEDS_EAR, IS_WRONG, FAILED, READY)
_LEVEL = 0.95
_SHOWN = ("state", "why", "transcript", "take", "takes", "decision")


class HeardSample(NamedTuple):
    """The lines that the check accepted, those of the sample, and what was decided of them."""

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
        return compute_count_bound(self.accepted, self.sampled, self.wrong, _LEVEL) - self.wrong


def build_acceptance_report(
    title: str, rows: pd.DataFrame, columns: Mapping[str, str], record: Mapping[str, Any]
) -> Contents:
    """Report the lines of a checked batch, with what was heard of them."""
    states = [_find_state(row) for row in rows[["check", DECISION]].to_dict("records")]
    order = pd.Series(states).map(_STATES.index).sort_values(kind="stable").index
    table = rows.assign(state=pd.array(states, dtype="string")).iloc[order]
    sample = measure_sample(table)
    counts = {state: states.count(state) for state in _STATES}
    groups = [name for name in ("voice", columns.get("language")) if name in table.columns]
    of = table.groupby(groups, sort=False, dropna=False, observed=True) if groups else [((), table)]
    summary = pd.DataFrame(
        [
            dict(zip(("voice", "language") if len(groups) > 1 else groups, label, strict=False))
            | {"lines": len(part), "taken_again": int((part["takes"] > 1).sum())}
            | {state.replace(" ", "_"): int((part["state"] == state).sum()) for state in _STATES}
            for label, part in of
        ]
    )
    bound = pd.DataFrame([{**sample._asdict(), "bound": sample.bound}]).astype({"bound": "Int64"})
    options = {
        "columns": [columns["text"], *_SHOWN],
        "reference": columns["text"],
        "hypotheses": ["transcript"],
    }
    return Contents(
        title,
        table,
        summary,
        Conclusion(_describe_lines(counts), describe_bound(sample, counts[READY], rows)),
        "acceptance",
        tables={"bound": bound},
        columns=dict(columns),
        views=(View.from_rows("lines", _COLUMNS, summary, _NOTE),),
        shown=ShownRows(options=options),
        said=describe_methods(title),
        record=record,
    )


def measure_sample(table: pd.DataFrame) -> HeardSample:
    """Return what was heard of the accepted lines, equal ones once."""
    accepted = table[(table["check"] == READY) & table["key"].notna()].drop_duplicates("key")
    sampled = accepted[accepted[SAMPLED].astype(bool)]
    decided = sampled[DECISION].dropna()
    is_random = set(list_sample_keys(table)[: len(sampled)]) == set(sampled["key"])
    wrong = int((decided == WRONG).sum())
    return HeardSample(len(accepted), len(sampled), len(decided), wrong, is_random)


def list_sample_keys(table: pd.DataFrame) -> list[str]:
    """Return the accepted lines in an order made by chance, so that a longer sample keeps a shorter one."""
    accepted = table.loc[(table["check"] == READY) & table["key"].notna(), "key"].unique()
    return sorted(accepted, key=lambda key: sha256(f"sample {key}".encode()).digest())


def select_lines_to_hear(table: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return the exceptions that have a sound, and a sample of the accepted lines, with what was decided."""
    keys = set(list_sample_keys(table)[:count])
    has_sound = (table["check"] != READY) & table["key"].notna() & table["audio"].notna()
    rows = table[has_sound | (table["key"].isin(keys) & ~table["key"].duplicated())]
    return rows.assign(note=rows[DECISION].astype(object).where(rows[DECISION].notna(), ""))


def _find_state(row: Mapping[Any, Any]) -> str:
    if is_missing(row["check"]):
        return FAILED
    if not is_missing(row[DECISION]):
        return READY if row[DECISION] == RIGHT else IS_WRONG
    return READY if row["check"] == READY else NEEDS_EAR


def _describe_lines(counts: Mapping[str, int]) -> str:
    """Return the first sentence: how many lines are ready, and what the others need."""
    total, ready = sum(counts.values()), counts[READY]
    if ready == total:
        texts = {0: "There are no lines.", 1: "The line is ready."}
        return texts.get(total, f"All {total:,} lines are ready.")
    ear, wrong, failed = (counts[state] for state in _STATES[:3])
    clauses = [f"{ear} {'needs' if ear == 1 else 'need'} an ear"] if ear else []
    clauses += [f"{wrong} {'is' if wrong == 1 else 'are'} wrong"] if wrong else []
    clauses += [f"{failed} failed"] if failed else []
    return f"{ready:,} of {format_count(total, 'line')} are ready; {', '.join(clauses)}."


def describe_bound(sample: HeardSample, ready: int, rows: pd.DataFrame) -> str:
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
    if not sample.bound:
        return (
            "None of the ready ones is wrong (95%)."
            if sample.sampled < sample.accepted
            else "All were heard."
        )
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
    build_count_column("wrong", "wrong", optional=True),
    build_count_column("failed", "failed", optional=True),
    build_count_column("taken again", "taken_again", optional=True),
)
_NOTE = "Need an ear: the check could not repair or judge them. Wrong: so decided by ear."
