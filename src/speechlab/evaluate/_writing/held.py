"""What a page holds for its verification: its rows as data, and the hashes of its figures."""

from __future__ import annotations

import base64
import lzma
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import orjson
import pandas as pd

from speechlab._arguments import is_missing
from speechlab.evaluate._made import FOLLOWING, SCORED
from speechlab.evaluate._writing.contents import Contents, ShownRows, findings_of
from speechlab.evaluate._writing.folder import SOUNDS

if TYPE_CHECKING:
    from collections.abc import Mapping

_FORMAT = 1
SEAL = "0" * 64
"""What stands in a page in place of its own hash while that is computed."""
_SOUND = "sound.opus"
"""What stands in rows for a sound of the page."""
_SEALED = re.compile(r'(?<="seal":")[0-9a-f]{64}(?=")')
_TABLES = (
    "now",
    "earlier",
    "speechless",
    "measures",
    "speed_now",
    "speed_earlier",
    "values",
    "corrections",
    "uncorrected",
)
"""Further tables that a report is made of."""


def held_report(report: Contents, figures: Mapping[str, tuple[bytes, bytes]], *, sound: bool) -> str:
    """Return the data as JSON that ends neither its HTML element nor, with U+2028 or U+2029, a line."""
    by_study = {"listening": frozenset[str](), "round_trip": SCORED, "voices": SCORED, "speech": SCORED}
    follows = by_study.get(report.study, FOLLOWING)
    sounds = [
        name
        for name in dict.fromkeys([*SOUNDS, report.columns.get("audio", "audio")])
        if name in report.table
    ]
    left_out = follows.union(sounds)  # the page has its own sounds
    rows = {"now", "earlier"} if report.study == "changes" else {"table"}
    frames = {"table": report.table} if "table" in rows else {}
    frames |= {name: report.tables[name] for name in _TABLES if name in report.tables}
    for name in rows & set(frames):
        frames[name] = frames[name][[column for column in frames[name].columns if column not in left_out]]
    frames["speed"] = report.speed
    data = {
        "format": _FORMAT,
        "seal": SEAL,
        "study": report.study,
        "title": report.title,
        "columns": dict(report.columns),
        "notes": list(report.notes),
        "findings": [vars(column) for column in report.findings] if report.study == "listening" else [],
        "sound": sound,
        "sounds": sounds,
        "figures": {name: digest_of(*forms) for name, forms in figures.items()},
        "frames": _packed({name: frame for name, frame in frames.items() if len(frame)}),
    }
    text = orjson.dumps(data, default=str).decode()
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def seal_of(page: str) -> tuple[str, str]:
    """Return the hash that a page says it has, and the one it has; how its lines end makes no difference."""
    seal = _SEALED.search(page)
    words = "\n".join(_SEALED.sub(SEAL, page, count=1).split())
    return seal[0] if seal else "", sha256(words.encode("utf-8", "surrogatepass")).hexdigest()


def sealed(page: str) -> str:
    """Return a page with its own hash."""
    return _SEALED.sub(seal_of(page)[1], page, count=1)


def digest_of(vectors: bytes, phone: bytes) -> str:
    """Return the hash of a figure and of its form for a phone."""
    return sha256(vectors + phone).hexdigest()


def read_report(data: Mapping[str, Any], record: Mapping[str, Any]) -> Contents:
    """Return the report that a page holds, without what follows from its rows; the page shows its record.

    Raises:
        ValueError, KeyError, TypeError: The data are damaged.
    """
    frames = _unpacked(data["frames"])
    for name in {"table", "now"} & set(frames):
        sounds = dict.fromkeys(data["sounds"], _SOUND if data["sound"] else None)
        frames[name] = frames[name].assign(**sounds)
    return Contents(
        str(data["title"]),
        frames.pop("table", pd.DataFrame()),
        pd.DataFrame(),
        study=str(data["study"]),
        findings=findings_of(data["findings"]),
        notes=tuple(data["notes"]),
        speed=frames.pop("speed", pd.DataFrame()),
        tables=frames,
        columns=dict(data["columns"]),
        shown=ShownRows(),
        record=record,
    )


def _packed(frames: Mapping[str, pd.DataFrame]) -> str:
    """The columns with their types as compressed JSON; a column of values that JSON lacks is left out."""
    tables = {
        table: {
            name: (str(cells.dtype), values)
            for name, cells in frame.items()
            if isinstance(name, str) and (values := _cells(cells)) is not None
        }
        for table, frame in frames.items()
    }
    return base64.b64encode(lzma.compress(orjson.dumps(tables))).decode()


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


def _unpacked(text: str) -> dict[str, pd.DataFrame]:
    tables = orjson.loads(lzma.decompress(base64.b64decode(text)))
    return {
        table: pd.DataFrame({name: _column(*pair) for name, pair in columns.items()})
        for table, columns in tables.items()
    }


def _column(kind: str, values: list[Any]) -> pd.Series[Any]:
    return pd.Series(values, dtype="object" if kind == "category" else kind)
