"""Comparisons of two systems: their difference, an interval of it, and whether it could be chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._arguments import column_names, require_columns
from speechlab.display import table
from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.units import prepare
from speechlab.metrics._rates.tables import as_scored
from speechlab.metrics._signatures import differing, joined
from speechlab.metrics._statistics.bootstrap import BLOCK, Bootstrap, Interval
from speechlab.metrics._statistics.mapsswe import SegmentTest, mapsswe, segment_differences
from speechlab.metrics._statistics.randomization import holm, sign_flip

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from speechlab.metrics._alignment.units import Tokens
    from speechlab.metrics._arguments import Groups
    from speechlab.metrics._rates.tables import Scorable

_NEEDED = ("unit", "signature", "errors", "reference_length", "reference_normalized", "hypothesis_normalized")
_ENOUGH_BLOCKS = 20  # below this intervals are rough: see the simulations in the tests


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same utterances.

    Attributes:
        names: What the systems are called.
        unit: What was counted.
        signature: How both were scored.
        utterances: Utterances that both were scored on.
        utterances_excluded: Utterances left out because one of them has no score or is missing.
        error_rate_a: Corpus rate of the first, as a fraction.
        error_rate_b: Corpus rate of the second.
        difference: ``error_rate_b - error_rate_a``: below zero, the second makes fewer errors.
        interval: Paired bootstrap interval of the difference; NaN for fewer than two utterances or blocks.
        p: Exact two-sided p-value: the share of all ways to swap the systems' errors in single blocks that give as
            large a difference as the one seen. What ``significant`` goes by.
        tested: What was swapped: ``"utterance"``, or the name of the column of ``groups``, or ``"group"``.
        mapsswe: NIST's matched-pair test, whose p-value supposes many segments (runs of errors), none of which has
            anything to do with another of its utterance or group.
        better_a: Utterances in which the first made fewer errors.
        better_b: Utterances in which the second did.
        level: Confidence level.
        blocks: How many blocks the interval was drawn from: utterances, or those given as ``groups=``.
        empty_references: How many of the references have no token; insertions there count like all others.
    """

    names: tuple[str, str]
    unit: str
    signature: str
    utterances: int
    utterances_excluded: int
    error_rate_a: float
    error_rate_b: float
    difference: float
    interval: Interval
    p: float
    tested: str
    mapsswe: SegmentTest
    better_a: int
    better_b: int
    level: float
    blocks: int
    empty_references: int

    @property
    def significant(self) -> bool:
        """Whether there is a difference at this level, which other utterances or groups would show too."""
        return self.p < 1 - self.level

    @property
    def hints(self) -> list[str]:
        """What to keep in mind before this is published; empty if nothing."""
        found = []
        kind = "utterances" if self.tested == "utterance" else "blocks"
        if 2.0 ** (1 - self.blocks) >= 1 - self.level:
            found.append(
                f"only {self.blocks} {kind}: so few can show no difference "
                f"at the level {self.level:g}, however large it is; take more"
            )
        if self.blocks < _ENOUGH_BLOCKS:
            found.append(
                f"only {self.blocks} {kind} to draw from: with fewer than {_ENOUGH_BLOCKS}, the interval is rough; "
                "take more"
            )
        if self.utterances_excluded:
            found.append(
                f"{self.utterances_excluded} utterances were left out, because not both systems have a score"
            )
        return found

    def frame(self) -> pd.DataFrame:
        """The figures as a table of one row; rates are fractions."""
        import pandas as pd

        row = {
            "a": self.names[0],
            "b": self.names[1],
            "unit": self.unit,
            "utterances": self.utterances,
            "utterances_excluded": self.utterances_excluded,
            "empty_references": self.empty_references,
            "error_rate_a": self.error_rate_a,
            "error_rate_b": self.error_rate_b,
            "difference": self.difference,
            "difference_low": self.interval.low,
            "difference_high": self.interval.high,
            "p": self.p,
            "significant": self.significant,
            "tested": self.tested,
            "blocks": self.blocks,
            "better_a": self.better_a,
            "better_b": self.better_b,
            "segments": self.mapsswe.segments,
            "z": self.mapsswe.z,
            "p_mapsswe": self.mapsswe.p,
            "signature": self.signature,
        }
        return pd.DataFrame([row])

    def __repr__(self) -> str:
        first, second = self.names
        shown = "p < 0.0001" if self.p < 0.0001 else f"p = {self.p:.4f}"
        return (
            f"<Comparison {second} - {first}: {100 * self.difference:+.2f} points by {self.unit}, "
            f"{shown} by {self.tested}, {self.utterances} utterances>"
        )

    def _repr_html_(self) -> str:
        caption = "; ".join(self.hints) or None
        return str(table(["figure", "value"], list(self.frame().iloc[0].items()), caption=caption))


def compare(
    scored_a: Scorable,
    scored_b: Scorable,
    *,
    on: str | Sequence[str] | None = None,
    names: tuple[str, str] = ("a", "b"),
    level: float = 0.95,
    draws: int = 2_000,
    seed: int = 0,
    groups: Groups = None,
    **how: Any,
) -> Comparison:
    """Compare two systems that were scored on the same utterances.

    Args:
        scored_a: What :func:`speechlab.metrics.score` or :func:`speechlab.metrics.error_rate` returned for the first
            system; or a table that is to be scored.
        scored_b: The same for the second.
        on: Column or columns that name the utterance in both tables; None to go by the index.
        names: What to call the systems.
        level: Confidence level of the interval, and of ``significant``.
        draws: Bootstrap draws of the interval.
        seed: The same seed gives the same interval; the p-value needs none.
        groups: Column of the first table with blocks, such as ``"speaker"``, or a name for each of its rows. The
            interval draws blocks as wholes, and the test swaps the systems' errors in whole blocks: what one speaker
            does to one system is then no evidence for others.
        **how: For tables that are to be scored, arguments of :func:`score`, such as ``language="en"``.

    Returns:
        Both rates, their difference with a paired bootstrap interval and an exact test, and the matched-pair test of
        NIST.

    Raises:
        InvalidRequestError: A column is missing, an utterance occurs twice, none is common, the references differ,
            or the rows are not all of one unit, or were not scored alike.
    """
    bootstrap = Bootstrap(level, draws, seed, groups)
    first_name, second_name = _names(names)
    first_table, bootstrap = bootstrap.on(as_scored(scored_a, None, how, "scored_a"), "scored_a")
    both, excluded = _matched(first_table, as_scored(scored_b, None, how, "scored_b"), on)
    units = sorted({*both["unit_a"].astype(str), *both["unit_b"].astype(str)})
    if len(units) > 1:
        message = f"rates by {' and by '.join(units)} cannot be compared; select the rows of one unit in both tables"
        raise InvalidRequestError(message, parameter="unit")
    first = both["errors_a"].to_numpy(dtype=np.int64)
    second = both["errors_b"].to_numpy(dtype=np.int64)
    lengths = both["reference_length_a"].to_numpy(dtype=np.int64)
    blocks = bootstrap.within(both, f"{BLOCK}_a").blocks(np.column_stack([first, second, lengths]))
    sums = bootstrap.sums(blocks)
    length = max(int(lengths.sum()), 1)
    return Comparison(
        names=(first_name, second_name),
        unit=units[0],
        signature=joined(both["signature_a"].unique().tolist()),
        utterances=len(both),
        utterances_excluded=excluded,
        error_rate_a=int(first.sum()) / length,
        error_rate_b=int(second.sum()) / length,
        difference=int(second.sum() - first.sum()) / length,
        interval=bootstrap.interval((sums[:, 1] - sums[:, 0]) / np.maximum(sums[:, 2], 1), len(blocks)),
        p=sign_flip(blocks[:, 0] - blocks[:, 1]),
        tested="utterance" if groups is None else groups if isinstance(groups, str) else "group",
        mapsswe=mapsswe(segment_differences(_tokens(both, units[0]))),
        better_a=int((first < second).sum()),
        better_b=int((second < first).sum()),
        level=level,
        blocks=len(blocks),
        empty_references=int((lengths == 0).sum()),
    )


def compare_all(systems: Mapping[str, Scorable], *, level: float = 0.95, **options: Any) -> pd.DataFrame:
    """Compare all pairs of several systems, with p-values corrected for their number.

    Args:
        systems: Scored table of each system.
        level: Confidence level; ``significant`` holds for all pairs together.
        **options: As for :func:`compare`.

    Returns:
        One row for each pair: the columns of :meth:`Comparison.frame`, and ``p_holm``, the p-value corrected by
        Holm's method, by which ``significant`` goes. Sorted by ``p_holm``.
    """
    import pandas as pd

    given: object = systems  # whatever the type says: it comes from outside
    if not isinstance(given, Mapping):
        message = (
            f"systems is {systems!r:.60} ({type(systems).__name__}); give a dict from name to scored table"
        )
        raise InvalidRequestError(message, parameter="systems")
    rows = [
        compare(systems[a], systems[b], names=(str(a), str(b)), level=level, **options).frame()
        for a, b in combinations(systems, 2)
    ]
    if not rows:
        message = f"there is nothing to compare among {len(systems)} systems; give two or more"
        raise InvalidRequestError(message, parameter="systems")
    out = pd.concat(rows, ignore_index=True)
    out.insert(list(out.columns).index("p") + 1, "p_holm", holm(out["p"].to_numpy(dtype=np.float64)))
    out["significant"] = out["p_holm"] < 1 - level
    return out.sort_values("p_holm", kind="stable", ignore_index=True)


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


def _matched(
    table_a: pd.DataFrame, table_b: pd.DataFrame, on: str | Sequence[str] | None
) -> tuple[pd.DataFrame, int]:
    """Rows of both tables side by side, scored in both, and how many were left out."""
    keys = None if on is None else column_names(on, "on")
    if keys == []:
        message = (
            "on=[] names no column; name those that tell utterances apart, or leave it out to go by the index"
        )
        raise InvalidRequestError(message, parameter="on")
    left = _keyed(table_a, keys, "scored_a")
    right = _keyed(table_b, keys, "scored_b")
    both = left.add_suffix("_a").join(right.add_suffix("_b"), how="outer")
    done = both[both["errors_a"].notna() & both["errors_b"].notna()]
    if done.empty:
        message = (
            "the two tables have no scored utterance in common; check the index, or name the columns with on="
        )
        raise InvalidRequestError(message, parameter="on")
    _check_alike(done)
    return done, len(both) - len(done)


def _check_alike(done: pd.DataFrame) -> None:
    """Refuse rows that were scored in different ways, or of different utterances."""
    ways = done[["signature_a", "signature_b"]].astype(str).drop_duplicates()
    for one, other in ways.itertuples(index=False):
        if one != other:
            message = (
                f"the two systems were scored in different ways: {differing(one, other)}; score both alike"
            )
            raise InvalidRequestError(message, parameter="signature")
    differ = done["reference_normalized_a"] != done["reference_normalized_b"]
    if differ.any():
        key = done.index[differ][0]
        one, other = done.loc[key, ["reference_normalized_a", "reference_normalized_b"]]
        message = (
            f"utterance {key!r} has two references, {one!r} and {other!r}; compare systems on the same "
            "utterances"
        )
        raise InvalidRequestError(message, parameter="on")


def _keyed(table: pd.DataFrame, keys: list[str] | None, name: str) -> pd.DataFrame:
    hint = "Pass tables that speechlab.metrics.score returned"
    require_columns(table, *(keys or []), *_NEEDED, argument=name, hint=hint)
    keyed = table if keys is None else table.set_index(keys)
    if not keyed.index.is_unique:
        twice = keyed.index[keyed.index.duplicated()].tolist()[0]
        message = (
            f"{name} has utterance {twice!r} more than once; name the columns that tell rows apart with on="
        )
        raise InvalidRequestError(message, parameter="on")
    return keyed[[*_NEEDED, *((BLOCK,) if BLOCK in keyed.columns else ())]]
