"""The report of studies of speech: one row for each utterance, each of which can be heard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from speechlab._pandas import pd
from speechlab._platform import get_package_version
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._advice.rates import build_rates_conclusion
from speechlab.evaluate._speech.blocks import BLOCK
from speechlab.evaluate._speech.costs import (
    add_costs,
    build_cost_views,
    count_failed_rows,
    list_cost_notes,
    list_trade_off_drawings,
)
from speechlab.evaluate._speech.speed import build_empty_call_table
from speechlab.evaluate._speech.summary import (
    build_load_views,
    build_rates_view,
    build_speed_view,
    choose_ranking_units,
    choose_start_time_column,
    is_in_first_group,
    summarize_speech,
)
from speechlab.evaluate._study_columns import NO_SPEAKER, SIDES
from speechlab.evaluate._writing.contents import Conclusion, Contents, Drawing, ShownRows
from speechlab.evaluate._writing.differences import ENOUGH
from speechlab.evaluate._writing.methods import Methods, describe_methods, list_distinct_values
from speechlab.metrics import by_bins
from speechlab.segments import frame

# Number of bins of the figure of errors by length, which is drawn if each has enough utterances for an
# interval.
_BINS = 5
# What studies do with a row, by the column that it gives.
_METHOD_STEPS = {
    "reading_cer": "readings",
    "tolerant_cer": "spellings",
    "pinyin_error_rate": "syllables",
    "loop": "loops",
}


def build_speech_report(
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
    calls = build_empty_call_table() if speed is None else speed
    lines = summarize_speech(table, language, calls, items=text) if summary is None else summary
    settings = (record or {}).get("settings", {})
    lines = add_costs(lines, table, settings, text, [language])
    cost_notes = list_cost_notes(table, settings, text)
    rated = substitute_common_rates(lines.assign(unit=choose_ranking_units(lines)))
    trade_offs = list_trade_off_drawings(lines)
    if trade_offs:
        rated = rated.assign(failed=count_failed_rows(lines, table, language))
    sides = [name for name in SIDES if name in lines.columns]
    no_speakers = bool(sides) and bool((lines["voice"] == NO_SPEAKER).all())
    by = [*sides, *([] if no_speakers else ["voice_name"]), "language"]
    is_timed = _has_column_values(lines, choose_start_time_column(lines))
    shared = " on the same clips" if _has_column_values(lines, "common_utterances") else ""
    with_intervals = ", with 95% intervals" if rated["ranking_rate_low"].notna().any() else ""
    bars: dict[str, Any] = {"by": by, "rates": "ranking_rate"}
    if "group" in rated.columns:
        bars["highlight"] = [bool(is_in_first_group(row)) for row in rated.to_dict("records")]
    drawings = [Drawing(f"Error rates{shared}{with_intervals}", "error_rates", ("rates",), bars)]
    tables = {"segments": frame([]) if segments is None else segments, "rates": rated}
    if not sides and _has_enough_lengths(table):
        tables["by_length"] = by_bins(table, "duration_s", bins=_BINS)
        drawings.append(Drawing("Error rate against length", "error_by_measure", ("by_length",)))
    drawings += [*_list_call_drawings(calls, no_speakers=no_speakers), *trade_offs]
    return Contents(
        title,
        table,
        lines,
        build_rates_conclusion(lines, table, text, language) if conclusion is None else conclusion,
        str((record or {}).get("study", "speech")),
        notes=tuple(dict.fromkeys([*notes, *cost_notes])),
        speed=calls,
        tables=tables,
        columns={"text": text, "language": language},
        views=(
            build_rates_view(lines),
            *([build_speed_view(lines)] if is_timed else []),
            *build_load_views(calls),
            *build_cost_views(lines),
        ),
        drawings=tuple(drawings if lines["ranking_rate"].notna().any() else drawings[1:]),
        shown=_choose_row_display(table, text, language),
        said=describe_speech_methods(title, table, lines, calls),
        facts=_collect_facts(table),
        record=record or {},
    )


def _list_call_drawings(calls: pd.DataFrame, *, no_speakers: bool) -> list[Drawing]:
    """Return the figure of the times of calls, if these were measured."""
    if not _has_column_values(calls, "rtf"):
        return []
    keys = ["system"] if "system" in calls.columns else []
    start = choose_start_time_column(calls)
    options = {"by": [*keys, *([] if keys and no_speakers else ["voice_name"])], "column": start}
    event = "text" if start == "total_s" else "first sound"
    return [Drawing(f"Time to the {event} of each call", "distributions", ("speed",), options)]


def _collect_facts(table: pd.DataFrame) -> dict[str, str]:
    """Return the facts behind the numbers of scored rows."""
    fields = [
        field for signature in list_distinct_values(table, "signature") for field in signature.split("|")
    ]
    normalizers = {field.removeprefix("norm:") for field in fields if field.startswith("norm:")}
    failed = int(table["status"].isin(["error", "skipped"]).sum()) if "status" in table.columns else 0
    return {
        "speechlab": get_package_version(),
        "rows": f"{len(table)}, of which {failed} failed or were skipped",
        "normalized by": ", ".join(sorted(normalizers)) or "nothing",
        "intervals": f"95%, bootstrap by utterance, from {ENOUGH} utterances on",
    }


def _has_enough_lengths(table: pd.DataFrame) -> bool:
    """Whether each unit has enough rows, of different durations, for a rate in each bin."""
    counts = table.groupby("unit", observed=True)["errors"].count()
    enough = len(counts) > 0 and counts.min() >= _BINS * ENOUGH
    return bool(enough and table["duration_s"].nunique() >= _BINS)


def _choose_row_display(table: pd.DataFrame, text: str, language: str) -> ShownRows:
    """How the rows are shown: each begins with who speaks."""
    scores = ["reading_cer"] if _has_column_values(table, "reading_cer") else []
    faults = [name for name in ("score_error", "error") if _has_column_values(table, name)]
    several = [language] if table[language].nunique() > 1 else []
    measures = ["hypothesis", *scores, "error_rate", "errors", "error_classes", *faults, *several]
    columns = [*_list_speaker_columns(table), text, *measures]
    return ShownRows(scored=True, options={"reference": text, "language": language, "columns": columns})


def _list_speaker_columns(table: pd.DataFrame) -> list[str]:
    """Return the columns that say who speaks, where there are several systems or any voice."""
    names = ("voice_name", "voice")
    voices = [
        name for name in names if name in table.columns and table[name].replace("", pd.NA).notna().any()
    ]
    if not voices or (table["voice"].dropna() == NO_SPEAKER).all():
        voices = []
    return [*(name for name in SIDES if name in table.columns), *voices[:1]]


def describe_speech_methods(
    title: str,
    table: pd.DataFrame,
    summary: pd.DataFrame,
    speed: pd.DataFrame,
    *further: str,
    noise: str = "speech",
) -> Methods:
    """Say how rows of speech were scored, summarized and timed, and what else was done."""
    methods = [
        name
        for column, name in _METHOD_STEPS.items()
        if column in table.columns and table[column].notna().any()
    ]
    has_intervals = summary["ranking_rate_low"].notna().any() or summary["error_rate_low"].notna().any()
    methods += ["pooled", *(["intervals"] if has_intervals else [])]
    methods += ["calls"] if _has_column_values(speed, "total_s") else []
    return describe_methods(
        title, *methods, *further, signatures=list_distinct_values(table, "signature"), noise=noise
    )


def _has_column_values(table: pd.DataFrame, column: str) -> bool:
    """Return whether a table has values in a column."""
    return column in table.columns and bool(table[column].notna().any())


def combine_reports(title: str, reports: Sequence[Contents]) -> Contents:
    """Put several reports into one."""
    segment_tables, count = [], 0
    for report in reports:
        segments = report.tables["segments"]
        if "position" in segments:
            segment_tables.append(segments.assign(position=segments["position"] + count))
        count += len(report.table)
    speeds = [report.speed for report in reports if len(report.speed)]
    records = [dict(report.record) for report in reports if report.record]
    tables = [report.to_study_rows() for report in reports]
    if any(BLOCK in table.columns for table in tables):  # rows of other reports are blocks of their own
        tables = [
            table.assign(**{BLOCK: [f"{number}: {name}" for name in table.get(BLOCK, table.index)]})
            for number, table in enumerate(tables)
        ]
    return build_speech_report(
        title,
        pd.concat(tables, ignore_index=True),
        segments=pd.concat(segment_tables, ignore_index=True) if segment_tables else None,
        speed=pd.concat(speeds, ignore_index=True) if speeds else None,
        record={"joined": records} if records else {},
        notes=[note for report in reports for note in report.notes],
    )


def substitute_common_rates(summary: pd.DataFrame) -> pd.DataFrame:
    """Return a summary with the rates on the rows that all lines have, where some line lacks a row."""
    on_common = summary["common_utterances"].notna()
    bounds = {end: summary[end].mask(on_common) for end in ("ranking_rate_low", "ranking_rate_high")}
    counts = summary["utterances_scored"].mask(on_common, summary["common_utterances"])
    rates = summary["ranking_rate"].mask(on_common, summary["common_rate"])
    return summary.assign(**bounds, utterances_scored=counts, ranking_rate=rates)


def select_system_report(report: Contents, system: str, condition: str | None = None) -> Contents:
    """Return one system of a report; its rows are labeled by recording and condition."""
    rows, speed = select_system_rows(report.table, system, condition), report.speed
    for column, value in (("system", system), ("condition", condition)):
        if value is not None and column in speed.columns:
            speed = speed[speed[column] == value].drop(columns=column)
    facts: dict[str, Any] = {"text": report.columns["text"], "language": report.columns["language"]}
    return build_speech_report(f"{report.title}: {system}", rows, speed=speed, record=report.record, **facts)


def select_system_rows(table: pd.DataFrame, system: str, condition: str | None = None) -> pd.DataFrame:
    """Return the rows of one system, labeled by recording and condition."""
    for column, value in (("system", system), ("condition", condition)):
        if value is None:
            continue
        values = table[column].astype(str).unique().tolist() if column in table.columns else []
        if value not in values:
            offered = ", ".join(map(repr, values)) or "none, for there is only one"
            message = f"the report has no {column} {value!r}; it has {offered}"
            raise InvalidRequestError(message, parameter=column)
        table = table[table[column] == value].drop(columns=column)
    keys = [table[name].astype(str) for name in ("recording", "condition") if name in table.columns]
    labels = [", ".join(cells) for cells in zip(*keys, strict=True)] if keys else list(map(str, table.index))
    return table.set_axis(labels, axis="index")


def build_wide_table(
    table: pd.DataFrame, names: list[str], text: str, language: str, more: Sequence[str] = ()
) -> pd.DataFrame:
    """Return one row for each recording, with what each system made of it; the rows first that differ most.

    ``more`` are further columns that each system has for itself.
    """
    if names and "file" not in table.columns:
        message = (
            "the systems of this report spoke, and heard no common recordings; give a report of recognition"
        )
        raise InvalidRequestError(message, parameter="report")
    tables = [select_system_rows(table, name) for name in names]
    shared = ["file", text, language, *(name for name in ("condition", "audio") if name in table.columns)]
    wide = tables[0][shared].copy() if tables else table.iloc[:0]
    for column in ("hypothesis", "error_rate", "errors", *more):
        for name, rows in zip(names, tables, strict=True):
            wide[f"{column}_{name}"] = rows[column]
    errors = wide[[f"errors_{name}" for name in names]].astype("Float64")
    wide["error_spread"] = errors.max(axis=1) - errors.min(axis=1)
    return wide.sort_values("error_spread", ascending=False, na_position="last", kind="stable")
