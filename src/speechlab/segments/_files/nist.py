"""The line formats of NIST's scorers: RTTM, CTM, STM and UEM.

Times are in microseconds, and a file can have many recordings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from speechlab.segments._files.source import (
    Row,
    Sink,
    SourceFile,
    format_ticks_as_seconds,
    get_column_or_empty,
)
from speechlab.segments._frame.ticks import to_ticks

if TYPE_CHECKING:
    import pandas as pd

_NONE = "<NA>"
_OTHER_RTTM = frozenset(
    {"SPKR-INFO", "NON-LEX", "NON-SPEECH", "LEXEME", "FILLER", "EDIT", "IP", "CB", "SU", "A/P", "NOSCORE",
     "NO_RT_METADATA", "SEGMENT"}
)  # fmt: skip
_UNSCORED = "ignore_time_segment_in_scoring"
_IS_UNSCORED = re.compile(rf"^{_UNSCORED}$", re.IGNORECASE)
_GAPS = frozenset({"inter_segment_gap", "excluded_region"})  # speakers of time that is not scored
_CHOICE = re.compile(r"\{ ([^{}]*?) /(?: [^{}]*)? \}")
_LABELS = re.compile(r"<[^\s<>]*>$")


def read_rttm(source: SourceFile) -> Iterator[Row]:
    """Read the SPEAKER lines of RTTM; lines of its other types are ignored."""
    return source.parse_rows(_iter_line_fields(source), partial(_parse_rttm_line, source))


def _parse_rttm_line(source: SourceFile, number: int, fields: list[str]) -> dict[str, Any] | None:
    if fields[0] in _OTHER_RTTM:
        return None
    if fields[0] != "SPEAKER":
        source.raise_fault(f"{fields[0]!r:.40} is not a type of RTTM; expected SPEAKER", number)
    if not 8 <= len(fields) <= 10:
        source.raise_fault(f"the line has {len(fields)} fields; a SPEAKER line has 9 or 10", number)
    _, file, channel, start, length, _, _, speaker, confidence = [*fields, _NONE][:9]
    row = {
        "file": file,
        "channel": _parse_optional_field(channel),
        "speaker": _parse_optional_field(speaker),
    }
    row |= _parse_start_and_length(source, start, length, number)
    return row | {"confidence": _parse_confidence(source, confidence, number)}


def encode_rttm(table: pd.DataFrame, sink: Sink) -> str:
    """Write RTTM, a SPEAKER line for each segment."""
    speakers = sink.check_and_fill_fields(get_column_or_empty(table, "speaker"), "speaker", _NONE)
    lines = [
        f"SPEAKER {place} {start} {length} {_NONE} {_NONE} {speaker} {confidence or _NONE} {_NONE}\n"
        for (place, start, length, _), speaker, confidence in zip(
            _format_row_fields(table, sink), speakers, _format_confidences(table), strict=True
        )
    ]
    return "".join(lines)


def read_ctm(source: SourceFile) -> Iterator[Row]:
    """Read CTM: one word per line, with optional confidence, type and speaker; of alternatives the first."""
    return source.parse_rows(_take_first_alternatives(source), partial(_parse_ctm_line, source))


def _take_first_alternatives(source: SourceFile) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of CTM without marks of alternatives, and without the words of all but the first."""
    place: list[str] | None = None  # the file and channel of open alternatives
    is_first = True
    for number, fields in _iter_line_fields(source):
        mark = fields[4].upper() if len(fields) > 4 and fields[4].startswith("<") else ""
        if mark == "<ALT_BEGIN>":
            source.note_omission("alternatives but the first", number)
            place, is_first = fields[:2], True
        elif mark == "<ALT>":
            is_first = False
        elif mark == "<ALT_END>" or (place is not None and fields[:2] != place):
            place, is_first = None, True
            if not mark:
                yield number, fields
        elif is_first and not (place and fields[4:5] == ["@"]):
            yield number, fields


def _parse_ctm_line(source: SourceFile, number: int, fields: list[str]) -> dict[str, Any] | None:
    if not 5 <= len(fields) <= 8:
        source.raise_fault(
            f"the line has {len(fields)} fields; expected file, channel, start, duration and word", number
        )
    file, channel, start, length, word, confidence, kind, speaker = [*fields, *[_NONE] * 3][:8]
    if kind.lower() == "noscore":
        return None
    row = {"file": file, "channel": channel, "text": word, "speaker": _parse_optional_field(speaker)}
    row |= _parse_start_and_length(source, start, length, number)
    return row | {"confidence": _parse_confidence(source, confidence, number)}


def encode_ctm(table: pd.DataFrame, sink: Sink) -> str:
    """Write CTM: each row is a word."""
    for row, text in enumerate(table["text"].tolist()):
        if len(text.split()) != 1 or text != text.strip():
            message = f"the text {text!r:.60} is not one word, and a CTM file has one in each line"
            sink.raise_fault(message, row, "text")
    places = zip(_format_row_fields(table, sink), _format_confidences(table), strict=True)
    return "".join(
        f"{place} {start} {length} {text}{' ' if confidence else ''}{confidence}\n"
        for (place, start, length, text), confidence in places
    )


def read_stm(source: SourceFile) -> Iterator[Row]:
    """Read STM; a label such as ``<o,f0,male>`` before the words becomes the column ``labels``.

    Segments that are not scored are left out; of alternatives ``{ a / b }`` the first is taken.
    """
    return source.parse_rows(_iter_content_lines(source), partial(_parse_stm_line, source))


def _parse_stm_line(source: SourceFile, number: int, line: str) -> dict[str, Any] | None:
    fields = line.split(maxsplit=5)
    if len(fields) < 5:
        source.raise_fault(
            f"the line has {len(fields)} fields; expected file, channel, speaker, start and end", number
        )
    file, channel, speaker, start, end, text = [*fields, ""][:6]
    row = {
        "file": file,
        "channel": channel,
        "speaker": _parse_optional_field(speaker),
        "text": text.strip(),
        "labels": "",
    }
    first, _, words = row["text"].partition(" ")
    if _LABELS.match(first):
        row |= {"text": words.strip(), "labels": first[1:-1]}
    times = source.parse_times(start, end, number)
    if speaker.lower() in _GAPS or row["text"].lower() == _UNSCORED:
        return None
    if "{" in row["text"] and _CHOICE.search(row["text"]):
        row["text"] = " ".join(_CHOICE.sub(_get_first_alternative, row["text"]).split())
        source.note_omission(f"alternatives but the first, in {text.strip()!r:.60}", number)
    return row | times


def _get_first_alternative(found: re.Match[str]) -> str:
    return "" if found[1].strip() == "@" else found[1]


def encode_stm(table: pd.DataFrame, sink: Sink) -> str:
    """Write STM, with the column ``labels`` if there is one."""
    speakers = sink.check_and_fill_fields(get_column_or_empty(table, "speaker"), "speaker", _NONE)
    labels = [str(label) for label in get_column_or_empty(table, "labels")]
    for row, label in enumerate(labels):
        if label and not _LABELS.match(f"<{label}>"):
            sink.raise_fault(f"labels {label!r:.60} hold spaces or angle brackets", row, "labels")
    texts = sink.to_one_line(table["text"].tolist())
    sink.refuse_pattern(_CHOICE, texts, "text", "has {!r}, alternatives in this format; choose one first")
    sink.refuse_pattern(_IS_UNSCORED, texts, "text", "means that it is not scored; drop the row first")
    ends = to_ticks(table["end"]).tolist()
    lines = []
    for (place, start, _, _), end, speaker, label, text in zip(
        _format_row_fields(table, sink), ends, speakers, labels, texts, strict=True
    ):
        # A text that begins like a label needs a label before it, so that it is read as a text again.
        mark = f" <{label}>" if label or _LABELS.match(text.partition(" ")[0]) else ""
        lines.append(
            f"{place} {speaker} {start} {format_ticks_as_seconds(end)}{mark}{' ' if text else ''}{text}\n"
        )
    return "".join(lines)


def read_uem(source: SourceFile) -> Iterator[Row]:
    """Read UEM: the stretches to score."""
    return source.parse_rows(_iter_line_fields(source), partial(_parse_uem_line, source))


def _parse_uem_line(source: SourceFile, number: int, fields: list[str]) -> dict[str, Any]:
    if len(fields) != 4:
        source.raise_fault(
            f"the line has {len(fields)} fields; expected file, channel, start and end", number
        )
    file, channel, start, end = fields
    return {"file": file, "channel": channel, **source.parse_times(start, end, number)}


def encode_uem(table: pd.DataFrame, sink: Sink) -> str:
    """Write UEM."""
    ends = to_ticks(table["end"]).tolist()
    places = zip(_format_row_fields(table, sink), ends, strict=True)
    return "".join(
        f"{place} {start} {format_ticks_as_seconds(end)}\n" for (place, start, _, _), end in places
    )


def _iter_content_lines(source: SourceFile) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in source.list_lines() if not line.lstrip().startswith(";;"))


def _iter_line_fields(source: SourceFile) -> Iterator[tuple[int, list[str]]]:
    return ((number, line.split()) for number, line in _iter_content_lines(source))


def _parse_optional_field(value: str) -> str:
    return "" if value == _NONE else value


def _parse_start_and_length(source: SourceFile, start: str, length: str, number: int) -> dict[str, Any]:
    begin = source.parse_seconds(start, number, "start")
    return {"start": begin, "end": round(begin + source.parse_seconds(length, number, "duration"), 9)}


def _parse_confidence(source: SourceFile, value: str, number: int) -> float:
    return math.nan if value in {"NA", _NONE} else source.parse_confidence(value, number)


def _format_row_fields(table: pd.DataFrame, sink: Sink) -> Iterator[tuple[str, str, str, str]]:
    """File and channel, start, length and text of each row."""
    files = sink.check_and_fill_fields(table["file"].tolist(), "file", None)
    written = get_column_or_empty(table, "channel")
    channels = sink.check_and_fill_fields(written, "channel", "1")
    sink.add_note(written.count(""), "rows without a channel are written as channel 1")
    starts, ends = to_ticks(table["start"]), to_ticks(table["end"])
    lengths = (ends - starts).tolist()
    for file, channel, start, length, text in zip(
        files, channels, starts.tolist(), lengths, table["text"].tolist(), strict=True
    ):
        yield f"{file} {channel}", format_ticks_as_seconds(start), format_ticks_as_seconds(length), text


def _format_confidences(table: pd.DataFrame) -> list[str]:
    if "confidence" not in table.columns:
        return [""] * len(table)
    return ["" if value != value else repr(value) for value in table["confidence"].tolist()]
