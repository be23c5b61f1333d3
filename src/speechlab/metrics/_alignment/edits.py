"""The table of edits: the errors themselves, one row each, with their places in the texts as they were written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.metrics._alignment.places import places

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.metrics._alignment.pairs import Pairs

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


def edit_table(pairs: Pairs, *, equal: bool) -> pd.DataFrame:
    """One row for each step of each alignment."""
    import pandas as pd

    rows: list[tuple[Any, ...]] = []
    for utterance, (said, heard, alignment) in enumerate(zip(*pairs.texts, pairs.alignments, strict=True)):
        if alignment.reference == alignment.hypothesis and not equal:
            continue
        here, there = alignment.places or (places(said, pairs.preparation), places(heard, pairs.preparation))
        for edit in alignment:
            if edit.operation == "equal" and not equal:
                continue
            left = (here[edit.reference_index] if here and edit.reference is not None else None) or _NOWHERE
            right = (
                there[edit.hypothesis_index] if there and edit.hypothesis is not None else None
            ) or _NOWHERE
            rows.append((utterance, edit.operation, edit.reference, edit.hypothesis, *left, *right))
    return pd.DataFrame(rows, columns=list(_TYPES)).astype(_TYPES)
