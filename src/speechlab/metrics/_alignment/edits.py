"""The table of edits: the errors themselves, one row each, with their places in the texts as written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from speechlab.text import Normalizer, Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from speechlab.metrics._alignment.pairs import Pairs
    from speechlab.metrics._alignment.units import Preparation

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
        reference_places, hypothesis_places = (
            places(reference, pairs.preparation),
            places(hypothesis, pairs.preparation),
        )
        if pairs.preparation.merge_compounds:
            hypothesis_places = []  # merged words have no place
        for edit in alignment:
            if edit.operation == "equal" and not equal:
                continue
            reference_place = (
                reference_places[edit.reference_index]
                if reference_places and edit.reference is not None
                else _NOWHERE
            )
            hypothesis_place = (
                hypothesis_places[edit.hypothesis_index]
                if hypothesis_places and edit.hypothesis is not None
                else _NOWHERE
            )
            row = (edit.operation, edit.reference, edit.hypothesis, *reference_place, *hypothesis_place)
            rows.append((utterance if labels is None else labels[utterance], *row))
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
