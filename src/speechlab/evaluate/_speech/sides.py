"""Systems of a report of speech: one of them alone, or all side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.errors import InvalidRequestError
from speechlab.evaluate._speech.report import speech_report

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.evaluate._writing.contents import Contents


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
