"""Files of annotation programs, read and written by libraries: Praat, ELAN, and further subtitle formats."""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab._require import require
from speechlab.segments._files.source import Sink, SourceFile, column_of
from speechlab.segments._frame.ticks import ticks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

_TIER = "segments"
_SPEECH = "speech"


@contextlib.contextmanager
def _file_of(source: SourceFile, suffix: str) -> Iterator[str]:
    """A plain file with the bytes of the source, because the libraries read from paths."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"source{suffix}")
        path.write_bytes(source.data)
        yield str(path)


def read_textgrid(source: SourceFile) -> pd.DataFrame:
    """Read Praat's TextGrid. Each tier of intervals becomes a speaker; points become segments without length."""
    textgrid, errors = require("praatio.textgrid"), require("praatio.utilities.errors")
    with _file_of(source, ".TextGrid") as path:
        try:
            grid = textgrid.openTextgrid(path, includeEmptyIntervals=False, reportingMode="silence")
        except (
            errors.PraatioException,
            ValueError,
            IndexError,
            KeyError,
            AttributeError,
            TypeError,
        ) as error:
            source.fault(f"praatio cannot read this as a TextGrid: {error!r:.200}")
    rows = [
        {
            "start": entry[0],
            "end": entry[-2] if len(entry) > 2 else entry[0],
            "text": entry[-1],
            "speaker": tier.name,
        }
        for tier in grid.tiers
        for entry in tier.entries
    ]
    return source.table(_by_time(_unnamed(rows)), [])


def write_textgrid(table: pd.DataFrame, sink: Sink) -> str:
    """Write Praat's TextGrid, a tier for each speaker."""
    textgrid, errors = require("praatio.textgrid"), require("praatio.utilities.errors")
    # Below a tenth of a millisecond praatio would write 1e-05, which neither it nor Praat reads.
    start, end = ((ticks_of(table[name]) + 50) // 100 / 1e4 for name in ("start", "end"))
    if (start == end).any():
        message = "the segment is shorter than 0.1 ms, which a TextGrid does not support; drop it first"
        sink.fault(message, int((start == end).argmax()), "end")
    texts = table["text"].tolist()
    sink.note(sum(not text.strip() for text in texts), f"segments without text are written as {_SPEECH!r}")
    tiers: dict[str, list[tuple[float, float, str]]] = {}
    rows = zip(start.tolist(), end.tolist(), texts, column_of(table, "speaker"), strict=True)
    for begin, stop, text, speaker in rows:
        tiers.setdefault(speaker or _TIER, []).append((begin, stop, text.strip() or _SPEECH))
    if not tiers:
        sink.fault("a TextGrid needs at least one segment, and the table has none")
    grid = textgrid.Textgrid()
    longest = max(stop for entries in tiers.values() for _, stop, _ in entries)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "grid.TextGrid")
        try:
            for name, entries in tiers.items():
                grid.addTier(
                    textgrid.IntervalTier(name, sorted(entries), 0.0, longest), reportingMode="silence"
                )
            grid.save(str(path), format="long_textgrid", includeBlankSpaces=True, reportingMode="silence")
        except errors.PraatioException as error:
            message = f"segments of one speaker overlap, but a tier has no overlap ({error!s:.200}); merge them first"
            sink.fault(message)
        return path.read_text("utf-8")


def read_elan(source: SourceFile) -> pd.DataFrame:
    """Read ELAN's annotations. Each tier with independent times becomes a speaker."""
    elan = require("pympi.Elan")
    with _file_of(source, ".eaf") as path:
        try:
            document = elan.Eaf(path, suppress_version_warning=True)
            tiers = {name: document.get_annotation_data_for_tier(name) for name in document.get_tier_names()}
        except Exception as error:  # noqa: BLE001 - the library passes on all errors of its XML reader
            source.fault(f"pympi cannot read this as an ELAN file: {error!r:.200}")
    # A time slot of ELAN need not have a time.
    for name, entries in tiers.items():
        if any(None in entry[:2] for entry in entries):
            source.fault(f"an annotation of the tier {name!r:.60} has no time; set it in ELAN first")
    # An annotation that refers to another one has four parts, and the times of that one. It is left out.
    rows = [
        {"start": entry[0] / 1000, "end": entry[1] / 1000, "text": entry[2] or "", "speaker": name}
        for name, entries in tiers.items()
        for entry in entries
        if len(entry) == 3
    ]
    return source.table(_by_time(_unnamed(rows)), [])


def write_elan(table: pd.DataFrame, sink: Sink) -> bytes:
    """Write ELAN's annotations, a tier for each speaker."""
    elan = require("pympi.Elan")
    starts, ends = sink.milliseconds(table)
    for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if start == end:
            sink.fault("the segment has no whole millisecond, which ELAN requires; drop it first", row, "end")
    document = elan.Eaf(author="speechlab")
    document.remove_tier("default")
    speakers = [name or _TIER for name in column_of(table, "speaker")]
    for name in dict.fromkeys(speakers):
        document.add_tier(name)
    for name, start, end, text in zip(speakers, starts, ends, table["text"].tolist(), strict=True):
        document.add_annotation(name, start, end, text)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "document.eaf")
        elan.to_eaf(str(path), document)
        return path.read_bytes()


def read_subtitles(source: SourceFile, kind: str) -> pd.DataFrame:
    """Read a subtitle format that pysubs2 supports. Styles and comments are left out."""
    pysubs2 = require("pysubs2")
    try:
        file = pysubs2.SSAFile.from_string(source.text(), format_=kind)
    except Exception as error:  # noqa: BLE001 - its readers raise errors of many types
        source.fault(f"pysubs2 cannot read this as {kind}: {error!r:.200}")
    events = [event for event in file if not event.is_comment]
    rows = [
        {
            "start": event.start / 1000,
            "end": event.end / 1000,
            "text": event.plaintext.strip(),
            "speaker": event.name,
        }
        for event in events
    ]
    return source.table(_unnamed(rows), [])


def write_subtitles(table: pd.DataFrame, sink: Sink, kind: str, step: int) -> str:
    """Write a subtitle format that pysubs2 supports. Braces and backslashes, which would set styles, stay text."""
    pysubs2 = require("pysubs2")
    starts, ends = sink.milliseconds(table, step)
    texts = table["text"].tolist()
    file = pysubs2.SSAFile()
    rows = zip(starts, ends, texts, column_of(table, "speaker"), strict=True)
    for start, end, text, speaker in rows:
        name = re.sub(r"[,\r\n]+", " ", speaker)
        event = pysubs2.SSAEvent(start=start, end=end, name=name)
        event.plaintext = text
        file.append(event)
    sink.note(
        sum(bool(re.search(r"[{}\\]", text)) for text in texts),
        "texts with braces or backslashes, which are styles there",
    )
    out = io.StringIO()
    file.to_file(out, format_=kind)
    return out.getvalue()


def _unnamed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without a speaker if no tier has a name, or if the only name is that of tiers without speakers."""
    if {row["speaker"] for row in rows} <= {"", _TIER}:
        return [{name: value for name, value in row.items() if name != "speaker"} for row in rows]
    return [{**row, "speaker": "" if row["speaker"] == _TIER else row["speaker"]} for row in rows]


def _by_time(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["start"], row["end"]))
