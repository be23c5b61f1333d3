"""NIST's matched-pair test of two systems' errors (MAPSSWE).

MAPSSWE compares segments, not words or utterances: errors near each other in an utterance are not independent;
errors that are far enough apart nearly are. A segment is a run of errors of either system. Between two segments,
both systems have at least two words right. The test asks whether the mean difference of the two systems' errors in
a segment is zero. Source: L. Gillick, S. J. Cox, Some statistical issues in the comparison of speech recognition
algorithms (ICASSP 1989); NIST sc_stats (SCTK 2.4.10), ``-t mapsswe``. Segments, mean, deviation and Z agree with
sc_stats.

The errors are placed by the alignment that NIST's sclite makes. It minimizes a cost, not the number of errors: a
substitution costs 4, an insertion or a deletion 3. Among alignments of equal cost it prefers, from the end backwards,
a pair of words to an insertion and an insertion to a deletion. The order of preference was found by experiment.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.metrics._alignment.units import Tokens

_SUBSTITUTION, _GAP = 4, 3
_DIAGONAL, _INSERTION, _DELETION = 0, 1, 2
_MAX_CELLS = 200_000_000  # one byte each
_CELLS_AT_ONCE = 2_000_000  # of short utterances, which are aligned together
_BOUNDARY = 2  # words between two segments that both systems have right


class SegmentTest(NamedTuple):
    """Outcome of the test."""

    segments: int  # number of segments
    mean: float  # mean over segments of the errors of the first system minus those of the second
    # standard deviation of these differences, with ``segments - 1``; NaN for fewer than two segments
    deviation: float
    z: float  # ``mean / (deviation / sqrt(segments))``; 0 if no segment differs, NaN if it cannot be computed
    p: float  # two-sided p-value under the normal distribution


class ErrorPlaces(NamedTuple):
    """The errors of a system: the utterance of each, and its place there.

    Places count errors before word 0 (insertions), at word 0, before word 1, at word 1, and so on.
    """

    utterances: NDArray[np.int64]
    places: NDArray[np.int64]

    def select(self, utterances: NDArray[np.intp]) -> ErrorPlaces:
        """Return the errors of some utterances, which are numbered anew in this order."""
        most = max(int(side.max(initial=0)) for side in (self.utterances, utterances))
        numbers = np.full(most + 1, -1)
        numbers[utterances] = np.arange(len(utterances))
        selected = numbers[self.utterances]
        return ErrorPlaces(selected[selected >= 0], self.places[selected >= 0])


def mapsswe(differences: NDArray[np.int64]) -> SegmentTest:
    """Test two systems by their segments."""
    n = len(differences)
    if not differences.any():
        return SegmentTest(n, 0.0, 0.0 if n > 1 else math.nan, 0.0, 1.0)
    mean = float(differences.mean())
    deviation = float(differences.std(ddof=1)) if n > 1 else math.nan
    z = mean / (deviation / math.sqrt(n)) if deviation > 0 else math.nan
    return SegmentTest(n, mean, deviation, z, math.erfc(abs(z) / math.sqrt(2)))


def compute_segment_differences(first: ErrorPlaces, second: ErrorPlaces) -> NDArray[np.int64]:
    """Return the errors of the first system minus those of the second in each segment of the same utterances."""
    # One number for each place, with more than enough words between the last place of an utterance and the next.
    longest = max(int(side.places.max(initial=0)) for side in (first, second))
    stride = 2 * (longest // 2 + _BOUNDARY + 1)
    keys = np.concatenate([side.utterances * stride + side.places for side in (first, second)])
    if not len(keys):
        return keys
    signs = np.repeat([1, -1], [len(first.places), len(second.places)])
    places, place_of = np.unique(keys, return_inverse=True)
    differences = np.bincount(place_of, signs).astype(np.int64)
    # Words, which have odd numbers, between a place and the one before.
    right = places[1:] // 2 - (places[:-1] + 1) // 2
    starts = np.flatnonzero(np.append(True, right >= _BOUNDARY))
    return np.add.reduceat(differences, starts)


def find_error_places(references: Sequence[Tokens], hypotheses: Sequence[Tokens]) -> ErrorPlaces:
    """Return the errors of a system on utterances with their numbers from 0 on."""
    found = [
        _trace_errors(np.array(rows), [references[row] for row in rows], [hypotheses[row] for row in rows])
        for rows in _group_by_length(references, hypotheses)
    ]
    return _concatenate(found)


def _concatenate(parts: Sequence[ErrorPlaces]) -> ErrorPlaces:
    nothing = np.zeros(0, np.int64)
    return ErrorPlaces(*map(np.concatenate, zip((nothing, nothing), *parts, strict=True)))


def _group_by_length(references: Sequence[Tokens], hypotheses: Sequence[Tokens]) -> Iterator[list[int]]:
    """Yield the numbers of utterances that are aligned together: those of about the same length."""
    lengths = [max(map(len, pair)) for pair in zip(references, hypotheses, strict=True)]
    group: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if len(references[row]) * len(hypotheses[row]) > _MAX_CELLS:
            message = (
                f"the matched-pair test needs a table of {len(references[row])} x {len(hypotheses[row])} tokens, "
                f"more than {_MAX_CELLS} cells; cut the texts into utterances"
            )
            raise InvalidRequestError(message, parameter="references")
        if group and (len(group) + 1) * (lengths[row] + 1) ** 2 > _CELLS_AT_ONCE:
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def _trace_errors(
    utterances: NDArray[np.int64], references: Sequence[Tokens], hypotheses: Sequence[Tokens]
) -> ErrorPlaces:
    """Return the errors of the alignments on which the test counts, from the last one backwards."""
    numbers: dict[str, int] = {}
    one, other = (
        _to_number_table(side, numbers, filler) for side, filler in ((references, -1), (hypotheses, -2))
    )
    moves = _compute_alignment_moves(one, other)
    i, j = (np.array(list(map(len, side))) for side in (references, hypotheses))
    found = []
    rows = np.flatnonzero(i + j)
    while len(rows):
        move = moves[i[rows], rows, j[rows]]
        wrong = (move != _DIAGONAL) | (one[rows, i[rows] - 1] != other[rows, j[rows] - 1])
        i[rows] -= move != _INSERTION
        j[rows] -= move != _DELETION
        found.append(ErrorPlaces(utterances[rows[wrong]], (2 * i[rows] + (move != _INSERTION))[wrong]))
        rows = rows[i[rows] + j[rows] > 0]
    return _concatenate(found)


def _to_number_table(texts: Sequence[Tokens], numbers: dict[str, int], filler: int) -> NDArray[np.int64]:
    """Return the tokens as numbers, a row for each text; rows are filled up with a number that no token has."""
    table = np.full((len(texts), max(1, *map(len, texts))), filler, np.int64)
    for row, tokens in zip(table, texts, strict=True):
        row[: len(tokens)] = [numbers.setdefault(token, len(numbers)) for token in tokens]
    return table


def _compute_alignment_moves(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the best last move into each cell: by word of the reference, utterance, and word of the hypothesis."""
    count, words = other.shape
    gaps = _GAP * np.arange(words + 1, dtype=np.int64)
    moves = np.full((one.shape[1] + 1, count, words + 1), _INSERTION, dtype=np.uint8)
    above = np.tile(gaps, (count, 1))
    for i, tokens in enumerate(one.T, start=1):
        diagonal = above[:, :-1] + np.where(other == tokens[:, None], 0, _SUBSTITUTION)
        row = above + _GAP
        np.minimum(row[:, 1:], diagonal, out=row[:, 1:])
        # Insertions run along the row: the cheapest start so far, plus one gap for each step.
        row = np.minimum.accumulate(row - gaps, axis=1) + gaps
        moves[i, :, 0] = _DELETION
        inserted = np.where(row[:, 1:] == row[:, :-1] + _GAP, _INSERTION, _DELETION)
        moves[i, :, 1:] = np.where(row[:, 1:] == diagonal, _DIAGONAL, inserted)
        above = row
    return moves
