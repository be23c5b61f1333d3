"""Alignments: which token of the reference stands against which of the hypothesis, and how that looks.

The alignment is a cheapest one under unit costs, the one that rapidfuzz finds and jiwer shows; or NIST's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

from rapidfuzz.distance import Levenshtein

from speechlab.display import Html, diff
from speechlab.errors import InvalidRequestError
from speechlab.metrics._edits import placed_words
from speechlab.metrics._sclite import sclite_blocks
from speechlab.metrics._sclite_marks import Place, align_marked, is_marked
from speechlab.metrics._units import prepare
from speechlab.text import Normalizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from speechlab.metrics._units import Counts, Normalize, Preparation, Tokens

__all__ = [
    "Alignment",
    "Edit",
    "Operation",
    "align_as",
    "alignment_html",
    "alignment_text",
    "has_marks",
    "unmarked",
]

Operation: TypeAlias = Literal["equal", "substitute", "delete", "insert"]
_Blocks: TypeAlias = tuple[tuple[Operation, int, int, int, int], ...]
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


@dataclass(frozen=True, slots=True)
class Alignment:
    """How one hypothesis lines up with its reference.

    Attributes:
        reference: Tokens of the reference.
        hypothesis: Tokens of the hypothesis.
        separator: What stands between two tokens when they are shown: a space for words, nothing for characters.
        language: ISO 639-1 code, if it is known; browsers choose glyphs by it.
        counts: ``"levenshtein"``, or ``"sclite"`` for NIST's way. Where a transcript has sclite's markings, the
            tokens are those of the cheapest alternatives, and ``""`` stands against an optional word that was left
            out.
        places: Where the tokens of both sides stand in the texts as they were written, where that is known already.
        fixed: The blocks, where they are known already.
    """

    reference: Tokens
    hypothesis: Tokens
    separator: str = " "
    language: str | None = None
    counts: Counts = "levenshtein"
    places: tuple[tuple[Place, ...], tuple[Place, ...]] | None = field(default=None, repr=False)
    fixed: _Blocks | None = field(default=None, repr=False, compare=False)

    @property
    def blocks(self) -> _Blocks:
        """Runs of one operation: ``(operation, start, end, start, end)``, first in the reference."""
        if self.fixed is None:
            object.__setattr__(self, "fixed", self._find())
        return cast("_Blocks", self.fixed)

    def _find(self) -> _Blocks:
        reference, hypothesis = self.reference, self.hypothesis
        if reference == hypothesis:
            n = len(reference)
            return (("equal", 0, n, 0, n),) if n else ()
        if self.counts != "levenshtein":
            return sclite_blocks(reference, hypothesis)
        found = Levenshtein.opcodes(reference, hypothesis).as_list()
        runs = cast("list[tuple[str, int, int, int, int]]", found)
        return tuple([(_OPERATIONS[tag], i0, i1, j0, j1) for tag, i0, i1, j0, j1 in runs])

    @property
    def tally(self) -> tuple[int, int, int, int]:
        """Hits, substitutions, deletions and insertions."""
        hits = substitutions = deletions = insertions = 0
        for operation, i0, i1, j0, j1 in self.blocks:
            if operation == "equal":
                hits += i1 - i0
            elif operation == "substitute":
                substitutions += i1 - i0
            elif operation == "delete":
                deletions += i1 - i0
            else:
                insertions += j1 - j0
        return hits, substitutions, deletions, insertions

    @classmethod
    def many(cls, pairs: Iterable[tuple[Tokens, Tokens]], **shared: object) -> Iterator[Alignment]:
        """Alignments that share everything but their tokens, made faster than one by one."""
        model = cls("", "", **shared)  # type: ignore[arg-type]
        # The way around a frozen dataclass's __init__, which costs as much as the alignment itself.
        new, places = cls.__new__, {name: getattr(cls, name).__set__ for name in cls.__slots__}
        set_reference, set_hypothesis = places.pop("reference"), places.pop("hypothesis")
        common = [(place, getattr(model, name)) for name, place in places.items()]
        for reference, hypothesis in pairs:
            alignment = new(cls)
            set_reference(alignment, reference)
            set_hypothesis(alignment, hypothesis)
            for place, value in common:
                place(alignment, value)
            yield alignment

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
        runs: list[tuple[Operation, str, str]] = []
        for operation, i0, i1, j0, j1 in self.blocks:
            old, new = join(self.reference[i0:i1]), join(self.hypothesis[j0:j1])
            if operation == "equal" and "" in self.reference[i0:i1]:
                pairs = zip(self.reference[i0:i1], self.hypothesis[j0:j1], strict=True)
                old = join(said or heard for said, heard in pairs)
            runs.append((operation, old, new))
        return runs

    def _repr_html_(self) -> str:
        return str(self.html)

    def __repr__(self) -> str:
        return f"Alignment({self.text[:200]!r})"


def align_as(
    counts: Counts,
    texts: tuple[str, str],
    preparation: Preparation,
    tokens: tuple[Tokens, Tokens],
) -> Alignment:
    """Align two texts by the counts that were asked for.

    Args:
        counts: As for :func:`speechlab.metrics.error_rate`.
        texts: Reference and hypothesis as they were written.
        preparation: How they become tokens.
        tokens: What they are without markings, after preparation.

    Raises:
        InvalidRequestError: Markings of sclite that cannot be understood, or that stand where no words are counted.
    """
    if counts != "levenshtein":
        braced = [text for text in texts if "{" in text]
        if preparation.unit != "word" and braced:
            message = (
                f"alternates in braces are scored by words only, not by unit={preparation.unit!r}, as in "
                f"{braced[0][:60]!r}; use unit='word', or put one transcript in their place"
            )
            raise InvalidRequestError(message, parameter="counts")
        if preparation.unit == "word" and has_marks(counts, *texts):
            return _marked(*texts, preparation, counts)
    return Alignment(*tokens, preparation.separator, preparation.language, counts)


def has_marks(counts: Counts, *texts: str) -> bool:
    """Whether any of the texts says something to sclite beyond its words."""
    fragments = counts == "sclite-fragments"
    return counts != "levenshtein" and any(is_marked(text, fragments=fragments) for text in texts)


def unmarked(alignment: Alignment) -> tuple[str, str]:
    """The two texts that were compared, without parentheses, and without optional words that one side lacks."""
    texts: list[list[str]] = [[], []]
    for edit in alignment:
        pair = edit.reference, edit.hypothesis
        for words, token in zip(texts, pair, strict=True):
            if token and "" not in pair:
                words.append(token[1:-1] if token[0] == "(" and token[-1] == ")" else token)
    return " ".join(texts[0]), " ".join(texts[1])


def _marked(said: str, heard: str, preparation: Preparation, counts: Counts) -> Alignment:
    rules = preparation.normalize
    plain = isinstance(rules, Normalizer) and not rules.steps
    normal = None if plain else partial(placed_words, preparation=preparation)
    found = align_marked(said, heard, normal, fragments=counts == "sclite-fragments")
    blocks: list[tuple[Operation, int, int, int, int]] = []
    i = j = 0
    for old, new, correct in zip(found.reference, found.hypothesis, found.correct, strict=True):
        operation: Operation = (
            "equal" if correct else "insert" if old is None else "delete" if new is None else "substitute"
        )
        i1, j1 = i + (old is not None), j + (new is not None)
        if blocks and blocks[-1][0] == operation:
            _, i, _, j, _ = blocks.pop()
        blocks.append((operation, i, i1, j, j1))
        i, j = i1, j1
    one = tuple(word for word in found.reference if word is not None)
    other = tuple(word for word in found.hypothesis if word is not None)
    return Alignment(one, other, " ", preparation.language, counts, found.places, tuple(blocks))


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
