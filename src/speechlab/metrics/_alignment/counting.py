"""Counting errors of many pairs by unit costs, as fast as rapidfuzz can.

What costs time is not the comparison but everything around it: objects for each token, function calls for each pair.
So there are none that can be avoided, and equal texts are not split twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.metrics._alignment.units import Preparation, Tokens

Operation: TypeAlias = Literal["equal", "substitute", "delete", "insert"]
Run: TypeAlias = tuple[Operation, int, int, int, int]

# From this many words on it pays to tell rapidfuzz that an error rate of 20 % or less is likely: it is several times
# faster then, and no slower, nor another number, where the guess is wrong.
_LONG = 500


def count_edits(reference: Tokens, hypothesis: Tokens) -> tuple[int, int, int, int]:
    """Hits, substitutions, deletions and insertions of one pair, as jiwer counts them."""
    if reference == hypothesis:
        return len(reference), 0, 0, 0
    edits = Levenshtein.editops(reference, hypothesis).as_list()
    substitutions = [edit[0] for edit in edits].count("replace")
    # What is left are deletions and insertions; their difference is that of the lengths.
    longer = len(reference) - len(hypothesis)
    deletions = (len(edits) - substitutions + longer) // 2
    return len(reference) - substitutions - deletions, substitutions, deletions, deletions - longer


def count_many(said: list[str], heard: list[str], preparation: Preparation) -> NDArray[np.int64]:
    """The same of many pairs of canonical texts, one row for each: ``count_edits`` by columns."""
    cut, editops = preparation.cut, Levenshtein.editops
    lengths, longer, errors, substitutions = [], [], [], []
    for one, other in zip(said, heard, strict=True):
        reference = cut(one)
        length = len(reference)
        lengths.append(length)
        if one == other:
            longer.append(0)
            errors.append(0)
            substitutions.append(0)
            continue
        hypothesis = cut(other)
        edits = editops(reference, hypothesis).as_list()
        longer.append(length - len(hypothesis))
        errors.append(len(edits))
        substitutions.append([edit[0] for edit in edits].count("replace"))
    length_, longer_, errors_, substitutions_ = np.array(
        [lengths, longer, errors, substitutions], dtype=np.int64
    )
    deletions = (errors_ - substitutions_ + longer_) // 2
    return np.column_stack(
        [length_ - substitutions_ - deletions, substitutions_, deletions, deletions - longer_]
    )


def cheapest_runs(reference: Tokens, hypothesis: Tokens) -> tuple[list[Run], int, int]:
    """Runs of the cheapest alignment, how many tokens of it are hits, and how many substitutions."""
    hits = substitutions = 0
    runs: list[Run] = []
    found = cast("list[Run]", Levenshtein.opcodes(reference, hypothesis).as_list())
    for run in found:
        tag, start, end, start_heard, end_heard = run
        if tag == "equal":
            hits += end - start
            runs.append(run)
        elif tag in {"delete", "insert"}:
            runs.append(run)
        else:  # "replace", as rapidfuzz calls it
            substitutions += end - start
            runs.append(("substitute", start, end, start_heard, end_heard))
    return runs, hits, substitutions


def align_many(
    said: list[str], heard: list[str], preparation: Preparation
) -> tuple[list[tuple[Run, ...]], NDArray[np.int64]]:
    """Runs of many pairs of canonical texts, and what :func:`count_many` would return."""
    cut = preparation.cut
    blocks: list[tuple[Run, ...]] = []
    counts: list[tuple[int, int, int, int]] = []
    for one, other in zip(said, heard, strict=True):
        reference = cut(one)
        n = len(reference)
        if one == other:
            blocks.append((("equal", 0, n, 0, n),) if n else ())
            counts.append((n, 0, 0, 0))
            continue
        hypothesis = cut(other)
        runs, hits, substitutions = cheapest_runs(reference, hypothesis)
        blocks.append(tuple(runs))
        matched = hits + substitutions
        counts.append((hits, substitutions, n - matched, len(hypothesis) - matched))
    return blocks, np.array(counts, dtype=np.int64).reshape(-1, 4)


def errors_and_lengths(
    said: list[str], heard: list[str], preparation: Preparation
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Errors and reference lengths of many pairs of canonical texts, without counts or alignments."""
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
