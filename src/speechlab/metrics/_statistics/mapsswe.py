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
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.metrics._alignment.alignment import Operation
    from speechlab.metrics._alignment.units import Tokens

Places: TypeAlias = tuple[int, ...]
_Runs: TypeAlias = "tuple[tuple[Operation, int, int, int, int], ...]"
_SUBSTITUTION, _GAP = 4, 3
_DIAGONAL, _INSERTION, _DELETION = 0, 1, 2
_MAX_CELLS = 200_000_000  # one byte each
_BOUNDARY = 2  # words between two segments that both systems have right


class SegmentTest(NamedTuple):
    """Outcome of the test."""

    segments: int  # number of segments
    mean: float  # mean over segments of the errors of the first system minus those of the second
    # standard deviation of these differences, with ``segments - 1``; NaN for fewer than two segments
    deviation: float
    z: float  # ``mean / (deviation / sqrt(segments))``; 0 if no segment differs, NaN if it cannot be computed
    p: float  # two-sided p-value under the normal distribution


def mapsswe(differences: NDArray[np.int64]) -> SegmentTest:
    """Test two systems by their segments."""
    n = len(differences)
    if not differences.any():
        return SegmentTest(n, 0.0, 0.0 if n > 1 else math.nan, 0.0, 1.0)
    mean = float(differences.mean())
    deviation = float(differences.std(ddof=1)) if n > 1 else math.nan
    z = mean / (deviation / math.sqrt(n)) if deviation > 0 else math.nan
    return SegmentTest(n, mean, deviation, z, math.erfc(abs(z) / math.sqrt(2)))


def compute_segment_differences(utterances: Iterable[tuple[Places, Places]]) -> NDArray[np.int64]:
    """Errors of the first system minus those of the second, in each segment."""
    pairs = (pair for pair in utterances if any(pair))
    return np.array(
        [
            first_errors - second_errors
            for pair in pairs
            for first_errors, second_errors in count_errors_by_segment(*pair)
        ],
        dtype=np.int64,
    )


def count_errors_by_place(reference: Tokens, hypothesis: Tokens) -> Places:
    """Errors before word 0 (insertions), at word 0, before word 1, at word 1, and so on; empty without errors."""
    if reference == hypothesis:
        return ()
    errors = [0] * (2 * len(reference) + 1)
    for operation, i0, i1, j0, j1 in _align_into_runs(reference, hypothesis):
        if operation == "insert":
            errors[2 * i0] += j1 - j0
        elif operation != "equal":
            for i in range(i0, i1):
                errors[2 * i + 1] += 1
    return tuple(errors)


def count_errors_by_segment(first: Places, second: Places) -> list[tuple[int, int]]:
    """Errors of both systems in each segment of one utterance."""
    spans: list[tuple[int, int]] = []
    right = _BOUNDARY
    none = (0,) * max(len(first), len(second))
    for place, (a, b) in enumerate(zip(first or none, second or none, strict=True)):
        if not a and not b:
            right += place % 2
        elif right >= _BOUNDARY:
            spans.append((a, b))
            right = 0
        else:
            spans[-1] = (spans[-1][0] + a, spans[-1][1] + b)
            right = 0
    return spans


def _align_into_runs(reference: Tokens, hypothesis: Tokens) -> _Runs:
    """Return the runs of one operation of the alignment on which the test counts."""
    if len(reference) * len(hypothesis) > _MAX_CELLS:
        message = (
            f"the matched-pair test needs a table of {len(reference)} x {len(hypothesis)} tokens, more than "
            f"{_MAX_CELLS} cells; cut the texts into utterances"
        )
        raise InvalidRequestError(message, parameter="references")
    numbers = {token: number for number, token in enumerate(dict.fromkeys(chain(reference, hypothesis)))}
    first, second = (
        np.array([numbers[token] for token in side], np.int64) for side in (reference, hypothesis)
    )
    return _trace_runs(_compute_alignment_moves(first, second), reference, hypothesis)


def _compute_alignment_moves(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the best last move into each cell, row by row."""
    gaps = _GAP * np.arange(len(other) + 1, dtype=np.int64)
    moves = np.full((len(one) + 1, len(other) + 1), _INSERTION, dtype=np.uint8)
    above = gaps
    for i, token in enumerate(one, start=1):
        diagonal = above[:-1] + np.where(other == token, 0, _SUBSTITUTION)
        row = above + _GAP
        np.minimum(row[1:], diagonal, out=row[1:])
        # Insertions run along the row: the cheapest start so far, plus one gap for each step.
        row = np.minimum.accumulate(row - gaps) + gaps
        moves[i, 0] = _DELETION
        inserted = np.where(row[1:] == row[:-1] + _GAP, _INSERTION, _DELETION)
        moves[i, 1:] = np.where(row[1:] == diagonal, _DIAGONAL, inserted)
        above = row
    return moves


def _trace_runs(moves: NDArray[np.uint8], reference: Tokens, hypothesis: Tokens) -> _Runs:
    i, j = len(reference), len(hypothesis)
    backwards: list[tuple[Operation, int, int, int, int]] = []
    while i or j:
        end = (i, j)
        move = moves[i, j]
        i -= move != _INSERTION
        j -= move != _DELETION
        if move == _DIAGONAL:
            kind: Operation = "equal" if reference[i] == hypothesis[j] else "substitute"
        else:
            kind = "insert" if move == _INSERTION else "delete"
        if backwards and backwards[-1][0] == kind:
            _, _, i1, _, j1 = backwards.pop()
            end = (i1, j1)
        backwards.append((kind, int(i), int(end[0]), int(j), int(end[1])))
    return tuple(reversed(backwards))
