"""A report made anew from its rows: what verification compares with, and a report with corrected references."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from speechlab import datasets
from speechlab._brief import shorten_tracebacks
from speechlab._pandas import pd
from speechlab.display import format_count, format_percent, join_with_and
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._acceptance.acceptance_report import build_acceptance_report
from speechlab.evaluate._advice.speech_report import build_speech_report
from speechlab.evaluate._audit.audit_report import build_audit_report, score_predictions
from speechlab.evaluate._changes.changes_report import compare_reports
from speechlab.evaluate._changes.tested import DEFAULT_NAMES
from speechlab.evaluate._listening.listening_report import build_listening_report
from speechlab.evaluate._recognition.hallucinations import flag_hallucinations_and_truncation
from speechlab.evaluate._recognition.hotwords import measure_hotword_effects
from speechlab.evaluate._recognition.recognition_report import build_recognition_report
from speechlab.evaluate._report import Report
from speechlab.evaluate._speech.speech_rows import rescore_rows
from speechlab.evaluate._speech.speed import build_empty_call_table, build_empty_stream_table
from speechlab.evaluate._study_columns import NO_SPEAKER, SIDES
from speechlab.evaluate._systems import System
from speechlab.evaluate._translation.translation_measures import (
    Columns,
    count_glossary_terms,
    rescore_translations,
    summarize_translations,
)
from speechlab.evaluate._translation.translation_report import build_translation_report
from speechlab.evaluate._voice_ranks.voice_order import rank_voices
from speechlab.evaluate._voices.voices_report import build_voices_report
from speechlab.evaluate._watch.watch_series import rescore_study_rows
from speechlab.evaluate._watch.watch_study import build_watch_report
from speechlab.evaluate._writing.columns import View, build_count_column, build_rate_column, build_text_column
from speechlab.evaluate._writing.contents import Contents, Finding
from speechlab.text import get_language_name


def recompute_report(report: Contents, table: pd.DataFrame | None = None) -> Contents:
    """Return the report that its study makes of the rows: texts scored, summarized, tested and reported again.

    Raises:
        InvalidRequestError: The report is of a study whose rows are not all in it.
    """
    if report.study not in _RECOMPUTE_BY_STUDY:
        known = ", ".join(sorted(_RECOMPUTE_BY_STUDY))
        message = f"a report of {report.study!r} cannot be computed from its rows; those of {known} can"
        raise InvalidRequestError(message, parameter="report")
    anew = _RECOMPUTE_BY_STUDY[report.study](report, report.table if table is None else table)
    if table is not None or UNCORRECTED not in report.tables:
        return anew
    before = _RECOMPUTE_BY_STUDY[report.study](report, restore_original_references(report))
    return add_correction_results(before, anew, report.tables[CORRECTIONS])


def _collect_report_facts(report: Contents) -> dict[str, Any]:
    speed = report.speed if len(report.speed) else build_empty_call_table()
    facts = {"speed": speed, "record": report.record, "notes": report.notes}
    return {**facts, "segments": report.tables.get("segments")}


def _get_text_language_columns(report: Contents) -> tuple[str, str]:
    return report.columns.get("text", "text"), report.columns.get("language", "language")


def _recompute_speech_report(report: Contents, table: pd.DataFrame) -> Contents:
    text, language = _get_text_language_columns(report)
    rows = rescore_rows(table, text, language)
    facts = _collect_report_facts(report)
    return build_speech_report(report.title, rows, text=text, language=language, **facts)


def _recompute_voices_report(report: Contents, table: pd.DataFrame) -> Contents:
    text, language = _get_text_language_columns(report)
    rows = rescore_rows(table, text, language)
    return build_voices_report(
        report.title, rows, text, language, rank_voices(rows, text, language), **_collect_report_facts(report)
    )


def _recompute_recognition_report(report: Contents, table: pd.DataFrame) -> Contents:
    text, language = _get_text_language_columns(report)
    settings = report.record.get("settings", {})
    return build_recognition_report(
        report.title,
        rescore_rows(table, text, language),
        text,
        language,
        systems=_build_systems(settings),
        nothing=report.tables.get("speechless", pd.DataFrame()),
        about=str(settings.get("about", "")),
        measures=report.tables.get("measures", pd.DataFrame()),
        **_collect_report_facts(report),
    )


def _build_systems(settings: Mapping[str, Any]) -> list[System]:
    """Return the systems of a record; a number stands for the service of each."""
    by_name = settings.get("systems") or {"": settings}
    return [System(name, options.get("service", 0), dict(options)) for name, options in by_name.items()]


def _recompute_translation_report(report: Contents, table: pd.DataFrame) -> Contents:
    columns = Columns(**report.columns)
    terms = report.record.get("settings", {}).get("glossary") or {}
    rows = rescore_translations(table, columns, terms)
    speed = report.speed if len(report.speed) else build_empty_stream_table()
    return build_translation_report(
        report.title,
        rows,
        summarize_translations(rows, columns, speed),
        columns,
        terms=count_glossary_terms(rows, columns, terms),
        speed=speed,
        record=report.record,
        notes=report.notes,
    )


def _recompute_changes_report(report: Contents, _: pd.DataFrame) -> Contents:
    """Return the two reports, as far as they were compared, as tables of the report of their changes."""
    reports = []
    for side in DEFAULT_NAMES:
        rows, record = report.tables[side], report.record[side]
        rows = rescore_study_rows(rows, record)
        if record.get("study") == "recognition":
            rows = measure_hotword_effects(
                flag_hallucinations_and_truncation(rows),
                _build_systems(record.get("settings", {})),
                "language",
            ).table
        speed = report.tables.get(f"speed_{side}", pd.DataFrame())
        title, study = str(report.record["title"]), str(record.get("study", "speech"))
        reports.append(Contents(title, rows, pd.DataFrame(), study=study, speed=speed, record=record))
    return compare_reports(reports[1], reports[0], report.record["names"])


def _recompute_watch_report(report: Contents, table: pd.DataFrame) -> Contents:
    rows = rescore_study_rows(table, report.record)
    return build_watch_report(report.title, rows, report.tables["values"], report.record, report.notes)


def _recompute_listening_report(report: Contents, table: pd.DataFrame) -> Contents:
    sounds = report.tables.get("sounds")
    return build_listening_report(report.title, table, report.findings, report.record, sounds)


def _recompute_audit_report(report: Contents, table: pd.DataFrame) -> Contents:
    rows = score_predictions(table, report.record)
    return build_audit_report(report.title, rows, report.record, report.notes)


_RECOMPUTE_BY_STUDY: dict[str, Callable[[Contents, pd.DataFrame], Contents]] = {
    "round_trip": _recompute_speech_report,
    "speech": _recompute_speech_report,
    "voices": _recompute_voices_report,
    "recognition": _recompute_recognition_report,
    "translation": _recompute_translation_report,
    "listening": _recompute_listening_report,
    "changes": _recompute_changes_report,
    "watch": _recompute_watch_report,
    "audit": _recompute_audit_report,
    "acceptance": lambda report, table: build_acceptance_report(
        report.title, table, report.columns, report.record
    ),
}


# Tables of a corrected report: its file of corrections; and the place and the text of each row before.
CORRECTIONS, UNCORRECTED = "corrections", "uncorrected"
# Maximum number of corrections that a page lists.
_MAX_SHOWN = 50


def restore_original_references(report: Contents) -> pd.DataFrame:
    """The rows of a corrected report with their references as they were; those of another report as they are."""
    if UNCORRECTED not in report.tables:
        return report.table
    name, originals = report.columns.get("text", "text"), report.tables[UNCORRECTED]
    texts = report.table[name].astype(object).tolist()
    for place, old in zip(originals["place"], originals["text"], strict=True):
        texts[int(place)] = old
    cells = pd.Series(texts, index=report.table.index, dtype=report.table[name].dtype)
    return report.table.assign(**{name: cells})


def add_correction_results(before: Contents, after: Contents, corrections: pd.DataFrame) -> Contents:
    """Return a corrected report that says how much of the error was the references', of each system and voice."""
    name = after.columns.get("text", "text")
    old, new = (report.table[name].astype(object).tolist() for report in (before, after))
    places = [place for place, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]]
    originals = pd.DataFrame(
        {"place": places, "text": pd.array([old[place] for place in places], dtype="string")}
    )
    references = _summarize_corrections(before, after)
    tables = {**after.tables, "references": references, CORRECTIONS: corrections, UNCORRECTED: originals}
    changed = corrections[corrections["old"] != corrections["new"]]
    findings = (_build_correction_finding(before, after, changed["row"].nunique()), *after.findings)
    views = (*after.views, *_build_correction_views(references, changed))
    summary, keys = after.summary, _list_key_columns(references)
    if set(keys) <= set(summary.columns):  # in addition to the rates of voice, engine and recognizer
        summary = summary.merge(references[[*keys, "reference_rate"]], on=keys, how="left")
    return replace(after, summary=summary, findings=findings, tables=tables, views=views)


def _list_key_columns(references: pd.DataFrame) -> list[str]:
    """Return the columns that identify a row: system, condition, voice, language."""
    return references.columns[: list(references.columns).index("errors_before")].tolist()


def _summarize_corrections(before: Contents, after: Contents) -> pd.DataFrame:
    """Errors before and after, and those that were the references', of each system, voice and language."""
    language = after.columns.get("language", "language")
    keys = [name for name in (*SIDES, "voice_name", language) if name in after.table.columns]
    if "voice_name" in keys and after.table["voice"].eq(NO_SPEAKER).any():
        keys.remove("voice_name")
    counted = ["errors", "reference_length"]
    first, last = (
        report.table.astype(dict.fromkeys(counted, "Float64"))
        .groupby(keys, sort=False, observed=True)[counted]
        .sum()
        for report in (before, after)
    )
    table = pd.DataFrame(
        {
            "errors_before": first["errors"].astype(int),
            "reference_errors": (first["errors"] - last["errors"]).astype(int),
            "errors_after": last["errors"].astype(int),
            "error_rate_before": (first["errors"] / first["reference_length"]).astype(float),
            "reference_rate": ((first["errors"] - last["errors"]) / first["reference_length"]).astype(float),
            "error_rate_after": (last["errors"] / last["reference_length"]).astype(float),
        }
    )
    return table.reset_index().rename(columns={language: "language"})


def _build_correction_views(references: pd.DataFrame, changed: pd.DataFrame) -> list[View]:
    columns = [
        *(build_text_column(name, name) for name in _list_key_columns(references)),
        build_count_column("errors before", "errors_before"),
        build_count_column("the references'", "reference_errors"),
        build_count_column("errors after", "errors_after"),
        build_rate_column("rate before", "error_rate_before"),
        build_rate_column("rate after", "error_rate_after", strong=True),
    ]
    listing = [
        build_text_column(name, name, optional=name in {"by", "when", "why"}) for name in changed.columns
    ]
    more = f"The first {_MAX_SHOWN} of {len(changed):,}." if len(changed) > _MAX_SHOWN else ""
    return [
        View.from_rows("How much of the error was the references'", columns, references),
        View.from_rows("Corrections", listing, changed.head(_MAX_SHOWN), more),
    ]


def _build_correction_finding(before: Contents, after: Contents, corrected: int) -> Finding:
    """Say how many errors went with the corrections, and what became of the order of systems."""
    errors, remaining = (int(report.table["errors"].fillna(0).sum()) for report in (before, after))
    share = (errors - remaining) / errors if errors else 0.0
    references = format_count(corrected, "reference was", "references were")
    words = (
        f"{references} corrected; {errors - remaining:,} of {errors:,} errors ({format_percent(share)}) were "
        "the references'."
    )
    first, last = _list_systems_best_first(before), _list_systems_best_first(after)
    new = [
        f"in {get_language_name(code)} {join_with_and(last[code])}"
        for code in last
        if first.get(code) != last[code]
    ]
    if any(len(names) > 1 for names in last.values()):
        words += f" The order is another one now: {'; '.join(new)}." if new else " The order stays."
    return Finding(words, numbers={"errors_before": errors, "errors_after": remaining})


def _list_systems_best_first(report: Contents) -> Mapping[Any, list[str]]:
    """Return the systems or voices of each language, the one with the fewest errors first."""
    name = next((column for column in ("system", "voice_name") if column in report.summary.columns), None)
    if name is None or "ranking_rate" not in report.summary.columns:
        return {}
    summary = report.summary
    if "condition" in summary.columns:
        summary = summary[summary["condition"] == summary["condition"].iloc[0]]
    ordered = summary.sort_values("ranking_rate", kind="stable")
    return {code: lines[name].astype(str).tolist() for code, lines in ordered.groupby("language", sort=False)}


@shorten_tracebacks
def correct_references(report: Report, corrections: str | os.PathLike[str] | pd.DataFrame) -> Report:
    """Return a report with corrected references, scored, ranked and tested anew; nothing is asked again.

    Args:
        report: The report, of one system or of several.
        corrections: A table or a CSV file, as for :func:`speechlab.datasets.apply_corrections`.

    Returns:
        The report. Its first finding says how much of the error was the references', and what became of the order of
        systems; ``tables["references"]`` has the same for each system, voice and language, and
        ``tables["corrections"]`` the corrections.

    Raises:
        InvalidRequestError: A correction fits no row, or the report is of translations, listeners or a watch.

    Example:
        >>> fixes = pd.DataFrame({"row": ["a"], "old": ["ten cats"], "new": ["ten hats"]})
        >>> rows = pd.DataFrame(
        ...     {"id": ["a"], "text": ["ten cats"], "language": "en", "recognized": ["ten hats"]}
        ... )
        >>> report = recognition(None, rows, hypotheses="recognized")
        >>> str(correct_references(report, fixes).findings[0])
        "1 reference was corrected; 1 of 1 errors (100.0%) were the references'."
    """
    if report.study == "watch" or "errors" not in report.table.columns:
        message = (
            f"the report {report.title!r} is not one of transcripts, whose errors corrections change; give one of "
            "round_trip, recognition or voices"
        )
        raise InvalidRequestError(message, parameter="report")
    text = report.columns.get("text", "text")
    fixes = datasets.read_corrections(corrections)
    sides = [name for name in (*SIDES, "voice", "take") if name in report.table.columns]
    groups = (
        report.table.groupby(sides, dropna=False, observed=True, sort=False)
        if sides
        else [("", report.table)]
    )
    fixed = [datasets.apply_corrections(rows, fixes, text=text) for _, rows in groups]
    table = pd.concat(fixed).reindex(report.table.index)
    if CORRECTIONS in report.tables:
        fixes = pd.concat([report.tables[CORRECTIONS], fixes], ignore_index=True)
    before = recompute_report(report, restore_original_references(report))
    return Report.of(add_correction_results(before, recompute_report(report, table), fixes))
