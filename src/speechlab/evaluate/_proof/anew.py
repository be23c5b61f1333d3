"""A report made anew from its rows: what verification compares with, and what corrected references change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from speechlab import datasets
from speechlab._brief import briefly
from speechlab.display import percent
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._changes.report import changes_between
from speechlab.evaluate._changes.tested import NAMES
from speechlab.evaluate._choice.order import ordered
from speechlab.evaluate._choice.report import voices_report
from speechlab.evaluate._listening.report import listening_report
from speechlab.evaluate._recognition.flags import flagged
from speechlab.evaluate._recognition.hotwords import hotword_effects
from speechlab.evaluate._recognition.report import recognition_report
from speechlab.evaluate._report import Report
from speechlab.evaluate._speech.report import speech_report
from speechlab.evaluate._speech.rows import scored_anew
from speechlab.evaluate._speech.speed import no_speed, no_times
from speechlab.evaluate._systems import System
from speechlab.evaluate._translation.measures import Columns, kept_terms, measured, summarized, with_back
from speechlab.evaluate._translation.report import translation_report
from speechlab.evaluate._translation.spoken import report_of_stages
from speechlab.evaluate._writing.columns import plural
from speechlab.evaluate._writing.contents import Contents, Finding

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping


_DIRECTION = ("source_lang", "target_lang")


def made_anew(report: Contents, table: pd.DataFrame | None = None) -> Contents:
    """Return the report that its study makes of the rows: texts scored, summarised, tested and told again.

    Args:
        report: The report; its rows, timed calls, notes and record are taken as they are.
        table: Other rows, such as those with corrected references; None for those of the report.

    Raises:
        InvalidRequestError: The report is of a study whose rows are not all in it.
    """
    if report.study not in _STUDIES:
        known = ", ".join(sorted(_STUDIES))
        message = f"a report of {report.study!r} cannot be computed from its rows; those of {known} can"
        raise InvalidRequestError(message, parameter="report")
    return _STUDIES[report.study](report, report.table if table is None else table)


@briefly
def corrected(report: Report, corrections: str | os.PathLike[str] | pd.DataFrame) -> Report:
    """Return a report with corrected references, scored, ranked and tested anew; nothing is asked again.

    Args:
        report: The report, of one system or of several.
        corrections: A table or a CSV file, as of :func:`speechlab.datasets.corrected`.

    Returns:
        The report. Its first finding says how much of the error was the references'.

    Raises:
        InvalidRequestError: A correction fits no row, or the report is of a study that cannot be computed from its
            rows.

    Example:
        >>> fixes = pd.DataFrame({"row": ["a"], "old": ["ten cats"], "new": ["ten hats"]})
        >>> rows = pd.DataFrame({"id": ["a"], "text": ["ten cats"], "language": "en", "heard": ["ten hats"]})
        >>> report = recognition(None, rows, hypotheses="heard")
        >>> str(corrected(report, fixes).findings[0])
        "1 reference was corrected; 1 of 1 errors (100.0%) were the references'."
    """
    text = report.columns.get("text", "text")
    sides = [name for name in ("system", "condition", "voice", "take") if name in report.table.columns]
    each = [part for _, part in report.table.groupby(sides, dropna=False, observed=True, sort=False)]
    fixed = [datasets.corrected(part, corrections, text=text) for part in (each if sides else [report.table])]
    table = pd.concat(fixed).reindex(report.table.index)
    anew = made_anew(report, table)
    findings = (_of_references(report, anew, text), *anew.findings)
    return Report.of(replace(anew, findings=findings))


def _of_references(before: Contents, after: Contents, text: str) -> Finding:
    """Say how many errors went with the corrections, and whether the order of systems changed."""
    changed = before.table[text].astype(object).to_numpy() != after.table[text].astype(object).to_numpy()
    errors, left = (int(report.table["errors"].fillna(0).sum()) for report in (before, after))
    share = (errors - left) / errors if errors else 0.0
    rows = before.table[changed]
    count = plural(rows["recording"].nunique() if "recording" in rows.columns else len(rows), "reference")
    orders = [list(report.summary.get("system", ())) for report in (before, after)]
    order = "" if orders[0] == orders[1] else " The order of the systems is another one."
    return Finding(
        f"{count} {'was' if count.startswith('1 ') else 'were'} corrected; {errors - left:,} of {errors:,} errors "
        f"({percent(share)}) were the references'.{order}",
        numbers={"errors_before": errors, "errors_after": left},
    )


def _facts(report: Contents) -> dict[str, Any]:
    speed = report.speed if len(report.speed) else no_speed()
    kept = {"speed": speed, "record": report.record, "notes": report.notes}
    return {**kept, "segments": report.tables.get("segments")}


def _roles(report: Contents) -> tuple[str, str]:
    return report.columns.get("text", "text"), report.columns.get("language", "language")


def _speech(report: Contents, table: pd.DataFrame) -> Contents:
    text, language = _roles(report)
    rows = scored_anew(table, text, language)
    return speech_report(report.title, rows, text=text, language=language, **_facts(report))


def _voices(report: Contents, table: pd.DataFrame) -> Contents:
    text, language = _roles(report)
    rows = scored_anew(table, text, language)
    return voices_report(report.title, rows, text, language, ordered(rows, text, language), **_facts(report))


def _recognition(report: Contents, table: pd.DataFrame) -> Contents:
    text, language = _roles(report)
    settings = report.record.get("settings", {})
    silence, measures = report.tables.get("speechless"), report.tables.get("measures")
    return recognition_report(
        report.title,
        scored_anew(table, text, language),
        text,
        language,
        systems=_systems(settings),
        nothing=silence if silence is not None and len(silence) else None,
        about=str(settings.get("about", "")),
        measures=measures if measures is not None and len(measures) else None,
        **_facts(report),
    )


def _systems(settings: Mapping[str, Any]) -> list[System]:
    """The systems of a record; a number stands for the service of each."""
    named = settings.get("systems") or {"": settings}
    return [
        System(name, own.get("service", 0), bool(own.get("identify")), dict(own))
        for name, own in named.items()
    ]


def _translation(report: Contents, table: pd.DataFrame) -> Contents:
    columns = Columns(**report.columns)
    terms = report.record.get("settings", {}).get("glossary") or {}
    rows = _translated(table, columns, terms)
    speed = report.speed if len(report.speed) else no_times()
    return translation_report(
        report.title,
        rows,
        summarized(rows, columns, speed),
        columns,
        terms=kept_terms(rows, columns, terms) if terms else None,
        speed=speed,
        record=report.record,
        notes=report.notes,
    )


def _translated(table: pd.DataFrame, columns: Columns, terms: Mapping[str, Any]) -> pd.DataFrame:
    rows = measured(table, columns, terms)
    if "back_translation" not in rows.columns:
        return rows
    return with_back(rows.reset_index(drop=True), rows.reset_index(drop=True), columns)


def _speech_to_speech(report: Contents, table: pd.DataFrame) -> Contents:
    return report_of_stages(report.title, table, report.columns, report.record)


def _changes(report: Contents, _: pd.DataFrame) -> Contents:
    """The two reports, as far as they were compared, are tables of the report of their changes."""
    both = []
    for side in NAMES:
        rows, own = report.tables[side], report.record[side]
        translated = "translation" in rows.columns
        if translated:
            roles = Columns("text", "reference" if "reference" in rows.columns else "", *_DIRECTION)
            rows = _translated(rows, roles, own.get("settings", {}).get("glossary") or {})
        elif "hypothesis" in rows.columns:
            rows = scored_anew(rows, "text", "language")
        if own.get("study") == "recognition":
            rows = hotword_effects(flagged(rows), _systems(own.get("settings", {})), "language").table
        speed = report.tables.get(f"speed_{side}", pd.DataFrame())
        study = "translation" if translated else "speech"
        title = str(report.record["title"])
        both.append(Contents(title, rows, pd.DataFrame(), study=study, speed=speed, record=own))
    return changes_between(both[1], both[0], report.record["names"])


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
}
