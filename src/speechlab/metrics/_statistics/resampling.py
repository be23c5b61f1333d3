"""Paired tests of two systems whose scores are computed from sums over blocks, such as BLEU.

Approximate randomisation swaps the two systems in random blocks; the paired bootstrap draws blocks with replacement.
Random numbers are drawn as in sacrebleu, so blocks of one utterance give the same draws as sacrebleu.

Source: S. Riezler, J. T. Maxwell, On some pitfalls in automatic evaluation and significance testing for MT (2005);
P. Koehn, Statistical significance tests for machine translation evaluation (EMNLP 2004).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

_CELLS_AT_ONCE = 4_000_000  # of draws x blocks: 32 MB
_FEW = 13  # blocks: up to this number, there are fewer ways to swap than draws
_ALIKE = 1e-6  # relative to the scores: rounding errors of equal differences


class PairedDraws:
    """Random draws, the same for all pairs of systems and all metrics.

    Attributes:
        blocks: Number of blocks.
        draws: Number of bootstrap draws.
        seed: The same seed as in sacrebleu gives the same draws; None for new draws each time.
    """

    def __init__(self, blocks: int, draws: int, seed: int | None) -> None:
        self.blocks, self.draws, self.seed = blocks, draws, seed

    def randomization(
        self, base: NDArray[Any], other: NDArray[Any], score: Callable[[Any], float]
    ) -> tuple[float, float]:
        """P-values of approximate randomisation, with and without the draws that equal the observed difference.

        sacrebleu leaves these draws out. Its p-value is too small for few blocks or coarse scores.
        """
        observed, tolerance = _difference(base.sum(0), other.sum(0), score)
        as_large = larger = 0
        random = np.random.default_rng(self.seed)
        for size in self._steps():
            swapped = random.integers(2, size=(size, self.blocks), dtype=bool)
            counts = np.ones(size, dtype=np.int64)
            if self.blocks <= _FEW:  # most draws are equal: score each distinct one once
                swapped, counts = np.unique(swapped, axis=0, return_counts=True)
            sums = _sums(swapped, base, other), _sums(swapped, other, base)
            for first, second, count in zip(*sums, counts.tolist(), strict=True):
                found, _ = _difference(first, second, score)
                larger += count * (found > observed)
                as_large += count * (found >= observed - tolerance)
        return (as_large + 1) / (self.draws + 1), (larger + 1) / (self.draws + 1)

    def bootstrap(
        self, base: NDArray[Any], other: NDArray[Any], score: Callable[[Any], float]
    ) -> tuple[float, float]:
        """P-value of the paired bootstrap as in sacrebleu, twice, in the shape of :meth:`randomization`."""
        observed, _ = _difference(base.sum(0), other.sum(0), score)
        samples = []
        random = np.random.default_rng(self.seed)
        for size in self._steps():
            drawn = random.choice(self.blocks, size=(size, self.blocks), replace=True)
            counts = np.stack([np.bincount(row, minlength=self.blocks) for row in drawn]).astype(np.float64)
            # In 32 bits as in sacrebleu: with 64 bits, scores would differ from it in the last digits.
            pairs = zip((counts @ base).astype("float32"), (counts @ other).astype("float32"), strict=True)
            samples += [_difference(first, second, score, listed=False)[0] for first, second in pairs]
        differences = np.array(samples)
        p = (int(((differences - differences.mean()) > observed).sum()) + 1) / (self.draws + 1)
        return p, p

    def _steps(self) -> Iterator[int]:
        step = max(1, _CELLS_AT_ONCE // max(self.blocks, 1))
        return (min(step, self.draws - start) for start in range(0, self.draws, step))


def _sums(swapped: NDArray[np.bool_], base: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    sums = swapped.astype(np.float64) @ base + (~swapped).astype(np.float64) @ other
    return np.asarray(sums, dtype=np.int64 if np.issubdtype(base.dtype, np.integer) else np.float64)


def _difference(
    first: NDArray[Any], second: NDArray[Any], score: Callable[[Any], float], *, listed: bool = True
) -> tuple[float, float]:
    """The absolute difference of the scores of two sums, and its tolerance for rounding errors."""
    one, two = (score(sums.tolist() if listed else sums) for sums in (first, second))
    return abs(one - two), _ALIKE * max(abs(one), abs(two))
