"""Reports of version 0.1, as they were saved: read as reports of today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from speechlab._pandas import pd
from speechlab.evaluate._speech.report import speech_report
from speechlab.evaluate._writing.contents import Conclusion, Contents, ShownRows, findings_of

_AS_NOW = {
    earlier + end: now + end
    for earlier, now in {"first_sound_s": "first_byte_s", "result_s": "total_s"}.items()
    for end in ("", "_low", "_high")
}
"""Columns of times, and their names of today."""
_STUDIES = {
    "SpeechReport": "round_trip",
    "VoicesReport": "voices",
    "RecognitionReport": "recognition",
    "TranslationReport": "translation",
    "SpeechToSpeechReport": "speech_to_speech",
    "ListeningReport": "listening",
    "Changes": "changes",
}
"""The classes of reports, and their studies."""


def report_of_01(kind: str, fields: Mapping[str, Any], frames: Mapping[str, pd.DataFrame]) -> Contents:
    """Return a report from its class, its plain fields and its tables, with the answer that these allow."""
    study = _STUDIES[kind]
    tables = {name: frame.rename(columns=_AS_NOW) for name, frame in frames.items()}
    title, table, summary = fields["title"], tables.pop("results"), tables.pop("summary")
    facts: dict[str, Any] = {"record": fields["record"], "notes": tuple(fields.get("notes") or ())}
    speed, segments = tables.pop("speed", None), tables.pop("segments", None)
    findings = findings_of([*(fields.get("findings") or ()), *(fields.get("patterns") or ())])
    if study in {"round_trip", "voices", "recognition"}:
        facts |= {"text": fields["text"], "language": fields["language"], "segments": segments}
        report = speech_report(title, table, summary=summary, speed=speed, **facts)
        return replace(report, study=study, findings=findings, tables={**report.tables, **tables})
    roles = ("text", "reference", "source_lang", "target_lang") if study == "translation" else ()
    return Contents(
        title,
        table,
        summary,
        Conclusion(str(findings[0]) if findings else ""),
        study,
        findings,
        speed=pd.DataFrame() if speed is None else speed,
        tables=tables,
        columns=dict(zip(roles, fields.get("columns", ()), strict=False)),
        shown=ShownRows(options={"columns": list(table.columns)}),
        **facts,
    )
