"""What is recorded with a run: the versions that it depends on, and the digest of its results, which verifies it."""

from __future__ import annotations

import hashlib
import platform
from typing import TYPE_CHECKING, Any

import orjson

from speechlab._platform import installed_version
from speechlab.contract import CONTRACT_VERSION

if TYPE_CHECKING:
    from speechlab.batch._plan.rows import RowStep
    from speechlab.store import Stored

RUN_ATTRIBUTE = "speechlab_run"
"""Key of the run's id in a table's ``attrs``, and of the manifest in the metadata of an exported file."""


class ResultDigest:
    """The SHA-256 of the results of rows, in their order."""

    def __init__(self, step: type[RowStep]) -> None:
        self._evidence_of = step.evidence
        self._sha = hashlib.sha256()

    def add(self, row: str, stored: Stored | None) -> None:
        """Add a row."""
        evidence = None if stored is None else self._evidence_of(stored)
        self._sha.update(orjson.dumps([row, evidence], option=orjson.OPT_SORT_KEYS))

    def hexdigest(self) -> str:
        """The digest of the rows so far, in lower-case hexadecimal."""
        return self._sha.hexdigest()


def row_text(key: str | None, error: object) -> str:
    """Text of a row in digests: its key, or the error of an invalid row."""
    return key if key is not None else f"error: {error}"


def environment() -> dict[str, Any]:
    """Return the versions that a run depends on, without facts about the user or the machine."""
    return {
        "contract": CONTRACT_VERSION,
        "python": platform.python_version(),
        "system": platform.system(),
        "versions": {name: installed_version(name) for name in ("speechlab", "pandas", "pyarrow", "numpy")},
    }
