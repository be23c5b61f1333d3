"""The report of a study of recognition: one system, or several beside each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from speechlab.evaluate._recognition.answer import (
    SystemOrder,
    condition_differences,
    condition_findings,
    conditions_answer,
    ordered,
    streams_answer,
    systems_answer,
)
from speechlab.evaluate._recognition.conditions import AS_RECORDED
from speechlab.evaluate._recognition.flags import flagged, silence_findings
from speechlab.evaluate._recognition.hotwords import Hotwords, hotword_effects, hotwords_view
from speechlab.evaluate._recognition.measures import measures_view, stream_summary, streams_view
from speechlab.evaluate._speech.answer import rates_answer
from speechlab.evaluate._speech.report import speech_methods, speech_report, wide_table
from speechlab.evaluate._speech.summary import FLAGS, NO_SPEAKER, READING, ranking_units, summarized
from speechlab.evaluate._writing.contents import Conclusion, Contents, Drawing, Finding, ShownRows
from speechlab.evaluate._writing.differences import differences_drawing, differences_view
from speechlab.metrics import DIFFERENCES, judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from speechlab.evaluate._systems import System

_BEYOND_DB = 10.0
_PAIRED = "On the recordings that all systems have, by exact tests paired by recording."


def recognition_report(
    title: str,
    table: pd.DataFrame,
    text: str,
    language: str,
    *,
    systems: Sequence[System] = (),
    nothing: pd.DataFrame | None = None,
    about: str = "",
    measures: pd.DataFrame | None = None,
    **facts: Any,
) -> Contents:
    """Flag scored rows, put their systems in order, and say what hotwords and conditions did."""
    hotwords = hotword_effects(flagged(table), systems, language)
    table, speed = hotwords.table, facts["speed"]
    items = "recording" if "recording" in table.columns else None
    summary = stream_summary(table, summarized(table, language, speed, items=items), language)
    names = list(dict.fromkeys(table["system"].astype(str))) if "system" in table.columns else []
    order = ordered(table, text, language, about) if names else SystemOrder(pd.DataFrame(), judge([]), ())
    changes = condition_differences(table, text, language) if "condition" in table.columns else judge([])
    conditions = condition_findings(changes)
    silence = [] if nothing is None else silence_findings(nothing)
    findings = (*order.verdicts, *hotwords.verdicts, *silence, *conditions)
    live = [system for system in systems if system.streams]
    if live:
        streamed = table[table["system"].isin([system.name for system in live])] if names else table
        choice = ordered(streamed, text, language, about) if len(live) > 1 else order
        advice = systems_answer(choice.systems, speed, choice.verdicts) if len(live) > 1 else None
        answer = streams_answer(summary, systems, order.differences, advice)
    else:
        answer = _answer(table, names, order, speed, conditions, findings) or rates_answer(
            summary, table, text, language, of_speakers=True
        )
    facts |= {"summary": summary, "conclusion": answer}
    report = speech_report(title, table, text=text, language=language, **facts)
    tables = {"order": order.systems.drop(columns="excluded", errors="ignore"), "hotwords": hotwords.summary}
    for name, extra in (("speechless", nothing), ("measures", measures)):
        tables[name] = pd.DataFrame() if extra is None else extra
    best_first = list(dict.fromkeys(order.systems["system"])) if len(order.systems) else names
    display, wide_tables = _display(
        table, text, language, sorted(names, key=best_first.index) if set(names) <= set(best_first) else names
    )
    noise_tables, drawings = _drawings(order, summary, table)
    first, *timed = report.views
    views = [first, *([streams_view(summary)] if live else [])]
    compared = order.differences
    views += [differences_view(compared, "Differences of systems", _PAIRED)] if len(compared) else []
    views += [hotwords_view(hotwords.summary)] if len(hotwords.summary) else []
    views += [] if measures is None or not len(measures) else [measures_view(measures)]
    tests = [rows for rows in (compared, changes, hotwords.differences) if len(rows)]
    columns = [*DIFFERENCES, "blocks"]
    methods = _methods_used(table, order, hotwords, changes, nothing)
    noise_kind = str((facts.get("record") or {}).get("settings", {}).get("noise", "speech"))
    return replace(
        report,
        study="recognition",
        findings=findings,
        differences=pd.concat(tests, ignore_index=True)[columns] if tests else judge([]),
        tables={**report.tables, **tables, **wide_tables, **noise_tables},
        views=(*views, *timed),
        drawings=tuple(_arranged(report.drawings, drawings, summary)),
        shown=display,
        said=speech_methods(title, table, summary, speed, *methods, noise=noise_kind),
    )


def _answer(
    table: pd.DataFrame,
    names: Sequence[str],
    order: SystemOrder,
    speed: pd.DataFrame,
    conditions: Sequence[Finding],
    findings: Sequence[Finding],
) -> Conclusion | None:
    """Which system to take, or what conditions do; None for one system without conditions."""
    if names:
        return systems_answer(order.systems, speed, findings)
    if not conditions:
        return None
    changed = [name for name in table["condition"].astype(str).unique() if name != AS_RECORDED]
    return conditions_answer(conditions, changed)


def _drawings(
    order: SystemOrder, summary: pd.DataFrame, table: pd.DataFrame
) -> tuple[dict[str, pd.DataFrame], list[Drawing]]:
    """The figures of systems and of noise, and the tables that they draw."""
    tables, drawings = {}, []
    if len(order.differences):
        tables["of_systems"] = order.differences
        drawings.append(differences_drawing(order.differences, "Differences of systems", "of_systems"))
    noise, levels = _against_noise(summary, table)
    if len(noise):
        tables["noise"] = noise
        by = [name for name in ("system", "language") if name in noise.columns and noise[name].nunique() > 1]
        options = {"column": "snr_db", "by": by, "ticks": levels}
        drawings.append(Drawing("Error rate against noise", "error_by_measure", ("noise",), options))
    return tables, drawings


def _arranged(
    figures: Sequence[Drawing], main_figures: Sequence[Drawing], summary: pd.DataFrame
) -> list[Drawing]:
    """The figures, the most important one first, without rates that another figure shows."""
    rates = [figure for figure in figures if figure.function == "error_rates"]
    further = [figure for figure in figures if figure not in rates]
    noisy = any(figure.frames == ("noise",) for figure in main_figures)
    names = summary["condition"].astype(str).unique() if noisy else ()
    if noisy and all(name.startswith("noise ") or name == AS_RECORDED for name in names):
        rates = []
    if "condition" in summary.columns:
        return [*reversed(main_figures), *rates, *further]
    with_intervals = any("interval" in figure.title for figure in main_figures)
    if not main_figures or not with_intervals:  # one point each says less than the rates
        return [*rates, *further]
    return [*main_figures, *(rates if summary["system"].nunique() > 2 else []), *further]


def _methods_used(
    table: pd.DataFrame,
    order: SystemOrder,
    words: Hotwords,
    conditions: pd.DataFrame,
    nothing: pd.DataFrame | None,
) -> list[str]:
    """What the study did besides scoring, for the methods."""
    names = set(table["condition"].astype(str)) if "condition" in table.columns else set()
    methods = ["streamed"] if "revisions" in table.columns else []
    methods += ["made up", "lost ends"] if table["hallucination"].notna().any() else []
    methods += ["noise"] if any(name.startswith("noise ") for name in names) else []
    methods += ["bands"] if any(name.endswith(" Hz") for name in names) else []
    methods += [] if nothing is None else ["silence"]
    methods += ["groups"] if len(order.differences) else []
    methods += ["hotwords"] if len(words.differences) else []
    tested = len(order.differences) or len(conditions)
    methods += ["sign-flip"] if tested else []
    return [*methods, *(["holm"] if tested or len(words.differences) else [])]


def _display(
    table: pd.DataFrame, text: str, language: str, names: list[str]
) -> tuple[ShownRows, dict[str, pd.DataFrame]]:
    """How the rows are shown: the worst first, of two systems side by side, of more in one wide table."""
    present, roles = table.columns, {"reference": text, "language": language}
    leading = [name for name in ("condition", "file") if name in present]
    texts, rates = ([f"{column}_{name}" for name in names] for column in ("hypothesis", "error_rate"))
    if len(names) == 2:
        columns = [*leading, text, *texts, "fewer_errors", "error_difference", *rates, language]
        return ShownRows(scored=True, options={**roles, "names": names, "columns": columns}), {}
    if names:
        columns = [*leading, text, *texts, "error_spread", *rates, language]
        wide = wide_table(table, names, text, language).reset_index(drop=True)
        return ShownRows("side_by_side", options={**roles, "hypotheses": texts, "columns": columns}), {
            "side_by_side": wide
        }
    ranked = [
        name
        for name in (READING, "tolerant_wer")
        if name in present and (table[name].notna() & (table[name] != table["error_rate"])).any()
    ]
    flags = [name for name in FLAGS.values() if name in present and table[name].any()]
    speaker_column = [] if (table["voice"] == NO_SPEAKER).all() else ["voice"]
    scores = [*ranked, "error_rate", "errors", "error_classes", *flags]
    columns = [*leading, text, "hypothesis", *scores, language, *speaker_column]
    return ShownRows(scored=True, options={**roles, "columns": columns}), {}


def _against_noise(
    summary: pd.DataFrame, table: pd.DataFrame
) -> tuple[pd.DataFrame, list[tuple[float, str]]]:
    """The rates by level of noise; recordings as they are stand 10 dB beyond the quietest noise."""
    if "snr_db" not in table.columns or not table["snr_db"].notna().any():
        return pd.DataFrame(), []
    noisy = table.dropna(subset="snr_db").drop_duplicates("snr_db")
    places = dict(zip(noisy["condition"].astype(str), noisy["snr_db"].astype(float), strict=True))
    places[AS_RECORDED] = max(places.values()) + _BEYOND_DB
    rated = summary.assign(unit=ranking_units(summary))
    rated = rated[rated["condition"].astype(str).isin(places)]
    at = rated["condition"].astype(str).map(places).astype("float64")
    places_on_axis = {f"snr_db_{end}": at for end in ("from", "to", "mean")}
    rates = {f"error_rate{end}": rated[f"ranking_rate{end}"] for end in ("", "_low", "_high")}
    lines = rated.assign(**places_on_axis, **rates).sort_values("snr_db_mean", kind="stable")
    if "system" in table.columns:  # systems have one colour in all panels
        names = list(dict.fromkeys(table["system"]))
        lines = lines.sort_values("system", key=lambda column: column.map(names.index), kind="stable")
    ticks = [(level, name if name == AS_RECORDED else f"{level:g}") for name, level in places.items()]
    return lines, ticks
