"""Errors by unit costs, as fast as rapidfuzz can count them.

What costs time is not the comparison but everything around it: objects for each token, function calls for each pair.
So there are none that can be avoided, and equal texts are not split twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
from rapidfuzz.distance import Editops, Levenshtein, Opcodes
from rapidfuzz.process import cpdist

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from speechlab.metrics._alignment.units import Preparation, Tokens

Operation: TypeAlias = Literal["equal", "substitute", "delete", "insert"]
Run: TypeAlias = tuple[Operation, int, int, int, int]

# From this many words on it pays to tell rapidfuzz that an error rate of 20 % or less is likely: it is several times
# faster then, and no slower, nor another number, where the guess is wrong.
_LONG = 500


def errors_and_lengths(
    said: list[str], heard: list[str], preparation: Preparation
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Errors and reference lengths of many pairs of canonical texts: cheaper than their edits."""
    distance = Levenshtein.distance
    if not preparation.separator:
        # Without a loop in Python: it would take as long as the comparisons.
        found = cpdist(said, heard, scorer=distance, dtype=np.int64)
        return found, np.fromiter(map(len, said), np.int64, len(said))
    errors, lengths = [], []
    for one, other in zip(said, heard, strict=True):
        reference = one.split()
        length = len(reference)
        lengths.append(length)
        if one == other:
            errors.append(0)
        elif length < _LONG:
            errors.append(distance(reference, other.split()))
        else:
            errors.append(distance(reference, other.split(), score_hint=length // 5))
    return np.array(errors, dtype=np.int64), np.array(lengths, dtype=np.int64)


def edits_of(said: list[str], heard: list[str], cut: Callable[[str], Tokens]) -> list[Editops]:
    """The cheapest edits of many pairs of canonical texts: what counts and alignments are made of."""
    editops = Levenshtein.editops
    found = []
    for one, other in zip(said, heard, strict=True):
        reference = cut(one)
        n = len(reference)
        found.append(Editops([], n, n) if one == other else editops(reference, cut(other)))
    return found


def count_edits(found: list[Editops]) -> NDArray[np.int64]:
    """Hits, substitutions, deletions and insertions (columns) of each pair (rows), as jiwer counts them."""
    columns = (
        [edits.src_len for edits in found],
        [edits.dest_len for edits in found],
        [len(edits) for edits in found],
        [[edit[0] for edit in edits.as_list()].count("replace") for edits in found],
    )
    said, heard, errors, substitutions = np.array(columns, dtype=np.int64)
    # What is left are deletions and insertions; their difference is that of the lengths.
    deletions = (errors - substitutions + said - heard) // 2
    hits = said - substitutions - deletions
    return np.column_stack([hits, substitutions, deletions, errors - substitutions - deletions])


def runs_of(edits: Editops) -> tuple[Run, ...]:
    """Runs of one operation: ``(operation, start, end, start, end)``, first in the reference."""
    found = cast("list[Any]", Opcodes.from_editops(edits).as_list())
    # rapidfuzz calls a substitution "replace".
    return tuple(
        [run if run[0] != "replace" else ("substitute", run[1], run[2], run[3], run[4]) for run in found]
    )
