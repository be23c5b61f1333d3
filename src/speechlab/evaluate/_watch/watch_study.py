"""Many runs of one study: the series, tested after each run, and the first run compared with the newest."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from speechlab._arguments import build_argument_error
from speechlab._brief import shorten_tracebacks
from speechlab._files import expand_user_path
from speechlab._pandas import pd
from speechlab._platform import get_package_version
from speechlab.display import format_count
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._changes.tested import (
    sort_by_magnitude,
)
from speechlab.evaluate._report import Report
from speechlab.evaluate._study_columns import SIDES
from speechlab.evaluate._watch.watch_answer import build_watch_conclusion, describe_change
from speechlab.evaluate._watch.watch_series import (
    ALPHA,
    build_comparable_rows,
    build_series,
    collect_watched_values,
    rescore_study_rows,
)
from speechlab.evaluate._writing.columns import DisplayColumn, View, build_number_column, build_text_column
from speechlab.evaluate._writing.contents import Contents, Drawing, Finding, ShownRows
from speechlab.evaluate._writing.methods import describe_methods, list_distinct_values
from speechlab.evaluate._writing.record import join_service_names
from speechlab.metrics import format_value

# Maximum number of runs in the table of runs.
_MAX_RUNS = 10
# Evidence is capped at this.
_MAX_EVIDENCE = 10_000
# Columns of a row that people look at; its scores follow from them.
_ROW_COLUMNS = (
    *("text", "reference", "run", "hypothesis", "translation", "language", "source_lang", "target_lang"),
    *(*SIDES, "file", "voice_name", "audio", "duration_s", "status", "error"),
)


def interleave_first_and_newest_rows(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of the first run and of the newest, each pair together, those first that changed most."""
    first, newest = tables[0], tables[-1]
    score = "chrf" if "translation" in newest.columns else "errors"
    pairs = newest.merge(first[["_key", score]], on="_key", suffixes=("", "_earlier"), sort=False)
    changes = (pairs[score] - pairs[f"{score}_earlier"]).astype(float)
    order: list[str] = pairs.loc[sort_by_magnitude(changes), "_key"].tolist()
    runs_shown = {"first": first, "newest": newest} if len(tables) > 1 else {"newest": newest}
    rows = [table.assign(run=name).set_index("_key").loc[order] for name, table in runs_shown.items()]
    merged = pd.concat(rows).reset_index()
    places = {key: place for place, key in enumerate(order)}
    merged = merged.iloc[merged["_key"].map(places).argsort(kind="stable")].reset_index(drop=True)
    unused = {name for name in SIDES if name in merged.columns and merged[name].eq("").all()}
    if "file" in merged.columns:  # recordings of no voice are called by their file, the others by their voice
        of_files = "voice_name" not in merged.columns or merged["voice_name"].eq(merged["file"]).all()
        unused.add("voice_name" if of_files else "file")
    return merged[[name for name in _ROW_COLUMNS if name in merged.columns and name not in unused]]


def build_watch_report(
    title: str, rows: pd.DataFrame, values: pd.DataFrame, record: Mapping[str, Any], notes: Sequence[str] = ()
) -> Contents:
    """Return the report of many runs."""
    series, summary = build_series(values)
    dates = [str(run.get("made", "")) for run in record["runs"]]
    worse = summary[summary["changed"]].to_dict("records")
    translated = "translation" in rows.columns
    output = "translation" if translated else "hypothesis"
    expected = "reference" if "reference" in rows.columns else "text"
    columns = [expected, "run", output, "chrf" if translated else "errors"]
    sides = [name for name in (*SIDES, "file", "voice_name") if name in rows.columns]
    language = "target_lang" if translated else "language"
    options: dict[str, Any] = {"hypotheses": [output], "reference": expected, "language": language}
    return Contents(
        title,
        rows,
        summary,
        build_watch_conclusion(summary, dates, ALPHA),
        "watch",
        findings=tuple(
            Finding(
                f"{describe_change(row)}.",
                systems=(str(row["group"]),),
                shown="" if len(worse) == 1 else "page",
            )
            for row in worse
        ),
        notes=tuple(notes),
        tables={"series": series, "values": values},
        columns={"text": "text", "language": language},
        views=(_build_series_view(summary), *([_build_runs_view(series, dates)] if len(dates) > 1 else [])),
        drawings=(Drawing("The series, run by run", "series", ("series",)),) if len(dates) > 1 else (),
        shown=ShownRows(options={**options, "columns": [*columns, *sides]}),
        said=describe_methods(title, "pooled", "watch", signatures=list_distinct_values(rows, "signature")),
        facts={
            "speechlab": get_package_version(),
            "runs": f"{len(dates):,}",
            "first": dates[0],
            "newest": dates[-1],
        },
        record=record,
    )


def _build_series_view(summary: pd.DataFrame) -> View:
    def build_value_column(name: str) -> DisplayColumn:
        return DisplayColumn(name, lambda row: format_value(row[name], row["unit"]), figure=True)

    columns = [
        build_text_column("measure", "measure", strong=True),
        build_text_column("of", "group"),
        *map(build_value_column, ("first", "usual", "now")),
        DisplayColumn("evidence", _format_evidence, figure=True),
        build_number_column("an alarm needs", "needed", ",.0f"),
        DisplayColumn(
            "verdict",
            lambda row: f"worse from about run {row['onset']}" if row["changed"] else "no change shown",
        ),
    ]
    note = (
        "Usual: the mean of the runs before the newest, or before the change. Evidence of a change is 1 at the "
        "start, and grows or shrinks with each run."
    )
    return View.from_rows("What is watched", columns, summary, note)


def _format_evidence(row: Mapping[Any, Any]) -> str:
    return f"{row['evidence']:,.1f}" if row["evidence"] < _MAX_EVIDENCE else f"> {_MAX_EVIDENCE:,}"


def _build_runs_view(series: pd.DataFrame, dates: Sequence[str]) -> View:
    rows = []
    for run in range(max(1, len(dates) - _MAX_RUNS + 1), len(dates) + 1):
        values = series[series["run"] == run]
        cells = zip(values["group"], values["measure"], values["value"], values["unit"], strict=True)
        rows.append(
            {"run": run, "made": dates[run - 1][:16].replace("T", " ")}
            | {f"{measure}, {group}": format_value(value, unit) for group, measure, value, unit in cells}
        )
    heads = [name for name in rows[0] if name not in {"run", "made"}]
    columns = [build_text_column("run", "run"), build_text_column("made (UTC)", "made")]
    columns += [DisplayColumn(name, itemgetter(name), figure=True) for name in heads[:6]]
    return View.from_rows("The last runs", columns, rows)


_STUDIES = ("round_trip", "speech", "voices", "recognition", "translation")


@shorten_tracebacks
def watch(
    runs: str | os.PathLike[str] | Sequence[Report | str | os.PathLike[str]], *, title: str = "Watch"
) -> Report:
    """Test whether a service has become worse, from many runs of one study over the same rows.

    Error rates (chrF of translations) of each group, rows that failed, and the median times of each group, where the
    study measured speed, are each tested after each run by :func:`speechlab.metrics.sequential_test`. All series
    together raise a false alarm in at most 5% of watches, however many runs there will be. The page shows the
    series, and the first run compared with the newest, row by row.

    Args:
        runs: The reports in any order, or their folders; or one folder that has the folders of all of them.
        title: Title of the report.

    Returns:
        A report whose ``summary`` has a row for each series: ``first``, ``usual`` (mean before the newest run, or
        before the change), ``worst`` (mean while it was worse), ``now``, ``evidence``, ``needed``, ``changed``, and
        the runs, from 1: ``onset`` (about the first that was worse), ``alarm``, ``back`` (since which it is as
        before).
        ``tables["series"]`` has each series run by run.

    Raises:
        InvalidRequestError: There is no run, the runs are of several studies, or a later one has other rows than the
            first.
        StoreError: A folder is no report.

    Example:
        >>> rows = pd.DataFrame({"id": ["a"], "text": ["ten cats"], "language": "en", "got": ["ten hats"]})
        >>> nights = [recognition(None, rows, hypotheses="got") for _ in range(3)]
        >>> watch(nights).conclusion.text
        'Nothing is shown to have become worse in 3 runs.'
    """
    reports = _load_runs(runs)
    tables = build_comparable_rows(reports)
    notes = _check_rows_and_note_groups(tables)
    values = collect_watched_values(reports, tables)
    rows = interleave_first_and_newest_rows(tables)
    facts_of_runs = [
        {name: report.record.get(name) for name in ("made", "speechlab")}
        | {"service": join_service_names(dict(report.record))}
        for report in reports
    ]
    record = {"study": "watch", "of": reports[0].study, "runs": facts_of_runs}
    record["settings"] = reports[-1].record.get("settings", {})
    return Report.of(build_watch_report(title, rescore_study_rows(rows, record), values, record, notes))


def _load_runs(runs: object) -> list[Report]:
    """Return the reports, the earliest first."""
    if isinstance(runs, str | os.PathLike):
        places = sorted(record.parent for record in expand_user_path(runs).glob("*/record.json"))
    elif isinstance(runs, list | tuple):
        places = list(runs)
    else:
        raise build_argument_error("runs", runs, "reports, their folders, or one folder that has these")
    reports = [report if isinstance(report, Report) else Report.load(report) for report in places]
    if not reports:
        message = f"there is no run in {runs!r}; give reports, their folders, or one folder that has these"
        raise InvalidRequestError(message, parameter="runs")
    studies = sorted({report.study for report in reports})
    if len(studies) > 1 or studies[0] not in _STUDIES:
        message = f"the runs are of {', '.join(studies)}; give runs of one study, of {', '.join(_STUDIES)}"
        raise InvalidRequestError(message, parameter="runs")
    return sorted(reports, key=lambda report: str(report.record.get("made", "")))


def _check_rows_and_note_groups(tables: Sequence[pd.DataFrame]) -> list[str]:
    """Refuse a run with other rows; return notes on groups that came or went."""
    first = tables[0]
    groups, keys = set(first["_group"]), set(first["_key"])
    for run, rows in enumerate(tables[1:], 2):
        of_known_groups = rows[rows["_group"].isin(groups)]
        strange = of_known_groups[~of_known_groups["_key"].isin(keys)]
        if len(strange):
            message = (
                f"run {run} has {format_count(len(strange), 'row')} that the first has not, such as "
                f"{str(strange['text'].iloc[0])[:60]!r}; a watched set stays as it is, so begin another watch"
            )
            raise InvalidRequestError(message, parameter="runs")
    newest = list(dict.fromkeys(tables[-1]["_group"]))
    dropped = [str(group) for group in dict.fromkeys(first["_group"]) if group not in newest]
    added = [str(group) for group in newest if group not in groups]
    notes = [f"Not in the newest run: {', '.join(dropped)}."] if dropped else []
    notes += [f"Not watched, for the first run lacks it: {', '.join(added)}."] if added else []
    return notes
