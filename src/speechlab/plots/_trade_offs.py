"""Errors against prices: what is worth its price."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter

from speechlab._arguments import is_missing
from speechlab.plots._figure import (
    SMALL_PT,
    UNITS,
    PaperFigure,
    build_panels,
    check_table,
    check_width,
    choose_fonts,
    choose_style,
    choose_tone,
    draw_scale,
    to_numbers,
    wrap_name,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_HINT = "Pass the table 'costs' of a study with prices"
_COLUMNS = ("system", "price", "error_rate", "time_s", "on_front", "unit")


def trade_offs(
    costs: pd.DataFrame,
    *,
    by: str = "language",
    label: str = "price",
    language: str | None = None,
    width: float = 6.0,
    ax: Axes | None = None,
) -> PaperFigure:
    """Draw the error rates of systems against their prices, with their times where they are known.

    A filled mark is on the front: no other system is as good in price, errors and time, and better in one of them.
    The line connects these, from the cheapest on.

    Args:
        costs: The table ``costs`` of a study with prices: ``system``, ``price``, ``error_rate``, ``time_s``,
            ``on_front`` and ``unit``.
        by: Column of the panels.
        label: What the price is of, and its currency.
        language: ISO 639-1 code of the names, which determines the shapes of Chinese and Japanese letters.
        width: Width in inches.
        ax: Axes to draw in, of a figure of yours; None for a new figure.

    Returns:
        A matplotlib ``Figure``, as from :func:`timeline`, with one axes for each panel.

    Raises:
        InvalidRequestError: A column is missing or is not numeric, or no system has a price and a rate.
    """
    check_width(width)
    check_table(costs, *_COLUMNS, by, argument="costs", hint=_HINT)
    known = np.isfinite(to_numbers(costs, "price")) & np.isfinite(to_numbers(costs, "error_rate"))
    rows = costs[known]
    check_table(rows, argument="costs", hint="No system has a price and a rate")
    names = list(dict.fromkeys(rows["system"].astype(str)))
    panels = list(dict.fromkeys(rows[by].astype(str)))
    figure, axes_of = build_panels(width, [3.0] * len(panels), ax)
    for axes, panel in zip(axes_of, panels, strict=True):
        _draw_panel(axes, rows[rows[by].astype(str) == panel], names, language)
        if len(panels) > 1:
            axes.set_title(panel, fontsize=SMALL_PT, loc="left")
        axes.set_xlabel(label, fontsize=SMALL_PT)
        units = list(dict.fromkeys(rows["unit"].astype(str)))
        draw_scale(axes, UNITS.get(units[0], "error rate") if len(units) == 1 else "error rate", "y")
    return figure


def _draw_panel(axes: Axes, rows: pd.DataFrame, names: list[str], language: str | None) -> None:
    fonts = choose_fonts("".join(names), language)
    front = rows[rows["on_front"].astype(bool)].sort_values("price", kind="stable")
    axes.plot(front["price"], front["error_rate"], color=choose_tone("line"), linewidth=0.8, zorder=1)
    for row in rows.to_dict("records"):
        style = choose_style(names.index(str(row["system"])))
        face = style.color if row["on_front"] else "none"
        place = (float(row["price"]), float(row["error_rate"]))
        axes.scatter(*place, color=face, edgecolors=style.color, marker=style.marker, zorder=2)
        time = "" if is_missing(row["time_s"]) else f"\n{row['time_s']:.2f} s"
        text = f"{wrap_name(str(row['system']), lines=1)}{time}"
        axes.annotate(
            text, place, (5, 4), textcoords="offset points", fontsize=SMALL_PT, color=choose_tone("ink"),
            fontfamily=fonts, parse_math=False,
        )  # fmt: skip
    axes.set_xlim(0, 1.25 * float(rows["price"].max()) or None)
    axes.set_ylim(0, 1.2 * float(rows["error_rate"].max()) or None)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.4g}%"))
