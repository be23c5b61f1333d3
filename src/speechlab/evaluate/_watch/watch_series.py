"""Series of a watched study: comparable rows of all runs, the values that are watched, and their test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._pandas import pd
from speechlab.evaluate._changes.changes_report import TIMES, group_and_average_calls
from speechlab.evaluate._changes.tested import (
    KEYS,
    TEXT_KEYS,
    add_row_keys,
    build_grouped_report_rows,
    build_grouped_translation_rows,
)
from speechlab.evaluate._speech.blocks import BLOCK
from speechlab.evaluate._speech.ranking import READINGS, choose_ranking_counts_by_row
from speechlab.evaluate._speech.speech_rows import rescore_rows
from speechlab.evaluate._study_columns import NO_SPEAKER
from speechlab.evaluate._translation.translation_measures import Columns, rescore_translations
from speechlab.evaluate._watch.watch_answer import find_change
from speechlab.metrics import POINTS, RATIO, sequential_test

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.evaluate._writing.contents import Contents

FAILED, MEAN_CHRF = "rows that failed", "mean chrF"
# Probability of a false alarm in any of all series, in any number of runs.
ALPHA = 0.05
# The time that is watched is the first of these that the study has measured.
_WATCHED_TIMES = ("first_audible_s", "first_partial_s", "first_word_s", "total_s")
_SERIES_COLUMNS = ("group", "measure", "unit")


def rescore_study_rows(rows: pd.DataFrame, record: Mapping[str, Any]) -> pd.DataFrame:
    """Score rows with the column names of studies, of speech or of translations, as their study does."""
    if "translation" in rows.columns:
        reference = "reference" if "reference" in rows.columns else ""
        roles = Columns("text", reference, "source_lang", "target_lang")
        return rescore_translations(rows, roles, record.get("settings", {}).get("glossary") or {})
    return rescore_rows(rows, "text", "language") if "hypothesis" in rows.columns else rows


def build_comparable_rows(runs: Sequence[Contents]) -> list[pd.DataFrame]:
    """Return the rows of each run with the column names of studies, a group, a key that all runs share, and a block.

    Runs that were scored by other rules than the newest are scored anew.
    """
    translated = runs[0].study == "translation"
    tables = [
        build_grouped_translation_rows(run) if translated else build_grouped_report_rows(run) for run in runs
    ]
    if not translated:
        newest = set(tables[-1]["signature"].dropna())
        tables = [
            rows if set(rows["signature"].dropna()) <= newest else rescore_rows(rows, "text", "language")
            for rows in tables
        ]
    names = TEXT_KEYS if translated else KEYS
    shared = [name for name in names if all(name in rows.columns for rows in tables)]
    return [add_row_keys(rows, shared) for rows in tables]


def collect_watched_values(runs: Sequence[Contents], tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return what is watched, one row for each value: of each row in each run, and of the times of each run.

    Returns:
        ``run`` (from 1), ``group``, ``measure``, ``unit``, ``item`` (the row), ``block`` (rows that vary together),
        ``value`` (errors, 1 for a failure, chrF, or seconds) and ``length`` (of the reference; else 1).
    """
    long_tables = []
    for place, (run, rows) in enumerate(zip(runs, tables, strict=True), 1):
        long_tables += [
            table.assign(run=place)
            for table in (*_generate_value_tables(rows), _compute_median_times(run))
            if len(table)
        ]
    values = pd.concat(long_tables, ignore_index=True)
    values["item"] = pd.factorize(values["item"])[0]
    values["block"] = pd.factorize(values["block"])[0]
    return values[["run", *_SERIES_COLUMNS, "item", "block", "value", "length"]]


def _generate_value_tables(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    block = rows[BLOCK].astype(str) if BLOCK in rows.columns else rows["_block"]
    groups = rows["_group"].astype(str).str.replace(f"{NO_SPEAKER}, ", "", regex=False)
    facts = {"group": groups, "item": rows["_key"], "block": block}
    failed = rows["status"].isin(["error", "skipped"]).astype(float)
    if "translation" in rows.columns:
        scores = {"measure": MEAN_CHRF, "unit": POINTS, "value": rows.get("chrf"), "length": 1.0}
    else:
        counts = choose_ranking_counts_by_row(rows, (READINGS,))
        unit = rows["unit"].astype(object).mask(counts["ranked_by"] == READINGS.rate, "reading")
        amounts = {"value": counts["errors"], "length": counts["reference_length"]}
        scores = {"measure": "error rate", "unit": unit, **amounts}
    scored = pd.DataFrame({**facts, **scores}).dropna(subset=["value"])
    yield scored.astype({"value": float, "length": float, "unit": str})
    failures = {"group": "all rows", "measure": FAILED, "unit": "row", "value": failed, "length": 1.0}
    yield pd.DataFrame({**facts, **failures})


def _compute_median_times(run: Contents) -> pd.DataFrame:
    """Return the median time of each group: whole runs are slow or fast, so that each counts as one value."""
    calls = group_and_average_calls(run)
    name = next(
        (column for column in _WATCHED_TIMES if column in calls.columns and calls[column].notna().any()), None
    )
    if name is None:
        return pd.DataFrame()
    medians = calls.groupby("_group", sort=False)[name].median().astype(float).dropna()
    facts = {"measure": TIMES[name], "unit": RATIO, "length": 1.0, "item": "times", "block": "times"}
    return pd.DataFrame({"group": medians.index.astype(str), "value": medians.to_numpy(), **facts})


def build_series(values: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the series, one row for each run of each group and measure, and their summary.

    The groups and measures of the first run are watched. Evidence counts once it reaches ``needed``: 1 / 0.05, times
    the number of series, so that all together raise a false alarm in 5% of watches at most.
    """
    count = int(values["run"].max())
    watched = values[values["run"] == 1].groupby(list(_SERIES_COLUMNS[:2]), sort=False).size().index.tolist()
    needed = len(watched) / ALPHA
    each_series = [_test_series(values, group, measure, count, needed) for group, measure in watched]
    series = pd.concat(each_series, ignore_index=True)
    return series, pd.DataFrame([_summarize_series(one_series, needed) for one_series in each_series])


def _test_series(values: pd.DataFrame, group: str, measure: str, runs: int, needed: float) -> pd.DataFrame:
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


def _summarize_series(series: pd.DataFrame, needed: float) -> dict[str, Any]:
    changed = series["changed"].to_numpy()
    alarm = int(changed.argmax()) if changed.any() else None
    values = series["value"].to_numpy(dtype=float)
    onset, back = (
        (len(values) - 1, None)
        if alarm is None
        else find_change(values, alarm, -1.0 if series["measure"].iloc[0] == MEAN_CHRF else 1.0)
    )
    return {
        **{name: series[name].iloc[0] for name in _SERIES_COLUMNS},
        "runs": len(series),
        "first": series["value"].iloc[0],
        "usual": _compute_mean(values[:onset]),
        "worst": None if alarm is None else _compute_mean(values[onset:back]),
        "now": series["value"].iloc[-1],
        "evidence": float(series["evidence"].iloc[-1] if alarm is None else series["evidence"].max()),
        "needed": needed,
        "changed": alarm is not None,
        "alarm": pd.NA if alarm is None else alarm + 1,
        "onset": pd.NA if alarm is None else onset + 1,
        "back": pd.NA if back is None else back + 1,
    }


def _compute_mean(values: NDArray[np.float64]) -> float | None:
    return None if np.isnan(values).all() else float(np.nanmean(values))
