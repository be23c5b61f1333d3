"""The answer of a comparison with an earlier report: what rose or fell, with its figures, or what to watch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing
from speechlab.display import join_with_and
from speechlab.evaluate._advice.evidence import FEW_SPEAKERS, describe_few
from speechlab.evaluate._changes.tested import DEFAULT_NAMES, FAILURES_MEASURE
from speechlab.evaluate._statistics import MIN_PAIRS
from speechlab.evaluate._study_columns import NO_SPEAKER
from speechlab.evaluate._writing.columns import describe_p_value, format_language
from speechlab.evaluate._writing.contents import Conclusion
from speechlab.evaluate._writing.differences import describe_rows_and_blocks
from speechlab.evaluate._writing.sentences import (
    TITLE_WORDS,
    capitalize_unless_name,
    join_fitting_clauses,
    quote_name,
)
from speechlab.metrics import BETTER, POINTS, UNPAIRED, WORSE, format_difference, format_value

if TYPE_CHECKING:
    import pandas as pd

_LEVEL = 0.05
# P-value of one test from which on a change for the worse that is not significant is no reason to look again.
_WATCHED = 0.1
# Most groups that the first sentence names, and most words of their names.
_MAX_NAMES, _MAX_WORDS = 2, 4
# Most lines on groups.
_MAX_LINES = 3


def build_changes_conclusion(
    tests: pd.DataFrame, speed: pd.DataFrame, names: tuple[str, str], about: str
) -> Conclusion:
    """Return what changed, and a line on each group with its figures: those first that are significant, or larger."""
    first, second = map(quote_name, names)
    rows = sorted(tests.to_dict("records"), key=_rank_row)
    found = [row for row in rows if row["verdict"] in {WORSE, BETTER}]
    lines = [
        _describe_row(row, about, is_lead=len(found) == 1 and row is found[0])
        for row in rows
        if row["verdict"] != UNPAIRED
    ]
    more = len(lines) - _MAX_LINES
    lines = lines[:_MAX_LINES] + (
        [f"{more} more {'is' if more == 1 else 'are'} in the table."] if more > 0 else []
    )
    if len(speed):
        lines.append(_describe_speed(speed))
    if (tests["verdict"] == UNPAIRED).all():
        text = f"{first} and {second} have no row in common, so nothing can be said of changes."
        return Conclusion(capitalize_unless_name(text, names), "\n".join(lines))
    return Conclusion(
        f"{capitalize_unless_name(_build_lead(rows, names, about), [*names])}.", "\n".join(lines)
    )


def _build_lead(rows: list[dict[Any, Any]], names: tuple[str, str], about: str) -> str:
    """Return what changed significantly, or that nothing did."""
    few = [row for row in rows if row["verdict"] == FEW_SPEAKERS]
    found = [row for row in rows if row["verdict"] in {WORSE, BETTER}]
    scores = [row for row in found if row["measure"] != FAILURES_MEASURE]
    if len(found) == 1 or (found and not scores):
        return _describe_one(found[0], names)
    if found:
        clauses = []
        for verdict, words in ((WORSE, "worse"), (BETTER, "better")):
            groups = [name_group(row) for row in scores if row["verdict"] == verdict]
            if not groups:
                continue
            several = len(groups) > _MAX_NAMES or len(" ".join(groups).split()) > _MAX_WORDS
            named = f"{len(groups)} groups" if several and len(groups) > 1 else join_with_and(groups)
            clauses.append(f"{words}: {named}")
        failed = [row for row in found if row["measure"] == FAILURES_MEASURE]
        clauses += [f"{'more' if row['verdict'] == WORSE else 'fewer'} rows failed" for row in failed]
        where = "" if names == DEFAULT_NAMES else f" with {quote_name(names[1])}"
        return f"{'; '.join(clauses)}{where}"
    if few:
        row, who = few[0], about.removeprefix("one ")
        amount = "more" if row["difference"] > 0 else "fewer"
        with_whom = f"with {'this' if about.startswith('one ') else 'these'} {who}"
        return f"{amount} errors {_name_place(row)} {with_whom}"
    hidden = next((row for row in rows if _is_hidden(row)), None)
    if hidden is not None:
        return f"one row hides a change in {name_group(hidden)}"
    changed = next((row for row in rows if _is_visible_change(row)), None)
    if about and changed is not None:
        lead = f"{_describe_unsettled(changed, rows, names)}; {about} cannot settle whether by chance"
        if len(lead.split()) <= TITLE_WORDS:
            return lead
    if about:
        what = "anything changed" if names == DEFAULT_NAMES else "they differ"
        return f"{about} cannot settle whether {what}"
    return (
        "no significant change"
        if names == DEFAULT_NAMES
        else (f"no significant difference between {quote_name(names[0])} and {quote_name(names[1])}")
    )


def _is_visible_change(row: Mapping[Any, Any]) -> bool:
    values = [format_value(row[side], row["unit"]) for side in ("value_a", "value_b")]
    return row["measure"] != FAILURES_MEASURE and row["verdict"] != UNPAIRED and values[0] != values[1]


def _describe_unsettled(
    row: Mapping[Any, Any], rows: Sequence[Mapping[Any, Any]], names: tuple[str, str]
) -> str:
    """Return a change that is not significant, with the group where there are several."""
    before, now = (format_value(row[side], row["unit"]) for side in ("value_a", "value_b"))
    several = len({str(other["group"]) for other in rows if other["measure"] != FAILURES_MEASURE}) > 1
    if names != DEFAULT_NAMES:
        return f"errors: {now} with {quote_name(names[1])}, {before} with {quote_name(names[0])}"
    what = "errors" if row["unit"] != POINTS else str(row["measure"])
    return f"{name_group(row) if several else ''}{' ' if several else ''}{what} went from {before} to {now}"


def _describe_one(row: Mapping[Any, Any], names: tuple[str, str]) -> str:
    """Return one significant change as a sentence."""
    before, now = (format_value(row[side], row["unit"]) for side in ("value_a", "value_b"))
    if row["measure"] == FAILURES_MEASURE:
        before, now = _count_failures(row)
        amount = "more" if row["verdict"] == WORSE else "fewer"
        if names == DEFAULT_NAMES:
            return f"{amount} rows failed: {now}, before {before}"
        return f"{amount} rows failed with {quote_name(names[1])}: {now} against {before}"
    if names != DEFAULT_NAMES and row["unit"] != POINTS:
        amount = "more" if row["difference"] > 0 else "fewer"
        return f"{quote_name(names[1])} makes {amount} errors {_name_place(row)} ({now} against {before})"
    if names != DEFAULT_NAMES:
        values = f"{now} against {before} {row['measure']}"
        return f"{quote_name(names[1])} is {row['verdict']} in {name_group(row)} ({values})"
    verb = "rose" if row["difference"] > 0 else "fell"
    return f"the {row['measure']} of {name_group(row)} {verb} from {before} to {now}"


def _count_failures(row: Mapping[Any, Any]) -> list[str]:
    """Return how many rows failed before and now: ``4 of 40``, or ``none``."""
    counts = [round(float(row[side]) * int(row["n"])) for side in ("value_a", "value_b")]
    return [f"{count} of {int(row['n'])}" if count else "none" for count in counts]


def name_group(row: Mapping[Any, Any]) -> str:
    """Return what a row of a summary is about, such as ``heart in English``, or ``English to Japanese``."""
    *who, what = str(row["group"]).split(", ")
    directed = " → " in what
    subject = (
        " to ".join(map(format_language, what.split(" → "))) if who or directed else format_language(what)
    )
    voices = [quote_name(name) for name in who if name != NO_SPEAKER]
    return f"{', '.join(voices)} in {subject}" if voices else subject


def _name_place(row: Mapping[Any, Any]) -> str:
    group = name_group(row)
    return f"with {group}" if " in " in group else f"in {group}"


def _describe_row(row: Mapping[Any, Any], about: str, *, is_lead: bool = False) -> str:
    """Return a line on a group: its values, unless the first sentence has them, and how sure the change is."""
    count = describe_rows_and_blocks(row["n"], row["blocks"], "row").replace(", which count", " that count")
    values = [format_value(row[side], row["unit"]) for side in ("value_a", "value_b")]
    if row["measure"] == FAILURES_MEASURE:
        label, values, mark = "Failed rows", _count_failures(row), ":"
    else:
        label, mark = name_group(row) + (f", {row['measure']}" if row["unit"] == POINTS else ""), ""
    if values[0] == values[1]:
        return f"{label}{mark} {values[0]} as before ({count})."
    # With so few speakers, no p-value could have shown a change.
    is_open = bool(about) and row["verdict"] not in {WORSE, BETTER, FEW_SPEAKERS}
    chance = [] if is_missing(row["p_holm"]) or is_open else [describe_p_value(row["p_holm"])]
    sure = ", ".join([*chance, count])
    line = f"{label}: {sure}" if is_lead else f"{label}{mark} {' → '.join(values)} ({sure})"
    clauses = [line, _describe_without(row)]
    if row["blocks"] < MIN_PAIRS:
        clauses.insert(1, "too few to show a change")
    elif row["verdict"] == FEW_SPEAKERS:
        clauses.insert(1, describe_few(about))
    elif row["verdict"] not in {WORSE, BETTER} and _is_suspicious(row):
        clauses[0] += ": watch it"
    if about and row["verdict"] in {WORSE, BETTER}:
        clauses.append(f"of {about} only")
    return f"{join_fitting_clauses(clauses)}."


def _describe_without(row: Mapping[Any, Any]) -> str:
    """Return the change without the row that makes over a third of the errors, if there is one."""
    without = row.get("without")
    if not isinstance(without, tuple):
        return ""
    before, now, p = without
    chance = "" if is_missing(p) else f" ({describe_p_value(p)})"
    return f"without one row {format_value(before, row['unit'])} → {format_value(now, row['unit'])}{chance}"


def _is_hidden(row: Mapping[Any, Any]) -> bool:
    without = row.get("without")
    return isinstance(without, tuple) and not is_missing(without[2]) and float(without[2]) < _LEVEL


def _is_suspicious(row: Mapping[Any, Any]) -> bool:
    """Return whether a change for the worse is nearly significant by itself."""
    worse = (row["difference"] < 0) == (row["unit"] == POINTS) and row["difference"] != 0
    return bool(worse and not is_missing(row["p"]) and row["p"] < _WATCHED)


def _rank_row(row: Mapping[Any, Any]) -> tuple[Any, ...]:
    p = row["p_holm"]
    return (
        row["verdict"] not in {WORSE, BETTER, FEW_SPEAKERS},
        not _is_hidden(row),
        2.0 if is_missing(p) else p,
    )


def _describe_speed(speed: pd.DataFrame) -> str:
    """Return whether calls became slower, with the largest change."""
    row = max(speed.to_dict("records"), key=lambda row: (row["verdict"] == "slower", row["difference"]))
    slower = "slower" if row["verdict"] == "slower" else "no slowing shown"
    chance = "" if is_missing(row["p_holm"]) else f" ({describe_p_value(row['p_holm'])})"
    return f"Speed: {slower}; {row['measure']} {format_difference(row['difference'], row['unit'])}{chance}."
