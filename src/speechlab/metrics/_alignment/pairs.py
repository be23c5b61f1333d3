"""Pairs of a reference and a hypothesis, on their way from texts to errors, counts, alignments and edits.

Most of the time goes into the work around a comparison: objects for each token and function calls for each pair. So
the code avoids both where possible, and splits equal texts only once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from rapidfuzz.distance import Editops, Levenshtein
from rapidfuzz.process import cpdist

from speechlab._pandas import pd
from speechlab.metrics._alignment.alignment import Alignment
from speechlab.metrics._alignment.units import (
    SPOKEN_LANGUAGES,
    Preparation,
    Tokens,
    adopt_compounds,
    to_normalizer,
)
from speechlab.metrics._differences.compare import classify_differences, rewrite_as_reference
from speechlab.metrics._differences.differences import SAME_SOUND, DifferenceClass, TextComparison

if TYPE_CHECKING:
    from numpy.typing import NDArray

# From this many tokens on, rapidfuzz gets the hint that an error rate of at most 20% is likely. The distance is the
# same. It is found several times faster, but up to twice as slowly if most tokens are wrong. Edits are found without
# this hint, because it could lead to other edits than jiwer's with the same number of errors.
_LONG = 500


class Pairs:
    """Many pairs, prepared and counted in one way.

    Every result is computed on first use and kept. Errors come from distances; counts and alignments come from the
    same edits. So the time for one result does not depend
    on earlier requests.
    """

    def __init__(
        self,
        references: list[str],
        hypotheses: list[str],
        preparation: Preparation,
        normalized: tuple[list[str], list[str]] | None = None,
        comparisons: Sequence[TextComparison] | None = None,
    ) -> None:
        self.texts = (references, hypotheses)  # as written
        self.preparation = preparation
        sides = normalized or map(preparation.normalize_texts, self.texts)
        # Only canonical texts are kept: lists of words would take more time and memory than the comparison.
        self._said, self._recognized = map(preparation.to_canonical, sides)
        if preparation.merge_compounds:
            self._recognized = adopt_compounds(self._said, self._recognized)
        self.uncertain_errors = [0] * len(self._said)  # of readings alone, which are not counted
        if preparation.has_alternative_readings:
            self._adopt_reference_readings(comparisons)

    def __len__(self) -> int:
        return len(self._said)

    def _adopt_reference_readings(self, comparisons: Sequence[TextComparison] | None) -> None:
        """Give the hypotheses the readings of their references where both can be read alike.

        A dictionary chooses one reading of a word, and takes an unknown word apart. So 起温 sounds unlike 気温 by the
        dictionary, although nobody would read it so.
        """
        language = str(self.preparation.language or SPOKEN_LANGUAGES[self.preparation.unit])
        kinds: set[DifferenceClass] = (
            {*SAME_SOUND, "tone"} if self.preparation.unit == "toneless" else {*SAME_SOUND}
        )
        for row, (first, second) in enumerate(zip(self._said, self._recognized, strict=True)):
            if first == second:
                continue
            found = (
                comparisons[row]
                if comparisons
                else classify_differences(self.texts[0][row], self.texts[1][row], language)
            )
            alike = rewrite_as_reference(found, kinds, language)
            if alike == found.reference:
                recognized = first
            elif alike == found.hypothesis:
                continue
            else:
                (recognized,) = self.preparation.to_canonical([alike])
            tokens, old, new = map(self.preparation.tokenize_canonical, (first, second, recognized))
            gain = Levenshtein.distance(tokens, old) - Levenshtein.distance(tokens, new)
            if gain > 0:
                self._recognized[row], self.uncertain_errors[row] = recognized, gain

    @property
    def canonical_hypotheses(self) -> list[str]:
        """The compared hypotheses, before they are cut into tokens."""
        return self._recognized

    @cached_property
    def errors_and_lengths(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Errors and reference tokens of each pair."""
        # Distances take less time than edits.
        said, recognized = self._said, self._recognized
        distance = Levenshtein.distance
        if not self.preparation.separator:
            sizes = np.fromiter(map(len, said), np.int64, len(said))
            if sizes.max(initial=0) < _LONG:
                # Not a loop in Python, which would take as long as the comparisons.
                return cpdist(said, recognized, scorer=distance, dtype=np.int64), sizes
            pairs = zip(said, recognized, sizes.tolist(), strict=True)
            distances = [
                distance(a, b, score_hint=size // 5 if size >= _LONG else None) for a, b, size in pairs
            ]
            return np.array(distances, dtype=np.int64), sizes
        errors, lengths = [], []
        for first, second in zip(said, recognized, strict=True):
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

    @cached_property
    def tallies(self) -> NDArray[np.int64]:
        """Hits, substitutions, deletions and insertions (columns) of each pair (rows)."""
        return self._edits_and_tallies[1]

    @cached_property
    def alignments(self) -> tuple[Alignment, ...]:
        """One alignment for each pair."""
        preparation = self.preparation
        separator, language, uncut = preparation.separator, preparation.language, bool(preparation.separator)
        triples = zip(self._said, self._recognized, self._edits_and_tallies[0], strict=True)
        return tuple(
            [
                Alignment(reference, hypothesis, separator, language, edits, uncut)
                for reference, hypothesis, edits in triples
            ]
        )

    @property
    def tokens(self) -> tuple[list[Tokens], list[Tokens]]:
        """Tokens of each reference and of each hypothesis."""
        return list(map(self.preparation.tokenize_canonical, self._said)), list(
            map(self.preparation.tokenize_canonical, self._recognized)
        )

    @cached_property
    def _edits_and_tallies(self) -> tuple[list[Editops | None], NDArray[np.int64]]:
        """The cheapest edits of each pair, and their counts; None for the edits of equal texts."""
        cut, editops = self.preparation.tokenize_canonical, Levenshtein.editops
        all_edits: list[Editops | None] = []
        columns: tuple[list[int], list[int], list[int], list[int]] = ([], [], [], [])
        keep = all_edits.append
        add_said, add_heard, add_errors, add_substitutions = (column.append for column in columns)
        for first, second in zip(self._said, self._recognized, strict=True):
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
        insertions = errors - substitutions - deletions
        hits = references - substitutions - deletions
        return all_edits, np.column_stack([hits, substitutions, deletions, insertions])

    def __getstate__(self) -> dict[str, Any]:
        # The edits of rapidfuzz cannot be pickled. They are computed again on use.
        return {name: value for name, value in vars(self).items() if name != "_edits_and_tallies"}


# Columns of places in the texts as written.
PLACES = ("reference_start", "reference_end", "hypothesis_start", "hypothesis_end")
_TYPES = {
    "utterance": "Int64",
    "operation": "category",
    **dict.fromkeys(("reference", "hypothesis"), "string"),
    **dict.fromkeys(PLACES, "Int64"),
}
_NOWHERE = (None, None)
_WORD = re.compile(r"\S+")


def build_edit_table(pairs: Pairs, labels: Sequence[Any] | None, *, equal: bool) -> pd.DataFrame:
    """Return one row for each step of each alignment, with the number or the given label of its utterance."""
    rows: list[tuple[Any, ...]] = []
    for utterance, (reference, hypothesis, alignment) in enumerate(
        zip(*pairs.texts, pairs.alignments, strict=True)
    ):
        if alignment.reference == alignment.hypothesis and not equal:
            continue
        # Merged words have no place.
        merged_words = pairs.preparation.merge_compounds
        reference_places = locate_tokens(reference, pairs.preparation)
        hypothesis_places = [] if merged_words else locate_tokens(hypothesis, pairs.preparation)
        label = utterance if labels is None else labels[utterance]
        for edit in alignment:
            if edit.operation == "equal" and not equal:
                continue
            _, reference_token, hypothesis_token, i, j = edit
            at = reference_places[i] if reference_places and reference_token is not None else _NOWHERE
            to = hypothesis_places[j] if hypothesis_places and hypothesis_token is not None else _NOWHERE
            rows.append((label, edit.operation, reference_token, hypothesis_token, *at, *to))
    types = _TYPES if labels is None else {name: kind for name, kind in _TYPES.items() if name != "utterance"}
    return pd.DataFrame(rows, columns=list(_TYPES)).astype(types)


def locate_tokens(text: str, preparation: Preparation) -> list[tuple[int, int]]:
    """The place of each token in the text as written; empty for readings and syllables, which have no place."""
    if preparation.unit not in {"word", "char"}:
        return []
    normalized, spans = to_normalizer(preparation.normalize).spans(text)
    if preparation.unit == "word":
        return [(spans[word.start()][0], spans[word.end() - 1][1]) for word in _WORD.finditer(normalized)]
    start = len(normalized) - len(normalized.lstrip())
    return spans[start : start + len(normalized.strip())]
