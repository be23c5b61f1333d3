"""Differences as one table: of which two, how large, corrected for their number by Holm's method, and judged."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._arguments import is_missing, refused
from speechlab.metrics._arguments import check_number
from speechlab.metrics._statistics.significance import holm

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd

WORSE, BETTER, ALIKE, UNPAIRED = "worse", "better", "no difference shown", "not paired"
"""What a test says of ``b``."""
_TEXTS = ("a", "b", "language", "condition", "measure", "unit", "verdict", "test")
_NUMBERS = ("value_a", "value_b", "difference", "low", "high", "p", "p_holm")
DIFFERENCES = (
    *("a", "b", "language", "condition", "measure", "unit", "n"),
    *("value_a", "value_b", "difference", "low", "high", "p", "p_holm", "verdict", "test"),
)
"""The columns of each table of differences."""
POINTS, RATIO = "points", "ratio"
"""Units of scores, and of times (whose difference is a factor); rates have the unit that they are counted in."""
_OTHER_WAY = {WORSE: BETTER, BETTER: WORSE, "slower": "faster"}


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
    import pandas as pd

    check_number(level, "level", 0.01, 0.9999, "the share of draws inside")
    if not isinstance(more, str):
        raise refused("more", more, "a word, such as 'worse'")
    try:
        records = [dict(row.items()) for row in rows]
        if not all(records):
            raise ValueError(records)  # noqa: TRY301 - told below
    except (AttributeError, TypeError, ValueError) as error:
        raise refused("rows", type(rows).__name__, "a list of dicts") from error
    words = [str(row.pop("more", more)) for row in records]
    extra = [
        name for name in dict.fromkeys(name for row in records for name in row) if name not in DIFFERENCES
    ]
    table = pd.DataFrame(records, columns=[*DIFFERENCES, *extra])
    table = table.astype(dict.fromkeys(_NUMBERS, "float64")).astype({"n": "Int64"})
    families = [table.index] if by is None else table.groupby(by, sort=False).groups.values()
    for family in families:
        table.loc[family, "p_holm"] = holm(table.loc[family, "p"].to_numpy())
    table["verdict"] = [
        _verdict(word, p, difference - (unit == RATIO), n, level)
        for word, p, difference, unit, n in zip(
            words, table["p_holm"], table["difference"], table["unit"], table["n"], strict=True
        )
    ]
    texts = table[list(_TEXTS)].astype("string").fillna({"language": "", "condition": ""})
    return table.assign(**{name: texts[name] for name in _TEXTS})


def _verdict(word: str, p: float, difference: float, n: object, level: float) -> str:
    if math.isnan(p):
        return UNPAIRED if n == 0 else ALIKE
    if not p < 1 - level or not difference:
        return ALIKE
    return word if difference > 0 else _OTHER_WAY.get(word, ALIKE)


def is_shown(differences: pd.DataFrame) -> Any:
    """Whether each difference is significant, as an array."""
    return ~np.isin(differences["verdict"].fillna(ALIKE).to_numpy(dtype=object), [ALIKE, UNPAIRED])


def value_text(value: object, unit: object) -> str:
    """Write a value of a difference: rates in percent, scores with one decimal, times in seconds."""
    if is_missing(value):
        return "–"
    number = float(value)  # type: ignore[arg-type]  # a number
    return f"{number:.1f}" if unit == POINTS else f"{number:.2f} s" if unit == RATIO else f"{number:.1%}"


def difference_text(value: object, unit: object) -> str:
    """Write a difference: in points with its sign, or as a factor; 0 has no sign."""
    if is_missing(value):
        return "–"
    number = float(value)  # type: ignore[arg-type]  # a number
    if unit == RATIO:
        return f"× {number:.2f}"
    points = round(number if unit == POINTS else 100 * number, 1)
    return f"{points:+.1f}" if points else "0.0"
