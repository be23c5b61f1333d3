"""Folders of reports as version 0.1 wrote them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def as_first_version(folder: Path, kind: str, **fields: Any) -> None:
    """Replace the record of a saved report: version 0.1 named a class, its plain fields and its tables."""
    files = [path.name for path in folder.glob("*.parquet")]
    kept = {"format": 1, "kind": kind, "fields": fields, "record": {}, "files": files}
    (folder / "record.json").write_text(json.dumps(kept))
