"""Subtitles: SRT and WebVTT. Times are in milliseconds, and a file has one recording."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.segments._files.source import Row, Sink, SourceFile

_TIME = r"(?:(\d+):)?([0-5]?\d):([0-5]?\d)(?:[,.](\d{1,3}))?"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s+(\S.*))?\s*$")
_CLOCK = r"\d+:\d+[\d:.,]*"
# A line that is meant as the times of a cue, whatever its arrow is.
_TIMES_MEANT = re.compile(rf"\s*{_CLOCK}\s*(?:[-–—=→>]\s?){{1,4}}{_CLOCK}|.*\d:\d.*-->|.*-->.*\d:\d")
_TAG = re.compile(r"<([^<>]*)>")
_RUBY_TEXT = re.compile(
    r"<(rt|rp)\b[^<>]*>.*?(?:</\1>|(?=<(?:/ruby|rb|rt|rp)\b)|$)", re.IGNORECASE | re.DOTALL
)
_OVERRIDE = re.compile(r"\{\\[^{}]*\}")
_STYLE = re.compile(
    r"</?(?:b|big|c|center|div|em|font|i|lang|p|rb|ruby|rt|rp|s|small|span|strong|sub|sup|u|v)(?:[\s.=/][^<>]*)?>"
    r"|<(?:\d+:)?\d\d:\d\d[.,]\d{3}>|\{\\[^{}]*\}|\{[CFPSY]:[^{}]*\}",
    re.IGNORECASE,
)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_INLINE_TIME = re.compile(r"<(?:\d+:)?\d\d:\d\d\.\d{3}>")
_COMMENT_BLOCK = re.compile(r"(?:NOTE|STYLE|REGION)(?:\s|$)")
_SETTING = re.compile(r"\w+:\S")
# Length of the cues between two steps of rolling captions, and the longest time between them.
_MOMENT_S = 0.05
# Least number of repeats that make captions rolling ones, where they have no times within.
_ROLLING = 3


# The line of the times of a cue, its start and end in seconds, and its text with tags. Plain tuples of plain values
# cost Python's collector of garbage nothing.
_Cue: TypeAlias = tuple[int, float, float, str]


def read_srt(source: SourceFile) -> Iterator[Row]:
    """Read SRT without its tags. Cue numbers may be missing, and times may have a dot instead of the comma."""
    expected = "a number and a line 00:00:01,000 --> 00:00:02,000"
    lines = source.decode_text().split("\n")
    parser = _CueLines(source, lines, list(map(str.strip, lines)), expected, has_comments=False)
    cues = list(parser.parse_cues(0))
    for line, start, end, text in _remove_rolling_repeats(source, cues, _strip_srt_tags, is_rolling=False):
        yield line, {"start": start, "end": end, "text": _strip_srt_tags(text)}


def encode_srt(table: pd.DataFrame, sink: Sink) -> str:
    """Write SRT. Tags such as ``<i>``, which are styles there, are written unchanged."""
    starts, ends = sink.to_milliseconds(table)
    texts = _clean_cue_texts(table, sink)
    styled = sum(("<" in text or "{" in text) and _strip_srt_tags(text) != text for text in texts)
    sink.add_note(styled, "texts with tags, which are styles there")
    cues = []
    for number, (start, end, text) in enumerate(zip(starts, ends, texts, strict=True), 1):
        cues.append(
            f"{number}\n{_format_clock(start, ',')} --> {_format_clock(end, ',')}\n{text}{chr(10) if text else ''}"
        )
    return "\n".join(cues)


def read_vtt(source: SourceFile) -> Iterator[Row]:
    """Read WebVTT. ``<v name>`` sets the speaker; other tags, settings, notes and styles are left out."""
    whole = source.decode_text()
    lines = whole.split("\n")
    if not re.match(r"WEBVTT(?:\s|$)", lines[0]):
        source.raise_fault(f"the first line is {lines[0]!r:.40}; a WebVTT file begins with WEBVTT", 1)
    head = next((at for at, line in enumerate(lines) if not line.strip() or "-->" in line), len(lines))
    expected = "a line 00:01.000 --> 00:02.000"
    parser = _CueLines(source, lines, list(map(str.strip, lines)), expected, has_comments=True)
    cues = list(parser.parse_cues(max(head, 1)))
    is_rolling = _INLINE_TIME.search(whole) is not None
    for number, start, end, cue in _remove_rolling_repeats(
        source, cues, _strip_webvtt_tags, is_rolling=is_rolling
    ):
        for speaker, text in _split_by_speaker(cue):
            yield number, {"start": start, "end": end, "text": text, "speaker": speaker}


def encode_vtt(table: pd.DataFrame, sink: Sink) -> str:
    """Write WebVTT, with ``<v name>`` for speakers."""
    starts, ends = sink.to_milliseconds(table)
    names = sink.format_speakers(table, without="<>")
    cues = ["WEBVTT\n"]
    for start, end, text, name in zip(starts, ends, _clean_cue_texts(table, sink), names, strict=True):
        cue = _escape_markup(text)
        if name:
            cue = f"<v {_escape_markup(name)}>{cue}</v>"
        cues.append(
            f"{_format_clock(start, '.')} --> {_format_clock(end, '.')}\n{cue}{chr(10) if cue else ''}"
        )
    return "\n".join(cues)


@dataclass(frozen=True)
class _CueLines:
    """The lines of a file of cues."""

    source: SourceFile
    lines: list[str]
    texts: list[str]  # the same without spaces around them
    expected: str  # how a cue begins, for notes
    has_comments: bool  # whether blocks such as NOTE are no cues

    def parse_cues(self, first: int) -> Iterator[_Cue]:
        """Yield the cues from a line on. A line of times begins a cue, also without a blank line before it."""
        timings = self._find_timing_lines(first)
        is_numbered = bool(timings) and timings[0][0] > 0 and self.texts[timings[0][0] - 1].isdecimal()
        ends = [self._find_cue_start(at, first, is_numbered) for at, _, _ in timings] + [len(self.lines)]
        self._note_untimed_blocks(first, ends[0])
        for (at, start, end), stop in zip(timings, ends[1:], strict=True):
            text, rest = self._read_cue_text(at + 1, stop)
            if start is not None and end is not None:
                yield at + 1, start, end, text
            if rest < stop:
                self._note_untimed_blocks(rest, stop)

    def _find_timing_lines(self, first: int) -> list[tuple[int, float | None, float | None]]:
        """Return the lines that are, or are meant as, the times of a cue, with the times of those that are."""
        found: list[tuple[int, float | None, float | None]] = []
        for at, line in enumerate(self.lines):
            if at < first:
                continue
            if "-->" in line:
                timing = _TIMING.match(line)
                if timing is not None or self._is_meant_as_timing(at):
                    found.append((at, *self._parse_timing(at, timing)))
            elif ":" in line and self.texts[at][0].isdigit() and _TIMES_MEANT.match(line):
                found.append((at, *self._parse_timing(at, None)))
        return found

    def _is_meant_as_timing(self, at: int) -> bool:
        """Return whether a line with an arrow, but without well-formed times, is meant as times."""
        if _TIMES_MEANT.match(self.lines[at]):
            return True
        # An arrow without times is text, but for the first line of a block, and the second after a number.
        above, is_number = self._is_blank_line(at - 1), at > 0 and self.texts[at - 1].isdecimal()
        return above or (is_number and self._is_blank_line(at - 2))

    def _is_blank_line(self, at: int) -> bool:
        return at < 0 or not self.texts[at]

    def _find_cue_start(self, at: int, first: int, is_numbered: bool) -> int:
        """Return the line with which a cue begins: that of its times, or one before with its name."""
        if at <= first or not self.texts[at - 1]:
            return at
        begins_block = at - 1 == first or self._is_blank_line(at - 2)
        return at - 1 if begins_block or (is_numbered and self.texts[at - 1].isdecimal()) else at

    def _read_cue_text(self, begin: int, end: int) -> tuple[str, int]:
        """Return the text of a cue, and the line after it."""
        # WebVTT has lines of spaces within a text; in SRT they separate cues.
        lines = self.lines if self.has_comments else self.texts
        stop = begin
        for _ in range(2):
            stop = begin
            while stop < end and lines[stop]:
                stop += 1
            text = "\n".join(filter(None, self.texts[begin:stop]))
            if text or stop >= end:
                return text, stop
            # a blank line between the times and the text
            begin = next((at for at in range(stop, end) if self.texts[at]), end)
            if begin == end or self.texts[begin].isdecimal() or self._is_comment_start(begin):
                break
        return "", stop

    def _is_comment_start(self, at: int) -> bool:
        return self.has_comments and _COMMENT_BLOCK.match(self.lines[at]) is not None

    def _note_untimed_blocks(self, begin: int, end: int) -> None:
        """Note the blocks of lines that have no time."""
        if not any(self.texts[begin:end]):
            return
        begins = True
        for at in range(begin, end):
            if not self.texts[at]:
                begins = True
            elif begins:
                begins = False
                if not self._is_comment_start(at):
                    self.source.note_omission(
                        f"{self.lines[at]!r:.60} has no time: expected {self.expected}", at + 1
                    )

    def _parse_timing(self, at: int, timing: re.Match[str] | None) -> tuple[float, float] | tuple[None, None]:
        """Return start and end in seconds; None, with a note, if they are malformed."""
        # Without hours and a fraction, 01:30 may be minutes or hours.
        if timing is None or None in (timing[1] or timing[4], timing[5] or timing[8]):
            form = "is not a timing such as 00:00:01,000 --> 00:00:02,000"
            self.source.note_omission(f"{self.lines[at]!r:.60} {form}", at + 1)
            return None, None
        if timing[9] and not all(map(_SETTING.match, timing[9].split())):
            self.source.note_omission(f"{timing[9]!r:.60} behind the times is no setting of a cue", at + 1)
            return None, None
        hours, minutes, seconds, part, hours_2, minutes_2, seconds_2, part_2, _ = timing.groups("0")
        start = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1000 + int(part.ljust(3, "0"))
        end = ((int(hours_2) * 60 + int(minutes_2)) * 60 + int(seconds_2)) * 1000 + int(part_2.ljust(3, "0"))
        return start / 1000, end / 1000


def _format_clock(milliseconds: int, point: str) -> str:
    seconds, fraction = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{point}{fraction:03d}"


def _remove_rolling_repeats(
    source: SourceFile, cues: list[_Cue], strip: Callable[[str], str], *, is_rolling: bool
) -> Iterator[_Cue]:
    """Yield the cues with lines that are new. Rolling captions repeat the last lines of the cue before."""
    repeats = [0, *(_count_repeated_lines(one, other, strip) for one, other in pairwise(cues))]
    if not is_rolling and any(repeats):
        steps = [
            line
            for count, (line, start, end, text) in zip(repeats, cues, strict=False)
            if count and (count <= text.count("\n") or end - start < _MOMENT_S)
        ]
        is_rolling = len(steps) >= _ROLLING and 2 * len(steps) >= len(cues)
        if is_rolling:
            source.note_omission(
                f"the last lines of the caption before, in {len(steps)} rolling captions", steps[0]
            )
    if not is_rolling:
        yield from cues
        return
    for (line, start, end, text), count in zip(cues, repeats, strict=False):
        if count <= text.count("\n"):
            yield line, start, end, "\n".join(text.split("\n")[count:])


def _count_repeated_lines(one: _Cue, other: _Cue, strip: Callable[[str], str]) -> int:
    """Return the number of lines with which a cue repeats the last lines of the one before."""
    _, _, end, text = one
    _, start, _, next_text = other
    if not text or not next_text or start - end > _MOMENT_S:
        return 0
    shown, next_shown = ([strip(line) for line in lines.split("\n")] for lines in (text, next_text))
    longest = min(len(shown), len(next_shown))
    return next((count for count in range(longest, 0, -1) if shown[-count:] == next_shown[:count]), 0)


def _clean_cue_texts(table: pd.DataFrame, sink: Sink) -> list[str]:
    """Texts without blank lines, which would end the cue."""
    return sink.change_texts_and_note(
        table["text"].tolist(),
        lambda text: "\n".join(line.strip() for line in text.splitlines() if line.strip()),
        "texts had blank lines or spaces around a line, which were removed",
    )


def _escape_markup(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("{\\", "&#123;\\")


def _strip_srt_tags(text: str) -> str:
    """Return a text of SRT without tags; other angle brackets and braces are text."""
    if "<" not in text and "{" not in text:
        return text
    return _STYLE.sub("", _BREAK.sub("\n", _RUBY_TEXT.sub("", text))).strip()


def _strip_webvtt_tags(text: str) -> str:
    """Return a line of WebVTT without tags."""
    return unescape(_TAG.sub("", _OVERRIDE.sub("", _RUBY_TEXT.sub("", text)))).strip()


def _split_by_speaker(text: str) -> list[tuple[str, str]]:
    """Return the texts and speakers of a cue, one entry for each ``<v>`` tag."""
    voices: list[tuple[str, str]] = []
    if "<" in text or "{" in text:
        text = _OVERRIDE.sub("", _BREAK.sub("\n", _RUBY_TEXT.sub("", text)))
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
