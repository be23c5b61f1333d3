"""Subtitles: SRT and WebVTT. Times are in milliseconds, and a file has one recording."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import unescape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.segments._files.source import Row, Sink, SourceFile

_TIME = r"(?:(\d+):)?([0-5]?\d):([0-5]?\d)[,.](\d{1,3})"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?$")
_TAG = re.compile(r"<([^<>]*)>")
_COMMENT_BLOCK = re.compile(r"(?:NOTE|STYLE|REGION)(?:\s|$)")


def read_srt(source: SourceFile) -> Iterator[Row]:
    """Read SRT. Cue numbers may be missing, and times may have a dot instead of the comma."""
    for number, times, text in _parse_cues(
        source, _split_blocks(source), "a number and a line 00:00:01,000 --> 00:00:02,000"
    ):
        yield number, times | {"text": text}


def write_srt(table: pd.DataFrame, sink: Sink) -> str:
    """Write SRT. Tags such as ``<i>``, which players interpret, are written unchanged."""
    starts, ends = sink.to_milliseconds(table)
    cues = []
    for number, (start, end, text) in enumerate(
        zip(starts, ends, _remove_blank_lines(table, sink), strict=True), 1
    ):
        cues.append(
            f"{number}\n{_format_clock(start, ',')} --> {_format_clock(end, ',')}\n{text}{chr(10) if text else ''}"
        )
    return "\n".join(cues)


def read_vtt(source: SourceFile) -> Iterator[Row]:
    """Read WebVTT. ``<v name>`` sets the speaker; other tags, settings, notes and styles are left out."""
    blocks = _split_blocks(source)
    first = source.decode_text().partition("\n")[0]
    if not re.match(r"WEBVTT(?:\s|$)", first):
        source.raise_fault(f"the first line is {first!r:.40}; a WebVTT file begins with WEBVTT", 1)
    for number, line in enumerate(blocks[0][1], 1):
        if "-->" in line:
            source.raise_fault("expected a blank line between the head of the file and its first cue", number)
    cues = (
        block
        for block in blocks[1:]
        if not _COMMENT_BLOCK.match(block[1][0]) or any("-->" in line for line in block[1])
    )
    for number, times, cue in _parse_cues(source, cues, "a line 00:01.000 --> 00:02.000"):
        for speaker, text in _split_voices(cue):
            yield number, times | {"text": text, "speaker": speaker}


def write_vtt(table: pd.DataFrame, sink: Sink) -> str:
    """Write WebVTT, with ``<v name>`` for speakers."""
    starts, ends = sink.to_milliseconds(table)
    names = sink.format_speakers(table, without="<>")
    cues = ["WEBVTT\n"]
    for start, end, text, name in zip(starts, ends, _remove_blank_lines(table, sink), names, strict=True):
        cue = _escape_markup(text)
        if name:
            cue = f"<v {_escape_markup(name)}>{cue}</v>"
        cues.append(
            f"{_format_clock(start, '.')} --> {_format_clock(end, '.')}\n{cue}{chr(10) if cue else ''}"
        )
    return "\n".join(cues)


def _split_blocks(source: SourceFile) -> list[tuple[int, list[str]]]:
    """Blocks of lines between blank lines, each with the number of its first line."""
    blocks: list[tuple[int, list[str]]] = []
    inside = False
    for number, line in enumerate(source.decode_text().split("\n"), 1):
        if not line.strip():
            inside = False
        elif inside:
            blocks[-1][1].append(line)
        else:
            blocks.append((number, [line]))
            inside = True
    return blocks


def _parse_cues(
    source: SourceFile, blocks: Iterable[tuple[int, list[str]]], form: str
) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Yield the line of the times, the times and the text of each cue; its times are in its first or second line."""
    for number, block in blocks:
        at = 0 if "-->" in block[0] else 1
        if at == 1 and (len(block) < 2 or "-->" not in block[1]):
            source.raise_fault(f"{block[0]!r:.60}: expected {form}", number)
        timing = _TIMING.match(block[at])
        if timing is None:
            source.raise_fault(
                f"{block[at]!r:.60} is not a timing such as 00:00:01,000 --> 00:00:02,000", number + at
            )
        fields = timing.groups("0")
        start, end = (_to_milliseconds(*fields[at : at + 4]) / 1000 for at in (0, 4))
        yield number + at, {"start": start, "end": end}, "\n".join(block[at + 1 :])


def _to_milliseconds(hours: str, minutes: str, seconds: str, fraction: str) -> int:
    return ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1000 + int(fraction.ljust(3, "0"))


def _format_clock(milliseconds: int, point: str) -> str:
    seconds, fraction = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{point}{fraction:03d}"


def _remove_blank_lines(table: pd.DataFrame, sink: Sink) -> list[str]:
    """Texts without blank lines, which would end the cue."""
    return sink.change_texts(
        table["text"].tolist(),
        lambda text: "\n".join(line.strip() for line in text.splitlines() if line.strip()),
        "texts had blank lines or spaces around a line, which were removed",
    )


def _escape_markup(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _split_voices(text: str) -> list[tuple[str, str]]:
    """Return the texts and speakers of a cue, one entry for each ``<v>`` tag."""
    voices: list[tuple[str, str]] = []
    speaker, pieces = "", ""
    for number, piece in enumerate(_TAG.split(text)):
        if number % 2 == 0:
            pieces += piece
        elif re.match(r"v[.\s]", piece) or piece in {"v", "/v"}:
            if pieces.strip():
                voices.append((speaker, pieces))
            elif speaker:
                voices.append((speaker, ""))
            pieces = ""
            speaker = unescape(re.sub(r"^v[^\s]*\s*", "", piece)).strip() if piece != "/v" else ""
    if pieces.strip() or not voices:
        voices.append((speaker, pieces))
    return [(name, unescape(words).strip()) for name, words in voices]
