"""Parts of a store: the results of a lease, a line of JSON each, in a file that one worker of a cluster appends to.

A part needs no locks of a database, so it may lie on a network drive. What a part has is read before its calls are
given out again: after the loss of a worker, of the scheduler or of the driver.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import asdict, astuple
from typing import TYPE_CHECKING, Any

import orjson

from speechlab.batch._outcome import CallResult
from speechlab.batch._run.window import GRACE_S, Made, Writer
from speechlab.client import Timing
from speechlab.store import Attempt, Blob, BlobFolder, Claims

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from speechlab.store import Store, Stored

_PARTS = "parts"
"""The folder in a store with a folder for each run on a cluster."""
_ENDS_S = 2 * GRACE_S
"""Seconds that a worker whose driver or scheduler was lost has to end."""
_LOOK_S = 0.1


class PartWriter(Writer):
    """The writer of a part. While it is open, other processes see that it is in use."""

    def __init__(self, file: Path, blobs: BlobFolder) -> None:
        self._blobs, self._waiting = blobs, []
        self.failures: list[Attempt] = []
        self._claims = Claims(file.parent / "claims")
        self._claims.take(file.name)
        self._file = file.open("ab", buffering=0)

    def write(self, made: Sequence[Made]) -> Sequence[Stored | None]:
        """Append results to the file."""
        self._file.write(b"".join(self._line(*one) for one in made))
        return [None] * len(made)

    def failed(self, attempt: Attempt) -> None:
        """Hold a failed attempt for the driver."""
        self.failures.append(attempt)

    def _line(self, key: str, result: CallResult, attempt: Attempt) -> bytes:
        files = {
            role: astuple(file if isinstance(file, Blob) else self._blobs.add(*file))
            for role, file in result.files.items()
        }
        facts: dict[str, Any] = {"timing": asdict(result.timing), "files": files, "attempt": astuple(attempt)}
        facts |= {name: getattr(result, name) for name in ("request", "response", "audio_s", "tokens")}
        return orjson.dumps({"key": key, **facts}, option=orjson.OPT_APPEND_NEWLINE)

    def close(self) -> None:
        """Close the file, and say that it is complete."""
        self._file.close()
        self._claims.give_back(list(self._claims.taken))


def run_folder(store: Store, run: str) -> Path:
    """The folder of the parts of a run."""
    return store.path / _PARTS / run


def read_part(data: bytes) -> list[Made]:
    """The results of a part; a line that a kill cut off is left out."""
    made = []
    for line in data.splitlines():
        try:
            facts = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        key, attempt = facts.pop("key"), Attempt(*facts.pop("attempt"))
        timing = Timing(**facts.pop("timing"))
        files = {role: Blob(*file) for role, file in facts.pop("files").items()}
        made.append((key, CallResult(timing=timing, files=files, **facts), attempt))
    return made


def parts_of(folder: Path, name: str) -> bytes:
    """The parts whose names begin so, once their writers have ended."""
    writers, until = Claims(folder / "claims"), time.monotonic() + _ENDS_S
    found = []
    for file in sorted(folder.glob(f"{name}-*.jsonl")):
        while not writers.take(file.name) and time.monotonic() < until:
            time.sleep(_LOOK_S)
        found.append(file.read_bytes())
        writers.give_back([file.name])
    return b"\n".join(found)


def adopt_parts(store: Store) -> None:
    """Take the results of runs whose driver was lost into the store."""
    for folder in sorted((store.path / _PARTS).glob("*")) if not store.read_only else ():
        drivers = store.claims()
        if not drivers.take(folder.name):  # its driver lives
            continue
        try:
            for operation in sorted({file.name.partition("-")[0] for file in folder.glob("*.jsonl")}):
                Writer(store, operation).write(read_part(parts_of(folder, operation)))
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            drivers.give_back([folder.name])
