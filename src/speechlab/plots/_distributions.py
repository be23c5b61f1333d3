"""Figures of measures: error rates against a measure, distributions of a measure, and confused tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter

from speechlab._arguments import build_argument_error, is_number, is_whole_number, to_column_names
from speechlab.errors import InvalidRequestError
from speechlab.plots._figure import (
    SMALL_PT,
    UNITS,
    PaperFigure,
    build_panels,
    build_row_names,
    check_table,
    check_width,
    choose_fonts,
    choose_style,
    choose_tone,
    disable_math_text,
    draw_row_names_and_notes,
    draw_scale,
    measure_text_width,
    shorten_text,
    to_numbers,
    widen_scale,
    wrap_name,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

_BINS_HINT = "Pass what speechlab.metrics.by_bins returned"
_ROWS_HINT = (
    "Pass a table with a row for each call or recording, such as the result of a batch or a report's table"
)
_ROW_INCHES = 0.5
_NAME = "speechlab: name of the line"
# Maximum width of a token, and of a horizontal one above its column, in letters; approximate width of a
# letter.
_TOKEN, _FLAT, _LETTER_INCHES = 20, 4, 0.09
# Height of an axis relative to its highest value, so that no mark is cut off.
_ABOVE = 1.08
# Lines that cover a line, for which it is wider.
_MAX_COVERED = 3
_NAME_STEP_PT = 1.3 * SMALL_PT
# Approximate height of a panel besides its lines, in points.
_BELOW_PT = 51.0
_MEASURES = {
    "duration_s": "length (s)",
    "latency_s": "latency (s)",
    "processing_s": "time of work (s)",
    "first_word_s": "time to the first word (s)",
    "total_s": "time to the end (s)",
    "first_byte_s": "time to the first samples (s)",
    "first_audible_s": "time to the first sound (s)",
    "rtf": "real-time factor (seconds of waiting for one second of sound)",
    "snr_db": "speech above the noise (dB): loud noise at the left, quiet at the right",
    "loudness_lufs": "loudness (LUFS)",
    "rms_dbfs": "level (dBFS)",
    "morae_per_s": "speed (morae per second)",
    "characters_per_s": "speed (characters per second)",
}


def error_by_measure(
    bins: pd.DataFrame,
    column: str | None = None,
    *,
    by: str | Sequence[str] = (),
    ticks: Sequence[tuple[float, str]] = (),
    language: str | None = None,
    width: float = 6.0,
    ax: Axes | None = None,
) -> PaperFigure:
    """Draw error rates against a measure of the recordings: their length, speed or loudness.

    Each bin has a point at the mean of its rows, a horizontal line between its edges, and a vertical line for its
    interval. The number of utterances is below.

    Args:
        bins: The result of :func:`speechlab.metrics.by_bins`: ``<column>_from``, ``<column>_to``, ``<column>_mean``,
            ``unit``, ``error_rate``, ``error_rate_low``, ``error_rate_high`` and ``utterances_scored``. Bins without
            edges or without a rate are left out.
        column: The measure; None for the only one of the table.
        by: Column or columns that identify a line, for the concatenated tables of several groups.
        ticks: Places on the scale of the measure with their labels; empty for round numbers.
        language: ISO 639-1 code of the names, which determines the shapes of Chinese and Japanese letters.
        width: Width in inches.
        ax: Axes to draw in, of a figure of yours; None for a new figure.

    Returns:
        A matplotlib ``Figure``, as from :func:`timeline`, with one axes for each unit.

    Raises:
        InvalidRequestError: A column is missing or is not numeric, or no bin has a rate.
    """
    check_width(width)
    keys = to_column_names(by, "by")
    rated = ("unit", "error_rate", "error_rate_low", "error_rate_high", "utterances_scored")
    check_table(bins, *rated, *keys, argument="bins", hint=_BINS_HINT)
    measure = _resolve_measure(bins) if column is None else column
    edge_columns = [f"{measure}_{end}" for end in ("from", "to", "mean")]
    check_table(bins, *edge_columns, argument="bins", hint=_BINS_HINT)
    rated_bins = bins[
        np.isfinite(to_numbers(bins, "error_rate")) & np.isfinite(to_numbers(bins, edge_columns[2]))
    ]
    check_table(rated_bins, argument="bins", hint="No bin with edges has a rate; score the rows first")
    units = list(dict.fromkeys(rated_bins["unit"].astype(str)))
    lines = len(set(build_row_names(rated_bins, keys))) if keys else 0
    height = max(2.8, 0.9 + _NAME_STEP_PT * lines / 72)  # room for the names of all lines
    figure, panels = build_panels(width, [height] * len(units), ax)
    for axes, unit in zip(panels, units, strict=True):
        unit_bins = rated_bins[rated_bins["unit"].astype(str) == unit]
        names = np.array(build_row_names(unit_bins, keys) if keys else [""] * len(unit_bins))
        for number, name in enumerate(dict.fromkeys(names.tolist())):
            above = len(set(names.tolist())) - number - 1
            _draw_binned_rates(
                axes, unit_bins[names == name], edge_columns, number, alone=not keys, above=above
            )
        highest = np.nanmax([to_numbers(unit_bins, "error_rate"), to_numbers(unit_bins, "error_rate_high")])
        axes.set_ylim(0, _ABOVE * highest or None)
        if keys:
            _draw_line_names(
                axes, unit_bins.assign(**{_NAME: names}), edge_columns[2], language, 72 * height - _BELOW_PT
            )
        axes.margins(x=0.06 if not keys else 0.02)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.4g}%"))
        axes.set_xlabel(_MEASURES.get(measure, measure), fontsize=SMALL_PT)
        if ticks:
            axes.set_xticks([place for place, _ in ticks], [label for _, label in ticks])
        draw_scale(axes, UNITS.get(unit, "error rate"), "y")
    return figure


def distributions(
    table: pd.DataFrame,
    column: str = "latency_s",
    by: str | Sequence[str] = (),
    *,
    line: float | None = None,
    log: bool = False,
    language: str | None = None,
    width: float = 7.0,
    ax: Axes | None = None,
) -> PaperFigure:
    """Draw the distribution of a measure by group: latency, speed, loudness or any other.

    Each group has a row, in the order of the table: a point for each value, a box from the first to the third
    quartile, a line for the median, and the number of values. Rows without a value are left out. Leave out rows from
    a store yourself, because their times are those of an earlier run.

    >>> import pandas as pd
    >>> from speechlab import plots
    >>> calls = pd.DataFrame({"voice": ["a", "a", "b"], "latency_s": [0.2, 0.4, 0.5]})
    >>> figure = plots.distributions(calls, by="voice")
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['median 0.3 s, n = 2', 'median 0.5 s, n = 1']

    Args:
        table: One row for each call or recording, with ``column`` and the columns of ``by``.
        column: Column of the numbers, such as ``"latency_s"``, ``"first_audible_s"`` or ``"rtf"``.
        by: Column or columns that identify a group; none for all rows together.
        line: Position of a reference line, such as 1.0 for a real-time factor; None for no line.
        log: Whether the scale is logarithmic, which requires values above 0.
        language: ISO 639-1 code of the names, which determines the shapes of Chinese and Japanese letters.
        width: Width in inches; the height follows from the groups.
        ax: Axes to draw in, of a figure of yours; None for a new figure.

    Returns:
        A matplotlib ``Figure``, as from :func:`timeline`.

    Raises:
        InvalidRequestError: A column is missing or is not numeric, or no row has a value that can be drawn.
    """
    check_width(width)
    if line is not None and (not is_number(line) or not np.isfinite(line)):
        raise build_argument_error("line", line, "a number, or None")
    keys = to_column_names(by, "by")
    check_table(table, column, *keys, argument="table", hint=_ROWS_HINT)
    values = to_numbers(table, column)
    finite = np.isfinite(values)
    if log and (values[finite] <= 0).any():
        message = f"{column!r} has values of 0 or less, which a logarithmic scale cannot show; leave out log"
        raise InvalidRequestError(message, parameter="log")
    if not finite.any():
        raise InvalidRequestError(f"no row has a value in {column!r}. {_ROWS_HINT}", parameter=str(column))
    names = np.array(build_row_names(table, keys) if keys else ["all"] * len(table), dtype=object)
    groups = {name: values[finite & (names == name)] for name in dict.fromkeys(names.tolist())}
    groups = {name: group_values for name, group_values in groups.items() if len(group_values)}
    figure, (axes,) = build_panels(width, [len(groups) * _ROW_INCHES + 0.55], ax)
    if log:
        axes.set_xscale("log")
    for place, group_values in enumerate(groups.values()):
        _draw_quartiles_and_points(axes, place, group_values)
    if line is not None:
        axes.axvline(line, color=choose_tone("line"), linewidth=1, linestyle="--")
    unit = " s" if str(column).endswith("_s") else ""
    notes = [
        f"median {float(np.median(group_values)):.3g}{unit}, n = {len(group_values)}"
        for group_values in groups.values()
    ]
    draw_row_names_and_notes(axes, list(groups), notes, choose_fonts("".join(groups), language))
    if not log:
        widen_scale(axes, 0.2 * float(np.abs(values[finite]).max()))
    draw_scale(axes, _MEASURES.get(column, str(column)))
    return figure


def confusions(
    table: pd.DataFrame,
    *,
    most: int = 20,
    unit: str | None = None,
    language: str | None = None,
    width: float | None = None,
    ax: Axes | None = None,
) -> PaperFigure:
    """Draw the confusions of tokens as a matrix.

    Rows are tokens of the reference, columns are tokens of the hypothesis, both from the most frequent errors. Each
    cell has its count, and is darker for a higher count. Deletions are in the first column and insertions in the
    first row, both labeled ``∅``.

    Args:
        table: The result of :func:`speechlab.metrics.confusions`: ``unit``, ``operation``, ``reference``,
            ``hypothesis`` and ``count``.
        most: Number of the most frequent errors whose tokens are rows and columns.
        unit: Unit to draw, such as ``"char"``; required if the table has several.
        language: ISO 639-1 code of the tokens, which determines the shapes of Chinese and Japanese letters.
        width: Width in inches; None for the width that the columns need.
        ax: Axes to draw in, of a figure of yours; None for a new figure.

    Returns:
        A matplotlib ``Figure``, as from :func:`timeline`.

    Raises:
        InvalidRequestError: A column is missing, there is no error to draw, or the unit is not given.
    """
    hint = "Pass what speechlab.metrics.confusions returned"
    check_table(table, "unit", "operation", "reference", "hypothesis", "count", argument="table", hint=hint)
    if not is_whole_number(most) or not 1 <= most <= 100:
        raise build_argument_error("most", most, "a whole number from 1 to 100")
    units = list(dict.fromkeys(table["unit"].astype(str)))
    if unit is None and len(units) > 1:
        message = f"the table counts by {' and by '.join(units)}; choose one, as in unit={units[0]!r}"
        raise InvalidRequestError(message, parameter="unit")
    if unit is not None and unit not in units:
        raise build_argument_error("unit", unit, f"one of {', '.join(map(repr, units))}")
    counted = table[table["unit"].astype(str) == (units[0] if unit is None else unit)]
    counts = to_numbers(counted, "count")
    reference_tokens, hypothesis_tokens = (
        counted[name].astype(object).where(counted[name].notna(), "").tolist()
        for name in ("reference", "hypothesis")
    )
    top = np.argsort(-counts, kind="stable")[:most].tolist()
    rows = sorted(dict.fromkeys(reference_tokens[at] for at in top), key=bool)  # the empty token first
    columns = sorted(dict.fromkeys(hypothesis_tokens[at] for at in top), key=bool)
    matrix = np.zeros((len(rows), len(columns)))
    for reference, hypothesis, count in zip(reference_tokens, hypothesis_tokens, counts, strict=True):
        if reference in rows and hypothesis in columns:
            matrix[rows.index(reference), columns.index(hypothesis)] += count
    row_labels, column_labels = (
        [shorten_text(str(reference), _TOKEN) or "∅" for reference in tokens] for tokens in (rows, columns)
    )
    widest, highest = (max(map(measure_text_width, tokens)) for tokens in (row_labels, column_labels))
    upright = highest > _FLAT
    inches = 1.0 + _LETTER_INCHES * widest + 0.42 * len(columns) if width is None else check_width(width)
    top = _LETTER_INCHES * highest if upright else 0.2
    figure, (axes,) = build_panels(max(2.6, inches), [0.8 + top + 0.32 * len(rows)], ax)
    families = choose_fonts("".join([*rows, *columns]), language)
    _draw_matrix(axes, matrix)
    axes.set_xticks(range(len(columns)), column_labels, fontfamily=families, rotation=90 if upright else 0)
    axes.set_yticks(range(len(rows)), row_labels, fontfamily=families)
    disable_math_text([*axes.get_xticklabels(), *axes.get_yticklabels()])
    return figure


def _resolve_measure(bins: pd.DataFrame) -> str:
    names = [str(name) for name in bins.columns]
    measures = [
        name.removesuffix("_from")
        for name in names
        if name.endswith("_from") and {f"{name[:-5]}_to", f"{name[:-5]}_mean"} <= set(names)
    ]
    if len(measures) == 1:
        return measures[0]
    have = (
        f"the measures {', '.join(measures)}; choose one with column="
        if measures
        else f"no bins. {_BINS_HINT}"
    )
    raise InvalidRequestError(f"the table has {have}", parameter="column")


def _draw_binned_rates(
    axes: Axes, part: pd.DataFrame, ends: list[str], number: int, *, alone: bool, above: int
) -> None:
    """Draw one line, so much wider than the ``above`` later ones that it is seen where these cover it."""
    style = choose_style(number)
    left, right, middle = (to_numbers(part, end) for end in ends)
    rate, low, high = (to_numbers(part, f"error_rate{end}") for end in ("", "_low", "_high"))
    line: dict[str, Any] = {"color": style.color, "linewidth": 1.2}
    if alone:
        axes.hlines(rate, left, right, color=style.color, linewidth=1)
    axes.vlines(middle, low, high, **line)
    wider = {
        "linewidth": 1.2 + 1.6 * min(above, _MAX_COVERED),
        "markersize": 5 + 2 * min(above, _MAX_COVERED),
    }
    axes.plot(middle, rate, marker=style.marker, linestyle="-" if above else style.dash, **{**line, **wider})
    if alone:
        place: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "ha": "center"}
        for at, count in zip(middle, to_numbers(part, "utterances_scored"), strict=True):
            axes.annotate(f"n = {count:.0f}", (at, 0.02), fontsize=SMALL_PT - 1, **place)


def _draw_line_names(
    axes: Axes, part: pd.DataFrame, middle: str, language: str | None, height_pt: float
) -> None:
    """Write the name of each line at its end, and move names apart that would overlap."""
    top = axes.get_ylim()[1]
    lasts = (
        part.groupby(_NAME, sort=False).tail(1).sort_values("error_rate", kind="stable").to_dict("records")
    )
    own = [float(row["error_rate"]) / top * height_pt for row in lasts]
    places: list[float] = []
    for place in own:
        places.append(max(place, places[-1] + _NAME_STEP_PT if places else place))
    above = height_pt
    for number in reversed(range(len(places))):  # no name above the panel
        places[number] = min(places[number], above)
        above = places[number] - _NAME_STEP_PT
    series = list(dict.fromkeys(part[_NAME].tolist()))
    for row, place, written in zip(lasts, own, places, strict=True):
        name = wrap_name(str(row[_NAME]), lines=1)
        lead = {
            "arrowstyle": "-", "color": choose_style(series.index(row[_NAME])).color, "linewidth": 0.8,
            "shrinkA": 1, "shrinkB": 3, "relpos": (0, 0.5),
        }  # fmt: skip
        axes.annotate(
            name, (float(row[middle]), float(row["error_rate"])), xytext=(16, written - place),
            textcoords="offset points", va="center", fontsize=SMALL_PT, fontfamily=choose_fonts(name, language),
            annotation_clip=False, parse_math=False, arrowprops=lead,
            path_effects=[withStroke(linewidth=2.5, foreground=choose_tone("paper"))],
        )  # fmt: skip


def _draw_quartiles_and_points(axes: Axes, place: int, found: NDArray[np.float64]) -> None:
    low, middle, high = np.quantile(found, [0.25, 0.5, 0.75])
    axes.barh(
        place,
        high - low,
        left=low,
        height=0.5,
        color=choose_tone("bar"),
        edgecolor=choose_tone("ink"),
        linewidth=0.7,
        zorder=1,
    )
    # Points are spread in a fixed pattern, so that the same table gives the same picture.
    offset = (np.arange(len(found)) * 0.618_034 % 1 - 0.5) * 0.4
    axes.plot(
        found,
        place + offset,
        "o",
        color=choose_tone("line"),
        markersize=2.5,
        alpha=0.6,
        linestyle="none",
        zorder=2,
    )
    axes.vlines(middle, place - 0.3, place + 0.3, color=choose_tone("ink"), linewidth=2, zorder=3)


def _draw_matrix(axes: Axes, matrix: NDArray[np.float64]) -> None:
    top = matrix.max()
    axes.imshow(matrix, cmap="gray_r", vmin=0, vmax=1.3 * top, aspect="auto")
    for row, column in zip(*np.nonzero(matrix), strict=True):
        count = matrix[row, column]
        color = "white" if count > 0.6 * top else choose_tone("ink")
        axes.text(column, row, f"{count:.0f}", ha="center", va="center", fontsize=SMALL_PT, color=color)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0, labelsize=SMALL_PT + 1)
    axes.set_xlabel("recognized (∅: left out)", fontsize=SMALL_PT)
    axes.set_ylabel("said (∅: put in)", fontsize=SMALL_PT)
    rows, columns = matrix.shape
    axes.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    axes.grid(which="minor", color=choose_tone("shade"), linewidth=0.8)
    axes.tick_params(which="minor", length=0)
    axes.spines[:].set_visible(False)
