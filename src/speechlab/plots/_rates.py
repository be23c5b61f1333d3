"""Rates and scores of groups, and differences of systems: one row for each, with points and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FuncFormatter

from speechlab._arguments import build_argument_error, to_column_names
from speechlab.errors import InvalidRequestError
from speechlab.metrics import POINTS, RATIO, build_significance_mask, format_difference
from speechlab.plots._figure import (
    UNITS,
    PaperFigure,
    Style,
    build_panels,
    build_row_names,
    check_table,
    check_width,
    choose_fonts,
    choose_style,
    choose_tone,
    compute_legend_size,
    draw_legend,
    draw_row_names_and_notes,
    draw_scale,
    to_numbers,
    widen_scale,
    wrap_name,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

_SUMMARY_HINT = "Pass what speechlab.metrics.summarize returned, or the summary of a report"
_DIFFERENCES_HINT = "Pass differences of a report, or what speechlab.metrics.compare or judge returned"
_SCORES_HINT = "Pass what speechlab.metrics.score_translations returned with by="
_ROW_INCHES = 0.3
# Distance between the points of one row.
_STEP_INCHES = 0.066
# Minimum span of the scales of differences, of scores, and of ratios.
_LEAST_POINTS, _LEAST_SCORES, _LEAST_RATIO = 2.0, 10.0, 0.2
_LABELS = {
    "reading_cer": "reading error rate",
    "tolerant_cer": "tolerant character error rate",
    "tolerant_wer": "tolerant word error rate",
    "cer": "character error rate",
    "wer": "word error rate",
    "mean_error_rate": "mean error rate",
    "own_rate": "errors of this voice",
    "sentence_error_rate": "share of utterances with an error",
}

_SCORES = {
    "chrf": "chrF",
    "chrf++": "chrF++",
    "bleu": "BLEU",
    "ter": "TER",
    "back_chrf": "chrF of the translation back",
}


def error_rates(
    summary: pd.DataFrame,
    by: str | Sequence[str] | None = None,
    *,
    rates: str | Sequence[str] = "error_rate",
    highlight: Sequence[bool] | None = None,
    language: str | None = None,
    width: float = 7.0,
    ax: Axes | None = None,
) -> PaperFigure:
    """Draw the error rates of groups, with their intervals.

    Each group has a row, in the order of the table. Rates of words and of characters have separate panels, because
    they cannot be compared.

    >>> from speechlab import metrics, plots
    >>> summary = metrics.summarize(["a b", "c d"], ["a x", "c d"], language="en")
    >>> figure = plots.error_rates(summary)
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['25.0%, n = 2']

    Args:
        summary: The result of :func:`speechlab.metrics.summarize`: ``unit``, ``utterances_scored``, the columns of
            ``by`` and of ``rates``. ``<rate>_low`` and ``<rate>_high`` (fractions) are drawn as a line; without them,
            a note says that the range is unknown.
        by: Column or columns that identify a row; None for the columns before ``unit``.
        rates: Column of the rates (fractions), or several columns, with one mark each in every row.
        highlight: Whether each row is colored; the others are gray. None colors all.
        language: ISO 639-1 code of the names, which determines the shapes of Chinese and Japanese letters.
        width: Width in inches; the height follows from the rows.
        ax: Axes to draw in, of a figure of yours; None for a new figure.

    Returns:
        A matplotlib ``Figure``, as from :func:`timeline`, with one axes for each unit.

    Raises:
        InvalidRequestError: A column is missing or is not numeric, or there are no rows.
    """
    check_width(width)
    rate_columns = to_column_names(rates, "rates")
    if not rate_columns:
        raise InvalidRequestError("rates names no column; give one such as 'error_rate'", parameter="rates")
    check_table(summary, "unit", "utterances_scored", *rate_columns, argument="summary", hint=_SUMMARY_HINT)
    before_unit = list(summary.columns[: list(summary.columns).index("unit")])
    keys = before_unit if by is None else to_column_names(by, "by")
    check_table(summary, *keys, argument="summary", hint=_SUMMARY_HINT)
    counted_in = summary["unit"].astype("string").fillna("")  # a group without a score may have no unit
    units = list(dict.fromkeys(counted_in))
    unit_tables = [summary[counted_in == unit] for unit in units]
    chosen = _check_highlight(highlight, summary)
    inches = max(_ROW_INCHES, (len(rate_columns) + 1) * _STEP_INCHES)
    labels = [_format_rate_label(rate, "") for rate in rate_columns] if len(rate_columns) > 1 else []
    figure, panels = _build_row_panels(
        width, [len(unit_table) for unit_table in unit_tables], ax, inches, labels
    )
    for axes, unit, unit_table in zip(panels, units, unit_tables, strict=True):
        names = build_row_names(unit_table, keys) if keys else [unit] * len(unit_table)
        intervals = [_to_interval_ends(unit_table, rate) for rate in rate_columns]
        values = [to_numbers(unit_table, rate) for rate in rate_columns]
        for number in range(len(rate_columns)):
            place = (number - (len(rate_columns) - 1) / 2) * _STEP_INCHES / inches
            for style, rows in _assign_styles_to_rows(unit_table, keys, number, alone=len(rate_columns) == 1):
                shown_values = (values[number], *intervals[number])
                points, low, high = (np.where(rows, column, np.nan) for column in shown_values)
                full = chosen[(counted_in == unit).to_numpy(dtype=bool)]
                _draw_points_and_intervals(axes, points, low, high, style, place, full=full)
        counts = to_numbers(unit_table, "utterances_scored")
        notes = [
            _format_rates_and_count(
                [value[at] for value in values], counts[at], sure=bool(np.isfinite(intervals[0][0][at]))
            )
            for at in range(len(unit_table))
        ]
        draw_row_names_and_notes(axes, names, notes, choose_fonts("".join(names), language))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.4g}%"))
        no_errors = all(np.nanmax(rates, initial=0) == 0 for rates in values)
        axes.set_xlim(left=0, right=0.1 if no_errors else None)
        draw_scale(axes, _format_rate_label(rate_columns[0], unit) if len(rate_columns) == 1 else "rate")
    if labels:
        draw_legend(figure, panels[0], labels, choose_fonts("".join(labels), language))
    return figure


def translation_scores(
    table: pd.DataFrame,
    score: str = "chrf",
    by: str | Sequence[str] = "language",
    *,
    highlight: Sequence[bool] | None = None,
    language: str | None = None,
    width: float = 7.0,
    ax: Axes | None = None,
) -> PaperFigure:
    """Draw the scores of translations by group, with their intervals.

    Args:
        table: The result of :func:`speechlab.metrics.score_translations`, or the summary of a report: the columns of
            ``by``, and the score. ``utterances_scored`` (or ``utterances``), ``<score>_low`` and ``<score>_high`` are
            drawn if they exist.
        score: Column of the scores.
        by: Column or columns that identify a row.
        highlight: Whether each row is colored; the others are gray. None colors all.
        language: ISO 639-1 code of the names, which determines the shapes of Chinese and Japanese letters.
        width: Width in inches; the height follows from the rows.
        ax: Axes to draw in, of a figure of yours; None for a new figure.

    Returns:
        A matplotlib ``Figure``, as from :func:`timeline`.

    Raises:
        InvalidRequestError: A column is missing or is not numeric, or there are no rows.
    """
    check_width(width)
    keys = to_column_names(by, "by")
    check_table(table, score, *keys, argument="table", hint=_SCORES_HINT)
    figure, (axes,) = _build_row_panels(width, [len(table)], ax)
    values = to_numbers(table, score)
    low, high = _to_interval_ends(table, score)
    full = _check_highlight(highlight, table)
    _draw_points_and_intervals(axes, values, low, high, choose_style(0), 0.0, full=full)
    counted = next((name for name in ("utterances_scored", "utterances") if name in table.columns), None)
    counts = np.full(len(table), np.nan) if counted is None else to_numbers(table, counted)
    notes = [
        "no score" if value != value else f"{value:.1f}" + (f", n = {count:.0f}" if count == count else "")
        for value, count in zip(values, counts, strict=True)
    ]
    names = build_row_names(table, keys)
    draw_row_names_and_notes(axes, names, notes, choose_fonts("".join(names), language))
    if np.isfinite(values).any():
        widen_scale(axes, _LEAST_SCORES, lowest=-0.5)  # so that a mark at 0 is not cut off
    else:
        axes.set_xlim(0, 100)
    draw_scale(axes, _SCORES.get(score, score))
    return figure


def differences(
    compared: pd.DataFrame, *, language: str | None = None, width: float = 7.0, ax: Axes | None = None
) -> PaperFigure:
    """Draw differences with their intervals and verdicts.

    Each difference has a row; rates, scores and times have separate panels. A colored, filled mark is a significant
    difference; a gray, empty mark is a difference that may be chance.

    >>> from speechlab import metrics, plots
    >>> systems = {
    ...     name: metrics.score(["a b", "c d"], recognized, language="en")
    ...     for name, recognized in {"one": ["a b", "c d"], "two": ["a b", "c x"]}.items()
    ... }
    >>> figure = plots.differences(metrics.compare(systems))
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['two against one']

    Args:
        compared: ``differences`` of a report, or what :func:`speechlab.metrics.compare`, its relatives or
            :func:`speechlab.metrics.judge` returned. Languages and conditions are in the names of rows if there are
            several.
        language: ISO 639-1 code of the names, which determines the shapes of Chinese and Japanese letters.
        width: Width in inches; the height follows from the rows.
        ax: Axes to draw in, of a figure of yours; None for a new figure.

    Returns:
        A matplotlib ``Figure``, as from :func:`timeline`, with one axes for each measure.

    Raises:
        InvalidRequestError: A column is missing or is not numeric, or there are no rows.
    """
    check_width(width)
    needed = ("difference", "low", "high", "p_holm")
    check_table(
        compared, "a", "b", "measure", "unit", "verdict", *needed, argument="compared", hint=_DIFFERENCES_HINT
    )
    where = [name for name in ("condition", "language") if compared[name].nunique() > 1]
    measure_tables = [measure_table for _, measure_table in compared.groupby("measure", sort=False)]
    figure, panels = _build_row_panels(width, [len(measure_table) for measure_table in measure_tables], ax)
    for axes, measure_table in zip(panels, measure_tables, strict=True):
        unit = measure_table["unit"].iloc[0]
        values, low, high = (
            (1 if unit in {POINTS, RATIO} else 100) * to_numbers(measure_table, name) for name in needed[:3]
        )
        _draw_points_and_intervals(
            axes,
            values,
            low,
            high,
            choose_style(0),
            0.0,
            full=build_significance_mask(measure_table),
            hollow=True,
        )
        axes.axvline(1 if unit == RATIO else 0, color=choose_tone("ink"), linewidth=1)
        widen_scale(axes, _LEAST_RATIO if unit == RATIO else _LEAST_POINTS)
        chances = to_numbers(measure_table, "p_holm")
        notes = [
            f"{format_difference(value, unit)}{'' if unit == RATIO or value != value else ' points'}, "
            + ("no test" if p != p else "p < 0.001" if p < 0.001 else f"p = {p:.3f}")
            for value, p in zip(to_numbers(measure_table, "difference"), chances, strict=True)
        ]
        names = [_name_difference(row, where) for row in measure_table.to_dict("records")]
        draw_row_names_and_notes(axes, names, notes, choose_fonts("".join(names), language))
        first = measure_table.to_dict("records")[0]
        draw_scale(
            axes, _format_difference_label(str(first["measure"]), str(unit), _describe_left_side(first))
        )
    return figure


def _describe_left_side(row: Mapping[Any, Any]) -> str:
    """Return what a difference below zero means."""
    if "group" not in row:
        return "the first has fewer"
    later = str(row["b"]).removeprefix(f"{row['group']}: ")
    return "fewer now" if later == "now" else f"{later} has fewer"


def _name_difference(row: Mapping[Any, Any], where: Sequence[str]) -> str:
    """Return the name of a difference: its group where all are of the same two reports, else its two systems."""
    if "group" in row:
        return str(row["group"])
    places = "".join(f", {row[name]}" for name in where if row[name])
    return f"{wrap_name(str(row['b']), lines=1)} against {row['a']}{places}"


def _check_highlight(highlight: Sequence[bool] | None, table: pd.DataFrame) -> NDArray[np.bool_]:
    """Return which rows are colored."""
    if highlight is None:
        return np.ones(len(table), dtype=bool)
    if len(highlight) != len(table):
        raise build_argument_error("highlight", highlight, f"True or False for each of the {len(table)} rows")
    return np.array(highlight, dtype=bool)


def _assign_styles_to_rows(
    part: pd.DataFrame, keys: Sequence[Any], number: int, *, alone: bool
) -> list[tuple[Style, NDArray[np.bool_]]]:
    """The styles and their rows: one for each system where a single rate is drawn, otherwise one for the rate."""
    names = part["system"].astype(str).to_numpy() if alone and "system" in keys else np.zeros(len(part))
    each = list(dict.fromkeys(names.tolist()))
    return [(choose_style(number + at), names == name) for at, name in enumerate(each)]


def _format_difference_label(measure: str, unit: str, fewer: str) -> str:
    if unit == RATIO:
        return f"ratio of the {measure}; below 1, the first named is faster"
    if unit == POINTS:
        return f"difference in points of {_SCORES.get(measure, measure)}"
    what = "error rates" if measure == "error rate" else measure
    return f"difference of {what} in percentage points; left of 0: {fewer}"


def _format_rate_label(rate: str, unit: str) -> str:
    if rate in {"error_rate", "ranking_rate"}:
        return UNITS.get(unit, "error rate")
    return _LABELS.get(rate, str(rate))


def _build_row_panels(
    width: float, rows: list[int], ax: Axes | None, inches: float = _ROW_INCHES, labels: Sequence[str] = ()
) -> tuple[PaperFigure, list[Axes]]:
    """Return a figure with a panel for each number of rows."""
    heights = [max(1, count) * inches + 0.1 for count in rows]
    legend = compute_legend_size(width, labels)[1] if labels else 0
    return build_panels(width, heights, ax, more=0.5 * len(rows) + legend)


def _to_interval_ends(part: pd.DataFrame, rate: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    bounds = part.reindex(columns=[f"{rate}_low", f"{rate}_high"])
    return to_numbers(bounds, f"{rate}_low"), to_numbers(bounds, f"{rate}_high")


def _draw_points_and_intervals(
    axes: Axes,
    values: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    style: Style,
    offset: float,
    *,
    full: NDArray[np.bool_] | None = None,
    hollow: bool = False,
) -> None:
    """Draw marks with their intervals: those that are not full in gray, and hollow if they are no finding."""
    places = np.arange(len(values)) + offset
    filled = np.ones(len(values), dtype=bool) if full is None else full
    finite, gray, paper = np.isfinite(values), choose_tone("quiet"), choose_tone("paper")
    for rows, color, face in ((filled, style.color, style.color), (~filled, gray, paper if hollow else gray)):
        chosen = finite & rows
        if not chosen.any():  # a line without points has no position, which the layout needs
            continue
        axes.hlines(places[chosen], low[chosen], high[chosen], color=color, linewidth=1.6)
        axes.plot(
            values[chosen], places[chosen], style.marker, color=color, markerfacecolor=face,
            markersize=6, linestyle="none", clip_on=False,
        )  # fmt: skip


def _format_rates_and_count(values: list[float], count: float, *, sure: bool) -> str:
    percentages = " / ".join("–" if value != value else f"{value:.1%}" for value in values)
    many = f"n = {count:.0f}" if count == count else "n = 0"
    return f"{percentages}, {many}" + ("" if sure or values[0] != values[0] else ", range unknown")
