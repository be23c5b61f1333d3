"""Calibration: whether words with a confidence of 0.8 are right in 80 of 100 cases."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from speechlab._arguments import (
    build_argument_error,
    convert_table,
    is_pandas_frame,
    is_whole_number,
    require_columns,
)
from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from numpy.typing import NDArray


_MOST_BINS = 1000


@dataclass(frozen=True, repr=False)
class Calibration:
    """Agreement of confidences with correctness.

    Attributes:
        count: Values with a confidence.
        missing: Values without one, which nothing below counts.
        accuracy: Share of the values that are right; NaN without values, as all below.
        mean_confidence: Mean confidence; above ``accuracy``, the system is too sure.
        ece: Expected calibration error: mean distance of accuracy and mean confidence in a bin, weighted by the
            number of values in the bin. From 0 (calibrated) to 1. It depends on the bins.
        brier_score: Mean square of confidence minus 1 (right) or 0 (wrong), from 0 to 1.
        normalized_cross_entropy: Information that the confidences add to knowing the accuracy, from minus infinity (a
            word of confidence 1 is wrong) to 1; NaN if all are right or all are wrong.
        aurc: Area under the curve of risk and coverage: the mean, over all numbers of values that might be kept by
            confidence, of the share of wrong ones among them. Values of equal confidence are kept in random order.
        reliability: A row for each bin that has values: ``low``, ``high``, ``count``, ``confidence`` (mean) and
            ``accuracy``. A bin includes its low end; the last one also 1.
        risk_coverage: A row for each distinct confidence, from the highest: ``threshold``, ``coverage`` (share of the
            values with at least this confidence) and ``risk`` (share of wrong ones among them).

    Example:
        >>> import pandas as pd
        >>> words = pd.DataFrame({"correct": [True, True, False, True], "confidence": [0.9, 0.9, 0.6, 0.6]})
        >>> found = calibration(words)
        >>> round(found.ece, 3), round(found.aurc, 3)
        (0.1, 0.104)
    """

    count: int
    missing: int
    accuracy: float
    mean_confidence: float
    ece: float
    brier_score: float
    normalized_cross_entropy: float
    aurc: float
    reliability: pd.DataFrame = field(compare=False)
    risk_coverage: pd.DataFrame = field(compare=False)

    def __repr__(self) -> str:
        unknown = f", {self.missing} without" if self.missing else ""
        return (
            f"<Calibration of {self.count} confidences{unknown}: mean {self.mean_confidence:.3f}, right "
            f"{self.accuracy:.3f}; ECE {self.ece:.4f}, AURC {self.aurc:.4f}>"
        )


def calibration(
    table: pd.DataFrame, *, correct: str = "correct", confidence: str = "confidence", bins: int = 10
) -> Calibration:
    """Compare confidences with correctness, such as the words of :func:`word_times`.

    Sources: ECE by equal bins, C. Guo et al., On calibration of modern neural networks (ICML 2017); risk and
    coverage, Y. Geifman and R. El-Yaniv, Selective classification for deep neural networks (NeurIPS 2017); G. W.
    Brier, Verification of forecasts expressed in terms of probability (1950); normalized cross entropy: NIST.

    Args:
        table: A row for each word, or for anything else that is right or wrong.
        correct: Column of truth values.
        confidence: Column of numbers from 0 to 1. Rows without one are counted as missing.
        bins: Number of equally wide bins, 1 to 1,000.

    Raises:
        InvalidRequestError: A column is missing or has other values, or ``bins`` is not such a number.

    Example:
        >>> import pandas as pd
        >>> calibration(pd.DataFrame({"correct": [True, False], "confidence": [0.9, 0.3]}))
        <Calibration of 2 confidences: mean 0.600, right 0.500; ECE 0.2000, AURC 0.2500>
    """
    table = convert_table(table)
    if not is_pandas_frame(table):
        raise build_argument_error("table", table, "a table with a row for each word")
    if not is_whole_number(bins) or not 1 <= bins <= _MOST_BINS:
        raise build_argument_error("bins", bins, f"a whole number from 1 to {_MOST_BINS}")
    table = require_columns(
        table, correct, confidence, argument="table", hint="Name the right one, as in confidence='score'"
    )
    sure = _to_confidences(table[confidence], confidence)
    right = table[correct]
    has_confidence = ~np.isnan(sure)
    if not right[has_confidence].isin([True, False]).all():
        message = f"column {correct!r} holds {right.dtype}; give True and False"
        raise InvalidRequestError(message, parameter="correct")
    hits, sure = right[has_confidence].to_numpy(dtype=bool), sure[has_confidence]
    count = len(sure)

    place = np.searchsorted(np.arange(1, bins) / bins, sure, side="right")
    sizes = np.bincount(place, minlength=bins)
    used = np.flatnonzero(sizes)
    means, rates = (
        np.bincount(place, weights=side, minlength=bins)[used] / sizes[used] for side in (sure, hits)
    )
    reliability = pd.DataFrame(
        {
            "low": used / bins,
            "high": (used + 1) / bins,
            "count": sizes[used],
            "confidence": means,
            "accuracy": rates,
        }
    )
    apart = float(np.sum(sizes[used] * np.abs(rates - means)))
    curve, area = _compute_risk_coverage(hits, sure)
    return Calibration(
        count,
        int((~has_confidence).sum()),
        accuracy=_divide_or_nan(hits.sum(), count),
        mean_confidence=_divide_or_nan(sure.sum(), count),
        ece=_divide_or_nan(apart, count),
        brier_score=_divide_or_nan(np.square(sure - hits).sum(), count),
        normalized_cross_entropy=_compute_normalized_cross_entropy(hits, sure),
        aurc=area,
        reliability=reliability,
        risk_coverage=curve,
    )


def _divide_or_nan(total: float, count: int) -> float:
    return float(total) / count if count else math.nan


def _to_confidences(column: pd.Series, name: str) -> NDArray[np.float64]:
    try:
        values = pd.to_numeric(column).astype("Float64").to_numpy(dtype="float64", na_value=np.nan)
    except (TypeError, ValueError) as error:
        message = f"column {name!r} holds {column.dtype}; give numbers from 0 to 1"
        raise InvalidRequestError(message, parameter="confidence") from error
    outside = (values < 0) | (values > 1)
    if outside.any():
        message = f"column {name!r} holds {values[outside][0]:g}; give numbers from 0 to 1"
        raise InvalidRequestError(message, parameter="confidence")
    return np.asarray(values)


def _compute_risk_coverage(hits: NDArray[np.bool_], sure: NDArray[np.float64]) -> tuple[pd.DataFrame, float]:
    """Return the curve of risk and coverage, and the area below it."""
    levels, where = np.unique(-sure, return_inverse=True)
    sizes = np.bincount(where, minlength=len(levels))
    errors_at = np.bincount(where, weights=~hits, minlength=len(levels))
    covered, errors = sizes.cumsum(), errors_at.cumsum()
    # Within a level, wrong values are spread evenly, as the mean over all orders has them.
    number = np.arange(1, len(sure) + 1)
    level = np.repeat(np.arange(len(levels)), sizes)
    expected = errors[level] - errors_at[level] * (covered[level] - number) / sizes[level]
    area = float(np.mean(expected / number)) if len(sure) else math.nan
    curve = {"threshold": -levels, "coverage": covered / max(len(sure), 1), "risk": errors / covered}
    return pd.DataFrame(curve), area


def _compute_normalized_cross_entropy(hits: NDArray[np.bool_], sure: NDArray[np.float64]) -> float:
    """Return how far the entropy of right and wrong falls if the confidences are known, over that entropy."""
    right, count = int(hits.sum()), len(hits)
    if right in {0, count}:
        return math.nan
    share = right / count
    most = -right * math.log2(share) - (count - right) * math.log2(1 - share)
    with np.errstate(divide="ignore"):
        log_probability = float(np.log2(np.where(hits, sure, 1 - sure)).sum())
    return (most + log_probability) / most
