"""Alignments: which token of the reference stands against which of the hypothesis, and how that looks.

The alignment is a cheapest one under unit costs, the one that rapidfuzz finds and jiwer shows; or NIST's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

from rapidfuzz.distance import Levenshtein

from speechlab.display import Html, diff
from speechlab.metrics._sclite import sclite_blocks
from speechlab.metrics._units import prepare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from speechlab.metrics._units import Counts, Normalize, Tokens

__all__ = ["Alignment", "Edit", "Operation", "alignment_html", "alignment_text"]

Operation: TypeAlias = Literal["equal", "substitute", "delete", "insert"]
_OPERATIONS: dict[str, Operation] = {
    "equal": "equal",
    "replace": "substitute",
    "delete": "delete",
    "insert": "insert",
}


class Edit(NamedTuple):
    """One step of an alignment.

    Attributes:
        operation: ``"equal"``, ``"substitute"``, ``"delete"`` or ``"insert"``.
        reference: Token of the reference; None for an insertion.
        hypothesis: Token of the hypothesis; None for a deletion.
        reference_index: Index of the token in the reference; for an insertion, of the token that follows.
        hypothesis_index: Index of the token in the hypothesis; for a deletion, of the token that follows.
    """

    operation: Operation
    reference: str | None
    hypothesis: str | None
    reference_index: int
    hypothesis_index: int


@dataclass(frozen=True)
class Alignment:
    """How one hypothesis lines up with its reference.

    Attributes:
        reference: Tokens of the reference.
        hypothesis: Tokens of the hypothesis.
        separator: What stands between two tokens when they are shown: a space for words, nothing for characters.
        language: ISO 639-1 code, if it is known; browsers choose glyphs by it.
        counts: ``"levenshtein"``, or ``"sclite"`` for NIST's way.
    """

    reference: Tokens
    hypothesis: Tokens
    separator: str = " "
    language: str | None = None
    counts: Counts = "levenshtein"

    @cached_property
    def blocks(self) -> tuple[tuple[Operation, int, int, int, int], ...]:
        """Runs of one operation: ``(operation, start, end, start, end)``, first in the reference."""
        if self.counts == "sclite":
            return sclite_blocks(self.reference, self.hypothesis)
        found = Levenshtein.opcodes(self.reference, self.hypothesis).as_list()
        runs = cast("list[tuple[str, int, int, int, int]]", found)
        return tuple((_OPERATIONS[tag], i0, i1, j0, j1) for tag, i0, i1, j0, j1 in runs)

    @property
    def tally(self) -> tuple[int, int, int, int]:
        """Hits, substitutions, deletions and insertions."""
        totals = {"equal": 0, "substitute": 0, "delete": 0, "insert": 0}
        for operation, i0, i1, j0, j1 in self.blocks:
            totals[operation] += max(i1 - i0, j1 - j0)
        return totals["equal"], totals["substitute"], totals["delete"], totals["insert"]

    def __iter__(self) -> Iterator[Edit]:
        """One :class:`Edit` for each step."""
        for operation, i0, i1, j0, j1 in self.blocks:
            if operation == "insert":
                yield from (Edit(operation, None, self.hypothesis[j], i0, j) for j in range(j0, j1))
            elif operation == "delete":
                yield from (Edit(operation, self.reference[i], None, i, j0) for i in range(i0, i1))
            else:
                for i, j in zip(range(i0, i1), range(j0, j1), strict=True):
                    yield Edit(operation, self.reference[i], self.hypothesis[j], i, j)

    @property
    def text(self) -> str:
        """The difference as plain text: ``[-only in the reference-]`` and ``{+only in the hypothesis+}``."""
        parts = []
        for operation, old, new in self._runs():
            gone = f"[-{old}-]" if operation in {"substitute", "delete"} else ""
            come = f"{{+{new}+}}" if operation in {"substitute", "insert"} else ""
            parts.append(old if operation == "equal" else gone + come)
        return self.separator.join(parts)

    @property
    def html(self) -> Html:
        """The difference as HTML: ``<del>`` struck out, ``<ins>`` underlined, all text escaped."""
        return diff(self._runs(), lang=self.language, separator=self.separator)

    def _runs(self) -> list[tuple[Operation, str, str]]:
        join = self.separator.join
        return [
            (operation, join(self.reference[i0:i1]), join(self.hypothesis[j0:j1]))
            for operation, i0, i1, j0, j1 in self.blocks
        ]

    def _repr_html_(self) -> str:
        return str(self.html)

    def __repr__(self) -> str:
        return f"Alignment({self.text[:200]!r})"


def align(
    reference: str, hypothesis: str, unit: str, language: str | None, normalize: Normalize
) -> Alignment:
    """Normalise and split two texts, and align them."""
    preparation = prepare(unit, language, normalize)
    return Alignment(
        preparation.tokens(reference),
        preparation.tokens(hypothesis),
        preparation.separator,
        preparation.language,
    )


def alignment_text(
    reference: str,
    hypothesis: str,
    unit: str = "word",
    *,
    language: str | None = None,
    normalize: Normalize = "auto",
) -> str:
    """The difference of two texts as plain text.

    Args:
        reference: What should be there.
        hypothesis: What is there.
        unit: As for :func:`speechlab.metrics.error_rate`.
        language: Language of both, such as ``"ja"``.
        normalize: As for :func:`speechlab.metrics.error_rate`.

    Example:
        >>> alignment_text("this is a test", "this was test")
        'this [-is-]{+was+} [-a-] test'
    """
    return align(reference, hypothesis, unit, language, normalize).text


def alignment_html(
    reference: str,
    hypothesis: str,
    unit: str = "word",
    *,
    language: str | None = None,
    normalize: Normalize = "auto",
) -> Html:
    """The difference of two texts as HTML: a str that a notebook shows.

    What is only in the reference is struck out (``<del>``), what is only in the hypothesis underlined
    (``<ins>``); colour is never the only sign. All text is escaped.

    Args:
        reference: What should be there.
        hypothesis: What is there.
        unit: As for :func:`speechlab.metrics.error_rate`.
        language: Language of both, such as ``"ja"``.
        normalize: As for :func:`speechlab.metrics.error_rate`.
    """
    return align(reference, hypothesis, unit, language, normalize).html
