"""Whether a run still holds: its table, its results and their sounds against what it wrote down."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import orjson

from speechlab.batch._history.run import Run, Verification
from speechlab.batch._plan.operations import SynthesisStep, TranscriptionStep, TranslationStep
from speechlab.store import PART_SUFFIX

if TYPE_CHECKING:
    from pathlib import Path

    from speechlab.batch._plan.step import Step
    from speechlab.store import Store, Stored

_STEPS: dict[str, type[Step]] = {
    step.operation: step for step in (SynthesisStep, TranscriptionStep, TranslationStep)
}


def verify(run: Run, store: Store) -> Verification:
    """Compare a run with the store."""
    problems: list[str] = []
    digest = hashlib.sha256()
    results = 0
    column = run.manifest.get("prefix", "")
    for part in run.record.parts:
        if not store.blobs.verify(part.sha256, PART_SUFFIX):
            problems.append(f"the piece {part.sha256[:12]} of the table is missing or was changed")
            continue
        frame = _table(store.part_path(part))
        keys = [key if isinstance(key, str) else None for key in frame[column + "key"].tolist()]
        found = store.get_many([key for key in keys if key is not None])
        statuses, errors = frame[column + "status"].tolist(), frame[column + "error"].tolist()
        for key, status, error in zip(keys, statuses, errors, strict=True):
            stored = found.get(key) if key is not None and status in {"ok", "cached"} else None
            if status in {"ok", "cached"}:
                results += 1
                problems += _problems(key, stored, store)
            evidence = None if stored is None else _evidence(run.record.operation, stored)
            digest.update(orjson.dumps([key if key is not None else f"error: {error}", evidence]))
    if not problems and run.record.ended and digest.hexdigest() != run.manifest.get("output_sha256"):
        problems.append(
            "the results are not those that the run wrote down; a later run replaced some of them"
        )
    if not run.record.ended:
        problems.append(f"the run has no end: it is {run.status}")
    return Verification(not problems, len(run.record.parts), results, tuple(dict.fromkeys(problems)))


def _problems(key: str | None, stored: Stored | None, store: Store) -> list[str]:
    if stored is None:
        return [f"the result {str(key)[:12]} or its sound is missing"]
    return [
        f"the file {path.name[:12]} is not what its name says"
        for path in stored.files.values()
        if not store.blobs.verify(path.stem, path.suffix)
    ]


def _evidence(operation: str, stored: Stored) -> list[Any]:
    kind = _STEPS[operation]
    return kind.evidence(kind.__new__(kind), stored)


def _table(path: Path) -> Any:
    import pandas as pd

    return pd.read_parquet(path)
