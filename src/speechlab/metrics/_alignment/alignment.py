"""Alignments: which token of the reference stands against which of the hypothesis, and how that looks.

The alignment is a cheapest one under unit costs, the one that rapidfuzz finds and jiwer shows; or NIST's.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from speechlab.display import Html, diff
from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.counting import Operation, Run, align_many, cheapest_runs
from speechlab.metrics._alignment.edits import placed_words
from speechlab.metrics._alignment.sclite import sclite_blocks
from speechlab.metrics._alignment.sclite_marks import align_marked
from speechlab.metrics._alignment.sclite_network import Place, is_marked
from speechlab.metrics._alignment.units import prepare
from speechlab.metrics._arguments import check_text
from speechlab.text import Normalizer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from speechlab.metrics._alignment.units import Counts, Normalize, Preparation, Tokens

_Blocks: TypeAlias = tuple[Run, ...]


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


class Alignment:
    """How one hypothesis lines up with its reference. Not to be changed once it is made.

    Attributes:
        separator: What stands between two tokens when they are shown: a space for words, nothing for characters.
        language: ISO 639-1 code, if it is known; browsers choose glyphs by it.
        counts: ``"levenshtein"``, or ``"sclite"`` for NIST's way. Where a transcript has sclite's markings, the
            tokens are those of the cheapest alternatives, and ``""`` stands against an optional word that was left
            out.
        places: Where the tokens of both sides stand in the texts as they were written, where that is known already.
    """

    __slots__ = ("_blocks", "_heard", "_said", "_uncut", "counts", "language", "places", "separator")

    def __init__(
        self,
        reference: Tokens,
        hypothesis: Tokens,
        separator: str = " ",
        language: str | None = None,
        counts: Counts = "levenshtein",
        places: tuple[tuple[Place, ...], tuple[Place, ...]] | None = None,
        blocks: _Blocks | None = None,
        uncut: bool = False,
    ) -> None:
        # Words may come as one text (``uncut``), and are cut when they are asked for: keeping lists of words of very
        # many utterances takes more time than finding their alignments.
        self._uncut = uncut
        self._said = reference
        self._heard = hypothesis
        self.separator = separator
        self.language = language
        self.counts: Counts = counts
        self.places = places
        self._blocks = blocks

    @property
    def reference(self) -> Tokens:
        """Tokens of the reference."""
        said = self._said
        return tuple(said.split()) if self._uncut and isinstance(said, str) else said

    @property
    def hypothesis(self) -> Tokens:
        """Tokens of the hypothesis."""
        heard = self._heard
        return tuple(heard.split()) if self._uncut and isinstance(heard, str) else heard

    @property
    def blocks(self) -> _Blocks:
        """Runs of one operation: ``(operation, start, end, start, end)``, first in the reference."""
        found = self._blocks
        if found is None:
            found = self._blocks = self._find()
        return found

    def _find(self) -> _Blocks:
        reference, hypothesis = self.reference, self.hypothesis
        if reference == hypothesis:
            n = len(reference)
            return (("equal", 0, n, 0, n),) if n else ()
        if self.counts != "levenshtein":
            return sclite_blocks(reference, hypothesis)
        return tuple(cheapest_runs(reference, hypothesis)[0])

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
        reference, hypothesis = self.reference, self.hypothesis
        runs: list[tuple[Operation, str, str]] = []
        for operation, i0, i1, j0, j1 in self.blocks:
            said, heard = reference[i0:i1], hypothesis[j0:j1]
            old, new = join(said), join(heard)
            if operation == "equal" and "" in said:
                old = join(one or other for one, other in zip(said, heard, strict=True))
            runs.append((operation, old, new))
        return runs

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Alignment) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        sides = tuple(self.reference), tuple(self.hypothesis)
        return (*sides, self.separator, self.language, self.counts, self.places)

    def _repr_html_(self) -> str:
        return str(self.html)

    def __repr__(self) -> str:
        return f"Alignment({self.text[:200]!r})"


def alignments_of(
    said: list[str], heard: list[str], preparation: Preparation
) -> tuple[tuple[Alignment, ...], NDArray[np.int64]]:
    """Alignments of many pairs of canonical texts by unit costs, and their counts as by ``count_many``."""
    blocks, counts = align_many(said, heard, preparation)
    separator, language = preparation.separator, preparation.language
    return tuple(
        [
            Alignment(one, other, separator, language, "levenshtein", None, found, bool(separator))
            for one, other, found in zip(said, heard, blocks, strict=True)
        ]
    ), counts


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
    check_text(reference, "reference")
    check_text(hypothesis, "hypothesis")
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
