"""Errors by unit costs, as fast as rapidfuzz can count them.

Most of the time goes into the work around a comparison: objects for each token and function calls for each pair. So
the code avoids both where possible, and splits equal texts only once.
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

# From this many tokens on, rapidfuzz gets the hint that an error rate of at most 20 % is likely. The distance is the
# same. It is found several times faster, but up to twice as slowly if most tokens are wrong. Edits are found without
# this hint, because it could lead to other edits than jiwer's with the same number of errors.
_LONG = 500


def errors_and_lengths(
    said: list[str], heard: list[str], preparation: Preparation
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Errors and reference lengths of many pairs of canonical texts, in less time than their edits."""
    distance = Levenshtein.distance
    if not preparation.separator:
        sizes = np.fromiter(map(len, said), np.int64, len(said))
        if sizes.max(initial=0) < _LONG:
            # Not a loop in Python, which would take as long as the comparisons.
            return cpdist(said, heard, scorer=distance, dtype=np.int64), sizes
        pairs = zip(said, heard, sizes.tolist(), strict=True)
        distances = [distance(a, b, score_hint=size // 5 if size >= _LONG else None) for a, b, size in pairs]
        return np.array(distances, dtype=np.int64), sizes
    errors, lengths = [], []
    for first, second in zip(said, heard, strict=True):
        reference = first.split()
        length = len(reference)
        lengths.append(length)
        if first == second:
            errors.append(0)
        elif length < _LONG:
            errors.append(distance(reference, second.split()))
        else:
            errors.append(distance(reference, second.split(), score_hint=length // 5))
    return np.array(errors, dtype=np.int64), np.array(lengths, dtype=np.int64)


def edits_and_counts(
    said: list[str], heard: list[str], cut: Callable[[str], Tokens]
) -> tuple[list[Editops | None], NDArray[np.int64]]:
    """The cheapest edits of many pairs of canonical texts, and their counts."""
    editops = Levenshtein.editops
    all_edits: list[Editops | None] = []
    columns: tuple[list[int], list[int], list[int], list[int]] = ([], [], [], [])
    keep, add_said, add_heard, add_errors, add_substitutions = all_edits.append, *(c.append for c in columns)
    for first, second in zip(said, heard, strict=True):
        reference = cut(first)
        add_said(len(reference))
        if first == second:
            keep(None)
            add_heard(len(reference))
            add_errors(0)
            add_substitutions(0)
            continue
        hypothesis = cut(second)
        edits = editops(reference, hypothesis)
        keep(edits)
        add_heard(len(hypothesis))
        add_errors(len(edits))
        add_substitutions([edit[0] for edit in edits.as_list()].count("replace"))
    references, hypotheses, errors, substitutions = np.array(columns, dtype=np.int64)
    # The other errors are deletions and insertions. Their difference is the difference of the lengths.
    deletions = (errors - substitutions + references - hypotheses) // 2
    hits = references - substitutions - deletions
    return all_edits, np.column_stack([hits, substitutions, deletions, errors - substitutions - deletions])


def runs_of(edits: Editops) -> tuple[Run, ...]:
    """Runs of one operation: ``(operation, start, end, start, end)`` in the reference and in the hypothesis."""
    opcodes = cast("list[Any]", Opcodes.from_editops(edits).as_list())
    # rapidfuzz calls a substitution "replace".
    return tuple([run if run[0] != "replace" else ("substitute", *run[1:]) for run in opcodes])
