"""The figure of a calibration: how often each level of confidence is right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.ticker import PercentFormatter

from speechlab.errors import InvalidRequestError
from speechlab.plots._figure import INK, LINE, SHADE, SMALL_PT, check_width, new_figure

if TYPE_CHECKING:
    from speechlab.metrics import Calibration
    from speechlab.plots._figure import PaperFigure


def reliability(calibration: Calibration, *, width: float = 3.4) -> PaperFigure:
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

    Returns:
        A matplotlib ``Figure``, as of :func:`timeline`.

    Raises:
        InvalidRequestError: The argument is not a calibration, or has no values.
    """
    bins = getattr(calibration, "reliability", None)
    if bins is None or not len(bins):
        message = f"calibration is {calibration!r:.60}; pass what speechlab.metrics.calibration returned, with values"
        raise InvalidRequestError(message, parameter="calibration")
    figure = new_figure(check_width(width), 0.9 * width)
    axes = figure.subplots()
    axes.bar(
        bins["low"], bins["accuracy"], bins["high"] - bins["low"], align="edge", color=SHADE, edgecolor=LINE
    )
    axes.plot([0, 1], [0, 1], color=LINE, linestyle="--", linewidth=1)
    axes.plot(bins["confidence"], bins["accuracy"], color=INK, marker="o", markersize=4, linewidth=1)
    for middle, count in zip((bins["low"] + bins["high"]) / 2, bins["count"], strict=True):
        axes.annotate(
            f"{count:,}", (middle, 0), (0, 3), textcoords="offset points", ha="center", fontsize=SMALL_PT - 1
        )
    axes.set(xlim=(0, 1), ylim=(0, 1.08), xlabel="confidence", ylabel="right")
    axes.set_title(f"ECE {calibration.ece:.3f}, n = {calibration.count:,}", fontsize=SMALL_PT, loc="left")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1))
    return figure
