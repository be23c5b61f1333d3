"""Pairs of a reference and a hypothesis, on their way from texts to errors, counts, alignments and edits."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab.metrics._alignment.alignment import Alignment
from speechlab.metrics._alignment.counting import edits_and_counts, errors_and_lengths
from speechlab.metrics._alignment.sclite import check_unmarked
from speechlab.metrics._alignment.units import merged
from speechlab.text import Normalizer, Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
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
        self,
        references: list[str],
        hypotheses: list[str],
        preparation: Preparation,
        counts: Counts,
        normalized: tuple[list[str], list[str]] | None = None,
    ) -> None:
        self.texts = (references, hypotheses)
        self.preparation = preparation
        self.counts: Counts = counts
        sides = normalized or map(preparation.normalized, self.texts)
        # Only canonical texts are kept: lists of words would take more time and memory than the comparison.
        self._said, self._heard = map(preparation.canonical_of, sides)
        if preparation.merge_compounds:
            self._heard = merged(self._said, self._heard)
        self._by_sclite = counts == "sclite"
        if self._by_sclite:
            check_unmarked(references, hypotheses)
            _ = self.tallies  # a pair that is too long is refused here, not in the middle of a report

    def __len__(self) -> int:
        return len(self._said)

    @property
    def canonical_hypotheses(self) -> list[str]:
        """The compared hypotheses, before they are cut into tokens."""
        return self._heard

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
        preparation = self.preparation
        if self._by_sclite:
            sides = zip(map(preparation.cut, self._said), map(preparation.cut, self._heard), strict=True)
            return tuple(
                Alignment(*side, preparation.separator, preparation.language, self.counts) for side in sides
            )
        separator, language, uncut = preparation.separator, preparation.language, bool(preparation.separator)
        return tuple(
            [
                Alignment(reference, hypothesis, separator, language, "levenshtein", edits, uncut)
                for reference, hypothesis, edits in zip(self._said, self._heard, self._found[0], strict=True)
            ]
        )

    @property
    def tokens(self) -> tuple[list[Tokens], list[Tokens]]:
        """Tokens of each reference and of each hypothesis."""
        return list(map(self.preparation.cut, self._said)), list(map(self.preparation.cut, self._heard))

    @cached_property
    def _found(self) -> tuple[list[Editops | None], NDArray[np.int64]]:
        return edits_and_counts(self._said, self._heard, self.preparation.cut)

    def __getstate__(self) -> dict[str, Any]:
        # The edits of rapidfuzz cannot be pickled. They are computed again on use.
        return {name: value for name, value in vars(self).items() if name != "_found"}


PLACES = ("reference_start", "reference_end", "hypothesis_start", "hypothesis_end")
"""Columns of places in the texts as written."""
_TYPES = {
    "utterance": "Int64",
    "operation": "category",
    "reference": "string",
    "hypothesis": "string",
    **dict.fromkeys(PLACES, "Int64"),
}
_NOWHERE = (None, None)
_WORD = re.compile(r"\S+")


def edit_table(pairs: Pairs, labels: Sequence[Any] | None = None, *, equal: bool) -> pd.DataFrame:
    """One row for each step of each alignment, with the number or the given label of its utterance."""
    import pandas as pd

    rows: list[tuple[Any, ...]] = []
    for utterance, (reference, hypothesis, alignment) in enumerate(
        zip(*pairs.texts, pairs.alignments, strict=True)
    ):
        if alignment.reference == alignment.hypothesis and not equal:
            continue
        # Merged words have no place.
        merged_words = pairs.preparation.merge_compounds
        reference_places = places(reference, pairs.preparation)
        hypothesis_places = [] if merged_words else places(hypothesis, pairs.preparation)
        label = utterance if labels is None else labels[utterance]
        for edit in alignment:
            if edit.operation == "equal" and not equal:
                continue
            _, said, heard, i, j = edit
            at = reference_places[i] if reference_places and said is not None else _NOWHERE
            to = hypothesis_places[j] if hypothesis_places and heard is not None else _NOWHERE
            rows.append((label, edit.operation, said, heard, *at, *to))
    types = _TYPES if labels is None else {name: kind for name, kind in _TYPES.items() if name != "utterance"}
    return pd.DataFrame(rows, columns=list(_TYPES)).astype(types)


def places(text: str, preparation: Preparation) -> list[tuple[int, int]]:
    """The place of each token in the text as written; empty for readings and syllables, which have no place."""
    if preparation.unit not in {"word", "char"}:
        return []
    rules = preparation.normalize
    if not isinstance(rules, Normalizer):
        rules = Normalizer("custom", 0, (Step("custom", rules),))
    normalized, spans = rules.spans(text)
    if preparation.unit == "word":
        return [(spans[word.start()][0], spans[word.end() - 1][1]) for word in _WORD.finditer(normalized)]
    start = len(normalized) - len(normalized.lstrip())
    return spans[start : start + len(normalized.strip())]
