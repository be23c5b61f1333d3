"""Errors against prices: what is worth its price."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter

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
    from numpy.typing import NDArray

_HINT = "Pass the summary of a study with prices"


def trade_offs(
    table: pd.DataFrame,
    *,
    price: str = "price",
    rate: str = "error_rate",
    time: str | None = None,
    by: str = "language",
    label: str = "price",
    language: str | None = None,
    width: float = 6.0,
    ax: Axes | None = None,
) -> PaperFigure:
    """Draw the error rates of systems against their prices, with their times where they are known.

    A filled mark is on the front: no other system is as good in price, errors and time, and better in one of them.
    The line connects these, from the cheapest on. A system that ``failed`` on a larger share of its rows than another
    dominates it in nothing, and is not filled; its label has the number.

    Args:
        table: The summary of a study with prices; of several rows of a ``system`` and panel the first is drawn. If it
            has ``failed`` and ``utterances``, these are numbers of rows: those without an output, and all.
        price: Column of the prices, such as ``"price_per_hour"``.
        rate: Column of the error rates.
        time: Column of the times, in seconds; None for none.
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
    columns = [price, rate, *([time] if time is not None else [])]
    check_table(table, "system", by, *columns, argument="table", hint=_HINT)
    table = table.assign(**{column: to_numbers(table, column) for column in columns})
    rows = table.drop_duplicates(["system", by]).dropna(subset=[price, rate])
    check_table(rows, argument="table", hint="No system has a price and a rate")
    names = list(dict.fromkeys(rows["system"].astype(str)))
    panels = list(dict.fromkeys(rows[by].astype(str)))
    figure, axes_of = build_panels(width, [3.0] * len(panels), ax)
    for axes, panel in zip(axes_of, panels, strict=True):
        of_panel = rows[rows[by].astype(str) == panel].set_index("system")
        _draw_panel(axes, of_panel[columns], _get_failures(of_panel), names, language)
        if len(panels) > 1:
            axes.set_title(panel, fontsize=SMALL_PT, loc="left")
        axes.set_xlabel(label, fontsize=SMALL_PT)
        units = rows["unit"].unique().tolist() if "unit" in rows.columns else []
        draw_scale(axes, UNITS.get(units[0], "error rate") if len(units) == 1 else "error rate", "y")
    return figure


def _mark_front(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which rows no other one dominates: none is as low in all columns that are known, and lower in one."""
    known = values[:, ~np.isnan(values).any(axis=0)]
    as_low = (known[:, np.newaxis] <= known).all(axis=2)
    lower = (known[:, np.newaxis] < known).any(axis=2)
    return ~np.asarray((as_low & lower).any(axis=0))


def _get_failures(rows: pd.DataFrame) -> NDArray[np.float64]:
    """Return how many rows of each system failed, and how many it has; 0 of 1 where the table does not say."""
    if not {"failed", "utterances"} <= {*rows.columns}:
        return np.tile([0.0, 1.0], (len(rows), 1))
    return np.column_stack([np.nan_to_num(to_numbers(rows, name)) for name in ("failed", "utterances")]).clip(
        min=[0, 1]
    )


def _draw_panel(
    axes: Axes,
    rows: pd.DataFrame,
    failures: NDArray[np.float64],
    names: list[str],
    language: str | None,
) -> None:
    fonts = choose_fonts("".join(names), language)
    values = rows.to_numpy(dtype=np.float64)
    shares = failures[:, 0] / failures[:, 1]
    is_front = _mark_front(np.column_stack([values, shares])) & (shares == shares.min())
    front = values[is_front][values[is_front, 0].argsort(kind="stable")]
    axes.plot(front[:, 0], front[:, 1], color=choose_tone("line"), linewidth=0.8, zorder=1)
    for name, (x, y, *times), (failed, count), filled in zip(
        rows.index.astype(str), values.tolist(), failures.astype(int).tolist(), is_front, strict=True
    ):
        style = choose_style(names.index(name))
        face = style.color if filled else "none"
        axes.scatter(x, y, color=face, edgecolors=style.color, marker=style.marker, zorder=2, clip_on=False)
        text = "\n".join(
            [
                wrap_name(name, lines=1),
                *([f"{failed:,} of {count:,} failed"] if failed else []),
                *(f"{time:.2f} s" for time in times if not np.isnan(time)),
            ]
        )
        axes.annotate(
            text, (x, y), (5, 4), textcoords="offset points", fontsize=SMALL_PT, color=choose_tone("ink"),
            fontfamily=fonts, parse_math=False,
        )  # fmt: skip
    axes.set_xlim(0, 1.25 * float(values[:, 0].max()) or None)
    axes.set_ylim(0, 1.2 * float(values[:, 1].max()) or None)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.4g}%"))
