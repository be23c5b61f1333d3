"""The report of a listening test."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from speechlab._platform import package_version
from speechlab.evaluate._listening.answer import listening_answer
from speechlab.evaluate._listening.simulated import SIMULATED
from speechlab.evaluate._writing.columns import (
    Shown,
    View,
    chance,
    count,
    interval_text,
    number,
    p_text,
    text,
)
from speechlab.evaluate._writing.contents import Contents, Drawing, ShownRows
from speechlab.evaluate._writing.methods import methods_of
from speechlab.listening import METHODS
from speechlab.metrics import ALIKE, BETTER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from speechlab.evaluate._writing.contents import Finding

_LISTED = 3
_MANY = 3
"""Number of systems from which a scale says more than their pair."""


def listening_report(
    title: str,
    table: pd.DataFrame,
    summary: pd.DataFrame,
    differences: pd.DataFrame,
    listeners: pd.DataFrame,
    agreement: float,
    scale: pd.DataFrame | None,
    findings: Sequence[Finding],
    method: str,
    smallest: float,
    record: Mapping[str, Any],
) -> Contents:
    """Report what listeners heard.

    Args:
        title: Title of the report.
        table: The answers, with ``excluded``.
        summary: The systems.
        differences: Their differences.
        listeners: The listeners.
        agreement: Krippendorff's alpha.
        scale: The systems on one scale, for pairs.
        findings: What was excluded, and why.
        method: Method of the test.
        smallest: The smallest difference that matters.
        record: The record of the study.
    """
    simulated = "session" in table and table["session"].astype(str).str.startswith(SIMULATED).any()
    seen = ["listener", "item", "system", "score", "order", "time_s", "excluded"]
    seen[3:3] = ["other", "choice"] if method in {"ab", "abx"} else []
    known = listeners.set_index("listener")["agreement"].dropna()
    notes = {str(name): f"agreement {value:.2f}" for name, value in known.items()}
    excluded = int((listeners["excluded"] != "").sum())
    test = "exact binomial, one-sided" if method == "abx" else "Student's t, two-way clustered, two-sided"
    done = {
        "listeners": len(differences) > 0,
        "alpha": True,
        "abx": method == "abx",
        "simulated": simulated,
        "holm": len(differences) > 0,
    }
    return Contents(
        title,
        table,
        summary,
        listening_answer(
            method, summary, differences, listeners, "simulated listener" if simulated else "listener"
        ),
        "listening",
        findings=tuple(findings),
        differences=differences,
        tables={"listeners": listeners} | ({} if scale is None else {"scale": scale}),
        views=(
            _systems_view(summary, differences, method),
            *([] if scale is None or len(scale) < _MANY else [_scale_view(scale)]),
            _pairs_view(differences, method, smallest),
            _listeners_view(listeners, method, agreement, everybody=not findings),
        ),
        drawings=(Drawing("Systems and listeners", "listeners", ("table", "summary"), {"notes": notes}),),
        shown=ShownRows(options={"columns": seen}),
        said=methods_of(title, *(name for name, was in done.items() if was)),
        facts={
            "speechlab": package_version(),
            "method": method,
            "listeners": f"{len(listeners)}, of whom {excluded} excluded",
            "tests": f"{test}; Holm over pairs",
            "agreement": f"Krippendorff's alpha, {METHODS[method].scale}",
        },
        record={**record, "agreement": None if math.isnan(agreement) else agreement},
    )


def _systems_view(summary: pd.DataFrame, differences: pd.DataFrame, method: str) -> View:
    digits = f".{METHODS[method].digits}f"
    rows = differences.to_dict("records")
    p_of = {f"{row['a']} or {row['b']}": row["p_holm"] for row in rows}
    better = [
        (row["b"], row["a"]) if row["verdict"] == BETTER else (row["a"], row["b"])
        for row in rows
        if row["verdict"] != ALIKE
    ]
    certainty = (
        Shown("p (Holm)", lambda row: p_text(p_of.get(row["system"])), figure=True)
        if method == "abx"
        else Shown(
            "better than", lambda row: _several([other for one, other in better if one == row["system"]])
        )
    )
    columns = [
        Shown("pair" if method == "abx" else "system", _named, strong=True),
        number(METHODS[method].measure, "mean", digits, strong=True),
        Shown("95 % interval", lambda row: interval_text(row["low"], row["high"], digits), figure=True),
        number("median", "median", digits),
        *(count(name, name) for name in ("answers", "listeners", "items")),
        certainty,
    ]
    return View.of("Systems", columns, summary, "Listeners and items both vary: two-way bootstrap.")


def _pairs_view(differences: pd.DataFrame, method: str, smallest: float) -> View:
    digits = f".{METHODS[method].digits}f"
    columns = [
        text("first", "a" if method == "abx" else "b"),
        text("second", "b" if method == "abx" else "a"),
        number("difference", "difference", digits, strong=True),
        Shown("95 % interval", lambda row: interval_text(row["low"], row["high"], digits), figure=True),
        chance("p (Holm)", "p_holm"),
        number("detectable", "detectable", digits),
        Shown("takes more", _more),
    ]
    note = (
        f"{METHODS[method].difference.capitalize()}. The last columns: what this test can find, and what it takes to "
        f"find {smallest:g}, each in 80 % of tests."
    )
    return View.of("Pairs", columns, differences, note)


def _scale_view(scale: pd.DataFrame) -> View:
    columns = [
        text("system", "system"),
        number("strength", "strength", ".2f", strong=True),
        Shown("95 % interval", lambda row: interval_text(row["low"], row["high"], ".2f"), figure=True),
        number("preferred to the middle", "preferred", ".2f"),
        count("answers", "answers"),
    ]
    note = (
        "All pairs on one scale (Bradley and Terry, 1952), in log-odds of a preference, with a mean of 0. No "
        "preference is half an answer for each. Listeners and items both vary: two-way bootstrap."
    )
    return View.of("Scale", columns, scale, note)


def _listeners_view(listeners: pd.DataFrame, method: str, agreement: float, *, everybody: bool) -> View:
    columns = [
        text("listener", "listener"),
        Shown("answers", lambda row: str(row["answers"]) + ("" if row["finished"] else " (not finished)")),
        Shown("checks passed", _passed, figure=True),
        number("mean", "mean", f".{METHODS[method].digits}f"),
        number("agreement", "agreement"),
        number("minutes", "minutes", ".1f"),
        Shown("excluded", lambda row: row["excluded"] or None, optional=True),
    ]
    told = "Nobody was excluded, and all finished. " if everybody else ""
    alpha = "–" if math.isnan(agreement) else f"{agreement:.2f}"
    note = f"{told}Agreement with the mean of the others; Krippendorff's alpha of all: {alpha}."
    return View.of("Listeners", columns, listeners, note)


def _several(names: Sequence[str]) -> str | None:
    """A few names, or the number of many names; None for no names."""
    return f"{len(names)} systems" if len(names) > _LISTED else ", ".join(names) or None


def _passed(row: Mapping[Any, Any]) -> str | None:
    return f"{row['checks'] - row['checks_failed']} of {row['checks']}" if row["checks"] else None


def _named(row: Mapping[Any, Any]) -> str:
    return f"{row['system']}" if row["role"] == "test" else f"{row['system']} ({row['role']})"


def _more(row: Mapping[Any, Any]) -> str:
    listeners, items = row["more_listeners"], row["more_items"]
    if math.isnan(listeners):
        return "two listeners and two items at least"
    if 0 in (listeners, items):
        return "nothing"
    ways = [
        f"{value:.0f} {name}"
        for value, name in ((listeners, "listeners"), (items, "items"))
        if value < math.inf
    ]
    return " or ".join(ways) or "more listeners and more items"
