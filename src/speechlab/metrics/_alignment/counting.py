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

# From this many tokens on it pays to tell rapidfuzz that an error rate of 20 % or less is likely: it is several times
# faster then, up to twice as slow where most tokens are wrong, and the number is the same. Edits are found without
# such a hint: of several ways with as few errors it could lead to another than jiwer's.
_LONG = 500


def errors_and_lengths(
    said: list[str], heard: list[str], preparation: Preparation
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Errors and reference lengths of many pairs of canonical texts: cheaper than their edits."""
    distance = Levenshtein.distance
    if not preparation.separator:
        sizes = np.fromiter(map(len, said), np.int64, len(said))
        if sizes.max(initial=0) < _LONG:
            # Without a loop in Python: it would take as long as the comparisons.
            return cpdist(said, heard, scorer=distance, dtype=np.int64), sizes
        pairs = zip(said, heard, sizes.tolist(), strict=True)
        found = [distance(a, b, score_hint=size // 5 if size >= _LONG else None) for a, b, size in pairs]
        return np.array(found, dtype=np.int64), sizes
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


def edits_and_counts(
    said: list[str], heard: list[str], cut: Callable[[str], Tokens]
) -> tuple[list[Editops | None], NDArray[np.int64]]:
    """The cheapest edits of many pairs of canonical texts, which alignments are made of, and what they count.

    Returns:
        The edits, None for equal texts; and hits, substitutions, deletions and insertions (columns) of each pair
        (rows), as jiwer counts them.
    """
    editops = Levenshtein.editops
    found: list[Editops | None] = []
    columns: tuple[list[int], list[int], list[int], list[int]] = ([], [], [], [])
    keep, add_said, add_heard, add_errors, add_substitutions = found.append, *(c.append for c in columns)
    for one, other in zip(said, heard, strict=True):
        reference = cut(one)
        add_said(len(reference))
        if one == other:
            keep(None)
            add_heard(len(reference))
            add_errors(0)
            add_substitutions(0)
            continue
        hypothesis = cut(other)
        edits = editops(reference, hypothesis)
        keep(edits)
        add_heard(len(hypothesis))
        add_errors(len(edits))
        add_substitutions([edit[0] for edit in edits.as_list()].count("replace"))
    references, hypotheses, errors, substitutions = np.array(columns, dtype=np.int64)
    # What is left are deletions and insertions; their difference is that of the lengths.
    deletions = (errors - substitutions + references - hypotheses) // 2
    hits = references - substitutions - deletions
    return found, np.column_stack([hits, substitutions, deletions, errors - substitutions - deletions])


def runs_of(edits: Editops) -> tuple[Run, ...]:
    """Runs of one operation: ``(operation, start, end, start, end)``, first in the reference."""
    found = cast("list[Any]", Opcodes.from_editops(edits).as_list())
    # rapidfuzz calls a substitution "replace".
    return tuple([run if run[0] != "replace" else ("substitute", *run[1:]) for run in found])
