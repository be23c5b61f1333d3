"""ASS and SSA: captions as lines of fields, whose order the file names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from speechlab.segments._files.source import Row, SourceFile

_TIME = re.compile(r"\s*(\d+):(\d{1,2}):(\d{1,2})(?:[.,:](\d{1,3}))?\s*$")
_FIELDS = ["layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text"]
_OVERRIDE = re.compile(r"(\{[^}]*\})")
_DRAWING = re.compile(r"\\p(\d+)")


def read_substation(source: SourceFile) -> Iterator[Row]:
    """Read ASS or SSA. Styles, drawings and comments are left out."""
    names, in_events, any_event = _FIELDS, False, False
    for number, line in enumerate(source.decode_text().split("\n"), 1):
        kind, _, rest = line.strip().partition(":")
        if kind.startswith("["):
            in_events = kind.lower().startswith("[events")
            any_event = any_event or in_events
        elif in_events and kind == "Format":
            names = _parse_column_names(source, rest, number)
        elif in_events and kind == "Dialogue":
            fields = rest.split(",", len(names) - 1)
            if len(fields) < len(names):
                source.note_omission(
                    f"the line has {len(fields)} fields; its section has {len(names)}", number
                )
                continue
            row = dict(zip(names, fields, strict=True))
            start, end = _parse_time(row["start"]), _parse_time(row["end"])
            if start is None or end is None:
                wrong = row["start"] if start is None else row["end"]
                source.note_omission(f"{wrong.strip()!r:.40} is not a time such as 0:00:01.50", number)
                continue
            text = _extract_visible_text(row["text"])
            if text or not _DRAWING.search(row["text"]):
                speaker = row.get("name", row.get("actor", "")).strip()
                yield number, {"start": start, "end": end, "text": text, "speaker": speaker}
    if not any_event:
        source.raise_fault("the file has no section [Events], which holds the captions")


def _parse_column_names(source: SourceFile, text: str, line: int) -> list[str]:
    names = [name.strip().lower() for name in text.split(",")]
    if missing := {"start", "end", "text"} - set(names):
        source.raise_fault(f"the line names no field {min(missing)!r}, which captions need", line)
    if names[-1] != "text":
        source.raise_fault(
            f"the last field is {names[-1]!r:.40}; it has to be Text, which may hold commas", line
        )
    return names


def _parse_time(text: str) -> float | None:
    found = _TIME.match(text)
    if found is None:
        return None
    hours, minutes, seconds, fraction = found.groups("0")
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    return (whole * 1000 + int(fraction.ljust(3, "0"))) / 1000


def _extract_visible_text(text: str) -> str:
    r"""The text without parts in braces and without drawings, which go from ``\p1`` to ``\p0``."""
    if "{" in text:
        pieces, is_drawing = [], False
        for piece in _OVERRIDE.split(text):
            if piece.startswith("{") and piece.endswith("}"):
                for level in _DRAWING.findall(piece):
                    is_drawing = int(level) > 0
            elif not is_drawing:
                pieces.append(piece)
        text = "".join(pieces)
    return text.replace(r"\h", " ").replace(r"\n", "\n").replace(r"\N", "\n").strip()
