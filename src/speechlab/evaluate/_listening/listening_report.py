"""The report of a listening test, with its answer: which system is preferred, or whether a difference is audible."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from speechlab._platform import get_package_version
from speechlab.display import format_count, write_minus
from speechlab.evaluate._listening.listening_answer import build_listening_conclusion
from speechlab.evaluate._listening.summary import (
    SIMULATED,
    compare_systems,
    compute_agreement,
    score_sounds,
    select_counted_answers,
    summarize_listeners,
    summarize_systems,
)
from speechlab.evaluate._writing.columns import (
    DisplayColumn,
    View,
    build_count_column,
    build_interval_column,
    build_number_column,
    build_p_value_column,
    build_text_column,
    format_p_value,
)
from speechlab.evaluate._writing.contents import Contents, Drawing, Finding, ShownRows
from speechlab.evaluate._writing.methods import describe_methods
from speechlab.listening import METHODS, estimate_pair_scale
from speechlab.metrics import ALIKE, BETTER

if TYPE_CHECKING:
    import pandas as pd


_MAX_LISTED = 3
# How the question was answered.
_SCALES = {
    "mos": "Answers go from 1 (bad) to 5 (excellent). ",
    "mushra": "Ratings go from 0 to 100. ",
    "ab": "Answers choose one of two sounds, or neither. ",
    "abx": "Answers say which of two sounds a third one is. ",
}
_INTERVAL_NOTE = "Intervals allow for other listeners and other items."
# Number of systems from which a scale says more than their pair.
_MIN_SCALE_SYSTEMS = 3


def build_listening_report(
    title: str,
    table: pd.DataFrame,
    findings: Sequence[Finding],
    record: Mapping[str, Any],
    sounds: pd.DataFrame | None = None,
) -> Contents:
    """Report a listening test: answers with ``excluded``, what was found of them, and how they are to be read.

    With ``sounds`` the page has these in place of the answers.
    """
    settings, method = record["settings"], str(record["test"]["method"])
    smallest, draws, seed = (settings[name] for name in ("smallest", "draws", "seed"))
    answers, listeners = select_counted_answers(table), summarize_listeners(table)
    summary, differences = (
        summarize_systems(answers, method, draws, seed),
        compare_systems(answers, method, smallest),
    )
    scale = estimate_pair_scale(answers, draws=min(draws, 1_000), seed=seed) if method == "ab" else None
    agreement = compute_agreement(answers, method)
    simulated = "session" in table and table["session"].astype(str).str.startswith(SIMULATED).any()
    who = "simulated listener" if simulated else "listener"
    facts = (answers, method, summary, differences, who, smallest)
    conclusion = build_listening_conclusion(table, listeners, *facts)
    shown_columns = ["listener", "item", "system", "score", "order", "time_s", "excluded"]
    shown_columns[3:3] = ["other", "choice"] if method in {"ab", "abx"} else []
    options: dict[str, Any] = {"notes": _list_agreements(listeners)}
    if method != "abx" and (beaten := {loser for _, loser in _list_significant_preferences(differences)}):
        options["highlight"] = [str(name) for name in summary["system"] if str(name) not in beaten]
    excluded = int((listeners["excluded"] != "").sum())
    test = "exact binomial, one-sided" if method == "abx" else "Student's t, two-way clustered, two-sided"
    methods = {
        "listeners": len(differences) > 0,
        "alpha": True,
        "abx": method == "abx",
        "simulated": simulated,
        "holm": len(differences) > 0,
    }
    tables = {"listeners": listeners} | ({} if scale is None else {"scale": scale})
    shown = ShownRows(options={"columns": shown_columns})
    if sounds is not None and len(scored := score_sounds(answers, method, sounds)):
        tables["sounds"] = scored
        shown = ShownRows("sounds", options={"columns": ["item", "system", "score", "answers"]})
    return Contents(
        title,
        table,
        summary,
        conclusion,
        "listening",
        findings=tuple(findings),
        differences=differences,
        tables=tables,
        views=(
            _build_systems_view(summary, differences, method, str(record["test"].get("question", ""))),
            *([] if scale is None or len(scale) < _MIN_SCALE_SYSTEMS else [_build_scale_view(scale)]),
            _build_pairs_view(differences, method, smallest),
            _build_listeners_view(listeners, method, agreement, everybody=not findings),
        ),
        drawings=(Drawing("Systems and listeners", "listeners", ("table", "summary"), options),),
        shown=shown,
        said=describe_methods(title, *(name for name, applies in methods.items() if applies)),
        facts={
            "speechlab": get_package_version(),
            "method": method,
            "listeners": f"{len(listeners)}, of whom {excluded} excluded",
            "tests": f"{test}; Holm over pairs",
            "agreement": f"Krippendorff's alpha, {METHODS[method].scale}",
        },
        record={**record, "agreement": None if math.isnan(agreement) else agreement},
    )


def _list_agreements(listeners: pd.DataFrame) -> dict[str, str]:
    agreements = listeners.set_index("listener")["agreement"].dropna()
    return {str(name): write_minus(f"agreement {value:.2f}") for name, value in agreements.items()}


def _build_systems_view(summary: pd.DataFrame, differences: pd.DataFrame, method: str, question: str) -> View:
    digits = f".{METHODS[method].digits}f"
    rows = differences.to_dict("records")
    p_by_pair = {f"{row['a']} or {row['b']}": row["p_holm"] for row in rows}
    better = _list_significant_preferences(differences)
    certainty = (
        DisplayColumn("p (Holm)", lambda row: format_p_value(p_by_pair.get(row["system"])), figure=True)
        if method == "abx"
        else DisplayColumn(
            "better than",
            lambda row: _format_names_or_count(
                [loser for winner, loser in better if winner == row["system"]]
            ),
        )
    )
    columns = [
        DisplayColumn("pair" if method == "abx" else "system", _format_system, strong=True),
        build_number_column(METHODS[method].measure, "mean", digits, strong=True),
        build_interval_column("low", "high", digits),
        build_number_column("median", "median", digits),
        *(build_count_column(name, name) for name in ("answers", "listeners", "items")),
        certainty,
    ]
    asked = f"Asked: “{question}” " if question else ""
    return View.from_rows("Systems", columns, summary, f"{asked}{_SCALES.get(method, '')}{_INTERVAL_NOTE}")


def _list_significant_preferences(differences: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the pairs of systems of which the first is significantly better."""
    different = [row for row in differences.to_dict("records") if row["verdict"] != ALIKE]
    pairs = [(row["b"], row["a"]) if row["verdict"] == BETTER else (row["a"], row["b"]) for row in different]
    return [(str(winner), str(loser)) for winner, loser in pairs]


def _build_pairs_view(differences: pd.DataFrame, method: str, smallest: float) -> View:
    digits = f".{METHODS[method].digits}f"
    columns = [
        build_text_column("system", "a" if method == "abx" else "b", strong=True),
        build_text_column("compared with", "b" if method == "abx" else "a"),
        build_number_column("difference", "difference", digits, strong=True),
        build_interval_column("low", "high", digits),
        build_p_value_column(),
        build_number_column("smallest detectable difference", "detectable", digits),
        DisplayColumn("more needed", _format_additions_needed),
    ]
    note = (
        f"{METHODS[method].difference.capitalize()}. More needed: who or what else it takes for a difference of "
        f"{smallest:g} to show in 8 of 10 tests."
    )
    return View.from_rows("Pairs", columns, differences, note)


def _build_scale_view(scale: pd.DataFrame) -> View:
    columns = [
        build_text_column("system", "system"),
        build_number_column("strength", "strength", ".2f", strong=True),
        build_interval_column("low", "high"),
        build_number_column("preferred to the middle", "preferred", ".2f"),
        build_count_column("answers", "answers"),
    ]
    note = (
        "All pairs on one scale, whose middle is 0 (log-odds; Bradley and Terry, 1952). No preference is half an "
        f"answer for each. {_INTERVAL_NOTE}"
    )
    return View.from_rows("Scale", columns, scale, note)


def _build_listeners_view(listeners: pd.DataFrame, method: str, agreement: float, *, everybody: bool) -> View:
    columns = [
        build_text_column("listener", "listener"),
        DisplayColumn(
            "answers",
            lambda row: str(row["answers"]) + ("" if row["finished"] else " (not finished)"),
            figure=True,
        ),
        DisplayColumn("checks passed", _format_passed_checks, figure=True, optional=True),
        build_number_column("mean", "mean", f".{METHODS[method].digits}f"),
        build_number_column("agreement", "agreement"),
        build_number_column("minutes", "minutes", ".1f"),
        DisplayColumn("excluded", lambda row: row["excluded"] or None, optional=True),
    ]
    completeness = "Nobody was excluded, and all finished. " if everybody else ""
    alpha = "–" if math.isnan(agreement) else f"{agreement:.2f}"
    note = f"{completeness}The agreement of all, from 0 (chance) to 1: {alpha} (Krippendorff's alpha)."
    return View.from_rows("Listeners", columns, listeners, note)


def _format_names_or_count(names: Sequence[str]) -> str | None:
    """Return a few names, or the number of many names; None for no names."""
    return f"{len(names)} systems" if len(names) > _MAX_LISTED else ", ".join(names) or None


def _format_passed_checks(row: Mapping[Any, Any]) -> str | None:
    return f"{row['checks'] - row['checks_failed']} of {row['checks']}" if row["checks"] else None


def _format_system(row: Mapping[Any, Any]) -> str:
    return f"{row['system']}" if row["role"] == "test" else f"{row['system']} ({row['role']})"


def _format_additions_needed(row: Mapping[Any, Any]) -> str | None:
    if row["verdict"] != ALIKE:
        return None
    listeners, items = row["more_listeners"], row["more_items"]
    if math.isnan(listeners):
        return "two listeners and two items at least"
    if 0 in (listeners, items):
        return None
    further = {"listener": listeners, "item": items}
    options = [format_count(round(value), name) for name, value in further.items() if value < math.inf]
    return " or ".join(options) or "more listeners and more items"
