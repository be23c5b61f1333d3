"""Files of annotation programs, read and written by libraries: Praat, ELAN, and further subtitle formats."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab._require import require
from speechlab.segments._files.source import Row, Sink, SourceFile, get_column
from speechlab.segments._frame.ticks import to_ticks

if TYPE_CHECKING:
    import pandas as pd

_TIER = "segments"
_SPEECH = "speech"
_POINTS = " (points)"
# What praatio takes for a part of the file, also within a text.
_HEADS = re.compile(r"(?:item|intervals|points) ?\[|ooTextFile short")


@contextlib.contextmanager
def _open_plain_file(suffix: str, data: bytes = b"") -> Iterator[Path]:
    """A file for a library that reads from paths and writes to them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"segments{suffix}")
        path.write_bytes(data)
        yield path


def read_textgrid(source: SourceFile) -> Iterator[Row]:
    """Read Praat's TextGrid. Each tier becomes a speaker; points become instants."""
    textgrid, errors = require("praatio.textgrid"), require("praatio.utilities.errors")
    with _open_plain_file(".TextGrid", source.data) as path:
        try:
            grid = textgrid.openTextgrid(
                str(path), includeEmptyIntervals=True, reportingMode="silence", duplicateNamesMode="rename"
            )
        except (
            errors.PraatioException,
            ValueError,
            IndexError,
            KeyError,
            AttributeError,
            TypeError,
        ) as error:
            source.raise_fault(f"praatio cannot read this as a TextGrid: {error!r:.200}")
    # Of points in the long form, praatio leaves the quotation marks doubled.
    doubled = any(
        "item [".encode(encoding) in source.data for encoding in ("utf-8", "utf-16-le", "utf-16-be")
    )
    names = set(grid.tierNames)
    return _sort_by_time(
        {
            "start": entry[0],
            "end": entry[-2] if len(entry) > 2 else entry[0],
            "text": entry[-1].replace('""', '"') if doubled and len(entry) == 2 else entry[-1],
            "speaker": base if (base := tier.name.removesuffix(_POINTS)) in {*names, _TIER} else tier.name,
        }
        for tier in grid.tiers
        for entry in tier.entries
        if len(entry) == 2 or entry[-1].strip()  # an interval without a text is silence
    )


def write_textgrid(table: pd.DataFrame, sink: Sink) -> str:
    """Write Praat's TextGrid, a tier for each speaker, and one of points for the speaker's instants."""
    textgrid, errors = require("praatio.textgrid"), require("praatio.utilities.errors")
    for name in ("text", "speaker"):
        sink.refuse_pattern(
            _HEADS, get_column(table, name), name, "has {!r}, a mark of the format; change it first"
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
    with _open_plain_file(".TextGrid") as path:
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
    """Read ELAN's annotations. Each tier with independent times becomes a speaker."""
    elan = require("pympi.Elan")
    with _open_plain_file(".eaf", source.data) as path:
        try:
            document = elan.Eaf(str(path), suppress_version_warning=True)
            tiers = {name: _list_annotations(document, name) for name in document.get_tier_names()}
        except Exception as error:  # noqa: BLE001 - the library passes on all errors of its XML reader
            source.raise_fault(f"pympi cannot read this as an ELAN file: {error!r:.200}")
    for name, entries in tiers.items():
        if any(None in entry[:2] for entry in entries):
            source.raise_fault(f"an annotation of the tier {name!r:.60} has no time; set it in ELAN first")
    return _sort_by_time(
        {"start": start / 1000, "end": end / 1000, "text": text or "", "speaker": name}
        for name, entries in tiers.items()
        for start, end, text in entries
    )


def _list_annotations(document: Any, tier: str) -> list[tuple[Any, Any, str]]:
    """Return the annotations of a tier with times of its own: start, end and text, in the order of their chains.

    Slots between two annotations that touch need no time. ELAN spaces them evenly between the slots around them, and
    so does this. Annotations that refer to another one have no times, and are left out.
    """
    entries = {first: (last, text) for first, last, text, _ in document.tiers[tier][0].values()}
    times = dict(document.timeslots)
    for head in entries.keys() - {last for last, _ in entries.values()}:
        chain = [head]
        while chain[-1] in entries and len(chain) <= len(entries):
            chain.append(entries[chain[-1]][0])
        timed = [at for at, slot in enumerate(chain) if times[slot] is not None]
        for before, after in itertools.pairwise(timed):
            begin, step = (
                times[chain[before]],
                (times[chain[after]] - times[chain[before]]) / (after - before),
            )
            times |= {chain[at]: begin + step * (at - before) for at in range(before + 1, after)}
    return [(times[first], times[last], text) for first, last, text, _ in document.tiers[tier][0].values()]


def write_elan(table: pd.DataFrame, sink: Sink) -> bytes:
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
    with _open_plain_file(".eaf") as path:
        elan.to_eaf(str(path), document)
        return path.read_bytes()


def read_subtitles(source: SourceFile, kind: str) -> Iterator[Row]:
    """Read a subtitle format that pysubs2 supports. Styles and comments are left out."""
    pysubs2 = require("pysubs2")
    try:
        file = pysubs2.SSAFile.from_string(source.decode_text(), format_=kind)
    except Exception as error:  # noqa: BLE001 - its readers raise errors of many types
        source.raise_fault(f"pysubs2 cannot read this as {kind}: {error!r:.200}")
    for event in file:
        if not event.is_comment:
            text = {"text": event.plaintext.strip(), "speaker": _to_speaker(event.name)}
            yield None, {"start": event.start / 1000, "end": event.end / 1000, **text}


def write_subtitles(table: pd.DataFrame, sink: Sink, kind: str, step: int) -> str:
    """Write a subtitle format that pysubs2 supports. Braces and backslashes, which would set styles, stay text."""
    pysubs2 = require("pysubs2")
    starts, ends = sink.to_milliseconds(table, step)
    texts = sink.trim_texts(table["text"].tolist())
    if kind == "ttml":
        what = "texts had tabs or double spaces, which became single spaces"
        texts = sink.change_texts(
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


def _sort_by_time(rows: Iterable[dict[str, Any]]) -> Iterator[Row]:
    for row in sorted(rows, key=lambda row: (row["start"], row["end"])):
        yield None, row | {"speaker": _to_speaker(row["speaker"])}


def _to_speaker(tier: str) -> str:
    return "" if tier == _TIER else tier
