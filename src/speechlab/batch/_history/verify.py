"""Verification of a run: its table, its results and their audio against the digests in its record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from speechlab.batch._history.paths import in_store
from speechlab.batch._plan.steps import STEPS
from speechlab.batch._table.digest import ResultDigest, row_text
from speechlab.batch._table.timed import as_label
from speechlab.store import PART_SUFFIX
from speechlab.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pandas as pd

    from speechlab.store import RunRecord, Store, Stored


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of verifying a run.

    Attributes:
        ok: Whether nothing has changed.
        parts: Number of pieces of the table that were checked.
        results: Number of results that were checked.
        problems: One message for each change.
        outside: Number of rows whose recording is not in the store. Those recordings are not checked.
    """

    ok: bool
    parts: int
    results: int
    problems: tuple[str, ...] = ()
    outside: int = 0

    def __bool__(self) -> bool:
        return self.ok


def verify(run: RunRecord, store: Store) -> Verification:
    """Compare the record of a run with the current contents of its store."""
    step = STEPS[run.operation]
    problems: list[str] = []
    digests = ResultDigest(step), ResultDigest(step, earlier=True)
    results = outside = 0
    column = run.manifest.get("prefix", "")
    for part in run.parts:
        if not store.blobs.verify(part.sha256, PART_SUFFIX):
            problems.append(f"the piece {part.sha256[:12]} of the table is missing or was changed")
            continue
        frame = read_table(store.part_path(part))
        if (name := _recordings(run, frame)) is not None:
            inside = [path for cell in frame[name].tolist() if (path := in_store(cell, store)) is not None]
            outside += len(frame) - len(inside)
            problems += _changed(inside, store)
        keys = [key if isinstance(key, str) else None for key in frame[column + "key"].tolist()]
        found = store.get_many([key for key in keys if key is not None])
        statuses, errors = frame[column + "status"].tolist(), frame[column + "error"].tolist()
        for key, status, error in zip(keys, statuses, errors, strict=True):
            stored = found.get(key) if key is not None and status in {"ok", "cached"} else None
            if status in {"ok", "cached"}:
                results += 1
                problems += _problems(key, stored, store)
            for digest in digests:
                digest.add(row_text(key, error), stored, new=status == "ok")
    written = run.manifest.get("output_sha256")
    if not problems and run.ended and written not in {digest.hexdigest() for digest in digests}:
        problems.append("the results differ from the recorded digest; a later run replaced some of them")
    if not run.ended:
        problems.append(f"the run has not ended; its status is {run.status}")
    return Verification(not problems, len(run.parts), results, tuple(dict.fromkeys(problems)), outside)


def _recordings(run: RunRecord, frame: pd.DataFrame) -> Any:
    """The column of the transcribed recordings; None for other operations."""
    if STEPS[run.operation].works_on != "audio":
        return None
    name = as_label(run.manifest.get("parameters", {}).get("columns", {}).get("audio", "audio"))
    return name if name in frame.columns else None


def _problems(key: str | None, stored: Stored | None, store: Store) -> list[str]:
    if stored is None:
        return [f"the result {str(key)[:12]} or its audio is missing or truncated"]
    return _changed(stored.files.values(), store)


def _changed(paths: Iterable[Path], store: Store) -> list[str]:
    return [
        f"the file {path.name[:12]} is not what its name says"
        for path in paths
        if not store.blobs.verify(path.stem, path.suffix)
    ]
