"""Alignments and counts by the rules of NIST's scorer sclite.

sclite minimises a cost, not the number of errors. A substitution costs 4, an insertion or a deletion 3. So a
substitution is preferred to a deletion with an insertion. But three deletions with three insertions (18) are
preferred to five substitutions (20), so an alignment may have more errors than necessary. Among alignments of equal
cost, sclite prefers, from the end backwards, a pair of words to an insertion and an insertion to a deletion. With
these rules, the counts agree with the program in all cases of the tests. Transcripts with alternates ``{a / b}`` are
refused.

Source: NIST Scoring Toolkit (SCTK) 2.4.10, sclite. The order of preference was found by experiment.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from speechlab.metrics._alignment.units import Tokens

Operation: TypeAlias = Literal["equal", "substitute", "delete", "insert"]
Run: TypeAlias = tuple[Operation, int, int, int, int]
"""A run of one operation, with its start and end in the reference and in the hypothesis."""

_SUBSTITUTION, _GAP = 4, 3
_DIAGONAL, _INSERTION, _DELETION = 0, 1, 2
_MAX_CELLS = 200_000_000  # one byte each
_ALTERNATES = re.compile(r"\{[^{}]*/[^{}]*\}")


def check_unmarked(*sides: Iterable[str]) -> None:
    """Refuse alternates, which would be counted as words."""
    marked = next((text for text in chain(*sides) if _ALTERNATES.search(text)), None)
    if marked is not None:
        message = (
            f"alternates in braces are not read, as in {marked[:60]!r}; write one of them in their place, and "
            "name words that count as one with variants="
        )
        raise InvalidRequestError(message, parameter="counts")


def sclite_blocks(reference: Tokens, hypothesis: Tokens) -> tuple[Run, ...]:
    """Align one pair as sclite does."""
    if len(reference) * len(hypothesis) > _MAX_CELLS:
        message = (
            f"sclite's counts need a table of {len(reference)} x {len(hypothesis)} tokens, more than {_MAX_CELLS} "
            "cells; cut the texts into utterances, or use counts='levenshtein'"
        )
        raise InvalidRequestError(message, parameter="counts")
    numbers = {token: number for number, token in enumerate(dict.fromkeys(chain(reference, hypothesis)))}
    first, second = (
        np.array([numbers[token] for token in side], np.int64) for side in (reference, hypothesis)
    )
    return _blocks(_moves(first, second), reference, hypothesis)


def _moves(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The best last move into each cell, row by row."""
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


def _blocks(moves: NDArray[np.uint8], reference: Tokens, hypothesis: Tokens) -> tuple[Run, ...]:
    i, j = len(reference), len(hypothesis)
    backwards: list[Run] = []
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
