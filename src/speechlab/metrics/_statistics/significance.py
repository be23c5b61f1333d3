"""The exact sign-flip test of two systems' errors, and the table of differences with its verdicts.

The sign-flip test asks whether chance alone could have given one of two equal systems so many more errors. If two
systems are equal, their errors in a block could be swapped: the sign of each block's difference is random. The
p-value is the share of all combinations of signs whose sum is at least as far from zero as the observed sum. The
distribution of this sum is computed from its characteristic function, not drawn. So the p-value needs no seed, and
its precision does not depend on a number of draws. The test also holds for few blocks, where a normal distribution
or a bootstrap finds too many false differences. Source: R. A. Fisher, The Design of Experiments (1935), section 21;
E. S. Edgington, Randomization Tests (1995).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._arguments import build_argument_error, is_missing, require_columns
from speechlab._pandas import pd
from speechlab.display import write_minus
from speechlab.errors import InvalidRequestError
from speechlab.metrics._columns import build_table
from speechlab.metrics._inputs import check_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_MAX_STEPS = 400_000_000  # of points times distinct differences: some seconds


def compute_sign_flip_p(differences: NDArray[np.int64]) -> float:
    """Two-sided p-value of the hypothesis that the sign of each difference is random."""
    sizes = np.abs(differences[differences != 0])
    if not len(sizes):
        return 1.0
    observed = abs(int(differences.sum()))
    values, counts = np.unique(sizes, return_counts=True)
    step = int(np.gcd.reduce(values))
    values, observed = values // step, observed // step
    length = 1 << int(2 * (values * counts).sum()).bit_length()
    if length * len(values) > _MAX_STEPS:  # enough for a normal distribution of their sum
        deviation = math.sqrt(float((values.astype(np.float64) ** 2 * counts).sum()))
        return math.erfc(observed / deviation / math.sqrt(2))
    angles = np.arange(length // 2 + 1) * (2 * math.pi / length)
    transform = np.ones(len(angles))
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        transform *= np.cos(angles * value) ** count
    chances = np.fft.irfft(transform, length)
    # Sums below zero are at the end.
    p = float(chances[observed : length - observed + 1].sum())
    least = math.ldexp(1.0, 1 - len(sizes))  # the least possible p-value, which rounding may lose
    return min(max(p, least), 1.0)


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Correct p-values for their number; NaN stays NaN and does not count.

    Source: S. Holm, A simple sequentially rejective multiple test procedure (1979).

    Args:
        p: P-values, shape (tests,), from 0 to 1 or NaN.

    Returns:
        The corrected p-values in the same order, shape (tests,), at most 1.

    Raises:
        InvalidRequestError: An entry is not a p-value or NaN.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        array([0.03, 0.06, 0.06])
    """
    try:
        values = np.asarray(p, np.float64)
    except (TypeError, ValueError):
        values = np.array(math.inf)
    if values.ndim != 1 or ((values < 0) | (values > 1)).any():
        message = "p has an entry that is not a p-value; give a list of numbers from 0 to 1, or NaN"
        raise InvalidRequestError(message, parameter="p")
    out = np.full(len(values), math.nan)
    tested = np.flatnonzero(~np.isnan(values))
    order = tested[np.argsort(values[tested], kind="stable")]
    steps = values[order] * np.arange(len(order), 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return out


# What a test says of ``b``.
WORSE, BETTER, ALIKE, UNPAIRED = "worse", "better", "no difference shown", "not paired"
# The columns of each table of differences, and their types.
DIFFERENCES = {
    **dict.fromkeys(("a", "b", "language", "condition", "measure", "unit"), "string"),
    "n": "Int64",
    **dict.fromkeys(("value_a", "value_b", "difference", "low", "high", "p", "p_holm"), "float64"),
    **dict.fromkeys(("verdict", "test"), "string"),
}
# Units of scores, and of times (whose difference is a factor); rates have the unit that they are counted in.
POINTS, RATIO = "points", "ratio"
_OPPOSITES = {WORSE: BETTER, BETTER: WORSE, "slower": "faster"}


def judge(
    rows: Iterable[Mapping[str, Any]], *, level: float = 0.95, more: str = WORSE, by: str | None = None
) -> pd.DataFrame:
    """Return differences with p-values that are corrected for their number, and with verdicts.

    Args:
        rows: Of each difference the values of the columns that are known, among them ``p`` if it was tested;
            further columns are kept behind the others.
        level: A difference is significant if its corrected p-value is below ``1 - level``.
        more: Verdict on ``b`` if it has more: ``"worse"``, ``"better"``, ``"slower"`` or another word. A row can have
            its own, as ``more``.
        by: Column of the families that are corrected each by themselves; None for one family.

    Returns:
        One row for each difference, of ``b`` from ``a``:

        - ``a`` and ``b``; ``language`` and ``condition``, empty if there is none.
        - ``measure``, such as ``error rate``; ``unit``: what a rate counts (``word``, ``char``, ``reading`` …, the
          values are fractions), ``points`` for scores, ``ratio`` for times.
        - ``n``, pairs of rows; ``value_a`` and ``value_b``; ``difference``, which is ``value_b - value_a``, or of
          times the mean ratio; ``low`` and ``high``, its interval, where there is one.
        - ``p``; ``p_holm``, corrected by Holm's method; ``verdict`` on ``b``: *worse*, *better*, *slower*, *faster*,
          *no difference shown* or *not paired*; ``test``, how it was tested.

    Example:
        >>> rows = [{"a": "old", "b": "new", "difference": -0.1, "n": 9, "p": p} for p in (0.01, 0.04)]
        >>> judge(rows)[["p_holm", "verdict"]].values.tolist()
        [[0.02, 'better'], [0.04, 'better']]
    """
    check_number(level, "level", 0.01, 0.9999, "the share of draws inside")
    if not isinstance(more, str):
        raise build_argument_error("more", more, "a word, such as 'worse'")
    try:
        records = [dict(row.items()) for row in rows]
        if not all(records):
            raise ValueError(records)  # noqa: TRY301 - reported below
    except (AttributeError, TypeError, ValueError) as error:
        raise build_argument_error("rows", type(rows).__name__, "a list of dicts") from error
    words = [str(row.pop("more", more)) for row in records]
    table = build_table(records, DIFFERENCES)
    extra = [name for name in dict.fromkeys(name for row in records for name in row) if name not in table]
    for name, values in pd.DataFrame(records, columns=extra).items():
        table[name] = values
    for name in ("language", "condition"):
        table[name] = table[name].fillna("")
    table = require_columns(table, *([] if by is None else [by]), argument="rows")
    p_holm = np.full(len(table), np.nan)
    families = [range(len(table))] if by is None else table.groupby(by, dropna=False).indices.values()
    for family in families:
        p_holm[family] = holm(table["p"].to_numpy()[family])
    columns = (words, p_holm, table["difference"], table["unit"].fillna(""), table["n"].fillna(-1))
    verdicts = [
        _choose_verdict(word, p, difference - (unit == RATIO), n, level)
        for word, p, difference, unit, n in zip(*columns, strict=True)
    ]
    table["p_holm"], table["verdict"] = p_holm, pd.array(verdicts, dtype="string")
    return table


def _choose_verdict(word: str, p: float, difference: float, n: int, level: float) -> str:
    if math.isnan(p):
        return UNPAIRED if n == 0 else ALIKE
    if not p < 1 - level or not difference:
        return ALIKE
    return word if difference > 0 else _OPPOSITES.get(word, ALIKE)


def build_significance_mask(differences: pd.DataFrame) -> NDArray[np.bool_]:
    """Return whether each difference is significant, as an array."""
    verdicts = differences["verdict"].fillna(ALIKE).to_numpy(dtype=object)
    return np.logical_not(np.isin(verdicts, [ALIKE, UNPAIRED]))


def format_value(value: object, unit: object) -> str:
    """Write a value of a difference: rates in percent, scores with one decimal, times in seconds."""
    if is_missing(value):
        return "–"
    number = float(value)  # type: ignore[arg-type]  # a number
    return write_minus(
        f"{number:.1f}" if unit == POINTS else f"{number:.2f} s" if unit == RATIO else f"{number:.1%}"
    )


def format_difference(value: object, unit: object) -> str:
    """Write a difference: in points with its sign, or as a factor; 0 has no sign."""
    if is_missing(value):
        return "–"
    number = float(value)  # type: ignore[arg-type]  # a number
    if unit == RATIO:
        return f"× {number:.2f}"
    points = round(number if unit == POINTS else 100 * number, 1)
    return write_minus(f"{points:+.1f}") if points else "0.0"
