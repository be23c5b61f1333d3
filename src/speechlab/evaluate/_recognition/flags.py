"""Flags of suspect hypotheses (text without speech, missing last words), and blocks of recordings.

The rules:

- *hallucination*: a text for an empty reference; or a run of inserted text that is not a loop, of at least five
  words, or ten characters in languages without spaces (and in rows of two languages).
- *lost tail*: the last three words or more of the reference, or six characters, have no counterpart, and the
  hypothesis is not empty.
"""

from __future__ import annotations

import os
from collections import Counter
from hashlib import sha256
from itertools import groupby, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from speechlab._arguments import is_missing
from speechlab.evaluate._statistics import FEWEST
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


_SPEAKERS = ("speaker", "voice")
_NUMBERS = ("one speaker", "two speakers", "three speakers", "four speakers", "five speakers")


class Blocks(NamedTuple):
    """Recordings that count as one for intervals and tests.

    Attributes:
        names: The block of each row; None if each row is one.
        notes: Sentences on what counts as one block.
        about: The speakers that findings are about, if there are too few for others; else empty.
        column: The column that makes them, beside repeated recordings; None without one.
    """

    names: list[int] | None
    notes: list[str]
    about: str
    column: str | None = None


def blocks_of(frame: pd.DataFrame, audio: str, text: str, groups: str | None, *, by_speaker: bool) -> Blocks:
    """Find the blocks of recordings.

    Args:
        frame: One row for each recording.
        audio: Column of the recordings.
        text: Column of the references.
        groups: Column of blocks; ``"auto"`` for the speakers, if there are six or more and any of them is repeated;
            None for no blocks.
        by_speaker: Whether each speaker has a line of the summary; then only repeated recordings are blocks.
    """
    if groups is None:
        return Blocks(None, [], "")
    column = next((name for name in _SPEAKERS if name in frame), None) if groups == "auto" else groups
    labels = pd.Series(range(len(frame)))
    keys = [_contents(frame[audio].tolist())]
    names = None if column is None else _texts(frame[column])
    if names is not None:
        keys.append(names + "\n" + _texts(frame[text]))
    alone = labels = _merged(labels, keys)
    notes, about, used = [], "", None
    if repeats := len(frame) - labels.nunique():
        what = "1 row repeats" if repeats == 1 else f"{repeats:,} rows repeat"
        notes.append(
            f"{what} a recording or a sentence of one speaker; they count once in intervals and tests."
        )
    if names is not None and names.dropna().duplicated().any() and not by_speaker:
        count = names.nunique()
        if groups == "auto" and count < FEWEST:
            about = _NUMBERS[count - 1]
        else:
            labels, used = _merged(alone, [names]), column
            notes.append(
                f"Rows with one {column} count as one block in intervals and tests: there are "
                f"{labels.nunique():,} blocks (groups=None counts each row)."
            )
    return Blocks(labels.tolist() if labels.duplicated().any() else None, notes, about, used)


def _merged(labels: pd.Series[int], keys: Sequence[pd.Series[Any]]) -> pd.Series[int]:
    """The smallest label of all rows that share a key, directly or through other rows."""
    while True:
        before = labels
        for key in keys:
            labels = labels.groupby(key).transform("min").fillna(labels).astype("int64")
        if labels.equals(before):
            return labels


def _texts(column: pd.Series[Any]) -> pd.Series[Any]:
    """The cells as texts, missing ones as they are, with numbers from 0 on as the index."""
    return (
        column.astype(object).where(column.notna(), None).map(str, na_action="ignore").reset_index(drop=True)
    )


def _contents(cells: Sequence[object]) -> pd.Series[Any]:
    """A key of the contents of each file that has as many bytes as another one; missing for the rest."""
    paths = [Path(os.fspath(cell)) if isinstance(cell, str | os.PathLike) else None for cell in cells]
    sizes = [path.stat().st_size if path is not None and path.is_file() else -1 for path in paths]
    counts = Counter(sizes)
    return pd.Series(
        [
            sha256(path.read_bytes()).hexdigest()
            if path is not None and size >= 0 and counts[size] > 1
            else None
            for path, size in zip(paths, sizes, strict=True)
        ],
        dtype=object,
    )
