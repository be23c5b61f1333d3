"""Files of annotation programs, Praat and ELAN, and further subtitles; libraries write them."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab._require import require
from speechlab.segments._files.markup import Element, parse_xml
from speechlab.segments._files.source import Row, Sink, SourceFile, get_column_or_empty
from speechlab.segments._frame.ticks import to_ticks

if TYPE_CHECKING:
    import pandas as pd

_TIER = "segments"
_SPEECH = "speech"
_POINTS = " (points)"
_UNITS_S = {"milliseconds": 1e-3, "PAL-frames": 0.04, "NTSC-frames": 1.001 / 30}
# What praatio takes for a part of the file, also within a text.
_HEADS = re.compile(r"(?:item|intervals|points) ?\[|ooTextFile short")


@contextlib.contextmanager
def _open_temporary_path(suffix: str, data: bytes = b"") -> Iterator[Path]:
    """A file for a library that reads from paths and writes to them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"segments{suffix}")
        path.write_bytes(data)
        yield path


def read_textgrid(source: SourceFile) -> Iterator[Row]:
    """Read Praat's TextGrid, long or short. Each tier becomes a speaker; points become instants."""
    values = _Values(source)
    if "TextGrid" not in values.take_text("the kind ooTextFile") + values.take_text("the class TextGrid"):
        source.raise_fault("the file is not a TextGrid in Praat's text format; save it as one in Praat")
    _, _, count = (values.take_number(what) for what in ("the start", "the end", "the number of tiers"))
    tiers: list[tuple[str, list[tuple[int, dict[str, Any]]]]] = []
    for _ in range(int(count)):
        kind, name = values.take_text("the class of a tier"), values.take_text("the name of a tier")
        _, _, size = (values.take_number(what) for what in ("the start", "the end", "the number of entries"))
        entries = []
        for _ in range(int(size)):
            start, line = values.take_number("a time"), values.get_last_line_number()
            end = values.take_number("the end of an interval") if kind == "IntervalTier" else start
            text = values.take_text("a text").strip()
            if text or kind != "IntervalTier":  # an interval without a text is silence
                entries.append((line, {"start": start, "end": end, "text": text}))
        tiers.append((name, entries))
    names = {name for name, _ in tiers}
    used: Counter[str] = Counter()
    rows = []
    for name, entries in tiers:
        used[name] += 1
        unique = name if used[name] == 1 else f"{name}_{used[name]}"
        base = unique.removesuffix(_POINTS)
        speaker = base if base in {*names, _TIER} else unique
        rows += [(line, row | {"speaker": speaker}) for line, row in entries]
    return _sort_rows_by_time(rows)


class _Values:
    """The values of a file of Praat in their order: free-standing numbers and texts; all else is a comment."""

    _VALUE = re.compile(r'"((?:[^"]|"")*)"|(?<!\S)([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(?!\S)')

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self._text = source.decode_text()
        self._found = self._VALUE.finditer(self._text)
        self._at, self._line = 0, 1

    def get_last_line_number(self) -> int:
        """Return the line of the last value."""
        return self._line

    def take_text(self, what: str) -> str:
        """Return the next value, a text."""
        value = self._take_next_value(what)
        if value[1] is None:
            self._source.raise_fault(
                f"expected {what}, a text in quotation marks, not {value[0]!r:.40}", self._line
            )
        return value[1].replace('""', '"')

    def take_number(self, what: str) -> float:
        """Return the next value, a number."""
        value = self._take_next_value(what)
        if value[2] is None:
            self._source.raise_fault(f"expected {what}, a number, not {value[0]!r:.40}", self._line)
        return float(value[2])

    def _take_next_value(self, what: str) -> re.Match[str]:
        value = next(self._found, None)
        if value is None:
            self._source.raise_fault(f"the file ends before {what}; it is not a whole TextGrid", self._line)
        self._line += self._text.count("\n", self._at, value.start())
        self._at = value.start()
        return value


def encode_textgrid(table: pd.DataFrame, sink: Sink) -> str:
    """Write Praat's TextGrid, a tier for each speaker, and one of points for the speaker's instants."""
    textgrid, errors = require("praatio.textgrid"), require("praatio.utilities.errors")
    for name in ("text", "speaker"):
        sink.refuse_pattern(
            _HEADS, get_column_or_empty(table, name), name, "has {!r}, a mark of the format; change it first"
        )
    # Below a tenth of a millisecond praatio would write 1e-05, which neither it nor Praat reads.
    start, end = ((to_ticks(table[name]) + 50) // 100 / 1e4 for name in ("start", "end"))
    collapsed = (start == end) & (table["end"] > table["start"]).to_numpy()
    sink.add_note(int(collapsed.sum()), "segments are shorter than 0.1 ms, and written as points")
    texts = sink.trim_texts(table["text"].tolist())
    tiers: dict[str, list[tuple[Any, ...]]] = {}
    points: dict[str, list[tuple[Any, ...]]] = {}
    unmarked = 0
    for begin, stop, text, speaker in zip(
        start.tolist(), end.tolist(), texts, sink.format_speakers(table), strict=True
    ):
        if begin == stop:
            points.setdefault(speaker or _TIER, []).append((begin, text))
        else:
            tiers.setdefault(speaker or _TIER, []).append((begin, stop, text or _SPEECH))
            unmarked += not text
    sink.add_note(unmarked, f"segments without text are written as {_SPEECH!r}")
    if not len(table):
        sink.add_note(1, "second of silence is written, since a TextGrid cannot be empty")
    longest = max(end.tolist(), default=0.0) or 1.0
    grid = textgrid.Textgrid()
    with _open_temporary_path(".TextGrid") as path:
        try:
            for name, entries in (tiers or ({} if points else {_TIER: []})).items():
                grid.addTier(
                    textgrid.IntervalTier(name, sorted(entries), 0.0, longest), reportingMode="silence"
                )
            for name, entries in points.items():
                tier = f"{name}{_POINTS}" if name in tiers else name
                grid.addTier(textgrid.PointTier(tier, sorted(entries), 0.0, longest), reportingMode="silence")
            grid.save(str(path), format="long_textgrid", includeBlankSpaces=True, reportingMode="silence")
        except errors.PraatioException as error:
            message = f"segments of one speaker overlap, but a tier has no overlap ({error!s:.200}); merge them first"
            sink.raise_fault(message)
        return path.read_text("utf-8")


def read_elan(source: SourceFile) -> Iterator[Row]:
    """Read ELAN's annotations in the time of the medium. Each tier with independent times becomes a speaker."""
    root = parse_xml(source, spaces=False)
    if root.name != "ANNOTATION_DOCUMENT":
        source.raise_fault(
            f"the first element is {root.name!r:.40}; an ELAN file has ANNOTATION_DOCUMENT", root.line
        )
    unit_s, origin_s = _parse_time_unit(source, root), _parse_time_origin(source, root)
    times: dict[str, float | None] = {}
    for order in root.iterate_children("TIME_ORDER"):
        for slot in order.iterate_children("TIME_SLOT"):
            value = slot.attributes.get("TIME_VALUE")
            is_number = value is not None and value.strip().isdecimal()
            times[slot.attributes.get("TIME_SLOT_ID", "")] = float(value or 0) if is_number else None
    rows = []
    for tier in root.iterate_children("TIER"):
        entries = _list_timed_annotations(tier)
        name = tier.attributes.get("TIER_ID", "")
        known = times | _interpolate_slot_times(entries, times)
        for first, last, text, line in entries:
            start, end = known.get(first), known.get(last)
            if start is None or end is None:
                source.note_omission(
                    f"an annotation of the tier {name!r:.60} has no time; set it in ELAN", line
                )
                continue
            span = {"start": round(start * unit_s + origin_s, 6), "end": round(end * unit_s + origin_s, 6)}
            rows.append((line, {**span, "text": text, "speaker": name}))
    return _sort_rows_by_time(rows)


def _list_timed_annotations(tier: Element) -> list[tuple[str, str, str, int]]:
    """The annotations of a tier with times of its own: slots, text and line. Those that refer to others have none."""
    entries = []
    for annotation in tier.iterate_children("ANNOTATION"):
        for aligned in annotation.iterate_children("ALIGNABLE_ANNOTATION"):
            value = next(aligned.iterate_children("ANNOTATION_VALUE"), None)
            text = "" if value is None else value.get_direct_text()
            get = aligned.attributes.get
            entries.append((get("TIME_SLOT_REF1", ""), get("TIME_SLOT_REF2", ""), text, aligned.line))
    return entries


def _parse_time_unit(source: SourceFile, root: Element) -> float:
    """Seconds in a unit of the file's times."""
    head = next(root.iterate_children("HEADER"), root)
    unit = head.attributes.get("TIME_UNITS") or "milliseconds"
    if unit not in _UNITS_S:
        source.raise_fault(f"TIME_UNITS is {unit!r:.40}; expected {' or '.join(_UNITS_S)}", head.line)
    return _UNITS_S[unit]


def _parse_time_origin(source: SourceFile, root: Element) -> float:
    """The time of the medium at which the times of the file begin."""
    media = [
        medium
        for head in root.iterate_children("HEADER")
        for medium in head.iterate_children("MEDIA_DESCRIPTOR")
    ]
    media.sort(key=lambda medium: not medium.attributes.get("MIME_TYPE", "").startswith("audio"))
    origins = [medium.attributes.get("TIME_ORIGIN", "").strip() or "0" for medium in media]
    if any(not re.fullmatch(r"-?\d+", origin) for origin in origins):
        source.raise_fault(f"TIME_ORIGIN is {origins[0]!r:.40}; expected milliseconds", media[0].line)
    if len(set(origins)) > 1:
        place = media[0].attributes.get("RELATIVE_MEDIA_URL") or media[0].attributes.get("MEDIA_URL", "")
        note = f"the time origins of other media; the times are those of {place!r:.100}"
        source.note_omission(note, media[0].line)
    return int(origins[0]) / 1000 if origins else 0.0


def _interpolate_slot_times(
    entries: list[tuple[str, str, str, int]], times: dict[str, float | None]
) -> dict[str, float | None]:
    """Times of slots between annotations that touch, which need none: ELAN spaces them evenly, and so does this."""
    ends = {first: last for first, last, _, _ in entries}
    spaced: dict[str, float | None] = {}
    if all(times.get(slot) is not None for slot in ends):
        return spaced
    for head in ends.keys() - set(ends.values()):
        chain = [head]
        while chain[-1] in ends and len(chain) <= len(ends):
            chain.append(ends[chain[-1]])
        timed = [at for at, slot in enumerate(chain) if times.get(slot) is not None]
        for before, after in itertools.pairwise(timed):
            begin, stop = times[chain[before]] or 0.0, times[chain[after]] or 0.0
            step = (stop - begin) / (after - before)
            spaced |= {chain[at]: begin + step * (at - before) for at in range(before + 1, after)}
    return spaced


def encode_elan(table: pd.DataFrame, sink: Sink) -> bytes:
    """Write ELAN's annotations, a tier for each speaker."""
    elan = require("pympi.Elan")
    starts, ends = sink.to_milliseconds(table)
    for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if start == end:
            sink.raise_fault(
                "the segment has no whole millisecond, which ELAN requires; drop it first", row, "end"
            )
    document = elan.Eaf(author="speechlab")
    document.remove_tier("default")
    speakers = [name or _TIER for name in sink.format_speakers(table)]
    for name in dict.fromkeys(speakers):
        document.add_tier(name)
    for name, start, end, text in zip(speakers, starts, ends, table["text"].tolist(), strict=True):
        document.add_annotation(name, start, end, text)
    with _open_temporary_path(".eaf") as path:
        elan.to_eaf(str(path), document)
        return path.read_bytes()


def encode_subtitles(table: pd.DataFrame, sink: Sink, kind: str, step: int) -> str:
    """Write a subtitle format that pysubs2 supports. Braces and backslashes, which would set styles, stay text."""
    pysubs2 = require("pysubs2")
    starts, ends = sink.to_milliseconds(table, step)
    texts = sink.trim_texts(table["text"].tolist())
    if kind == "ttml":
        what = "texts had tabs or double spaces, which became single spaces"
        texts = sink.change_texts_and_note(
            texts, lambda text: "\n".join(" ".join(line.split()) for line in text.split("\n")), what
        )
    file = pysubs2.SSAFile()
    rows = zip(starts, ends, texts, sink.format_speakers(table, without=","), strict=True)
    for start, end, text, name in rows:
        event = pysubs2.SSAEvent(start=start, end=end, name=name)
        event.plaintext = text
        file.append(event)
    sink.add_note(
        sum(bool(re.search(r"[{}\\]", text)) for text in texts),
        "texts with braces or backslashes, which are styles there",
    )
    out = io.StringIO()
    file.to_file(out, format_=kind)
    return out.getvalue()


def _sort_rows_by_time(rows: Iterable[tuple[int, dict[str, Any]]]) -> Iterator[Row]:
    for line, row in sorted(rows, key=lambda entry: (entry[1]["start"], entry[1]["end"])):
        yield line, row | {"speaker": "" if row["speaker"] == _TIER else row["speaker"]}
