"""Figures of lines: how often each level of confidence is right, and the values of a watched set run by run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from speechlab.errors import InvalidRequestError
from speechlab.metrics import RATIO, Calibration, format_value
from speechlab.plots._figure import (
    SMALL_PT,
    PaperFigure,
    build_panels,
    check_table,
    check_width,
    choose_fonts,
    choose_style,
    choose_tone,
    compute_legend_size,
    draw_legend,
    draw_scale,
    to_numbers,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def reliability(calibration: Calibration, *, width: float = 3.4, ax: Axes | None = None) -> PaperFigure:
    """Draw how often values of each level of confidence are right.

    A bar is a bin: as high as its share of right values, with the number of its values. The mark is at the mean
    confidence; calibrated confidences have their marks on the dashed line. Below the line, the system is too sure.

    >>> import pandas as pd
    >>> from speechlab import metrics, plots
    >>> words = pd.DataFrame({"correct": [True, True, False], "confidence": [0.9, 0.95, 0.4]})
    >>> figure = plots.reliability(metrics.calibration(words))
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['1', '2']

    Args:
        calibration: The result of :func:`speechlab.metrics.calibration`.
        width: Width in inches.
        ax: Axes to draw in, of a figure of yours; None for a new figure.

    Returns:
        A matplotlib ``Figure``, as from :func:`timeline`.

    Raises:
        InvalidRequestError: The argument is not a calibration, or has no values.
    """
    bins = getattr(calibration, "reliability", None)
    if bins is None or not len(bins):
        message = f"calibration is {calibration!r:.60}; pass what speechlab.metrics.calibration returned, with values"
        raise InvalidRequestError(message, parameter="calibration")
    figure, (axes,) = build_panels(check_width(width), [0.9 * width], ax)
    axes.bar(
        bins["low"],
        bins["accuracy"],
        bins["high"] - bins["low"],
        align="edge",
        color=choose_tone("shade"),
        edgecolor=choose_tone("line"),
    )
    axes.plot([0, 1], [0, 1], color=choose_tone("line"), linestyle="--", linewidth=1)
    axes.plot(
        bins["confidence"], bins["accuracy"], color=choose_tone("ink"), marker="o", markersize=4, linewidth=1
    )
    for middle, count in zip((bins["low"] + bins["high"]) / 2, bins["count"], strict=True):
        axes.annotate(
            f"{count:,}", (middle, 0), (0, 3), textcoords="offset points", ha="center", fontsize=SMALL_PT - 1
        )
    axes.set(xlim=(0, 1), ylim=(0, 1.08), xlabel="confidence", ylabel="right")
    axes.set_title(f"ECE {calibration.ece:.3f}, n = {calibration.count:,}", fontsize=SMALL_PT, loc="left")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1))
    return figure


_HINT = "Pass tables['series'] of what speechlab.evaluate.watch returned"
_PANEL_INCHES = 1.9
# Minimum height of a scale, of rates and of seconds, so that small differences do not look large.
_LEAST = (0.02, 0.1)


def series(series: pd.DataFrame, *, width: float = 7.0, ax: Axes | None = None) -> PaperFigure:
    """Draw the values of many runs, one panel for each measure, one line for each group.

    A ring is around the run from which on a change is shown.

    >>> import pandas as pd
    >>> from speechlab import plots
    >>> rows = {"run": [1, 2], "group": "en", "measure": "error rate", "unit": "word", "value": [0.1, 0.3]}
    >>> figure = plots.series(pd.DataFrame({**rows, "changed": [False, True]}))
    >>> figure.axes[0].get_title(loc="left")
    'error rate'

    Args:
        series: ``run``, ``group``, ``measure``, ``unit``, ``value`` and ``changed``, one row for each run of each
            group and measure.
        width: Width in inches.
        ax: Axes to draw in, of a figure of yours; None for a new figure.

    Returns:
        A matplotlib ``Figure``, as from :func:`timeline`, with one axes for each measure.

    Raises:
        InvalidRequestError: A column is missing or is not numeric, or there are no rows.
    """
    check_width(width)
    check_table(series, "run", "group", "measure", "unit", "value", "changed", argument="series", hint=_HINT)
    measures = list(dict.fromkeys(series["measure"].astype(str)))
    groups = list(dict.fromkeys(series["group"].astype(str)))
    families = choose_fonts("".join(groups))
    _, above = compute_legend_size(width, groups) if len(groups) > 1 else (1, 0.0)
    figure, panels = build_panels(width, [_PANEL_INCHES] * len(measures), ax, more=above + 0.3, sharex=True)
    for axes, measure in zip(panels, measures, strict=True):
        part = series[series["measure"].astype(str) == measure]
        unit = str(part["unit"].iloc[0])
        for place, group in enumerate(groups):
            own, style = part[part["group"].astype(str) == group], choose_style(place)
            if not len(own):
                continue
            runs, values = to_numbers(own, "run"), to_numbers(own, "value")
            axes.plot(runs, values, style.marker, color=style.color, markersize=4, linestyle="-", linewidth=1)
            changed = own["changed"].to_numpy(dtype=bool)
            if changed.any():
                at = int(np.argmax(changed))
                axes.plot(
                    runs[at], values[at], "o", color=choose_tone("ink"), markersize=11, fillstyle="none"
                )
        axes.set_title(measure, fontsize=SMALL_PT, loc="left")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _, unit=unit: format_value(value, unit)))
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        draw_scale(axes, "", "y")
        axes.set_ylim(
            0, max(1.08 * float(np.nanmax(to_numbers(part, "value"), initial=0.0)), _LEAST[unit == RATIO])
        )
    panels[-1].set_xlabel("run", fontsize=SMALL_PT)
    if len(groups) > 1:
        draw_legend(figure, panels[0], groups, families)
    return figure
