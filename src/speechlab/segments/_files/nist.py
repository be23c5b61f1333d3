"""The line formats of NIST's scorers: RTTM, CTM, STM and UEM.

Times are in microseconds, and a file can have many recordings.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from speechlab.segments._files.source import Sink, SourceFile, column_of, decimal
from speechlab.segments._frame.ticks import ticks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

_NONE = "<NA>"
_OTHER_RTTM = frozenset(
    {"SPKR-INFO", "NON-LEX", "NON-SPEECH", "LEXEME", "FILLER", "EDIT", "IP", "CB", "SU", "A/P", "NOSCORE",
     "NO_RT_METADATA", "SEGMENT"}
)  # fmt: skip
_LABELS = re.compile(r"<[^\s<>]*>$")


def read_rttm(source: SourceFile) -> pd.DataFrame:
    """Read the SPEAKER lines of RTTM; lines of its other types are ignored."""
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    for number, fields in _fields(source):
        if fields[0] in _OTHER_RTTM:
            continue
        if fields[0] != "SPEAKER":
            source.fault(f"{fields[0]!r:.40} is not a type of RTTM; expected SPEAKER", number)
        if not 8 <= len(fields) <= 10:
            source.fault(f"the line has {len(fields)} fields; a SPEAKER line has 9 or 10", number)
        row: dict[str, Any] = {"file": fields[1], "channel": _known(fields[2]), "speaker": _known(fields[7])}
        row |= _from_duration(source, fields[3], fields[4], number)
        confidence = fields[8] if len(fields) > 8 else _NONE
        row["confidence"] = (
            math.nan if confidence == _NONE else source.seconds(confidence, number, "confidence")
        )
        rows.append(row)
        lines.append(number)
    return source.table(_without_unknown(rows), lines)


def write_rttm(table: pd.DataFrame, sink: Sink) -> str:
    """Write RTTM, a SPEAKER line for each segment."""
    speakers = sink.words(column_of(table, "speaker"), "speaker", _NONE)
    lines = [
        f"SPEAKER {place} {start} {length} {_NONE} {_NONE} {speaker} {confidence or _NONE} {_NONE}\n"
        for (place, start, length, _), speaker, confidence in zip(
            _places(table, sink), speakers, _confidences(table), strict=True
        )
    ]
    return "".join(lines)


def read_ctm(source: SourceFile) -> pd.DataFrame:
    """Read CTM: one word per line, with optional confidence, type and speaker."""
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    for number, fields in _fields(source):
        if not 5 <= len(fields) <= 8:
            source.fault(
                f"the line has {len(fields)} fields; expected file, channel, start, duration and word", number
            )
        if fields[4].startswith("<ALT"):
            source.fault("alternatives (<ALT_BEGIN>) are not supported; choose one of them first", number)
        row: dict[str, Any] = {"file": fields[0], "channel": fields[1], "text": fields[4]}
        row |= _from_duration(source, fields[2], fields[3], number)
        confidence = fields[5] if len(fields) > 5 else "NA"
        row["confidence"] = (
            math.nan if confidence in {"NA", _NONE} else source.seconds(confidence, number, "confidence")
        )
        row["speaker"] = _known(fields[7]) if len(fields) > 7 else ""
        rows.append(row)
        lines.append(number)
    return source.table(_without_unknown(rows), lines)


def write_ctm(table: pd.DataFrame, sink: Sink) -> str:
    """Write CTM: each row is a word."""
    for row, text in enumerate(table["text"].tolist()):
        if len(text.split()) != 1 or text != text.strip():
            message = f"the text {text!r:.60} is not one word, and a CTM file has one in each line"
            sink.fault(message, row, "text")
    places = zip(_places(table, sink), _confidences(table), strict=True)
    return "".join(
        f"{place} {start} {length} {text}{' ' if confidence else ''}{confidence}\n"
        for (place, start, length, text), confidence in places
    )


def read_stm(source: SourceFile) -> pd.DataFrame:
    """Read STM; a label such as ``<o,f0,male>`` before the words becomes the column ``labels``."""
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    for number, line in _lines(source):
        fields = line.split(maxsplit=5)
        if len(fields) < 5:
            source.fault(
                f"the line has {len(fields)} fields; expected file, channel, speaker, start and end", number
            )
        rest = fields[5].strip() if len(fields) > 5 else ""
        first, _, words = rest.partition(" ")
        labelled = _LABELS.match(first)
        rows.append(
            {
                "file": fields[0],
                "channel": fields[1],
                "speaker": _known(fields[2]),
                "start": source.seconds(fields[3], number, "start"),
                "end": source.seconds(fields[4], number, "end"),
                "text": words.strip() if labelled else rest,
                "labels": first[1:-1] if labelled else "",
            }
        )
        lines.append(number)
    return source.table(_without_unknown(rows), lines)


def write_stm(table: pd.DataFrame, sink: Sink) -> str:
    """Write STM, with the column ``labels`` if there is one."""
    speakers = sink.words(column_of(table, "speaker"), "speaker", _NONE)
    labels = [str(label) for label in column_of(table, "labels")]
    for row, label in enumerate(labels):
        if label and not _LABELS.match(f"<{label}>"):
            sink.fault(f"labels {label!r:.60} hold spaces or angle brackets", row, "labels")
    texts = sink.one_line(table["text"].tolist())
    ends = ticks_of(table["end"]).tolist()
    lines = []
    for (place, start, _, _), end, speaker, label, text in zip(
        _places(table, sink), ends, speakers, labels, texts, strict=True
    ):
        # A text that begins like a label needs a label before it, so that it is read as a text again.
        mark = f" <{label}>" if label or _LABELS.match(text.partition(" ")[0]) else ""
        lines.append(f"{place} {speaker} {start} {decimal(end)}{mark}{' ' if text else ''}{text}\n")
    return "".join(lines)


def read_uem(source: SourceFile) -> pd.DataFrame:
    """Read UEM: the stretches to score."""
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    for number, fields in _fields(source):
        if len(fields) != 4:
            source.fault(f"the line has {len(fields)} fields; expected file, channel, start and end", number)
        start, end = (source.seconds(fields[at], number, name) for at, name in ((2, "start"), (3, "end")))
        rows.append({"file": fields[0], "channel": fields[1], "start": start, "end": end})
        lines.append(number)
    return source.table(rows, lines)


def write_uem(table: pd.DataFrame, sink: Sink) -> str:
    """Write UEM."""
    ends = ticks_of(table["end"]).tolist()
    places = zip(_places(table, sink), ends, strict=True)
    return "".join(f"{place} {start} {decimal(end)}\n" for (place, start, _, _), end in places)


def _lines(source: SourceFile) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in source.lines() if not line.lstrip().startswith(";;"))


def _fields(source: SourceFile) -> Iterator[tuple[int, list[str]]]:
    return ((number, line.split()) for number, line in _lines(source))


def _known(value: str) -> str:
    return "" if value == _NONE else value


def _from_duration(source: SourceFile, start: str, length: str, number: int) -> dict[str, float]:
    begin = source.seconds(start, number, "start")
    return {"start": begin, "end": round(begin + source.seconds(length, number, "duration"), 9)}


def _without_unknown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without the columns that have no value in any row."""
    optional = ("speaker", "confidence", "labels")
    drop = [
        name
        for name in optional
        if all(row.get(name, "") in ("", None) or row[name] != row[name] for row in rows)
    ]
    return [{name: value for name, value in row.items() if name not in drop} for row in rows]


def _places(table: pd.DataFrame, sink: Sink) -> Iterator[tuple[str, str, str, str]]:
    """File and channel, start, length and text of each row."""
    files = sink.words(table["file"].tolist(), "file", None)
    written = column_of(table, "channel")
    channels = sink.words(written, "channel", "1")
    sink.note(written.count(""), "rows without a channel are written as channel 1")
    starts, ends = ticks_of(table["start"]), ticks_of(table["end"])
    lengths = (ends - starts).tolist()
    for file, channel, start, length, text in zip(
        files, channels, starts.tolist(), lengths, table["text"].tolist(), strict=True
    ):
        yield f"{file} {channel}", decimal(start), decimal(length), text


def _confidences(table: pd.DataFrame) -> list[str]:
    if "confidence" not in table.columns:
        return [""] * len(table)
    return ["" if value != value else repr(value) for value in table["confidence"].tolist()]
