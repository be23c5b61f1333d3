"""TTML: captions in XML, whose times may be clocks, frames or ticks, and stand on any element around a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from speechlab.segments._files.markup import Element, parse_xml

if TYPE_CHECKING:
    from speechlab.segments._files.source import Row, SourceFile

_CLOCK = re.compile(r"(?:(\d+):)?(\d\d?):(\d\d)(?:(\.\d+)|:(\d+)(?:\.(\d+))?)?$")
_OFFSET = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s|f|t)$")
_UNITS = {"h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000}  # in microseconds
_SPACES = re.compile(r"[ \t\r\n]+")
_TIMES = frozenset({"begin", "end", "dur"})
_BOXES = ("body", "div", "p", "span")
_RUBY = frozenset({"text", "textContainer", "delimiter"})
_DROPPED_FRAMES = 2
"""Frame numbers that NTSC drops in each minute but every tenth."""


@dataclass(frozen=True)
class _Clock:
    """The rates of a document, for its times, which are whole microseconds here."""

    frame_rate: Fraction  # as frames are numbered
    multiplier: Fraction
    sub_frames: Fraction
    ticks: Fraction  # in a second
    is_smpte: bool
    drops_frames: bool
    begin: int = 0  # of the program, in times of SMPTE

    def parse_time(self, text: str) -> int | None:
        """Return a time in microseconds; None if it is none."""
        clock = _CLOCK.match(text)
        if clock is None:
            return self._parse_offset(text)
        hours, minutes, seconds, fraction, frames, parts = clock.groups()
        if hours is None and fraction is None:  # 01:30 may be minutes or hours
            return None
        whole = int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)
        if not self.is_smpte and frames is None:
            return whole * 1_000_000 + (round(float(fraction) * 1_000_000) if fraction else 0)
        counted = Fraction(frames or 0) + Fraction(parts or 0) / self.sub_frames
        if not self.is_smpte:
            return whole * 1_000_000 + self._frames_to_microseconds(counted)
        if self.drops_frames:
            past = whole // 60
            counted -= _DROPPED_FRAMES * (past - past // 10)
        return self._frames_to_microseconds((whole + Fraction(fraction or 0)) * self.frame_rate + counted)

    def _parse_offset(self, text: str) -> int | None:
        offset = _OFFSET.match(text)
        if offset is None:
            return None
        count, unit = Fraction(offset[1]), offset[2]
        if unit == "f":
            return self._frames_to_microseconds(count)
        return round(count / self.ticks * 1_000_000 if unit == "t" else count * _UNITS[unit])

    def _frames_to_microseconds(self, frames: Fraction) -> int:
        return round(frames / (self.frame_rate * self.multiplier) * 1_000_000)


def read_ttml(source: SourceFile) -> Iterator[Row]:
    """Read TTML. Texts get the times of the elements around them; styles, metadata and readings are left out."""
    root = parse_xml(source)
    if root.name != "tt":
        source.raise_fault(f"the first element is {root.name!r:.40}; a TTML file begins with tt", root.line)
    clock = _parse_clock(source, root)
    for body in root.iterate_children("body"):
        yield from _Reader(source, clock).iterate_timed_texts(body, 0, None)


def _parse_clock(source: SourceFile, root: Element) -> _Clock:
    """The rates that the root names, or TTML's own."""

    def parse_rate(name: str, usual: Fraction) -> Fraction:
        text = root.attributes.get(name)
        if text is None:
            return usual
        parts = re.fullmatch(r"\s*(\d+)(?:[\s:/]+(\d+))?\s*", text)
        if parts is None or 0 in (int(parts[1]), int(parts[2] or 1)):
            source.raise_fault(f"{name} is {text!r:.40}; expected a number above 0", root.line)
        return Fraction(int(parts[1]), int(parts[2] or 1))

    base = root.attributes.get("timeBase", "media")
    frame_rate, sub_frames = parse_rate("frameRate", Fraction(30)), parse_rate("subFrameRate", Fraction(1))
    clock = _Clock(
        frame_rate,
        parse_rate("frameRateMultiplier", Fraction(1)),
        sub_frames,
        parse_rate("tickRate", frame_rate * sub_frames if "frameRate" in root.attributes else Fraction(1)),
        is_smpte=base == "smpte",
        drops_frames=base == "smpte" and root.attributes.get("dropMode") == "dropNTSC",
    )
    if base == "clock":
        source.note_omission("nothing, but the times are times of the day (timeBase clock)", root.line)
    first = root.find_descendant("documentStartOfProgramme") if clock.is_smpte else None
    begin = clock.parse_time(first.get_direct_text().strip()) if first is not None else None
    return clock if begin is None else _Clock(**{**vars(clock), "begin": begin})


@dataclass(frozen=True)
class _Reader:
    """Reads the elements of a document."""

    source: SourceFile
    clock: _Clock

    def iterate_timed_texts(
        self, box: Element, begin: int, end: int | None, *, is_timed: bool = False
    ) -> Iterator[Row]:
        """Yield the texts of an element that is within these times."""
        times = self._resolve_times(box, begin, end)
        if times is None:
            return
        begin, end = times
        is_timed = is_timed or bool(_TIMES & box.attributes.keys())
        spans = [] if is_timed and box.name == "p" else _list_timed_spans(box)
        if box.name in {"p", "span"} and not spans:
            text = _collect_text(box)
            if not text and not (box.name == "p" and _TIMES & box.attributes.keys()):
                return
            if not is_timed:
                self.source.note_omission(f"the text {text!r:.60} has no time", box.line)
            elif end is None:
                self.source.note_omission(f"the text {text!r:.60} has no end", box.line)
            else:
                zero = self.clock.begin
                yield (
                    box.line,
                    {"start": (begin - zero) / 1_000_000, "end": (end - zero) / 1_000_000, "text": text},
                )
            return
        previous = begin
        is_sequence = box.attributes.get("timeContainer") == "seq"
        for child in spans or box.iterate_children(*_BOXES):
            yield from self.iterate_timed_texts(
                child, previous if is_sequence else begin, end, is_timed=is_timed
            )
            if is_sequence:
                inner = self._resolve_times(child, previous, end, silent=True)
                previous = inner[1] if inner and inner[1] is not None else previous

    def _resolve_times(
        self, box: Element, begin: int, end: int | None, *, silent: bool = False
    ) -> tuple[int, int | None] | None:
        """Begin and end of an element, whose times count from the begin of the one around it; None if malformed."""
        found: dict[str, int] = {}
        for name in ("begin", "end", "dur"):
            text = box.attributes.get(name)
            if text is None:
                continue
            value = self.clock.parse_time(text.strip())
            if value is None:
                if not silent:
                    self.source.note_omission(
                        f"{name} is {text!r:.40}, not a time such as 00:00:01.5 or 1.5s", box.line
                    )
                return None
            found[name] = value
        first = begin + found.get("begin", 0)
        ends = [begin + found["end"]] if "end" in found else []
        ends += [first + found["dur"]] if "dur" in found else []
        ends += [end] if end is not None else []
        return first, min(ends, default=None)


def _list_timed_spans(box: Element) -> list[Element]:
    """The spans with times of their own in a paragraph without."""
    if box.name != "p":
        return []
    return [span for span in box.iterate_children("span") if _TIMES & span.attributes.keys()]


def _collect_text(box: Element) -> str:
    """The text of an element: spaces collapse but where it preserves them, br is a line break."""
    pieces: list[str] = []
    waiting: list[tuple[str | Element, bool]] = [(box, False)]
    while waiting:
        part, keeps = waiting.pop()
        if isinstance(part, str):
            pieces.append(part if keeps else _SPACES.sub(" ", part))
        elif part.name == "br":
            pieces.append("\n")
        elif part.name in {"p", "span"} and part.attributes.get("ruby") not in _RUBY:
            keeps = part.attributes.get("space", "preserve" if keeps else "") == "preserve"
            waiting += [(child, keeps) for child in reversed(part.content)]
    return "\n".join(line.strip() for line in "".join(pieces).split("\n")).strip()
