"""Flags of suspect hypotheses: text without speech, missing last words.

The rules:

- *hallucination*: a text for an empty reference; or a run of inserted text that is not a loop, of at least five
  words, or ten characters in languages without spaces (and in rows of two languages).
- *lost tail*: the last three words or more of the reference, or six characters, have no counterpart, and the
  hypothesis is not empty.
"""

from __future__ import annotations

from itertools import groupby, takewhile
from typing import TYPE_CHECKING

import pandas as pd

from speechlab._arguments import is_missing
from speechlab.metrics import edits

if TYPE_CHECKING:
    from collections.abc import Sequence

_INSERTED = {"word": 5, "char": 10}
_LOST = {"word": 3, "char": 6}
_NEEDED = [
    *("errors", "unit", "signature", "reference_length", "reference_normalized", "hypothesis_normalized"),
    *("hits", "substitutions", "deletions", "insertions"),
]


def flagged(table: pd.DataFrame) -> pd.DataFrame:
    """Return scored rows with ``hallucination`` and ``tail_lost``; missing for rows without a score."""
    bare = table[_NEEDED].reset_index(drop=True)
    found = edits(bare, equal=True)
    steps_of = found.astype({"operation": object}).groupby("utterance", observed=True)["operation"]
    operations = {key: part.tolist() for key, part in steps_of}
    loops = table["loop"].fillna(value=False).astype(bool).tolist()
    made_up: list[bool | None] = []
    lost: list[bool | None] = []
    for at, row in enumerate(bare.itertuples(index=False)):
        if is_missing(row.errors):
            made_up.append(None)
            lost.append(None)
            continue
        steps = list(map(str, operations.get(at, [])))
        unit = "char" if row.unit == "char" or "norm:custom:mixed_" in str(row.signature) else "word"
        something = bool(str(row.hypothesis_normalized))
        nobody = not str(row.reference_normalized)
        run = 0 if loops[at] else _longest(steps)
        made_up.append(something and (nobody or run >= _INSERTED[unit]))
        lost.append(something and _at_the_end(steps) >= _LOST[unit])
    return table.assign(
        hallucination=pd.array(made_up, dtype="boolean"), tail_lost=pd.array(lost, dtype="boolean")
    )


def _longest(steps: Sequence[str]) -> int:
    return max((len(list(run)) for step, run in groupby(steps) if step == "insert"), default=0)


def _at_the_end(steps: Sequence[str]) -> int:
    return len(list(takewhile(lambda step: step == "delete", reversed(steps))))
