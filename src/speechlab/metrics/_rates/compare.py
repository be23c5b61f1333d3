"""Comparisons of two systems: their difference, an interval of it, and whether it could be chance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._arguments import column_names, require_columns
from speechlab.display import table
from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.units import prepare
from speechlab.metrics._statistics.bootstrap import Bootstrap, Interval
from speechlab.metrics._statistics.mapsswe import SegmentTest, mapsswe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from speechlab.metrics._alignment.units import Tokens

_NEEDED = ("unit", "errors", "reference_length", "reference_normalized", "hypothesis_normalized")
_BLOCK = "speechlab block"
_ENOUGH_BLOCKS = 20  # below this 95 % intervals cover less than 92 %: see the simulations in the tests
_ENOUGH_SEGMENTS = 50  # below this the normal distribution is a poor guide (Gillick and Cox, 1989)


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same utterances.

    Attributes:
        names: What the systems are called.
        unit: What was counted.
        n: Utterances that both were scored on.
        n_excluded: Utterances left out because one of them has no score or is missing.
        rate_a: Corpus rate of the first, as a fraction.
        rate_b: Corpus rate of the second.
        difference: ``rate_b - rate_a``: below zero, the second makes fewer errors.
        interval: Paired bootstrap interval of the difference; NaN for fewer than two utterances or blocks.
        p_bootstrap: Two-sided p-value of the paired bootstrap.
        mapsswe: NIST's matched-pair test; its ``p`` is what ``significant`` goes by.
        better_a: Utterances in which the first made fewer errors.
        better_b: Utterances in which the second did.
        level: Confidence level.
        blocks: What the bootstrap drew from: utterances, or blocks given as ``groups=``.
        empty_references: How many of the references have no token; insertions there count like all others.
    """

    names: tuple[str, str]
    unit: str
    n: int
    n_excluded: int
    rate_a: float
    rate_b: float
    difference: float
    interval: Interval
    p_bootstrap: float
    mapsswe: SegmentTest
    better_a: int
    better_b: int
    level: float
    blocks: int
    empty_references: int

    @property
    def significant(self) -> bool:
        """Whether the matched-pair test finds a difference at this level."""
        return self.mapsswe.p < 1 - self.level

    @property
    def hints(self) -> list[str]:
        """What to keep in mind before this is published; empty if nothing."""
        found = []
        if self.mapsswe.segments < _ENOUGH_SEGMENTS:
            found.append(
                f"only {self.mapsswe.segments} segments with errors: with fewer than {_ENOUGH_SEGMENTS}, p-values "
                "are rough; take more utterances"
            )
        if self.blocks < _ENOUGH_BLOCKS:
            found.append(
                f"only {self.blocks} utterances or blocks to draw from: with fewer than {_ENOUGH_BLOCKS}, the "
                "bootstrap interval is too narrow; take more"
            )
        if math.isnan(self.mapsswe.p):
            found.append(
                "the matched-pair test cannot be computed, because all segments differ by the same number of errors "
                "(or there is only one); go by the interval"
            )
        if self.n_excluded:
            found.append(f"{self.n_excluded} utterances were left out, because not both systems have a score")
        return found

    def row(self) -> dict[str, Any]:
        """The figures as one row of a table; rates are fractions."""
        return {
            "a": self.names[0],
            "b": self.names[1],
            "unit": self.unit,
            "n": self.n,
            "n_excluded": self.n_excluded,
            "empty_references": self.empty_references,
            "rate_a": self.rate_a,
            "rate_b": self.rate_b,
            "difference": self.difference,
            "difference_low": self.interval.low,
            "difference_high": self.interval.high,
            "better_a": self.better_a,
            "better_b": self.better_b,
            "segments": self.mapsswe.segments,
            "z": self.mapsswe.z,
            "p_mapsswe": self.mapsswe.p,
            "p_bootstrap": self.p_bootstrap,
        }

    def __repr__(self) -> str:
        first, second = self.names
        p = self.mapsswe.p
        shown = "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"
        return (
            f"<Comparison {second} - {first}: {100 * self.difference:+.2f} points by {self.unit}, "
            f"MAPSSWE {shown}, {self.n} utterances>"
        )

    def _repr_html_(self) -> str:
        caption = "; ".join(self.hints) or None
        return str(table(["figure", "value"], list(self.row().items()), caption=caption))


def compare(
    frame_a: pd.DataFrame,
    frame_b: pd.DataFrame,
    on: str | Sequence[str] | None = None,
    names: tuple[str, str] = ("a", "b"),
    level: float = 0.95,
    n: int = 2_000,
    seed: int = 0,
    groups: str | None = None,
) -> Comparison:
    """Compare two systems that were scored on the same utterances.

    Args:
        frame_a: What :func:`speechlab.metrics.score` returned for the first system.
        frame_b: The same for the second.
        on: Column or columns that name the utterance in both tables; None to go by the index.
        names: What to call the systems.
        level: Confidence level of the interval, and of ``significant``.
        n: Bootstrap draws.
        seed: The same seed gives the same result.
        groups: Column of ``frame_a`` with blocks, such as ``"speaker"``, that the bootstrap draws as wholes.

    Returns:
        Both rates, their difference with a paired bootstrap interval, and the matched-pair test of NIST.

    Raises:
        InvalidRequestError: A column is missing, an utterance occurs twice, none is common, the references differ,
            or the rows are not all of one unit.
    """
    draws = Bootstrap(level, n, seed, groups)
    first_name, second_name = _names(names)
    both, excluded = _matched(frame_a, frame_b, on, draws.columns)
    units = sorted({*both["unit_a"].astype(str), *both["unit_b"].astype(str)})
    if len(units) > 1:
        message = f"rates by {' and by '.join(units)} cannot be compared; select the rows of one unit in both tables"
        raise InvalidRequestError(message, parameter="unit")
    first = both["errors_a"].to_numpy(dtype=np.int64)
    second = both["errors_b"].to_numpy(dtype=np.int64)
    lengths = both["reference_length_a"].to_numpy(dtype=np.int64)
    blocks = draws.within(both, f"{_BLOCK}_a").blocks(np.column_stack([first, second, lengths]))
    interval, p_bootstrap = _paired_bootstrap(blocks, draws)
    length = max(int(lengths.sum()), 1)
    return Comparison(
        names=(first_name, second_name),
        unit=units[0],
        n=len(both),
        n_excluded=excluded,
        rate_a=int(first.sum()) / length,
        rate_b=int(second.sum()) / length,
        difference=int(second.sum() - first.sum()) / length,
        interval=interval,
        p_bootstrap=p_bootstrap,
        mapsswe=mapsswe(_tokens(both, units[0])),
        better_a=int((first < second).sum()),
        better_b=int((second < first).sum()),
        level=level,
        blocks=len(blocks),
        empty_references=int((lengths == 0).sum()),
    )


def compare_all(systems: Mapping[str, pd.DataFrame], level: float = 0.95, **options: Any) -> pd.DataFrame:
    """Compare all pairs of several systems, with p-values corrected for their number.

    Args:
        systems: Scored table of each system.
        level: Confidence level; ``significant`` holds for all pairs together.
        **options: As for :func:`compare`.

    Returns:
        One row for each pair: the figures of :class:`Comparison`, ``p_holm`` (the p-value of the matched-pair test,
        corrected by Holm's method) and ``significant``. Sorted by ``p_holm``.
    """
    import pandas as pd

    given: object = systems  # whatever the type says: it comes from outside
    if not isinstance(given, Mapping):
        message = (
            f"systems is {systems!r:.60} ({type(systems).__name__}); give a dict from name to scored table"
        )
        raise InvalidRequestError(message, parameter="systems")
    rows = [
        compare(systems[a], systems[b], names=(str(a), str(b)), level=level, **options).row()
        for a, b in combinations(systems, 2)
    ]
    if not rows:
        message = f"there is nothing to compare among {len(systems)} systems; give two or more"
        raise InvalidRequestError(message, parameter="systems")
    out = pd.DataFrame(rows)
    out["p_holm"] = holm(out["p_mapsswe"].to_numpy(dtype=np.float64))
    out["significant"] = out["p_holm"] < 1 - level
    return out.sort_values("p_holm", kind="stable", ignore_index=True)


def holm(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correct p-values for their number; NaN stay NaN and do not count.

    Source: S. Holm, A simple sequentially rejective multiple test procedure (1979).
    """
    out = np.full(len(p), math.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return out


def _names(names: object) -> tuple[str, str]:
    if isinstance(names, tuple | list) and len(names) == 2 and all(isinstance(name, str) for name in names):
        return names[0], names[1]
    message = f"names={names!r:.60} are not the names of two systems; give two texts, such as ('old', 'new')"
    raise InvalidRequestError(message, parameter="names")


def _tokens(both: pd.DataFrame, unit: str) -> Iterator[tuple[Tokens, Tokens, Tokens]]:
    split = prepare(unit, None, None).split
    names = ["reference_normalized_a", "hypothesis_normalized_a", "hypothesis_normalized_b"]
    for reference, first, second in both[names].itertuples(index=False):
        yield split(reference), split(first), split(second)


def _paired_bootstrap(blocks: NDArray[np.int64], draws: Bootstrap) -> tuple[Interval, float]:
    sums = draws.sums(blocks)
    differences = (sums[:, 1] - sums[:, 0]) / np.maximum(sums[:, 2], 1)
    # Each tail gets one draw more than it has, so that p is never 0, which no finite number of draws could show.
    tail = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    p = min(1.0, 2 * (tail + 1) / (len(sums) + 1)) if len(sums) else math.nan
    return draws.interval(differences), p


def _matched(
    frame_a: pd.DataFrame, frame_b: pd.DataFrame, on: str | Sequence[str] | None, blocks: list[Any]
) -> tuple[pd.DataFrame, int]:
    """Rows of both tables side by side, scored in both, and how many were left out."""
    keys = None if on is None else column_names(on, "on")
    if keys == []:
        message = (
            "on=[] names no column; name those that tell utterances apart, or leave it out to go by the index"
        )
        raise InvalidRequestError(message, parameter="on")
    left = _keyed(frame_a, keys, "frame_a", blocks)
    right = _keyed(frame_b, keys, "frame_b")
    both = left.add_suffix("_a").join(right.add_suffix("_b"), how="outer")
    done = both[both["errors_a"].notna() & both["errors_b"].notna()]
    if done.empty:
        message = (
            "the two tables have no scored utterance in common; check the index, or name the columns with on="
        )
        raise InvalidRequestError(message, parameter="on")
    differ = done["reference_normalized_a"] != done["reference_normalized_b"]
    if differ.any():
        key = done.index[differ][0]
        one, other = done.loc[key, ["reference_normalized_a", "reference_normalized_b"]]
        message = (
            f"utterance {key!r} has two references, {one!r} and {other!r}; compare systems on the same utterances, "
            "normalised alike"
        )
        raise InvalidRequestError(message, parameter="on")
    return done, len(both) - len(done)


def _keyed(
    frame: pd.DataFrame, keys: list[str] | None, name: str, blocks: Sequence[Any] = ()
) -> pd.DataFrame:
    hint = "Pass tables that speechlab.metrics.score returned"
    require_columns(frame, *(keys or []), *_NEEDED, *blocks, argument=name, hint=hint)
    # Under a name of its own: the block may also be a key, or one of the figures.
    copies = {_BLOCK: frame[blocks[0]]} if blocks else {}
    frame = frame.assign(**copies)
    keyed = frame if keys is None else frame.set_index(keys)
    if not keyed.index.is_unique:
        twice = keyed.index[keyed.index.duplicated()].tolist()[0]
        message = (
            f"{name} has utterance {twice!r} more than once; name the columns that tell rows apart with on="
        )
        raise InvalidRequestError(message, parameter="on")
    return keyed[[*_NEEDED, *copies]]
