"""Differences for people: one table, and one sentence for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing
from speechlab.display import format_count
from speechlab.evaluate._writing.columns import (
    DisplayColumn,
    View,
    build_count_column,
    build_language_column,
    build_p_value_column,
    build_text_column,
    describe_p_value,
)
from speechlab.evaluate._writing.contents import Drawing
from speechlab.metrics import (
    ALIKE,
    BETTER,
    DIFFERENCES,
    RATIO,
    UNPAIRED,
    WORSE,
    format_difference,
    format_value,
    judge,
)

if TYPE_CHECKING:
    import pandas as pd

# Utterances from which 95% intervals cover the truth in 95% of simulated corpora (docs/statistics.md).
ENOUGH = 20
# Measures of translations; more is better.
CHRF, BACK = "chrF", "chrF of the translation back"
# Headings of a table of differences, which no system of it may have as its name.
HEADINGS = (
    "language",
    "condition",
    "group",
    "measure",
    "pairs",
    "difference",
    "95% interval",
    "p (Holm)",
    "verdict",
)
_SPEED_NOTE = "Speed is of these calls alone: machines, their load and the network may have been others."


def format_needed(count: object) -> str | None:
    """Return how many items would show a difference; beyond a million not exactly."""
    if is_missing(count):
        return None
    return f"{count:,}" if count <= 1_000_000 else "more than a million"  # type: ignore[operator]  # a number


def build_study_differences(compared: pd.DataFrame, **facts: Any) -> pd.DataFrame:
    """Return differences for a report: with their place and ``blocks``, and with intervals of enough blocks alone."""
    if not len(compared):
        return judge([])
    rough = compared["blocks"] < ENOUGH
    bounds = {end: compared[end].mask(rough) for end in ("low", "high")}
    return compared.assign(**bounds, **facts)[[*DIFFERENCES, "blocks"]]


def build_differences_view(
    differences: pd.DataFrame,
    title: str = "Differences",
    note: str = "",
    names: tuple[str, str] | None = None,
) -> View:
    """Return differences as a table; ``names`` are those of the two reports whose groups are compared."""
    several = {name for name in ("language", "condition", "measure") if differences[name].nunique() > 1}
    places = [build_language_column(), build_text_column("condition", "condition")]
    columns = [
        *(place for place in places if place.head in several and names is None),
        *([build_text_column("group", "group", strong=True)] if names is not None else []),
        *([build_text_column("measure", "measure")] if "measure" in several else []),
        *_build_value_columns(differences, names),
        build_count_column("pairs", "n"),
        DisplayColumn(
            "difference", lambda row: format_difference(row["difference"], row["unit"]), True, strong=True
        ),
        DisplayColumn("95% interval", _format_interval_cell, figure=True, optional=True),
        build_p_value_column(),
        DisplayColumn("verdict", _format_verdict)
        if names is None
        else build_text_column("verdict", "verdict"),
    ]
    note += f" Intervals are given from {ENOUGH} pairs on; those that are alike, such as those of one speaker, count "
    note += "as one."
    note += f" {_SPEED_NOTE}" if RATIO in set(differences["unit"]) else ""
    return View.from_rows(title, columns, differences, note.strip())


def _build_value_columns(differences: pd.DataFrame, names: tuple[str, str] | None) -> list[DisplayColumn]:
    """Return the two values: below the names of both where all rows compare these, else beside each name."""
    pairs = differences[["b", "a"]].drop_duplicates()
    both = tuple(map(str, pairs.iloc[0])) if len(pairs) == 1 else ()
    heads = names or (None if {*both} & {*HEADINGS} else both)
    sides = ("value_a", "value_b") if names is not None else ("value_b", "value_a")
    values = [
        DisplayColumn(head, lambda row, side=side: format_value(row[side], row["unit"]), figure=True)  # type: ignore[misc]  # the side of now
        for head, side in zip(heads or ("value", "its value"), sides, strict=True)
    ]
    if heads:
        return values
    return [
        build_text_column("system", "b", strong=True),
        values[0],
        build_text_column("compared with", "a"),
        values[1],
    ]


def build_differences_drawing(differences: pd.DataFrame, title: str, frame: str) -> Drawing:
    """Return the figure of differences, which stand in a table of the report."""
    intervals = ", with 95% intervals" if differences["low"].notna().any() else ""
    return Drawing(f"{title}{intervals}", "differences", (frame,))


def describe_rows_and_blocks(rows: float, blocks: float, singular: str, several: str = "") -> str:
    """On how much a difference stands: ``24 recordings, which count as 8``, where rows of one block count once."""
    counted = format_count(int(rows), singular, several)
    return counted if blocks == rows else f"{counted}, which count as {int(blocks):,}"


def describe_difference(row: Mapping[Any, Any]) -> str:
    """Return a difference in words: ``17.0% to 34.0%, +17.0 points, p = 0.012, 20 pairs``."""
    unit, change = row["unit"], format_difference(row["difference"], row["unit"])
    measure = "" if row["measure"] in {"error rate", "rows that failed"} else f"{row['measure']} "
    values = f"{format_value(row['value_a'], unit)} to {format_value(row['value_b'], unit)}"
    if row["verdict"] == UNPAIRED:
        return f"{measure}{values}, of other rows"
    clauses = [f"{measure}{change}"] if unit == RATIO else [f"{measure}{values}", f"{change} points"]
    clauses += [f"95% interval {bounds}" for bounds in [_format_interval_cell(row)] if bounds]
    clauses += [] if is_missing(row["p_holm"]) else [describe_p_value(row["p_holm"])]
    pair, pairs = ("pair of calls", "pairs of calls") if unit == RATIO else ("pair", "pairs")
    return ", ".join([*clauses, format_count(int(row["n"]), pair, pairs)])


def describe_differences_by_verdict(
    differences: pd.DataFrame, direction: str = ""
) -> list[tuple[str, str, list[str]]]:
    """Return a sentence for each verdict, with the verdict and the groups that it is about."""
    sentences = []
    known = (WORSE, BETTER, "slower", "faster", ALIKE, UNPAIRED)
    qualified = [str(verdict) for verdict in differences["verdict"].unique() if verdict not in known]
    for verdict in (*known[:4], *qualified, *known[4:]):
        for timed in (False, True):
            of_verdict = (differences["verdict"] == verdict) & ((differences["unit"] == RATIO) == timed)
            if not of_verdict.any():
                continue
            records = differences[of_verdict].to_dict("records")
            groups = "; ".join(f"{row['group']} ({describe_difference(row)})" for row in records)
            head = f"{verdict} in speed" if timed and verdict == ALIKE else verdict
            more = f" {_SPEED_NOTE}" if timed else ""
            words = f"{head.capitalize()}{direction}: {groups}.{more}"
            sentences.append((verdict, words, [str(row["group"]) for row in records]))
    return sentences


def _format_interval_cell(row: Mapping[Any, Any]) -> str | None:
    if is_missing(row["low"]):
        return None
    low, high = (format_difference(row[end], row["unit"]).removeprefix("× ") for end in ("low", "high"))
    return f"{low} to {high}"


def _format_verdict(row: Mapping[Any, Any]) -> str:
    if row["verdict"] not in {WORSE, BETTER}:
        return str(row["verdict"])
    return f"{row['a'] if row['verdict'] == WORSE else row['b']} is better"
