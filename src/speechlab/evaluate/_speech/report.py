"""The report of studies of speech: one row for each utterance, each of which can be heard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._platform import package_version
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._blocks import BLOCK
from speechlab.evaluate._made import SIDES
from speechlab.evaluate._speech.answer import rates_answer
from speechlab.evaluate._speech.speed import no_speed
from speechlab.evaluate._speech.summary import NO_SPEAKER, ranking_units, summarized
from speechlab.evaluate._speech.tables import load_views, rates_view, speed_view, start_column
from speechlab.evaluate._writing.contents import Conclusion, Contents, Drawing, ShownRows
from speechlab.evaluate._writing.differences import ENOUGH
from speechlab.evaluate._writing.methods import Methods, methods_of, values_of
from speechlab.metrics import by_bins
from speechlab.segments import frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd


_BINS = 5
"""Number of bins of the figure of errors by length, which is drawn if each has enough utterances for an interval."""
_DONE = {
    "reading_cer": "readings",
    "tolerant_cer": "spellings",
    "pinyin_error_rate": "syllables",
    "loop": "loops",
}
"""What studies do with a row, by the column that it gives."""


def speech_report(
    title: str,
    table: pd.DataFrame,
    *,
    text: str = "text",
    language: str = "language",
    summary: pd.DataFrame | None = None,
    conclusion: Conclusion | None = None,
    segments: pd.DataFrame | None = None,
    speed: pd.DataFrame | None = None,
    record: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> Contents:
    """Report scored rows, by voice and language."""
    timed = no_speed() if speed is None else speed
    made = summarized(table, language, timed, items=text) if summary is None else summary
    rated = on_common_rows(made.assign(unit=ranking_units(made)))
    sides = [name for name in SIDES if name in made.columns]
    nobody = bool(sides) and bool((made["voice"] == NO_SPEAKER).all())
    by = [*sides, *([] if nobody else ["voice_name"]), "language"]
    known = ", with 95 % intervals" if rated["ranking_rate_low"].notna().any() else ""
    bars = {"by": by, "rates": "ranking_rate"}
    drawings = [Drawing(f"Error rates{known}", "error_rates", ("rates",), bars)]
    tables = {"segments": frame([]) if segments is None else segments, "rates": rated}
    counts = table.groupby("unit", observed=True)["errors"].count()
    if (
        not sides
        and len(counts)
        and counts.min() >= _BINS * ENOUGH
        and table["duration_s"].nunique() >= _BINS
    ):
        tables["by_length"] = by_bins(table, "duration_s", bins=_BINS)
        drawings.append(Drawing("Error rate against length", "error_by_measure", ("by_length",)))
    if _known(timed, "rtf"):
        whose = ["system"] if "system" in timed.columns else []
        start = start_column(timed)
        named = {"by": [*whose, *([] if whose and nobody else ["voice_name"])], "column": start}
        what = "text" if start == "total_s" else "first sound"
        drawings.append(Drawing(f"Time to the {what} of each call", "distributions", ("speed",), named))
    lost = int(table["status"].isin(["error", "skipped"]).sum()) if "status" in table.columns else 0
    return Contents(
        title,
        table,
        made,
        rates_answer(made, table, text, language) if conclusion is None else conclusion,
        str((record or {}).get("study", "speech")),
        notes=tuple(notes),
        speed=timed,
        tables=tables,
        columns={"text": text, "language": language},
        views=(
            rates_view(made),
            *([speed_view(made)] if _known(made, start_column(made)) else []),
            *load_views(timed),
        ),
        drawings=tuple(drawings if made["ranking_rate"].notna().any() else drawings[1:]),
        shown=ShownRows(scored=True, options={"reference": text, "language": language}),
        said=speech_methods(title, table, made, timed),
        facts={
            "speechlab": package_version(),
            "rows": f"{len(table)}, of which {lost} failed or were skipped",
            "normalised by": ", ".join(_normalizers(table)) or "nothing",
            "intervals": f"95 %, bootstrap by utterance, from {ENOUGH} utterances on",
        },
        record=record or {},
    )


def speech_methods(
    title: str,
    table: pd.DataFrame,
    summary: pd.DataFrame,
    speed: pd.DataFrame,
    *done: str,
    noise: str = "speech",
) -> Methods:
    """Say how rows of speech were scored, summarised and timed, and what else was done."""
    known = [
        name for column, name in _DONE.items() if column in table.columns and table[column].notna().any()
    ]
    low = summary["ranking_rate_low"].notna().any() or summary["error_rate_low"].notna().any()
    known += [
        "pooled",
        *(["intervals"] if low else []),
        *(["calls"] if _known(speed, "total_s") else []),
    ]
    return methods_of(title, *known, *done, signatures=values_of(table, "signature"), noise=noise)


def _known(table: pd.DataFrame, column: str) -> bool:
    """Whether a table has values in a column."""
    return column in table.columns and bool(table[column].notna().any())


def joined(title: str, reports: Sequence[Contents]) -> Contents:
    """Put several reports into one."""
    import pandas as pd

    timed, done = [], 0
    for report in reports:
        segments = report.tables["segments"]
        if "position" in segments:
            timed.append(segments.assign(position=segments["position"] + done))
        done += len(report.table)
    speeds = [report.speed for report in reports if len(report.speed)]
    records = [dict(report.record) for report in reports if report.record]
    parts = [report.plain_rows() for report in reports]
    if any(BLOCK in part.columns for part in parts):  # rows of other reports are blocks of their own
        parts = [
            part.assign(**{BLOCK: [f"{number}: {name}" for name in part.get(BLOCK, part.index)]})
            for number, part in enumerate(parts)
        ]
    return speech_report(
        title,
        pd.concat(parts, ignore_index=True),
        segments=pd.concat(timed, ignore_index=True) if timed else None,
        speed=pd.concat(speeds, ignore_index=True) if speeds else None,
        record={"joined": records} if records else {},
        notes=[note for report in reports for note in report.notes],
    )


def on_common_rows(summary: pd.DataFrame) -> pd.DataFrame:
    """Return a summary with the rates on the rows that all lines have, where some line lacks a row."""
    if "common_utterances" not in summary.columns:  # reports of 0.1
        return summary
    other = summary["common_utterances"].notna()
    ends = {end: summary[end].mask(other) for end in ("ranking_rate_low", "ranking_rate_high")}
    counts = summary["utterances_scored"].mask(other, summary["common_utterances"])
    rates = summary["ranking_rate"].mask(other, summary["common_rate"])
    return summary.assign(**ends, utterances_scored=counts, ranking_rate=rates)


def _normalizers(table: pd.DataFrame) -> list[str]:
    signatures = values_of(table, "signature")
    return sorted({part[5:] for one in signatures for part in one.split("|") if part[:5] == "norm:"})


def part_of(report: Contents, system: str, condition: str | None = None) -> Contents:
    """Return one system of a report; its rows are labelled by recording and condition."""
    kept, speed = rows_of(report.table, system, condition), report.speed
    for column, value in (("system", system), ("condition", condition)):
        if value is not None and column in speed.columns:
            speed = speed[speed[column] == value].drop(columns=column)
    facts: dict[str, Any] = {"text": report.columns["text"], "language": report.columns["language"]}
    return speech_report(f"{report.title}: {system}", kept, speed=speed, record=report.record, **facts)


def rows_of(table: pd.DataFrame, system: str, condition: str | None = None) -> pd.DataFrame:
    """Return the rows of one system, labelled by recording and condition."""
    for column, value in (("system", system), ("condition", condition)):
        if value is None:
            continue
        known = table[column].astype(str).unique().tolist() if column in table.columns else []
        if value not in known:
            there = ", ".join(map(repr, known)) or "none, for there is only one"
            message = f"the report has no {column} {value!r}; it has {there}"
            raise InvalidRequestError(message, parameter=column)
        table = table[table[column] == value].drop(columns=column)
    return table.set_axis(_labels(table), axis="index")


def side_by_side(report: Contents) -> pd.DataFrame:
    """Return one row for each recording, with what each system made of it; the rows first that differ most."""
    return wide_table(report.table, report.systems, report.columns["text"], report.columns["language"])


def wide_table(table: pd.DataFrame, names: list[str], text: str, language: str) -> pd.DataFrame:
    """Return the rows of several systems beside each other."""
    parts = [rows_of(table, name) for name in names]
    shared = ["file", text, language, *(name for name in ("condition", "audio") if name in table.columns)]
    wide = parts[0][shared].copy() if parts else table.iloc[:0]
    for column in ("hypothesis", "error_rate", "errors"):
        for name, part in zip(names, parts, strict=True):
            wide[f"{column}_{name}"] = part[column]
    errors = wide[[f"errors_{name}" for name in names]].astype("Float64")
    wide["error_spread"] = errors.max(axis=1) - errors.min(axis=1)
    return wide.sort_values("error_spread", ascending=False, na_position="last", kind="stable")


def _labels(table: pd.DataFrame) -> list[str]:
    """A label for each row of a system: the recording and its condition."""
    parts = [table[name].astype(str) for name in ("recording", "condition") if name in table.columns]
    return [", ".join(one) for one in zip(*parts, strict=True)] if parts else list(map(str, table.index))
