"""Verification of a run against the digests in its record; and its files, which may have been moved since."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speechlab._pandas import pd
from speechlab.batch._plan.steps import STEPS
from speechlab.batch._table.assemble import ResultDigest, format_row_key
from speechlab.batch._table.timed import resolve_audio_column
from speechlab.store import PART_SUFFIX, RunRecord, Store
from speechlab.tables import read_stored_table

# The path of a file in a store: its name is its digest, and its folder the first two digits of it.
_STORE_PATH = re.compile(r"(?:.*[/\\])?([0-9a-f]{2})[/\\](\1[0-9a-f]{62})(\.\w+)")


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of verifying a run."""

    ok: bool  # nothing has changed
    parts: int  # pieces of the table that were checked
    results: int
    problems: tuple[str, ...] = ()  # a message for each change
    outside: int = 0  # rows whose recording is not in the store, and not checked

    def __bool__(self) -> bool:
        return self.ok


def verify(run: RunRecord, store: Store) -> Verification:
    """Compare the record of a run with the current contents of its store."""
    step = STEPS[run.operation]
    problems: list[str] = []
    digest = ResultDigest(step)
    results = outside = 0
    prefix = run.manifest.get("prefix", "")
    audio = resolve_audio_column(run) if step.works_on == "audio" else None
    for piece in run.parts:
        if not store.blobs.is_intact(piece.sha256, PART_SUFFIX):
            problems.append(f"the piece {piece.sha256[:12]} of the table is missing or was changed")
            continue
        frame = read_stored_table(store.part_path(piece))
        if audio is not None and audio in frame.columns:
            inside = [
                path for cell in frame[audio].tolist() if (path := find_current_path(cell, store)) is not None
            ]
            outside += len(frame) - len(inside)
            problems += _describe_changed_files(inside, store)
        keys = [key if isinstance(key, str) else None for key in frame[prefix + "key"].tolist()]
        stored_results = store.get_many([key for key in keys if key is not None])
        statuses, errors = frame[prefix + "status"].tolist(), frame[prefix + "error"].tolist()
        for key, status, error in zip(keys, statuses, errors, strict=True):
            stored = stored_results.get(key) if key is not None and status in {"ok", "cached"} else None
            if status in {"ok", "cached"}:
                results += 1
                if stored is None:
                    problems.append(f"the result {str(key)[:12]} or its audio is missing or truncated")
                else:
                    problems += _describe_changed_files(stored.files.values(), store)
            digest.add(format_row_key(key, error), stored)
    written = run.manifest.get("output_sha256")
    if not problems and run.ended and written != digest.hexdigest():
        problems.append("the results differ from the recorded digest; a later run replaced some of them")
    if not run.ended:
        problems.append(f"the run has not ended; its status is {run.status}")
    return Verification(not problems, len(run.parts), results, tuple(dict.fromkeys(problems)), outside)


def _describe_changed_files(paths: Iterable[Path], store: Store) -> list[str]:
    return [
        f"the file {path.name[:12]} is not what its name says"
        for path in paths
        if not store.blobs.is_intact(path.stem, path.suffix)
    ]


def find_current_path(cell: object, store: Store) -> Path | None:
    """Return the current path of a file in a store from any earlier path; None if the store has no such file."""
    match = _STORE_PATH.fullmatch(cell) if isinstance(cell, str) else None
    if match is None:
        return None
    path = store.blobs.resolve_path(match[2], match[3])
    return path if path.is_file() else None


def update_paths(frame: pd.DataFrame, store: Store) -> pd.DataFrame:
    """Return a table with the current paths of files in a store; other paths are unchanged."""
    result = frame.copy(deep=False)
    for at in range(frame.shape[1]):
        column = frame.iloc[:, at]
        several = isinstance(column.dtype, pd.CategoricalDtype)
        if not several and not (pd.api.types.is_string_dtype(column) or pd.api.types.is_object_dtype(column)):
            continue
        cells = column.cat.categories.tolist() if several else column.tolist()
        now: list[Any] = [find_current_path(cell, store) for cell in cells]
        if not any(now):
            continue
        values = [cell if path is None else str(path) for cell, path in zip(cells, now, strict=True)]
        if several and len(set(values)) == len(values):
            result.isetitem(at, column.cat.rename_categories(values).array)
        elif several:  # the same file by its old and its new path
            names = dict(zip(cells, values, strict=True))
            result.isetitem(at, column.astype(object).map(names).astype("category").array)
        else:
            result.isetitem(at, pd.Series(values, dtype=column.dtype).array)
    return result
