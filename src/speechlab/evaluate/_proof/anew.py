"""A report made anew from its rows: what verification compares with, and a report with corrected references."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from speechlab import datasets
from speechlab._brief import briefly
from speechlab._pandas import pd
from speechlab.display import listed, percent
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._changes.report import changes_between
from speechlab.evaluate._changes.tested import NAMES
from speechlab.evaluate._listening.report import listening_report
from speechlab.evaluate._made import NO_SPEAKER, SIDES
from speechlab.evaluate._recognition.hallucinations import flagged
from speechlab.evaluate._recognition.hotwords import hotword_effects
from speechlab.evaluate._recognition.report import recognition_report
from speechlab.evaluate._report import Report
from speechlab.evaluate._speech.report import speech_report
from speechlab.evaluate._speech.rows import rescored
from speechlab.evaluate._speech.speed import no_speed, no_times
from speechlab.evaluate._systems import System
from speechlab.evaluate._translation.measures import (
    Columns,
    glossary_counts,
    rescored_translations,
    summarized,
)
from speechlab.evaluate._translation.report import translation_report
from speechlab.evaluate._translation.spoken import report_of_stages
from speechlab.evaluate._voices.report import ordered, voices_report
from speechlab.evaluate._watch import rescored_rows, watch_report
from speechlab.evaluate._writing.columns import View, count, plural, rate, text
from speechlab.evaluate._writing.contents import Contents, Finding
from speechlab.text import language_name


def recomputed(report: Contents, table: pd.DataFrame | None = None) -> Contents:
    """Return the report that its study makes of the rows: texts scored, summarised, tested and told again.

    Raises:
        InvalidRequestError: The report is of a study whose rows are not all in it.
    """
    if report.study not in _STUDIES:
        known = ", ".join(sorted(_STUDIES))
        message = f"a report of {report.study!r} cannot be computed from its rows; those of {known} can"
        raise InvalidRequestError(message, parameter="report")
    anew = _STUDIES[report.study](report, report.table if table is None else table)
    if table is not None or UNCORRECTED not in report.tables:
        return anew
    before = _STUDIES[report.study](report, uncorrected(report))
    return with_references(before, anew, report.tables[CORRECTIONS])


def _facts(report: Contents) -> dict[str, Any]:
    speed = report.speed if len(report.speed) else no_speed()
    facts = {"speed": speed, "record": report.record, "notes": report.notes}
    return {**facts, "segments": report.tables.get("segments")}


def _roles(report: Contents) -> tuple[str, str]:
    return report.columns.get("text", "text"), report.columns.get("language", "language")


def _speech(report: Contents, table: pd.DataFrame) -> Contents:
    text, language = _roles(report)
    rows = rescored(table, text, language)
    return speech_report(report.title, rows, text=text, language=language, **_facts(report))


def _voices(report: Contents, table: pd.DataFrame) -> Contents:
    text, language = _roles(report)
    rows = rescored(table, text, language)
    return voices_report(report.title, rows, text, language, ordered(rows, text, language), **_facts(report))


def _recognition(report: Contents, table: pd.DataFrame) -> Contents:
    text, language = _roles(report)
    settings = report.record.get("settings", {})
    return recognition_report(
        report.title,
        rescored(table, text, language),
        text,
        language,
        systems=_systems(settings),
        nothing=report.tables.get("speechless", pd.DataFrame()),
        about=str(settings.get("about", "")),
        measures=report.tables.get("measures", pd.DataFrame()),
        **_facts(report),
    )


def _systems(settings: Mapping[str, Any]) -> list[System]:
    """The systems of a record; a number stands for the service of each."""
    by_name = settings.get("systems") or {"": settings}
    return [System(name, options.get("service", 0), dict(options)) for name, options in by_name.items()]


def _translation(report: Contents, table: pd.DataFrame) -> Contents:
    columns = Columns(**report.columns)
    terms = report.record.get("settings", {}).get("glossary") or {}
    rows = rescored_translations(table, columns, terms)
    speed = report.speed if len(report.speed) else no_times()
    return translation_report(
        report.title,
        rows,
        summarized(rows, columns, speed),
        columns,
        terms=glossary_counts(rows, columns, terms),
        speed=speed,
        record=report.record,
        notes=report.notes,
    )


def _speech_to_speech(report: Contents, table: pd.DataFrame) -> Contents:
    return report_of_stages(report.title, table, report.columns, report.record)


def _changes(report: Contents, _: pd.DataFrame) -> Contents:
    """The two reports, as far as they were compared, are tables of the report of their changes."""
    reports = []
    for side in NAMES:
        rows, record = report.tables[side], report.record[side]
        rows = rescored_rows(rows, record)
        if record.get("study") == "recognition":
            rows = hotword_effects(flagged(rows), _systems(record.get("settings", {})), "language").table
        speed = report.tables.get(f"speed_{side}", pd.DataFrame())
        title, study = str(report.record["title"]), str(record.get("study", "speech"))
        reports.append(Contents(title, rows, pd.DataFrame(), study=study, speed=speed, record=record))
    return changes_between(reports[1], reports[0], report.record["names"])


def _watch(report: Contents, table: pd.DataFrame) -> Contents:
    rows = rescored_rows(table, report.record)
    return watch_report(report.title, rows, report.tables["values"], report.record, report.notes)


def _listening(report: Contents, table: pd.DataFrame) -> Contents:
    return listening_report(report.title, table, report.findings, report.record)


_STUDIES: dict[str, Callable[[Contents, pd.DataFrame], Contents]] = {
    "round_trip": _speech,
    "speech": _speech,
    "voices": _voices,
    "recognition": _recognition,
    "translation": _translation,
    "listening": _listening,
    "speech_to_speech": _speech_to_speech,
    "changes": _changes,
    "watch": _watch,
}


CORRECTIONS, UNCORRECTED = "corrections", "uncorrected"
"""Tables of a corrected report: its file of corrections; and the place and the text of each row before."""
_SHOWN = 50
"""Maximum number of corrections that a page lists."""


def uncorrected(report: Contents) -> pd.DataFrame:
    """The rows of a corrected report with their references as they were; those of another report as they are."""
    if UNCORRECTED not in report.tables:
        return report.table
    name, originals = report.columns.get("text", "text"), report.tables[UNCORRECTED]
    texts = report.table[name].astype(object).tolist()
    for place, old in zip(originals["place"], originals["text"], strict=True):
        texts[int(place)] = old
    cells = pd.Series(texts, index=report.table.index, dtype=report.table[name].dtype)
    return report.table.assign(**{name: cells})


def with_references(before: Contents, after: Contents, corrections: pd.DataFrame) -> Contents:
    """Return a corrected report that says how much of the error was the references', of each system and voice."""
    name = after.columns.get("text", "text")
    old, new = (report.table[name].astype(object).tolist() for report in (before, after))
    places = [place for place, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]]
    originals = pd.DataFrame(
        {"place": places, "text": pd.array([old[place] for place in places], dtype="string")}
    )
    references = _of_each(before, after)
    tables = {**after.tables, "references": references, CORRECTIONS: corrections, UNCORRECTED: originals}
    changed = corrections[corrections["old"] != corrections["new"]]
    findings = (_finding(before, after, changed["row"].nunique()), *after.findings)
    views = (*after.views, *_views(references, changed))
    summary, keys = after.summary, _groups(references)
    if set(keys) <= set(summary.columns):  # beside the rates of voice, engine and recogniser
        summary = summary.merge(references[[*keys, "reference_rate"]], on=keys, how="left")
    return replace(after, summary=summary, findings=findings, tables=tables, views=views)


def _groups(references: pd.DataFrame) -> list[str]:
    """The columns that identify a row: system, condition, voice, language."""
    return references.columns[: list(references.columns).index("errors_before")].tolist()


def _of_each(before: Contents, after: Contents) -> pd.DataFrame:
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


def _views(references: pd.DataFrame, changed: pd.DataFrame) -> list[View]:
    columns = [
        *(text(name, name) for name in _groups(references)),
        count("errors before", "errors_before"),
        count("the references'", "reference_errors"),
        count("errors after", "errors_after"),
        rate("rate before", "error_rate_before"),
        rate("rate after", "error_rate_after", strong=True),
    ]
    listing = [text(name, name, optional=name in {"by", "when", "why"}) for name in changed.columns]
    more = f"The first {_SHOWN} of {len(changed):,}." if len(changed) > _SHOWN else ""
    return [
        View.of("How much of the error was the references'", columns, references),
        View.of("Corrections", listing, changed.head(_SHOWN), more),
    ]


def _finding(before: Contents, after: Contents, corrected: int) -> Finding:
    """Say how many errors went with the corrections, and what became of the order of systems."""
    errors, remaining = (int(report.table["errors"].fillna(0).sum()) for report in (before, after))
    share = (errors - remaining) / errors if errors else 0.0
    references = plural(corrected, "reference was", "references were")
    words = (
        f"{references} corrected; {errors - remaining:,} of {errors:,} errors ({percent(share)}) were "
        "the references'."
    )
    first, last = _orders(before), _orders(after)
    new = [f"in {language_name(code)} {listed(last[code])}" for code in last if first.get(code) != last[code]]
    if any(len(names) > 1 for names in last.values()):
        words += f" The order is another one now: {'; '.join(new)}." if new else " The order stays."
    return Finding(words, numbers={"errors_before": errors, "errors_after": remaining})


def _orders(report: Contents) -> Mapping[Any, list[str]]:
    """The systems or voices of each language, the one with the fewest errors first."""
    name = next((column for column in ("system", "voice_name") if column in report.summary.columns), None)
    if name is None or "ranking_rate" not in report.summary.columns:
        return {}
    summary = report.summary
    if "condition" in summary.columns:
        summary = summary[summary["condition"] == summary["condition"].iloc[0]]
    ordered = summary.sort_values("ranking_rate", kind="stable")
    return {code: lines[name].astype(str).tolist() for code, lines in ordered.groupby("language", sort=False)}


@briefly
def corrected(report: Report, corrections: str | os.PathLike[str] | pd.DataFrame) -> Report:
    """Return a report with corrected references, scored, ranked and tested anew; nothing is asked again.

    Args:
        report: The report, of one system or of several.
        corrections: A table or a CSV file, as of :func:`speechlab.datasets.corrected`.

    Returns:
        The report. Its first finding says how much of the error was the references', and what became of the order of
        systems; ``tables["references"]`` has the same for each system, voice and language, and
        ``tables["corrections"]`` the corrections.

    Raises:
        InvalidRequestError: A correction fits no row, or the report is of translations, listeners or a watch.

    Example:
        >>> fixes = pd.DataFrame({"row": ["a"], "old": ["ten cats"], "new": ["ten hats"]})
        >>> rows = pd.DataFrame({"id": ["a"], "text": ["ten cats"], "language": "en", "heard": ["ten hats"]})
        >>> report = recognition(None, rows, hypotheses="heard")
        >>> str(corrected(report, fixes).findings[0])
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
    fixed = [datasets.corrected(rows, fixes, text=text) for _, rows in groups]
    table = pd.concat(fixed).reindex(report.table.index)
    if CORRECTIONS in report.tables:
        fixes = pd.concat([report.tables[CORRECTIONS], fixes], ignore_index=True)
    before = recomputed(report, uncorrected(report))
    return Report.of(with_references(before, recomputed(report, table), fixes))
