"""Services that change during a study: early against late calls, and answers of other days."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from speechlab._pandas import pd
from speechlab.evaluate._speech.blocks import BLOCK
from speechlab.evaluate._speech.speech_rows import HEAR
from speechlab.evaluate._writing.columns import describe_p_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

# Calls of a system below which early and late ones are not compared.
_MIN_CALLS = 20
_LEVEL = 0.01
# Ratio of the later times to the earlier ones below which a difference has no note.
_SLOWER = 1.5
# Hours between the first and the last answer from which their days are mentioned.
_APART_H = 12.0
_ALL = "speechlab: all"


def describe_drift(table: pd.DataFrame, errors: str, length: str | None, by: Sequence[str]) -> list[str]:
    """Return notes on systems whose later calls have other errors than earlier ones, by more than chance.

    Only the calls of this study are compared, among rows that are alike in ``by``, condition and block. ``errors`` is
    a column of counts over those of ``length``, or of scores.
    """
    notes = []
    for who, rows, strata in _iter_systems(table, by):
        if (found := _compare_halves(rows, strata, errors, length)) is None:
            continue
        early, late, p = found
        what = f"{early:.1%} to {late:.1%}" if length else f"{early:.1f} to {late:.1f}"
        kind = "errors" if length else "scores"
        notes.append(
            f"{who} calls have other {kind} than earlier ones ({what}, {describe_p_value(p)}): "
            "the service changed during the study, or the later rows are of another kind."
        )
    return notes


def describe_time_drift(table: pd.DataFrame, times: str, by: Sequence[str]) -> list[str]:
    """Return notes on systems whose later calls took much longer than earlier ones, or much less."""
    notes = []
    for who, rows, strata in _iter_systems(table, by):
        if (ratio := _compare_times(rows, strata, times)) is not None:
            notes.append(f"{who} calls took {ratio:.1f} times as long as earlier ones.")
    return notes


def describe_recognition_changes(scored: pd.DataFrame, transcripts: pd.DataFrame, language: str) -> list[str]:
    """Return notes on recognizers that changed: in errors, in time for each second of sound, or between answers."""
    notes = describe_drift(scored, "errors", "reference_length", [language])
    names = {f"{HEAR}{name}": name for name in ("status", "answered_at", "processing_s")}
    if all(name in transcripts.columns for name in names):
        own = [name for name in names.values() if name in transcripts.columns]  # of the user's table
        table = transcripts.drop(columns=own).rename(columns=names)
        times = table["processing_s"] / table["duration_s"].astype("float64")
        notes += describe_time_drift(table.assign(processing_s=times), "processing_s", [language])
    return notes + describe_days(scored)


def _iter_systems(
    table: pd.DataFrame, by: Sequence[str]
) -> Iterator[tuple[str, pd.DataFrame, pd.Series[int]]]:
    """Yield the beginning of a sentence on each system, the calls of this study, and the group of each."""
    if "answered_at" not in table.columns:
        return
    calls = table[(table["status"] == "ok") & table["answered_at"].notna()].reset_index(drop=True)
    names = [name for name in [*by, "condition"] if name in calls.columns]
    systems = calls["system"] if "system" in calls.columns else pd.Series("", index=calls.index)
    for system, rows in calls.groupby(systems, sort=False, observed=True):
        alike = _number_groups(rows, names)
        if BLOCK in rows.columns:  # blocks of one row are compared with each other
            blocks = _number_groups(rows, [*names, BLOCK])
            alike = (blocks + len(rows)).where(blocks.map(blocks.value_counts()) > 1, alike)
        yield f"{system}: later" if system else "Later", rows, alike


def _number_groups(rows: pd.DataFrame, names: Sequence[str]) -> pd.Series[int]:
    """Return the number of each row's group."""
    return rows[[*names]].astype("string").assign(**{_ALL: 0}).groupby([*names, _ALL], dropna=False).ngroup()


def describe_days(table: pd.DataFrame) -> list[str]:
    """Return a note if answers of a study are of other days than the rest."""
    if "answered_at" not in table.columns:
        return []
    rows = table[table["answered_at"].notna() & table["status"].isin(["ok", "cached"])].reset_index(drop=True)
    moments = pd.to_datetime(rows["answered_at"], utc=True)
    if not len(rows) or (moments.max() - moments.min()).total_seconds() < 3600 * _APART_H:
        return []
    days = moments.dt.strftime("%Y-%m-%d")
    systems = rows["system"] if "system" in rows.columns else pd.Series("", index=rows.index)
    parts = [
        f"{system}: {', '.join(_count_days(days[group.index]))}".removeprefix(": ")
        for system, group in systems.groupby(systems, sort=False)
    ]
    return [f"Not all answers are of one day ({'; '.join(parts)}); a service may have changed in between."]


def _count_days(days: pd.Series[str]) -> list[str]:
    """Return each day with its number of rows."""
    return [f"{count:,} of {day}" for day, count in days.value_counts().sort_index().items()]


def _compare_halves(
    rows: pd.DataFrame, strata: pd.Series[int], errors: str, length: str | None
) -> tuple[float, float, float] | None:
    """Return the rates of the earlier and the later calls, and p, if they differ by more than chance."""
    rows = rows[rows[errors].notna()]
    if len(rows) < _MIN_CALLS:
        return None
    values = rows[errors].to_numpy(np.float64)
    lengths = np.ones(len(rows)) if length is None else rows[length].to_numpy(np.float64)
    late = _find_late_rows(rows)
    codes: NDArray[np.int64] = np.asarray(strata[rows.index], np.int64)
    totals = np.bincount(codes, values), np.bincount(codes, lengths)
    p = _test_halves(values - (totals[0] / np.maximum(totals[1], 1e-9))[codes] * lengths, late, codes)
    if p >= _LEVEL or not lengths[late].sum() or not lengths[~late].sum():
        return None
    return values[~late].sum() / lengths[~late].sum(), values[late].sum() / lengths[late].sum(), p


def _compare_times(rows: pd.DataFrame, strata: pd.Series[int], times: str) -> float | None:
    """Return the ratio of the later to the earlier times, if it is far from 1 by more than chance."""
    rows = rows[rows[times].gt(0)]
    if len(rows) < _MIN_CALLS:
        return None
    logs = np.log(rows[times].to_numpy(np.float64))
    late = _find_late_rows(rows)
    codes: NDArray[np.int64] = np.asarray(strata[rows.index], np.int64)
    means = np.bincount(codes, logs) / np.maximum(np.bincount(codes), 1)
    ratio = math.exp(float(np.median(logs[late]) - np.median(logs[~late])))
    far = ratio > _SLOWER or ratio < 1 / _SLOWER
    return ratio if far and _test_halves(logs - means[codes], late, codes) < _LEVEL else None


def _find_late_rows(rows: pd.DataFrame) -> NDArray[np.bool_]:
    """Return which rows are in the later half of the calls."""
    order = np.argsort(rows["answered_at"].to_numpy(str), kind="stable")
    late = np.zeros(len(rows), bool)
    late[order[len(rows) // 2 :]] = True
    return late


def _test_halves(rests: NDArray[np.float64], late: NDArray[np.bool_], codes: NDArray[np.int64]) -> float:
    """Return p of the sum of the later rests, as of a permutation of the rows that are alike."""
    counts, later = np.bincount(codes), np.bincount(codes, late)
    counts = np.maximum(counts, 1)
    squares = np.bincount(codes, np.square(rests - (np.bincount(codes, rests) / counts)[codes]))
    spread = (later * (counts - later) / counts * squares / np.maximum(counts - 1, 1)).sum()
    expected = (later * np.bincount(codes, rests) / counts).sum()
    if spread <= 0:
        return 1.0
    return math.erfc(abs(float(rests[late].sum() - expected)) / math.sqrt(2 * float(spread)))
