"""The table of a study of recognition: its columns, and one row for each recording."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from speechlab import batch
from speechlab._arguments import require_columns
from speechlab._pandas import pd
from speechlab.datasets import find_usual_columns
from speechlab.evaluate._speech.blocks import BLOCK, Blocks
from speechlab.evaluate._speech.speech_rows import SPEAK
from speechlab.evaluate._study_arguments import (
    describe_missing_language,
    find_language_codes,
    measure_durations,
    resolve_columns,
)
from speechlab.evaluate._study_columns import INPUTS, NO_SPEAKER, REASON, RECOGNITION


def find_voice_column(frame: pd.DataFrame, voice: str | None, *, alone: bool) -> str | None:
    """Return the column of speakers; none by itself where systems or conditions are compared."""
    if voice != "auto":
        return voice
    present = frame.columns if alone else ()
    return next((name for name in ("voice", "speaker") if name in present), None)


def drop_earlier_results(frame: pd.DataFrame, had: dict[str, str]) -> pd.DataFrame:
    """Return the table without results of an earlier batch or study that have names of results of this one."""
    frame = require_columns(frame)
    results = RECOGNITION - INPUTS
    if not results.intersection(had.values()):  # of a batch that made the recordings, how each call ended
        results = results.intersection(batch.list_earlier_bookkeeping(frame.columns, ""))
    return frame.drop(columns=[name for name in frame.columns if name in results])


def resolve_table_and_columns(
    frame: pd.DataFrame, audio: str, *, needed: bool, **roles: str | None
) -> tuple[pd.DataFrame, list[str]]:
    """The table and the names of its columns; with an empty one of recordings, if it has none and needs none."""
    if needed or audio in frame.columns or "audio" in find_usual_columns(frame):
        return resolve_columns(frame, audio=audio, **roles)
    frame, names = resolve_columns(frame, **roles)
    return frame.assign(**{audio: None}), [audio, *names]


def build_recognition_rows(
    frame: pd.DataFrame, audio: str, voice: str | None, blocks: Blocks, outputs: Mapping[str, list[Any]]
) -> tuple[list[str], pd.DataFrame]:
    """Return the names of the columns to keep, with that of the file; and the rows for recognition."""
    files = _build_recording_names(frame[audio].tolist(), frame.index.tolist())
    speaker = NO_SPEAKER if voice is None else frame[voice]
    if voice is None and "voice" in frame.columns and "speaker" not in frame.columns:
        frame = frame.rename(columns={"voice": "speaker"})  # the column is kept, even if it is not requested
    table = frame if "file" in frame.columns else frame.assign(file=pd.array(files, dtype="string"))
    rows = table.assign(
        audio=frame[audio],
        voice=speaker,
        voice_name=files if voice is None else speaker,
        gender=frame.get("gender", ""),
        duration_s=frame["duration_s"]
        if "duration_s" in frame.columns
        else measure_durations(frame[audio].tolist()),
        sample_rate=frame.get("sample_rate", pd.array([pd.NA] * len(frame), dtype="Int64")),
        recording=range(len(frame)),
        **{f"{SPEAK}status": "cached", f"{SPEAK}error": None},  # there was no synthesis
        **outputs,
    )
    if blocks.names is not None:
        rows = rows.assign(**{BLOCK: blocks.names})
    return [*table.columns, *([] if blocks.names is None else [BLOCK])], rows.reset_index(drop=True)


def split_by_known_language(rows: pd.DataFrame, language: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows whose language is known, and the others with the reason."""
    cells = rows[language].astype(object)
    is_known = cells.map(lambda value: bool(find_language_codes(value))).astype(bool)
    reasons = cells[~is_known].map(describe_missing_language)
    return rows[is_known], rows[~is_known].assign(**{REASON: reasons})


def _build_recording_names(cells: Sequence[object], labels: Sequence[object]) -> list[str]:
    """Names of recordings: their files, with as many folders as distinguish them, or else their row labels."""
    paths = [Path(os.fspath(cell)) if isinstance(cell, str | os.PathLike) else None for cell in cells]
    names = {path: path.name for path in paths if path is not None}
    for depth in range(2, max((len(path.parts) for path in names), default=0) + 1):
        counts = Counter(names.values())
        if len(counts) == len(names):
            break
        names = {
            path: name if counts[name] == 1 else Path(*path.parts[-depth:]).as_posix()
            for path, name in names.items()
        }
    return [f"row {row}" if path is None else names[path] for path, row in zip(paths, labels, strict=True)]
