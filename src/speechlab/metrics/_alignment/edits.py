"""The errors themselves, one row each, with their places in the texts as they were written.

Normalisation moves characters; a :class:`speechlab.text.Normalizer` knows the way back, and so an error can be
marked in the transcript that a person reads, not only in the text that was compared.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from speechlab.text import Normalizer, Spans, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from speechlab.metrics._alignment.alignment import Alignment
    from speechlab.metrics._alignment.units import Preparation

_WORD = re.compile(r"\S+")
_TYPES = {
    "utterance": "Int64",
    "operation": "category",
    "reference": "string",
    "hypothesis": "string",
    "reference_start": "Int64",
    "reference_end": "Int64",
    "hypothesis_start": "Int64",
    "hypothesis_end": "Int64",
}
_NOWHERE = (None, None)


def edit_table(
    references: Sequence[str],
    hypotheses: Sequence[str],
    alignments: Iterable[Alignment],
    preparation: Preparation,
    *,
    equal: bool,
) -> pd.DataFrame:
    """One row for each step of each alignment."""
    import pandas as pd

    rows: list[tuple[Any, ...]] = []
    for utterance, (said, heard, alignment) in enumerate(
        zip(references, hypotheses, alignments, strict=True)
    ):
        if alignment.reference == alignment.hypothesis and not equal:
            continue
        here, there = alignment.places or (places(said, preparation), places(heard, preparation))
        for edit in alignment:
            if edit.operation == "equal" and not equal:
                continue
            left = (here[edit.reference_index] if here and edit.reference is not None else None) or _NOWHERE
            right = (
                there[edit.hypothesis_index] if there and edit.hypothesis is not None else None
            ) or _NOWHERE
            rows.append((utterance, edit.operation, edit.reference, edit.hypothesis, *left, *right))
    return pd.DataFrame(rows, columns=list(_TYPES)).astype(_TYPES)


def places(text: str, preparation: Preparation) -> list[tuple[int, int]]:
    """For each token of a text, where it stands in the text as written; empty for sounds, which have no place."""
    if preparation.unit not in {"word", "char"}:
        return []
    if preparation.unit == "word":
        return [(start, end) for _, start, end in placed_words(text, preparation)]
    normalized, spans = _spans(text, preparation)
    start = len(normalized) - len(normalized.lstrip())
    return spans[start : start + len(normalized.strip())]


def placed_words(text: str, preparation: Preparation) -> list[tuple[str, int, int]]:
    """The normalised words of a text, each with its place in the text as written."""
    normalized, spans = _spans(text, preparation)
    return [
        (word[0], spans[word.start()][0], spans[word.end() - 1][1]) for word in _WORD.finditer(normalized)
    ]


def _spans(text: str, preparation: Preparation) -> Spans:
    rules = preparation.normalize
    if not isinstance(rules, Normalizer):
        rules = Normalizer("custom", 0, (Step("custom", rules),))
    return rules.spans(text)
