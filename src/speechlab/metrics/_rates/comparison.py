"""The comparison of two systems as a value: rates, difference, interval and tests."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from speechlab.display import format_count
from speechlab.display import table as html_table
from speechlab.metrics._statistics.significance import judge

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.metrics._statistics.bootstrap import Interval
    from speechlab.metrics._statistics.mapsswe import SegmentTest

_ENOUGH_BLOCKS = 20  # with fewer blocks, intervals are rough: see the simulations in the tests


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same utterances.

    Attributes:
        names: Names of the systems.
        unit: The unit of counting.
        signature: Signature of the scores of both systems.
        utterances: Utterances that both were scored on.
        utterances_excluded: Utterances left out because one of them has no score or is missing.
        error_rate_a: Corpus rate of the first system, as a fraction.
        error_rate_b: Corpus rate of the second system, as a fraction.
        difference: ``error_rate_b - error_rate_a``; below zero, the second system makes fewer errors.
        interval: Paired bootstrap interval of the difference; NaN for fewer than two utterances or blocks.
        p: Exact two-sided p-value: the share of all swaps of the systems' errors in single blocks that give at least
            the observed difference. ``significant`` depends on it.
        tested: The blocks of the swaps: ``"utterance"``, or the name of the column of ``groups``, or ``"group"``.
        mapsswe: NIST's matched-pair test. Its p-value assumes many segments (runs of errors) that are independent of
            each other, also within an utterance or group. NaN, without segments, if an utterance is too long for its
            alignment (200 million pairs of tokens).
        better_a: Number of utterances in which the first system made fewer errors.
        better_b: Number of utterances in which the second system made fewer errors.
        level: Confidence level.
        blocks: Number of blocks for the interval: utterances, or the blocks of ``groups=``.
        empty_references: Number of references without a token; their insertions count like all others.

    Example:
        >>> one = score(["good day", "good night"], ["good day", "good night"], language="en")
        >>> other = score(["good day", "good night"], ["good day", "good light"], language="en")
        >>> result = compare(one, other)
        >>> result.difference, result.significant
        (0.25, False)
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
        """Whether the difference is significant at this level: other utterances or groups would show it too."""
        return self.p < 1 - self.level

    @property
    def hints(self) -> list[str]:
        """Cautions for a publication; empty if there are none."""
        cautions = []
        blocks = format_count(self.blocks, "utterance" if self.tested == "utterance" else "block")
        if 2.0 ** (1 - self.blocks) >= 1 - self.level:
            cautions.append(
                f"only {blocks}: so few can show no difference "
                f"at the level {self.level:g}, however large it is; take more"
            )
        if self.blocks < _ENOUGH_BLOCKS:
            cautions.append(
                f"only {blocks} to draw from: with fewer than {_ENOUGH_BLOCKS}, the interval is rough; "
                "take more"
            )
        low, high = self.interval
        without_zero = low > 0 or high < 0
        if without_zero != self.significant and not math.isnan(low):
            relation, verdict = ("leaves zero out", "not ") if without_zero else ("holds zero", "")
            cautions.append(
                f"the interval {relation}, and yet the difference is {verdict}significant: go by p, which is exact; "
                "the interval only says how large the difference may be"
            )
        if count := self.utterances_excluded:
            were = format_count(count, "utterance was", "utterances were")
            cautions.append(f"{were} left out, because not both systems have a score")
        return cautions

    def frame(self) -> pd.DataFrame:
        """Return the figures as a table of one row, as from :func:`judge`; rates are fractions."""
        return judge([self.row()], level=self.level)

    def row(self) -> dict[str, Any]:
        """Return the figures by the names of their columns."""
        return {
            "a": self.names[0],
            "b": self.names[1],
            "measure": "error rate",
            "unit": self.unit,
            "n": self.utterances,
            "value_a": self.error_rate_a,
            "value_b": self.error_rate_b,
            "difference": self.difference,
            "low": self.interval.low,
            "high": self.interval.high,
            "p": self.p,
            "test": f"sign-flip by {self.tested}",
            "excluded": self.utterances_excluded,
            "empty_references": self.empty_references,
            "blocks": self.blocks,
            "better_a": self.better_a,
            "better_b": self.better_b,
            "segments": self.mapsswe.segments,
            "z": self.mapsswe.z,
            "p_mapsswe": self.mapsswe.p,
            "signature": self.signature,
        }

    def __repr__(self) -> str:
        first, second = self.names
        p_text = "p < 0.0001" if self.p < 0.0001 else f"p = {self.p:.4f}"
        return (
            f"<Comparison {second} - {first}: {100 * self.difference:+.2f} points by {self.unit}, "
            f"{p_text} by {self.tested}, {self.utterances} utterances>"
        )

    def _repr_html_(self) -> str:
        caption = "; ".join(self.hints) or None
        return str(html_table(["figure", "value"], list(self.frame().iloc[0].items()), caption=caption))
