"""Pairs of a reference and a hypothesis, on their way from texts to errors, counts and alignments."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.alignment import Alignment
from speechlab.metrics._alignment.counting import (
    Operation,
    edits_and_counts,
    errors_and_lengths,
)
from speechlab.metrics._alignment.merging import merged
from speechlab.metrics._alignment.places import placed_words
from speechlab.metrics._alignment.sclite_marks import align_marked
from speechlab.metrics._alignment.sclite_network import is_marked
from speechlab.text import Normalizer

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rapidfuzz.distance import Editops

    from speechlab.metrics._alignment.units import Counts, Preparation, Tokens


class Pairs:
    """Many pairs, prepared and counted in one way.

    Every result is computed on first use and kept. Errors come from distances; counts and alignments come from the
    same edits. With sclite's rules, all results come from the alignments. So the time for one result does not depend
    on earlier requests.

    Attributes:
        texts: References and hypotheses as written.
        preparation: The conversion of texts into tokens.
        counts: As for :func:`speechlab.metrics.error_rate`.
    """

    def __init__(
        self, references: list[str], hypotheses: list[str], preparation: Preparation, counts: Counts
    ) -> None:
        self.texts = (references, hypotheses)
        self.preparation = preparation
        self.counts: Counts = counts
        self._said = preparation.canonical(references)
        self._heard = preparation.canonical(hypotheses)
        if preparation.merge_compounds:
            self._heard = merged(self._said, self._heard)
        self._by_sclite = counts.startswith("sclite")
        if self._by_sclite:
            # A pair that is too long or has invalid markings is refused here, not in the middle of a report.
            _ = self.tallies

    def __len__(self) -> int:
        return len(self._said)

    @cached_property
    def errors_and_lengths(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Errors and reference tokens of each pair."""
        if self._by_sclite:
            return self.tallies[:, 1:].sum(axis=1), self.tallies[:, :3].sum(axis=1)
        return errors_and_lengths(self._said, self._heard, self.preparation)

    @cached_property
    def tallies(self) -> NDArray[np.int64]:
        """Hits, substitutions, deletions and insertions (columns) of each pair (rows)."""
        if self._by_sclite:
            tallies = [alignment.tally for alignment in self.alignments]
            return np.array(tallies, dtype=np.int64).reshape(-1, 4)
        return self._found[1]

    @cached_property
    def alignments(self) -> tuple[Alignment, ...]:
        """One alignment for each pair."""
        way = self.preparation
        if self._by_sclite:
            tokens = zip(map(way.cut, self._said), map(way.cut, self._heard), strict=True)
            texts = zip(*self.texts, strict=True)
            return tuple(align_as(self.counts, *both, way) for both in zip(texts, tokens, strict=True))
        separator, language, uncut = way.separator, way.language, bool(way.separator)
        return tuple(
            [
                Alignment(one, other, separator, language, "levenshtein", None, edits, uncut)
                for one, other, edits in zip(self._said, self._heard, self._found[0], strict=True)
            ]
        )

    @property
    def tokens(self) -> tuple[list[Tokens], list[Tokens]]:
        """Tokens of each reference and of each hypothesis; with sclite's markings, those of the best alternatives."""
        if self._by_sclite:
            pairs = self.alignments
            return [pair.reference for pair in pairs], [pair.hypothesis for pair in pairs]
        return list(map(self.preparation.cut, self._said)), list(map(self.preparation.cut, self._heard))

    @cached_property
    def _found(self) -> tuple[list[Editops | None], NDArray[np.int64]]:
        return edits_and_counts(self._said, self._heard, self.preparation.cut)

    def __getstate__(self) -> dict[str, Any]:
        # The edits of rapidfuzz cannot be pickled. They are computed again on use.
        return {name: value for name, value in vars(self).items() if name != "_found"}


def align_as(
    counts: Counts, texts: tuple[str, str], tokens: tuple[Tokens, Tokens], preparation: Preparation
) -> Alignment:
    """Align two texts by the requested counts."""
    if counts != "levenshtein":
        braced = [text for text in texts if "{" in text]
        if preparation.unit != "word" and braced:
            message = (
                f"alternates in braces are scored by words only, not by unit={preparation.unit!r}, as in "
                f"{braced[0][:60]!r}; use unit='word', or put one transcript in their place"
            )
            raise InvalidRequestError(message, parameter="counts")
        fragments = counts == "sclite-fragments"
        if preparation.unit == "word" and any(is_marked(text, fragments=fragments) for text in texts):
            return _marked(*texts, preparation, counts)
    return Alignment(*tokens, preparation.separator, preparation.language, counts)


def unmarked(alignment: Alignment) -> tuple[str, str]:
    """The two compared texts, without parentheses and without optional words that are missing on one side."""
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
