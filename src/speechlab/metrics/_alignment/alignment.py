"""Alignments of reference and hypothesis by token, at the lowest cost under unit costs, and their display."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

from rapidfuzz.distance import Editops, Levenshtein, Opcodes

from speechlab.display import Html, diff

if TYPE_CHECKING:
    from speechlab.metrics._alignment.units import Tokens

Operation: TypeAlias = Literal["equal", "substitute", "delete", "insert"]
# Runs of one operation, each with its start and end in the reference and in the hypothesis.
_Blocks: TypeAlias = tuple[tuple[Operation, int, int, int, int], ...]


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

    Example:
        >>> alignment = Alignment(("good", "morning"), ("good", "mourning"))
        >>> alignment.text
        'good [-morning-]{+mourning+}'
    """

    __slots__ = ("_found", "_heard", "_said", "_uncut", "language", "separator")

    def __init__(
        self,
        reference: Tokens,
        hypothesis: Tokens,
        separator: str = " ",
        language: str | None = None,
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
        self._found = blocks

    @property
    def reference(self) -> Tokens:
        """Tokens of the reference."""
        return self._tokenize_side(self._said)

    @property
    def hypothesis(self) -> Tokens:
        """Tokens of the hypothesis."""
        return self._tokenize_side(self._heard)

    def _tokenize_side(self, side: Tokens) -> Tokens:
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
            else:
                blocks = Levenshtein.editops(reference, hypothesis)
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
        """Yield one :class:`Edit` for each step."""
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
        for operation, old, new in self._list_runs():
            removed = f"[-{old}-]" if operation in {"substitute", "delete"} else ""
            come = f"{{+{new}+}}" if operation in {"substitute", "insert"} else ""
            texts.append(old if operation == "equal" else removed + come)
        return self.separator.join(texts)

    @property
    def html(self) -> Html:
        """The difference as HTML: ``<del>`` struck out, ``<ins>`` underlined, all text escaped."""
        return diff(self._list_runs(), lang=self.language, separator=self.separator)

    def _list_runs(self) -> list[tuple[Operation, str, str]]:
        join = self.separator.join
        reference, hypothesis = self.reference, self.hypothesis
        return [
            (operation, join(reference[i0:i1]), join(hypothesis[j0:j1]))
            for operation, i0, i1, j0, j1 in self.blocks
        ]

    def __eq__(self, other: object) -> bool:
        return (
            self._build_equality_key() == other._build_equality_key()
            if isinstance(other, Alignment)
            else NotImplemented
        )

    def __hash__(self) -> int:
        return hash(self._build_equality_key())

    def _build_equality_key(self) -> tuple[object, ...]:
        sides = tuple(self.reference), tuple(self.hypothesis)
        return (*sides, self.separator, self.language)

    def __reduce__(self) -> tuple[object, ...]:
        # The edits of rapidfuzz cannot be pickled.
        how = self.separator, self.language
        return Alignment, (self._said, self._heard, *how, self.blocks, self._uncut)

    def _repr_html_(self) -> str:
        return str(self.html)

    def __repr__(self) -> str:
        return f"Alignment({self.text[:200]!r})"
