"""How much of the error was the references': a report before its references were corrected, beside itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from speechlab.display import percent
from speechlab.evaluate._made import SIDES
from speechlab.evaluate._speech.summary import NO_SPEAKER
from speechlab.evaluate._writing.columns import View, count, listed, plural, rate, text
from speechlab.evaluate._writing.contents import Contents, Finding
from speechlab.text import language_name

if TYPE_CHECKING:
    from collections.abc import Mapping

CORRECTIONS, UNCORRECTED = "corrections", "uncorrected"
"""Tables of a corrected report: its file of corrections; and the place and the text of each row before."""
_SHOWN = 50
"""Maximum number of corrections that a page lists."""


def uncorrected(report: Contents) -> pd.DataFrame:
    """The rows of a corrected report with their references as they were; those of another report as they are."""
    if UNCORRECTED not in report.tables:
        return report.table
    name, originals = report.columns.get("text", "text"), report.tables[UNCORRECTED]
    texts = report.table[name].astype(object).tolist()
    for place, old in zip(originals["place"], originals["text"], strict=True):
        texts[int(place)] = old
    cells = pd.Series(texts, index=report.table.index, dtype=report.table[name].dtype)
    return report.table.assign(**{name: cells})


def with_references(before: Contents, after: Contents, corrections: pd.DataFrame) -> Contents:
    """Return a corrected report that says how much of the error was the references', of each system and voice."""
    name = after.columns.get("text", "text")
    old, new = (report.table[name].astype(object).tolist() for report in (before, after))
    places = [place for place, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]]
    originals = pd.DataFrame(
        {"place": places, "text": pd.array([old[place] for place in places], dtype="string")}
    )
    references = _of_each(before, after)
    tables = {**after.tables, "references": references, CORRECTIONS: corrections, UNCORRECTED: originals}
    changed = corrections[corrections["old"] != corrections["new"]]
    findings = (_finding(before, after, changed["row"].nunique()), *after.findings)
    views = (*after.views, *_views(references, changed))
    return replace(
        after, summary=_with_rates(after.summary, references), findings=findings, tables=tables, views=views
    )


def _groups(references: pd.DataFrame) -> list[str]:
    """The columns that identify a row: system, condition, voice, language."""
    return references.columns[: list(references.columns).index("errors_before")].tolist()


def _with_rates(summary: pd.DataFrame, references: pd.DataFrame) -> pd.DataFrame:
    """Add ``reference_rate`` to a summary, beside the rates of voice, engine and recogniser."""
    keys = [name for name in _groups(references) if name in summary.columns]
    if len(keys) < len(_groups(references)):
        return summary
    return summary.merge(references[[*keys, "reference_rate"]], on=keys, how="left")


def _of_each(before: Contents, after: Contents) -> pd.DataFrame:
    """Errors before and after, and those that were the references', of each system, voice and language."""
    language = after.columns.get("language", "language")
    keys = [name for name in (*SIDES, "voice_name", language) if name in after.table.columns]
    if "voice_name" in keys and after.table["voice"].eq(NO_SPEAKER).any():
        keys.remove("voice_name")
    counted = ["errors", "reference_length"]
    first, last = (
        report.table.astype(dict.fromkeys(counted, "Float64"))
        .groupby(keys, sort=False, observed=True)[counted]
        .sum()
        for report in (before, after)
    )
    table = pd.DataFrame(
        {
            "errors_before": first["errors"].astype(int),
            "reference_errors": (first["errors"] - last["errors"]).astype(int),
            "errors_after": last["errors"].astype(int),
            "error_rate_before": (first["errors"] / first["reference_length"]).astype(float),
            "reference_rate": ((first["errors"] - last["errors"]) / first["reference_length"]).astype(float),
            "error_rate_after": (last["errors"] / last["reference_length"]).astype(float),
        }
    )
    return table.reset_index().rename(columns={language: "language"})


def _views(references: pd.DataFrame, changed: pd.DataFrame) -> list[View]:
    columns = [
        *(text(name, name) for name in _groups(references)),
        count("errors before", "errors_before"),
        count("the references'", "reference_errors"),
        count("errors after", "errors_after"),
        rate("rate before", "error_rate_before"),
        rate("rate after", "error_rate_after", strong=True),
    ]
    listing = [text(name, name, optional=name in {"by", "when", "why"}) for name in changed.columns]
    more = f"The first {_SHOWN} of {len(changed):,}." if len(changed) > _SHOWN else ""
    return [
        View.of("How much of the error was the references'", columns, references),
        View.of("Corrections", listing, changed.head(_SHOWN), more),
    ]


def _finding(before: Contents, after: Contents, corrected: int) -> Finding:
    """Say how many errors went with the corrections, and what became of the order of systems."""
    errors, remaining = (int(report.table["errors"].fillna(0).sum()) for report in (before, after))
    share = (errors - remaining) / errors if errors else 0.0
    references = plural(corrected, "reference was", "references were")
    words = (
        f"{references} corrected; {errors - remaining:,} of {errors:,} errors ({percent(share)}) were "
        "the references'."
    )
    first, last = _orders(before), _orders(after)
    new = [f"in {language_name(code)} {listed(last[code])}" for code in last if first.get(code) != last[code]]
    if any(len(names) > 1 for names in last.values()):
        words += f" The order is another one now: {'; '.join(new)}." if new else " The order stays."
    return Finding(words, numbers={"errors_before": errors, "errors_after": remaining})


def _orders(report: Contents) -> Mapping[Any, list[str]]:
    """The systems or voices of each language, the one with the fewest errors first."""
    name = next((column for column in ("system", "voice_name") if column in report.summary.columns), None)
    if name is None or "ranking_rate" not in report.summary.columns:
        return {}
    summary = report.summary
    if "condition" in summary.columns:
        summary = summary[summary["condition"] == summary["condition"].iloc[0]]
    ordered = summary.sort_values("ranking_rate", kind="stable")
    return {code: lines[name].astype(str).tolist() for code, lines in ordered.groupby("language", sort=False)}
