"""Blocks of recordings: those that belong together count as one for intervals and tests."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import category, normalize

from speechlab._pandas import pd
from speechlab.datasets import find_usual_columns
from speechlab.display import format_count
from speechlab.evaluate._statistics import MIN_PAIRS

# Column with the block of each recording, in studies of recordings of which some belong together.
BLOCK = "block"


class Blocks(NamedTuple):
    """Recordings that count as one for intervals and tests.

    ``names`` has the block of each row, None if each row is one; ``about`` the speakers whom findings are about, if
    they are too few for others.
    """

    names: list[int] | None
    notes: list[str]
    about: str
    column: str | None = None


def group_rows_into_blocks(
    frame: pd.DataFrame, audio: str, text: str, groups: str | None, *, by_speaker: bool
) -> Blocks:
    """Find the blocks of recordings."""
    if groups is None:
        return Blocks(None, [], "")
    column: str | None = groups
    if groups == "auto":
        column = find_speaker_column(frame) or ("voice" if "voice" in frame.columns else None)
    labels = pd.Series(range(len(frame)))
    keys = [_hash_same_size_files(frame[audio].tolist())]
    names = None if column is None else _to_text_column(frame[column])
    # Without a speaker, nothing tells rows of one text apart.
    speakers = pd.Series(pd.NA, labels.index, dtype="string") if names is None else names
    unheard = _to_text_column(frame[audio]).isna() if column is not None else True
    speakers = speakers.mask(speakers.isna() & unheard, "")
    keys.append(
        speakers + "\n" + _to_text_column(frame[text]).map(fold_text, na_action="ignore").astype("string")
    )
    alone = labels = merge_labels_by_keys(labels, keys)
    notes, about, used = [], "", None
    if repeats := len(frame) - labels.nunique():
        rows = format_count(repeats, "row repeats", "rows repeat")
        notes.append(
            f"{rows} a recording or a sentence of one speaker, or a text without a speaker; they count once "
            "where chance is judged."
        )
    if names is not None and names.dropna().duplicated().any() and not by_speaker:
        count = names.nunique()
        if groups == "auto" and count < MIN_PAIRS:
            about = format_count(count, "speaker", in_words=True)
            notes.append(
                f"The column {column} has {about}, so this is about them alone; "
                "groups=None takes each recording for itself."
            )
        else:
            labels, used = merge_labels_by_keys(alone, [names]), column
            notes.append(
                f"Recordings with the same {column} are alike, so they count as one where chance is judged: "
                f"{len(frame):,} recordings as {labels.nunique():,}."
            )
    return Blocks(labels.tolist() if labels.duplicated().any() else None, notes, about, used)


def find_speaker_column(frame: pd.DataFrame) -> str | None:
    """Return the column that has the speakers by its name, such as ``speaker_id`` or ``client_id``."""
    return find_usual_columns(frame).get("speaker")


def count_texts(rows: pd.DataFrame, text: str, item: str) -> int:
    """Return the number of different texts of some recordings; 0 if some have none."""
    texts = rows.drop_duplicates(item)[text]
    return 0 if texts.isna().any() else texts.map(fold_text).nunique()


def describe_few_texts(texts: int, rows: int) -> str:
    """Return the texts that a finding is about, if many recordings have too few for others; otherwise empty."""
    if not 0 < texts < MIN_PAIRS <= rows:
        return ""
    return format_count(texts, "text", in_words=True)


def merge_labels_by_keys(labels: pd.Series[int], keys: Sequence[pd.Series[Any]]) -> pd.Series[int]:
    """Return the smallest label of all rows that share a key, directly or through other rows."""
    while True:
        before = labels
        for key in keys:
            labels = labels.groupby(key).transform("min").fillna(labels).astype("int64")
        if labels.equals(before):
            return labels


def _to_text_column(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return the cells as texts, missing ones as they are, with numbers from 0 on as the index."""
    return column.astype(object).map(str, na_action="ignore").astype("string").reset_index(drop=True)


def fold_text(text: object) -> str:
    """Return a text without differences of capitals, punctuation and spaces."""
    words = "".join(sign for sign in normalize("NFKC", str(text)) if not category(sign).startswith("P"))
    return " ".join((words or str(text)).split()).casefold()


def _hash_same_size_files(recordings: Sequence[object]) -> pd.Series[Any]:
    """Return a key of the contents of each file that has as many bytes as another one; missing for the rest."""
    paths = [Path(os.fspath(cell)) if isinstance(cell, str | os.PathLike) else None for cell in recordings]
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
