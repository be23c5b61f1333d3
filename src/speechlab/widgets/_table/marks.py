"""Marks, ratings and notes as a text: the file that a page gives its reader, and a part of a saved notebook."""

from __future__ import annotations

import base64
import binascii
import csv
import io
import os
import re
import zlib
from typing import Any, NamedTuple

from speechlab._files import expand_user_path, read_regular_file
from speechlab.errors import InvalidRequestError
from speechlab.widgets._table.rows import ANNOTATIONS, Rows

_MAX_PLAIN = 20_000
_MAX_PACKED = 50_000
_MAX_READ = 50_000_000
# Shares of the rows, and before them of their notes, that are tried in turn until they have room.
_SHARES = (1.0, 0.5, 0.2, 0.05, 0.0)
_PACK_PREFIX = "speechlab-marks-1 "
# Beginnings of cells that a spreadsheet computes.
_FORMULA = re.compile(r"[=+\-@\t\r]")


class MarksText(NamedTuple):
    """A file of marks as text, the number of its rows, and how many rows and notes are left out of it."""

    text: str
    rows: int
    rows_left: int
    notes_left: int


def format_marks_file(rows: Rows) -> MarksText:
    """Return what is noted as CSV of at most 50 kB, packed above 20 kB; without room the first rows are in it."""
    noted = [
        (row, *values)
        for row, values in enumerate(zip(*(rows.noted[name] for name in ANNOTATIONS), strict=True))
        if any(values)
    ]
    keys = rows.list_keys() if noted else []
    notes = sum(bool(line[3]) for line in noted)
    shares = [(1.0, share) for share in _SHARES[:-1] if notes] + [(share, 0.0) for share in _SHARES]
    for of_rows, of_notes in shares:
        count, with_note = round(of_rows * len(noted)), round(of_notes * len(noted))
        lines = [
            (*line[:3], line[3] if place < with_note else "") for place, line in enumerate(noted[:count])
        ]
        text = _format_csv(keys, lines)
        if len(text) > _MAX_PLAIN:
            text = _PACK_PREFIX + base64.b64encode(zlib.compress(text.encode("utf-8"), 9)).decode("ascii")
        if len(text) <= _MAX_PACKED:
            break
    return MarksText(text, count, len(noted) - count, notes - sum(bool(line[3]) for line in lines))


def _format_csv(keys: list[str], noted: list[Any]) -> str:
    if not noted:
        return ""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["key", *ANNOTATIONS])
    for row, mark, rating, note in noted:
        writer.writerow(
            [keys[row], int(mark) or "", rating or "", f"'{note}" if _FORMULA.match(note) else note]
        )
    return out.getvalue()


def load_marks(rows: Rows, path: str | os.PathLike[str]) -> None:
    """Put the marks, ratings and notes of a file into the rows with the same keys, or refuse all of them."""
    file = expand_user_path(path)
    lines = _parse_annotation_rows(read_regular_file(file), file.name)
    places = {key: row for row, key in enumerate(rows.list_keys())}
    strangers = [line["key"] for line in lines if line["key"] not in places]
    changed = [
        line
        for line in lines
        if line["key"] in places
        and line.get("text")
        and line["text"] != rows.get_first_text(places[line["key"]])
    ]
    if strangers or changed:
        what = f"are not in this table ({', '.join(repr(key[:40]) for key in strangers[:3])})"
        if changed:
            key, text = changed[0]["key"], changed[0]["text"]
            present = rows.get_first_text(places[key])
            what = f"have another text here (row {key[:40]}: {text!r} in the file, {present!r} here)"
        message = (
            f"{file.name} was made of another table: {len(changed or strangers):,} of its {len(lines):,} rows "
            f"{what}. Give the table from which the page was saved"
        )
        raise InvalidRequestError(message, parameter="marks")
    for line in lines:
        row, note, rating = places[line["key"]], line["note"], line["rating"].strip()
        values = {
            "mark": line["mark"].strip() == "1",
            "rating": int(rating) if rating.isascii() and rating.isdigit() else None,
            "note": note[1:] if note[:1] == "'" and _FORMULA.match(note[1:]) else note,
        }
        for name, value in values.items():
            rows.noted[name][row] = rows.check_annotation(name, value)


def _parse_annotation_rows(data: bytes, name: str) -> list[dict[str, str]]:
    try:
        text = data.decode("utf-8-sig")
        if text.startswith(_PACK_PREFIX):
            packed = zlib.decompressobj()
            text = packed.decompress(base64.b64decode(text[len(_PACK_PREFIX) :]), _MAX_READ).decode("utf-8")
        lines = list(csv.DictReader(io.StringIO(text, newline=""), restval=""))
    except (UnicodeDecodeError, binascii.Error, zlib.error, csv.Error):
        lines = []
    if not lines or not {"key", *ANNOTATIONS} <= set(lines[0]):
        message = (
            f"{name} is not a file of marks; give the CSV (key, mark, rating, note) that a saved page gave"
        )
        raise InvalidRequestError(message, parameter="marks")
    return lines
