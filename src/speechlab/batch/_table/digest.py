"""The digest of a run's results: recorded with the run, and computed again to verify it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from speechlab.batch._plan.rows import RowStep
    from speechlab.store import Stored

_SEGMENT = ("start", "end", "text")


class ResultDigest:
    """The SHA-256 of the results of rows, in their order."""

    def __init__(self, step: type[RowStep], *, earlier: bool = False) -> None:
        self._evidence_of, self._earlier = step.evidence, earlier
        self._sha = hashlib.sha256()

    def add(self, row: str, stored: Stored | None, *, new: bool = False) -> None:
        """Add a row."""
        evidence: Any = None if stored is None else self._evidence_of(stored)
        if self._earlier and new and evidence is not None:
            evidence = [_as_it_came(value) for value in evidence]
            self._sha.update(orjson.dumps([row, evidence]))
        else:
            self._sha.update(orjson.dumps([row, evidence], option=orjson.OPT_SORT_KEYS))

    def hexdigest(self) -> str:
        """The digest of the rows so far, in lower-case hexadecimal."""
        return self._sha.hexdigest()


def _as_it_came(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [{name: piece[name] for name in _SEGMENT if name in piece} for piece in value]


def row_text(key: str | None, error: object) -> str:
    """Text of a row in digests: its key, or the error of an invalid row."""
    return key if key is not None else f"error: {error}"
