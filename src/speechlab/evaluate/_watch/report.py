"""The report of a watched set: what has become worse, the series, and the first run beside the newest."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pandas as pd

from speechlab._platform import package_version
from speechlab.evaluate._changes.tested import changed_rows
from speechlab.evaluate._made import SIDES
from speechlab.evaluate._watch.series import ALPHA, FAILED, series_of
from speechlab.evaluate._writing.columns import Shown, View, listed, number, text
from speechlab.evaluate._writing.contents import Conclusion, Contents, Drawing, Finding, ShownRows
from speechlab.evaluate._writing.methods import methods_of, values_of
from speechlab.metrics import value_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LAST = 10
"""Maximum number of runs in the table of runs."""
_MOST = 10_000
"""Evidence beyond this is not told apart."""
_LED = 2
"""Maximum number of series in the answer."""
_BOTH = ("first", "newest")
_KEPT = ("text", "reference", "run", "hypothesis", "translation", "language", "source_lang", "target_lang")
_ROW = (*_KEPT, *SIDES, "voice_name", "audio", "duration_s", "status", "error")
"""Columns of a row that people look at; its scores follow from them."""


def both_ends(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of the first run and of the newest, each pair together, those first that changed most."""
    first, newest = tables[0], tables[-1]
    score = "chrf" if "translation" in newest.columns else "errors"
    pairs = newest.merge(first[["_key", score]], on="_key", suffixes=("", "_earlier"), sort=False)
    pairs = pairs.assign(by=(pairs[score] - pairs[f"{score}_earlier"]).astype(float))
    order = changed_rows(pairs.rename(columns={"_key": "key"}), (), "by")["key"]
    runs_shown = [newest] if len(tables) == 1 else [first, newest]
    rows = [
        table.assign(run=name).set_index("_key").loc[order]
        for table, name in zip(runs_shown, _BOTH[-len(runs_shown) :], strict=True)
    ]
    merged = pd.concat(rows).reset_index()
    places = {key: place for place, key in enumerate(order)}
    merged = merged.iloc[merged["_key"].map(places).argsort(kind="stable")].reset_index(drop=True)
    unused = {name for name in SIDES if name in merged.columns and merged[name].eq("").all()}
    return merged[[name for name in _ROW if name in merged.columns and name not in unused]]


def watch_report(
    title: str, rows: pd.DataFrame, values: pd.DataFrame, record: Mapping[str, Any], notes: Sequence[str] = ()
) -> Contents:
    """Return the report of many runs.

    Args:
        title: Its title.
        rows: The rows of the first run and of the newest, scored.
        values: What is watched, as of :func:`~speechlab.evaluate._watch.series.values_of`.
        record: ``runs``: when and with which version each was made, and its service; ``study``.
        notes: What was left out, and why.
    """
    series, summary = series_of(values)
    dates = [str(run.get("made", "")) for run in record["runs"]]
    worse = summary[summary["changed"]]
    translated = "translation" in rows.columns
    output = "translation" if translated else "hypothesis"
    expected = "reference" if "reference" in rows.columns else "text"
    columns = [expected, "run", output, "chrf" if translated else "errors"]
    sides = [name for name in (*SIDES, "voice_name") if name in rows.columns]
    language = "target_lang" if translated else "language"
    options: dict[str, Any] = {"hypotheses": [output], "reference": expected, "language": language}
    return Contents(
        title,
        rows,
        summary,
        _conclusion(worse, len(dates), dates),
        "watch",
        findings=tuple(
            Finding(f"{words}.", systems=(str(row["group"]),), shown="" if at < _LED else "page")
            for at, (words, row) in enumerate(_clauses(worse, dates))
        ),
        notes=tuple(notes),
        tables={"series": series, "values": values},
        columns={"text": "text", "language": language},
        views=(_watched(summary), *([_runs(series, dates)] if len(dates) > 1 else [])),
        drawings=(Drawing("The series, run by run", "series", ("series",)),) if len(dates) > 1 else (),
        shown=ShownRows(options={**options, "columns": [*columns, *sides]}),
        said=methods_of(title, "pooled", "watch", signatures=values_of(rows, "signature")),
        facts={
            "speechlab": package_version(),
            "runs": f"{len(dates):,}",
            "first": dates[0],
            "newest": dates[-1],
        },
        record=record,
    )


def _conclusion(worse: pd.DataFrame, runs: int, dates: Sequence[str]) -> Conclusion:
    promise = f"At most {ALPHA:.0%} of such watches ever raise a false alarm, however often one looks."
    if runs == 1:
        return Conclusion("This is the first run.", "Each later run is compared with all before it.")
    if not len(worse):
        return Conclusion(f"Nothing is shown to have become worse in {runs:,} runs.", promise)
    lead = listed([words for words, _ in _clauses(worse, dates)][:_LED])
    more = f" {len(worse) - _LED:,} more series did, too." if len(worse) > _LED else ""
    return Conclusion(f"{lead}.{more}", promise)


def _clauses(worse: pd.DataFrame, dates: Sequence[str]) -> list[tuple[str, dict[Any, Any]]]:
    """A clause for each series that has become worse."""
    rows: list[dict[Any, Any]] = worse.to_dict("records")
    clauses = []
    for row in rows:
        before, now = (value_text(row[name], row["unit"]) for name in ("usual", "now"))
        what = row["measure"] if row["measure"] == FAILED else f"{row['measure']} of {row['group']}"
        when = dates[int(row["alarm"]) - 1][:10]
        words = f"The {what} became worse: {before} before, {now} now, shown by run {row['alarm']} ({when})"
        clauses.append((words, row))
    return clauses


def _watched(summary: pd.DataFrame) -> View:
    def value(name: str) -> Shown:
        return Shown(name, lambda row: value_text(row[name], row["unit"]), figure=True)

    columns = [
        text("measure", "measure", strong=True),
        text("of", "group"),
        *map(value, ("first", "usual", "now")),
        Shown("evidence", _evidence, figure=True),
        number("alarm at", "needed", ",.0f"),
        Shown("verdict", lambda row: f"worse, run {row['alarm']}" if row["changed"] else "no change shown"),
    ]
    note = "Usual: the mean of the runs before the newest, or before the alarm. Evidence begins at 1."
    return View.of("What is watched", columns, summary, note)


def _evidence(row: Mapping[Any, Any]) -> str:
    return f"{row['evidence']:,.1f}" if row["evidence"] < _MOST else f"> {_MOST:,}"


def _runs(series: pd.DataFrame, dates: Sequence[str]) -> View:
    rows = []
    for run in range(max(1, len(dates) - _LAST + 1), len(dates) + 1):
        values = series[series["run"] == run]
        cells = zip(values["group"], values["measure"], values["value"], values["unit"], strict=True)
        rows.append(
            {"run": run, "made": dates[run - 1][:16].replace("T", " ")}
            | {f"{measure}, {group}": value_text(value, unit) for group, measure, value, unit in cells}
        )
    heads = [name for name in rows[0] if name not in {"run", "made"}]
    columns = [text("run", "run"), text("made (UTC)", "made")]
    columns += [Shown(name, itemgetter(name), figure=True) for name in heads[:6]]
    return View.of("The last runs", columns, rows)
