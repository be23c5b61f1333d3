"""Alignments of reference and hypothesis by token, and their display.

An alignment has the lowest cost under unit costs, as in rapidfuzz and jiwer, or is that of NIST's sclite, which
minimises a cost, not the number of errors. A substitution costs 4, an insertion or a deletion 3. So a substitution is
preferred to a deletion with an insertion. But three deletions with three insertions (18) are preferred to five
substitutions (20), so an alignment may have more errors than necessary. Among alignments of equal cost, sclite
prefers, from the end backwards, a pair of words to an insertion and an insertion to a deletion. With these rules, the
counts agree with the program in all cases of the tests. Transcripts with alternates ``{a / b}`` are refused.

Source: NIST Scoring Toolkit (SCTK) 2.4.10, sclite. The order of preference was found by experiment.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np
from rapidfuzz.distance import Editops, Levenshtein, Opcodes

from speechlab.display import Html, diff
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.metrics._alignment.units import Counts, Tokens

Operation: TypeAlias = Literal["equal", "substitute", "delete", "insert"]
_Blocks: TypeAlias = tuple[tuple[Operation, int, int, int, int], ...]
"""Runs of one operation, each with its start and end in the reference and in the hypothesis."""
_SUBSTITUTION, _GAP = 4, 3
_DIAGONAL, _INSERTION, _DELETION = 0, 1, 2
_MAX_CELLS = 200_000_000  # one byte each


class Edit(NamedTuple):
    """One step of an alignment.

    Attributes:
        operation: ``"equal"``, ``"substitute"``, ``"delete"`` or ``"insert"``.
        reference: Token of the reference; None for an insertion.
        hypothesis: Token of the hypothesis; None for a deletion.
        reference_index: Index of the token in the reference; for an insertion, index of the next token.
        hypothesis_index: Index of the token in the hypothesis; for a deletion, index of the next token.

    Example:
        >>> [edit.operation for edit in Alignment(("good", "morning"), ("good",))]
        ['equal', 'delete']
    """

    operation: Operation
    reference: str | None
    hypothesis: str | None
    reference_index: int
    hypothesis_index: int


class Alignment:
    """The alignment of one hypothesis with its reference. Immutable.

    Attributes:
        separator: Separator of tokens for display: a space for words, empty for characters.
        language: ISO 639-1 code, or None; browsers choose glyphs by it.
        counts: ``"levenshtein"``, or ``"sclite"`` for NIST's rules.

    Example:
        >>> alignment = Alignment(("good", "morning"), ("good", "mourning"))
        >>> alignment.text
        'good [-morning-]{+mourning+}'
    """

    __slots__ = ("_found", "_heard", "_said", "_uncut", "counts", "language", "separator")

    def __init__(
        self,
        reference: Tokens,
        hypothesis: Tokens,
        separator: str = " ",
        language: str | None = None,
        counts: Counts = "levenshtein",
        blocks: _Blocks | Editops | None = None,
        uncut: bool = False,
    ) -> None:
        # Words may come as one text (``uncut``), which is split on use: lists of words for very many utterances would
        # take more time than their alignments.
        self._uncut = uncut
        self._said = reference
        self._heard = hypothesis
        self.separator = separator
        self.language = language
        self.counts: Counts = counts
        self._found = blocks

    @property
    def reference(self) -> Tokens:
        """Tokens of the reference."""
        return self._cut(self._said)

    @property
    def hypothesis(self) -> Tokens:
        """Tokens of the hypothesis."""
        return self._cut(self._heard)

    def _cut(self, side: Tokens) -> Tokens:
        return tuple(side.split()) if self._uncut and isinstance(side, str) else side

    @property
    def blocks(self) -> _Blocks:
        """Runs of one operation: ``(operation, start, end, start, end)`` in the reference and in the hypothesis."""
        blocks = self._found
        if blocks is None:
            same = self._said == self._heard
            reference = self.reference
            hypothesis = reference if same else self.hypothesis
            if same or reference == hypothesis:
                hits: _Blocks = (("equal", 0, len(reference), 0, len(reference)),)
                blocks = hits if reference else ()
            elif self.counts == "levenshtein":
                blocks = Levenshtein.editops(reference, hypothesis)
            else:
                blocks = sclite_blocks(reference, hypothesis)
        if not isinstance(blocks, tuple):
            opcodes = cast("list[Any]", Opcodes.from_editops(blocks).as_list())
            # rapidfuzz calls a substitution "replace".
            blocks = tuple([run if run[0] != "replace" else ("substitute", *run[1:]) for run in opcodes])
        self._found = blocks
        return blocks

    @property
    def tally(self) -> tuple[int, int, int, int]:
        """Hits, substitutions, deletions and insertions."""
        counts = dict.fromkeys(("equal", "substitute", "delete", "insert"), 0)
        for operation, i0, i1, j0, j1 in self.blocks:
            counts[operation] += j1 - j0 if operation == "insert" else i1 - i0
        return counts["equal"], counts["substitute"], counts["delete"], counts["insert"]

    def __iter__(self) -> Iterator[Edit]:
        """One :class:`Edit` for each step."""
        reference, hypothesis = self.reference, self.hypothesis
        for operation, i0, i1, j0, j1 in self.blocks:
            if operation == "insert":
                yield from (Edit(operation, None, hypothesis[j], i0, j) for j in range(j0, j1))
            elif operation == "delete":
                yield from (Edit(operation, reference[i], None, i, j0) for i in range(i0, i1))
            else:
                for i, j in zip(range(i0, i1), range(j0, j1), strict=True):
                    yield Edit(operation, reference[i], hypothesis[j], i, j)

    @property
    def text(self) -> str:
        """The difference as plain text: ``[-only in the reference-]`` and ``{+only in the hypothesis+}``."""
        texts = []
        for operation, old, new in self._runs():
            removed = f"[-{old}-]" if operation in {"substitute", "delete"} else ""
            come = f"{{+{new}+}}" if operation in {"substitute", "insert"} else ""
            texts.append(old if operation == "equal" else removed + come)
        return self.separator.join(texts)

    @property
    def html(self) -> Html:
        """The difference as HTML: ``<del>`` struck out, ``<ins>`` underlined, all text escaped."""
        return diff(self._runs(), lang=self.language, separator=self.separator)

    def _runs(self) -> list[tuple[Operation, str, str]]:
        join = self.separator.join
        reference, hypothesis = self.reference, self.hypothesis
        return [
            (operation, join(reference[i0:i1]), join(hypothesis[j0:j1]))
            for operation, i0, i1, j0, j1 in self.blocks
        ]

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Alignment) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        sides = tuple(self.reference), tuple(self.hypothesis)
        return (*sides, self.separator, self.language, self.counts)

    def __reduce__(self) -> tuple[object, ...]:
        # The edits of rapidfuzz cannot be pickled.
        how = self.separator, self.language, self.counts
        return Alignment, (self._said, self._heard, *how, self.blocks, self._uncut)

    def _repr_html_(self) -> str:
        return str(self.html)

    def __repr__(self) -> str:
        return f"Alignment({self.text[:200]!r})"


def sclite_blocks(reference: Tokens, hypothesis: Tokens) -> _Blocks:
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


def _blocks(moves: NDArray[np.uint8], reference: Tokens, hypothesis: Tokens) -> _Blocks:
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
