"""The values of many runs of one study: of each row in each run, and each series, tested after each run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from speechlab.evaluate._blocks import BLOCK
from speechlab.evaluate._changes.report import TIMES, timed_calls
from speechlab.evaluate._changes.tested import KEYS, TEXT_KEYS, keyed, tidied, tidied_texts
from speechlab.evaluate._speech.rows import rescored
from speechlab.evaluate._speech.summary import NO_SPEAKER
from speechlab.evaluate._translation.measures import Columns, measured, with_back
from speechlab.metrics import POINTS, RATIO, sequential_test

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from speechlab.evaluate._writing.contents import Contents

FAILED, MEAN_CHRF = "rows that failed", "mean chrF"
ALPHA = 0.05
"""Probability of a false alarm in any of all series, in any number of runs."""
_WATCHED_TIMES = ("first_audible_s", "first_partial_s", "first_word_s", "total_s")
"""The time that is watched is the first of these that the study has measured."""
_FEW = ("group", "measure", "unit")


def rescored_rows(rows: pd.DataFrame, record: Mapping[str, Any]) -> pd.DataFrame:
    """Score rows with the column names of studies, of speech or of translations, as their study does."""
    if "translation" in rows.columns:
        roles = Columns(
            "text", "reference" if "reference" in rows.columns else "", "source_lang", "target_lang"
        )
        return rescored_translations(rows, roles, record.get("settings", {}).get("glossary") or {})
    return rescored(rows, "text", "language") if "hypothesis" in rows.columns else rows


def rescored_translations(table: pd.DataFrame, columns: Columns, terms: Mapping[str, Any]) -> pd.DataFrame:
    """Score translations, and translations back where there are any."""
    rows = measured(table, columns, terms)
    if "back_translation" not in rows.columns:
        return rows
    return with_back(rows.reset_index(drop=True), rows.reset_index(drop=True), columns)


def tidy_runs(runs: Sequence[Contents]) -> list[pd.DataFrame]:
    """The rows of each run with the column names of studies, a group, a key that all runs share, and a block.

    Runs that were scored by other rules than the newest are scored anew.
    """
    translated = runs[0].study == "translation"
    tables = [tidied_texts(run) if translated else tidied(run) for run in runs]
    if not translated:
        newest = set(tables[-1]["signature"].dropna())
        tables = [
            rows if set(rows["signature"].dropna()) <= newest else rescored(rows, "text", "language")
            for rows in tables
        ]
    names = TEXT_KEYS if translated else KEYS
    shared = [name for name in names if all(name in rows.columns for rows in tables)]
    return [keyed(rows, shared) for rows in tables]


def watched_values(runs: Sequence[Contents], tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return what is watched, one row for each value: of each row in each run, and of the times of each run.

    Returns:
        ``run`` (from 1), ``group``, ``measure``, ``unit``, ``item`` (the row), ``block`` (rows that vary together),
        ``value`` (errors, 1 for a failure, chrF, or seconds) and ``length`` (of the reference; else 1).
    """
    long_tables = []
    for number, (run, rows) in enumerate(zip(runs, tables, strict=True), 1):
        long_tables += [table.assign(run=number) for table in (*_of_rows(rows), _of_times(run)) if len(table)]
    values = pd.concat(long_tables, ignore_index=True)
    values["item"] = pd.factorize(values["item"])[0]
    values["block"] = pd.factorize(values["block"])[0]
    return values[["run", *_FEW, "item", "block", "value", "length"]]


def _of_rows(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    block = rows[BLOCK].astype(str) if BLOCK in rows.columns else rows["_block"]
    groups = rows["_group"].astype(str).str.replace(f"{NO_SPEAKER}, ", "", regex=False)
    facts = {"group": groups, "item": rows["_key"], "block": block}
    failed = rows["status"].isin(["error", "skipped"]).astype(float)
    if "translation" in rows.columns:
        scored = pd.DataFrame(
            {**facts, "measure": MEAN_CHRF, "unit": POINTS, "value": rows.get("chrf"), "length": 1.0}
        )
    else:
        errors, length, unit = rows["errors"], rows["reference_length"], rows["unit"]
        if "reading_errors" in rows.columns:
            read = rows["reading_errors"].notna()
            errors, length = (
                errors.mask(read, rows["reading_errors"]),
                length.mask(read, rows["reading_length"]),
            )
            unit = unit.mask(read, "reading")
        scored = pd.DataFrame(
            {**facts, "measure": "error rate", "unit": unit, "value": errors, "length": length}
        )
    yield scored.dropna(subset=["value"]).astype({"value": float, "length": float, "unit": str})
    yield pd.DataFrame(
        {**facts, "group": "all rows", "measure": FAILED, "unit": "row", "value": failed, "length": 1.0}
    )


def _of_times(run: Contents) -> pd.DataFrame:
    """The median time of each group: whole runs are slow or fast, so that each counts as one value."""
    calls = timed_calls(run)
    name = next(
        (column for column in _WATCHED_TIMES if column in calls.columns and calls[column].notna().any()), None
    )
    if name is None:
        return pd.DataFrame()
    medians = calls.groupby("_group", sort=False)[name].median().astype(float).dropna()
    facts = {"measure": TIMES[name], "unit": RATIO, "length": 1.0, "item": "times", "block": "times"}
    return pd.DataFrame({"group": medians.index.astype(str), "value": medians.to_numpy(), **facts})


def series_of(values: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the series, one row for each run of each group and measure, and their summary.

    The groups and measures of the first run are watched. Evidence counts once it reaches ``needed``: 1 / 0.05, times
    the number of series, so that all together raise a false alarm in 5 % of watches at most.
    """
    count = int(values["run"].max())
    watched = values[values["run"] == 1].groupby(list(_FEW[:2]), sort=False).size().index.tolist()
    needed = len(watched) / ALPHA
    each_series = [_series(values, group, measure, count, needed) for group, measure in watched]
    series = pd.concat(each_series, ignore_index=True)
    return series, pd.DataFrame([_summary(one_series, needed) for one_series in each_series])


def _series(values: pd.DataFrame, group: str, measure: str, runs: int, needed: float) -> pd.DataFrame:
    cells = values[(values["group"] == group) & (values["measure"] == measure)]
    every = range(1, runs + 1)
    table = cells.pivot(index="run", columns="item", values="value").reindex(every)
    blocks = cells.drop_duplicates("item").set_index("item")["block"].reindex(table.columns)
    sign = -1.0 if measure == MEAN_CHRF else 1.0  # more is better
    tested = sequential_test(sign * table.to_numpy(), groups=blocks.tolist())
    sums = cells.groupby("run")[["value", "length"]].sum().reindex(every)
    return pd.DataFrame(
        {
            "run": every,
            "group": group,
            "measure": measure,
            "unit": str(cells["unit"].iloc[0]),
            "n": tested["n"],
            "value": (sums["value"] / sums["length"]).to_numpy(),
            "p": tested["p"],
            "evidence": tested["evidence"],
            "changed": (tested["evidence"] >= needed).cummax(),
        }
    )


def _summary(series: pd.DataFrame, needed: float) -> dict[str, Any]:
    changed = series["changed"].to_numpy()
    alarm = int(changed.argmax()) if changed.any() else None
    before_alarm = series["value"].iloc[: len(series) - 1 if alarm is None else alarm]
    return {
        **{name: series[name].iloc[0] for name in _FEW},
        "runs": len(series),
        "first": series["value"].iloc[0],
        "usual": None if before_alarm.isna().all() else float(before_alarm.mean()),
        "now": series["value"].iloc[-1],
        "evidence": float(series["evidence"].iloc[-1] if alarm is None else series["evidence"].max()),
        "needed": needed,
        "changed": alarm is not None,
        "alarm": pd.NA if alarm is None else alarm + 1,
    }
