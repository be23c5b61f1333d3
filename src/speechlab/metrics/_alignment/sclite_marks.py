"""sclite's markings in transcripts: alternates ``{ a / b / @ }``, optionally deletable ``(word)``, fragments.

A marked transcript is not a sequence of words but a network: every path through it is a correct transcript. sclite
aligns two networks; the result is the cheapest pair of paths. The costs are 4 for a substitution, 3 for an insertion
or a deletion, 2 for an insertion or a deletion of an optionally deletable word, 0.001 for an insertion or a deletion
of the empty word ``@``, and 1 for a pair of empty words. Sums are in single precision. Of equally cheap steps, the
first one found is taken, so the order in which arcs are visited is part of the definition.

Source: the behaviour of sclite in NIST's Scoring Toolkit (SCTK) 2.4.10 with its options ``-s -D`` (and ``-F`` for
fragments), documented there and confirmed by runs on random transcripts. This is an independent implementation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.sclite_network import NULL, read_side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from speechlab.metrics._alignment.sclite_network import MarkedWord, Normal, Place, Side

_GAP, _OPTIONAL_GAP, _NULL_GAP = np.float32(3), np.float32(2), np.float32(0.001)
_SUBSTITUTION, _NULL_PAIR = np.float32(4), np.float32(1)
_MAX_CELLS = 20_000_000  # about 12 bytes each


@dataclass(frozen=True)
class MarkedAlignment:
    """The cheapest pair of paths through two networks."""

    # words of the path through the reference; ``""`` for an inserted optional word, None for another
    # inserted word
    reference: tuple[str | None, ...]
    # words of the path through the hypothesis; ``""`` for a deleted optional word, None for another deleted
    # word
    hypothesis: tuple[str | None, ...]
    # whether each pair counts as correct: two matching words, or a single optional word
    correct: tuple[bool, ...]
    places: tuple[tuple[Place, ...], tuple[Place, ...]]  # places of the words in the two texts as written


def _same(one: MarkedWord, other: MarkedWord, *, fragments: bool) -> bool:
    a, b = one.sound, other.sound
    if a == b and not fragments:
        return True
    if fragments:
        for left, right in ((a, b), (b, a)):
            if len(left) > 1 and left[0] == "-":
                return right.endswith(left[1:])
            if len(left) > 1 and left[-1] == "-":
                return right.startswith(left[:-1])
    return a == b


def _gap(word: MarkedWord) -> np.float32:
    if word.text == NULL:
        return _NULL_GAP
    return _OPTIONAL_GAP if word.optional else _GAP


def align_marked(
    reference: str,
    hypothesis: str,
    normal: Normal | None = None,
    *,
    fragments: bool = False,
) -> MarkedAlignment:
    """Align two transcripts with sclite's markings."""
    one = read_side(reference, normal, fragments=fragments)
    other = read_side(hypothesis, normal, fragments=fragments)
    if len(one) * len(other) > _MAX_CELLS:
        message = (
            f"marked transcripts of {len(one)} and {len(other)} words need a table of more than {_MAX_CELLS} "
            "cells; cut them into utterances"
        )
        raise InvalidRequestError(message, parameter="counts")
    costs, back = _fill(one, other, fragments=fragments)
    return _trace(one, other, costs, back, fragments=fragments)


def _fill(one: Side, other: Side, *, fragments: bool) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Lowest cost of each cell (pair of arcs), and the cell before it."""
    rows, columns = len(one), len(other)
    costs = np.zeros((rows, columns), dtype=np.float32)
    back = np.zeros((rows, columns, 2), dtype=np.int32)
    gaps = [np.float32(0), *(_gap(other.word(b)) for b in range(1, columns))]
    for b in range(1, columns):
        before = min(other.before[b], key=lambda c: costs[0, c])
        costs[0, b] = costs[0, before] + gaps[b]
        back[0, b] = 0, before
    for a in range(1, rows):
        word = one.word(a)
        above = one.before[a]
        nearest = np.array(above)[costs[above].argmin(axis=0)]
        lowest = costs[nearest, np.arange(columns)]
        deleted = lowest + _gap(word)
        row = costs[a]
        row[0] = deleted[0]
        back[a, 0] = nearest[0], 0
        for b in range(1, columns):
            least, i, j = _diagonal(costs, lowest, nearest, above, other.before[b])
            paired = least + _pair(word, other.word(b), fragments=fragments)
            before = min(other.before[b], key=row.__getitem__)
            inserted = row[before] + gaps[b]
            if paired <= deleted[b] and paired <= inserted:
                row[b], back[a, b] = paired, (i, j)
            elif deleted[b] < inserted:
                row[b], back[a, b] = deleted[b], (nearest[b], b)
            else:
                row[b], back[a, b] = inserted, (a, before)
    return costs, back


def _diagonal(
    costs: NDArray[np.float32],
    lowest: NDArray[np.float32],
    nearest: NDArray[np.int64],
    above: Sequence[int],
    before: Sequence[int],
) -> tuple[np.float32, int, int]:
    """The cheapest pair of arcs before a pair; of equally cheap pairs, the one with the first reference arc."""
    if len(before) == 1:
        return lowest[before[0]], int(nearest[before[0]]), before[0]
    i, j = min(((i, j) for i in above for j in before), key=lambda cell: costs[cell])
    return costs[i, j], i, j


def _pair(one: MarkedWord, other: MarkedWord, *, fragments: bool) -> np.float32:
    if one.text == NULL and other.text == NULL:
        return _NULL_PAIR
    return np.float32(0) if _same(one, other, fragments=fragments) else _SUBSTITUTION


def _trace(
    one: Side,
    other: Side,
    costs: NDArray[np.float32],
    back: NDArray[np.int32],
    *,
    fragments: bool,
) -> MarkedAlignment:
    a, b = min(((a, b) for a in one.ends for b in other.ends), key=lambda cell: costs[cell])
    steps: list[tuple[MarkedWord | None, MarkedWord | None, bool]] = []
    while a or b:
        i, j = (int(number) for number in back[a, b])
        said = one.word(a) if i != a else None
        heard = other.word(b) if i == a or j != b else None
        if said and heard:
            steps.append((said, heard, _same(said, heard, fragments=fragments)))
        elif (word := said or heard) and word.text != NULL:
            steps.append((said, heard, word.optional))
        a, b = i, j
    steps.reverse()
    return MarkedAlignment(
        tuple(said.text if said else ("" if right else None) for said, _, right in steps),
        tuple(heard.text if heard else ("" if right else None) for _, heard, right in steps),
        tuple(right for _, _, right in steps),
        (
            tuple(said.place if said else None for said, _, right in steps if said or right),
            tuple(heard.place if heard else None for _, heard, right in steps if heard or right),
        ),
    )
