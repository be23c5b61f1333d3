"""What a page holds for its verification: its rows as data, and the hashes of its figures."""

from __future__ import annotations

import base64
import zlib
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import orjson
import pandas as pd

from speechlab._arguments import is_missing
from speechlab.evaluate._made import FOLLOWING
from speechlab.evaluate._writing.contents import Contents, ShownRows, findings_of
from speechlab.evaluate._writing.folder import SOUNDS

if TYPE_CHECKING:
    from collections.abc import Mapping

_FORMAT = 1
_TABLES = ("speechless", "measures")
"""Further tables that a report is made of."""


def held_report(report: Contents, figures: Mapping[str, tuple[bytes, bytes]], *, sound: bool) -> str:
    """Return the data as JSON that ends neither its HTML element nor, with U+2028 or U+2029, a line.

    Args:
        report: The report.
        figures: Its figures as SVG, by title, each also for a phone.
        sound: Whether its rows have sound.
    """
    follows = frozenset() if report.study == "listening" else FOLLOWING
    kept_columns = [
        name for name in report.table.columns if name not in follows.union(SOUNDS)
    ]  # the page has its own sounds
    frames = {"table": report.table[kept_columns], "speed": report.speed}
    frames |= {name: report.tables[name] for name in _TABLES if name in report.tables}
    kept = {
        "format": _FORMAT,
        "study": report.study,
        "title": report.title,
        "columns": dict(report.columns),
        "notes": list(report.notes),
        "findings": [vars(one) for one in report.findings] if report.study == "listening" else [],
        "sound": sound,
        "figures": {name: digest_of(*both) for name, both in figures.items()},
        "frames": {name: _packed(frame) for name, frame in frames.items() if len(frame)},
    }
    text = orjson.dumps(kept, default=str).decode()
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def digest_of(vectors: bytes, phone: bytes) -> str:
    """Return the hash of a figure and of its form for a phone."""
    return sha256(vectors + phone).hexdigest()


def read_report(kept: Mapping[str, Any], record: Mapping[str, Any]) -> Contents:
    """Return the report that a page holds, without what follows from its rows; the page shows its record.

    Raises:
        ValueError, KeyError, TypeError: The data are damaged.
    """
    frames = {name: _unpacked(text) for name, text in kept["frames"].items()}
    return Contents(
        str(kept["title"]),
        frames.pop("table", pd.DataFrame()),
        pd.DataFrame(),
        study=str(kept["study"]),
        findings=findings_of(kept["findings"]),
        notes=tuple(kept["notes"]),
        speed=frames.pop("speed", pd.DataFrame()),
        tables=frames,
        columns=dict(kept["columns"]),
        shown=ShownRows(),
        record=record,
    )


def _packed(frame: pd.DataFrame) -> str:
    """The columns with their types as compressed JSON; a column of values that JSON lacks is left out."""
    columns = {
        name: (str(cells.dtype), _cells(cells)) for name, cells in frame.items() if isinstance(name, str)
    }
    plain = orjson.dumps({name: pair for name, pair in columns.items() if pair[1] is not None})
    return base64.b64encode(zlib.compress(plain, 9)).decode()


def _cells(cells: pd.Series[Any]) -> list[Any] | None:
    values = [
        None if is_missing(cell) else cell.item() if hasattr(cell, "item") else cell
        for cell in cells.tolist()
    ]
    try:
        orjson.dumps(values)
    except TypeError:
        return None
    return values


def _unpacked(text: str) -> pd.DataFrame:
    columns = orjson.loads(zlib.decompress(base64.b64decode(text)))
    return pd.DataFrame(
        {
            name: pd.Series(values, dtype="object" if kind == "category" else kind)
            for name, (kind, values) in columns.items()
        }
    )
