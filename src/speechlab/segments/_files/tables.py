"""Tables and manifests: CSV, Parquet, Audacity's labels, SegLST, and the JSON Lines of NeMo and Lhotse."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from speechlab._pandas import pd
from speechlab._require import require
from speechlab.errors import SegmentError, SegmentFileError
from speechlab.segments._convert import from_seglst, parse_seglst_entry, to_seglst
from speechlab.segments._files.source import Row, Sink, SourceFile, get_column_or_empty
from speechlab.segments._frame.schema import TEXTS, frame
from speechlab.segments._frame.ticks import to_seconds, to_ticks
from speechlab.tables import (
    check_parquet_unpacked_size,
    escape_formula,
    has_enclosing_quotes,
    split_csv_lines,
    unescape_formula,
    unquote_tsv_cell,
)

NEMO = {"audio_filepath": "file", "text": "text", "speaker": "speaker", "confidence": "confidence"}
LHOTSE = {"recording_id": "file", "text": "text", "speaker": "speaker"}


def read_csv(source: SourceFile) -> Iterator[Row]:
    """Read CSV (or TSV, by the suffix) with a line of column names. The user's own columns stay text."""
    lines = _iter_row_cells(source)
    number, cells = next(((number, cells) for number, cells in lines if cells), (0, []))
    names = [unescape_formula(name) for name in cells]
    if number and not {"start", "end"} <= set(names):
        listed = ", ".join(names)
        source.raise_fault(f"the columns start and end are required; the file has: {listed}", number)
    is_tsv = _choose_delimiter(source.path) == "\t"
    parser = _CsvLines(source, names, source.unit is None and is_tsv and names == ["start", "end", "text"])
    yield from source.parse_rows(lines, parser.parse_cells)
    if parser.lacks_unit:
        message = (
            "the times are whole numbers, in milliseconds if Whisper's command wrote the file; say their unit"
        )
        source.raise_fault(f"{message}: unit='ms' or unit='s'", 2)


@dataclass
class _CsvLines:
    """The lines of a table as text."""

    source: SourceFile
    names: list[str]
    lacks_unit: (
        bool  # whether all times seen are whole numbers, in a table that Whisper's command may have written
    )

    def parse_cells(self, line: int, cells: list[str]) -> dict[str, Any] | None:
        """Return the row of a line; None if it is empty."""
        source, names = self.source, self.names
        if not cells:
            return None
        if len(cells) != len(names):
            source.raise_fault(
                f"the line has {len(cells)} cells; the first line names {len(names)} columns", line
            )
        row: dict[str, Any] = dict(zip(names, map(unescape_formula, cells), strict=True))
        start, end = row["start"], row["end"]
        row |= source.parse_times(start, end, line)
        self.lacks_unit = self.lacks_unit and start.isdecimal() and end.isdecimal()
        if source.unit == "ms":
            row |= {"start": row["start"] / 1_000, "end": row["end"] / 1_000}
        if text := row.get("confidence"):
            row["confidence"] = source.parse_confidence(text, line)
        elif text is not None:
            row["confidence"] = None
        return row


def _iter_row_cells(source: SourceFile) -> Iterator[tuple[int, list[str]]]:
    """The lines and cells of CSV or TSV. In TSV quotes are text, but for files that only quotes make a table."""
    text = source.decode_text(exact=True)
    if _choose_delimiter(source.path) == ",":
        try:
            yield from split_csv_lines(text, ",", source.note_omission)
        except ValueError as error:
            source.raise_fault(str(error))
        return
    if not has_enclosing_quotes(text.split("\n")):
        yield from _split_tsv_cells(text)
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter="\t", strict=True)
    before, rows = 0, []
    try:
        for cells in reader:
            line, before = before + 1, reader.line_num
            rows.append((line, cells))
    except csv.Error:
        rows = []
    swallowed = any("\n" in cell and "\t" in cell for _, cells in rows for cell in cells)
    yield from _split_tsv_cells(text) if swallowed or not rows else rows


def _split_tsv_cells(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")  # noqa: PLW2901 - the same line
        cells = line.split("\t") if line else []
        yield number, list(map(unquote_tsv_cell, cells)) if '"' in line else cells


def encode_csv(table: pd.DataFrame, sink: Sink) -> str:
    """Write CSV (or TSV) with all columns."""
    out = _Lines()
    writer = csv.writer(out, delimiter=_choose_delimiter(sink.path))
    if sink.register_columns(table):
        writer.writerow([escape_formula(name) for name in table.columns])
    columns = [_format_column_cells(table, name) for name in table.columns]
    writer.writerows(zip(*columns, strict=True))
    return "".join(out)


class _Lines(list[str]):
    """Lines of CSV. With line ends of its own, ``csv`` puts texts with a carriage return into quotes."""

    def write(self, line: str) -> None:
        self.append(f"{line[:-2]}\n")


def _choose_delimiter(path: str) -> str:
    return "\t" if path.lower().removesuffix(".gz").endswith(".tsv") else ","


def _format_column_cells(table: pd.DataFrame, name: Any) -> list[str]:
    if name in {"start", "end"}:
        return [repr(value) for value in to_seconds(to_ticks(table[name])).tolist()]
    return [
        "" if value is None or value != value else str(escape_formula(value))
        for value in table[name].tolist()
    ]


def read_parquet(source: SourceFile) -> pd.DataFrame:
    """Read Parquet."""
    require("pyarrow")
    from pyarrow import ArrowException

    try:
        check_parquet_unpacked_size(source.data)
        table = pd.read_parquet(io.BytesIO(source.data))
    except (ArrowException, OSError, ValueError) as error:
        source.raise_fault(f"this is not a Parquet file: {error}")
    with source.translate_faults():
        return frame(table, file=source.file)


def write_parquet_group(table: pd.DataFrame, sink: Sink) -> str:
    """Write Parquet: all columns, exactly, a group of rows for each piece. The first piece sets the types."""
    require("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink.register_columns(table)
    try:
        content = pa.Table.from_pandas(table, preserve_index=False)
        if sink.writer is None:
            sink.writer = sink.closing.enter_context(pq.ParquetWriter(sink.out, content.schema))
        sink.writer.write_table(content.cast(sink.writer.schema))
    except (pa.ArrowException, ValueError, TypeError) as error:
        sink.raise_fault(f"a column cannot be written to Parquet: {error!s:.200}")
    return ""


def read_labels(source: SourceFile) -> Iterator[Row]:
    r"""Read Audacity's labels: start, end and text, separated by tabs. Lines of frequencies (``\``) are ignored."""
    return source.parse_rows(source.list_lines(), partial(_parse_label, source))


def _parse_label(source: SourceFile, number: int, line: str) -> dict[str, Any] | None:
    if line.startswith("\\"):
        return None
    fields = line.split("\t", 2)
    if len(fields) < 2:
        source.raise_fault("expected a start, an end and a text, separated by tabs", number)
    start, end, text = [*fields, ""][:3]
    return {"text": text, **source.parse_times(start, end, number)}


def encode_labels(table: pd.DataFrame, sink: Sink) -> str:
    """Write Audacity's labels."""
    texts = sink.to_one_line(table["text"].tolist())
    start, end = to_seconds(to_ticks(table["start"])), to_seconds(to_ticks(table["end"]))
    rows = zip(start.tolist(), end.tolist(), texts, strict=True)
    return "".join(f"{begin:.6f}\t{stop:.6f}\t{text}\n" for begin, stop, text in rows)


def encode_nemo(table: pd.DataFrame, sink: Sink) -> str:  # noqa: ARG001 - as all writers
    """Write NeMo's manifest."""
    columns = {name: ours for name, ours in NEMO.items() if ours in table.columns}
    return _format_manifest(
        table,
        lambda row, start, length: {
            **_rename_filled_fields(row, columns),
            "offset": start,
            "duration": length,
        },
    )


def encode_lhotse(table: pd.DataFrame, sink: Sink) -> str:
    """Write Lhotse's supervisions, numbered within their recording."""
    columns = {name: ours for name, ours in LHOTSE.items() if ours in table.columns}
    for row, channel in enumerate(get_column_or_empty(table, "channel")):
        if channel and not channel.isdecimal():
            sink.raise_fault(
                f"channel {channel!r:.40} is not a number, which Lhotse requires", row, "channel"
            )

    def build_entry(row: Mapping[str, Any], start: float, length: float) -> dict[str, Any]:
        recording = _rename_filled_fields(row, columns)
        channel = int(row.get("channel") or 0)
        number = sink.numbers[row["file"]]
        sink.numbers[row["file"]] += 1
        return {
            "id": f"{row['file']}-{number}",
            **recording,
            "start": start,
            "duration": length,
            "channel": channel,
        }

    sink.add_note(
        get_column_or_empty(table, "channel").count(""), "rows without a channel are written as channel 0"
    )
    return _format_manifest(table, build_entry)


def _format_manifest(
    table: pd.DataFrame, entry: Callable[[Mapping[str, Any], float, float], dict[str, Any]]
) -> str:
    start, end = to_ticks(table["start"]), to_ticks(table["end"])
    times = zip(to_seconds(start).tolist(), to_seconds(end - start).tolist(), strict=True)
    rows = table.to_dict("records")
    entries = [
        entry({str(name): value for name, value in row.items()}, begin, length)
        for row, (begin, length) in zip(rows, times, strict=True)
    ]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in entries)


def _rename_filled_fields(row: Mapping[str, Any], columns: dict[str, str]) -> dict[str, Any]:
    always = {"file", "text"}
    return {
        name: row[ours]
        for name, ours in columns.items()
        if ours in always or (row[ours] != "" and row[ours] == row[ours])
    }


def read_manifest(source: SourceFile, names: dict[str, str], begin: str) -> Iterator[Row]:
    """Read JSON Lines of which these names are known; language and custom fields are left out."""

    def parse_line(number: int, line: str) -> dict[str, Any]:
        entry = parse_json_line(source, number, line)
        row = {ours: entry[name] for name, ours in names.items() if entry.get(name) is not None}
        if "file" not in row:
            source.raise_fault(f"the object has no key {next(iter(names))!r}", number)
        start, length = (_check_seconds_value(source, entry.get(name, standard), number, name)
                         for name, standard in ((begin, 0.0), ("duration", None)))  # fmt: skip
        row |= {"start": start, "end": round(start + length, 9)}
        if "channel" in entry and isinstance(entry["channel"], (int, str)):
            row["channel"] = str(entry["channel"])
        for name in TEXTS & row.keys():
            if not isinstance(row[name], (str, int)):
                source.raise_fault(f"the {name} is {row[name]!r:.60}, not text", number)
        return row

    return source.parse_rows(source.list_lines(), parse_line)


def is_lhotse(source: SourceFile) -> bool:
    """Return whether the first object of a JSON Lines file is a supervision of Lhotse."""
    for number, line in source.list_lines():
        try:
            return "recording_id" in parse_json_line(source, number, line)
        except SegmentFileError:
            continue
    return False


def parse_json_line(source: SourceFile, number: int, line: str) -> dict[str, Any]:
    """Return the object of a line of JSON Lines."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        source.raise_fault(f"this is not valid JSON: {error}", number)
    if not isinstance(entry, dict):
        source.raise_fault(f"{line!r:.60} is not a JSON object", number)
    return entry


def _check_seconds_value(source: SourceFile, value: object, line: int, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        source.raise_fault(f"the {what} is {value!r:.40}; expected a number of seconds, 0 or more", line)
    return float(value)


def read_seglst(source: SourceFile) -> Iterable[Row] | pd.DataFrame:
    """Read SegLST: one JSON list of objects. An entry that is malformed costs itself and a note."""
    try:
        entries = json.loads(source.decode_text())
    except (ValueError, RecursionError) as error:
        source.raise_fault(f"this is not valid JSON: {error}", getattr(error, "lineno", None))
    if not isinstance(entries, list):
        source.raise_fault(
            "expected a JSON list of objects; sl.datasets.transcript_of reads the reply of a recognizer, and "
            "sl.segments.frame makes a table of its segments"
        )
    try:
        return from_seglst(entries)
    except SegmentError:
        return _parse_seglst_entries(source, entries)


def _parse_seglst_entries(source: SourceFile, entries: list[Any]) -> Iterator[Row]:
    for number, entry in enumerate(entries):
        try:
            row = parse_seglst_entry(number, entry)
        except SegmentError as error:
            source.note_omission(error.message)
            continue
        wrong = next((name for name in ("start", "end") if not isinstance(row[name], float)), None)
        if wrong is None:
            yield None, row
        else:
            source.note_omission(
                f"entry {number}: the {wrong} is {row[wrong]!r:.40}; expected a number of seconds"
            )


def encode_seglst(table: pd.DataFrame, sink: Sink) -> str:
    """Write SegLST, without the end of the list."""
    rows = [json.dumps(row, ensure_ascii=False) for row in to_seglst(table)]
    return "".join(f"{',' if number else '['}\n{row}" for number, row in enumerate(rows, sink.before))


def encode_seglst_end(sink: Sink) -> str:
    """Write the end of SegLST."""
    return "\n]\n" if sink.before else "[]\n"
