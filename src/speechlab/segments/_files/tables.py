"""Tables and manifests: CSV, Parquet, Audacity's labels, SegLST, and the JSON Lines of NeMo and Lhotse."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from speechlab._pandas import pd
from speechlab.segments._convert import from_seglst, to_seglst
from speechlab.segments._files.source import Row, Sink, SourceFile, get_column_or_empty
from speechlab.segments._frame.schema import TEXTS, frame
from speechlab.segments._frame.ticks import to_seconds, to_ticks
from speechlab.tables import (
    check_parquet_unpacked_size,
    escape_formula,
    has_enclosing_quotes,
    unescape_formula,
    unquote_tsv_cell,
)

NEMO = {"audio_filepath": "file", "text": "text", "speaker": "speaker", "confidence": "confidence"}
LHOTSE = {"recording_id": "file", "text": "text", "speaker": "speaker"}


def read_csv(source: SourceFile) -> Iterator[Row]:
    """Read CSV (or TSV, by the suffix) with a line of column names. The user's own columns stay text."""
    names: list[str] = []
    is_asked = source.unit is None and _choose_delimiter(source.path) == "\t"
    scale = 1_000 if source.unit == "ms" else 1
    for line, cells in _iter_row_cells(source):
        if not cells:
            continue
        if not names:
            names = [unescape_formula(name) for name in cells]
            if not {"start", "end"} <= set(names):
                listed = ", ".join(names)
                source.raise_fault(f"the columns start and end are required; the file has: {listed}", line)
            is_asked = is_asked and names == ["start", "end", "text"]
            continue
        if len(cells) != len(names):
            source.raise_fault(
                f"the line has {len(cells)} cells; the first line names {len(names)} columns", line
            )
        row: dict[str, Any] = dict(zip(names, map(unescape_formula, cells), strict=True))
        is_asked = is_asked and row["start"].isdecimal() and row["end"].isdecimal()
        row |= source.parse_times(row["start"], row["end"], line)
        if scale != 1:
            row |= {"start": row["start"] / scale, "end": row["end"] / scale}
        if text := row.get("confidence"):
            row["confidence"] = source.parse_seconds(text, line, "confidence")
        elif text is not None:
            row["confidence"] = None
        yield line, row
    if is_asked and names:
        message = (
            "the times are whole numbers, in milliseconds if Whisper's command wrote the file; say their unit"
        )
        source.raise_fault(f"{message}: unit='ms' or unit='s'", 2)


def _iter_row_cells(source: SourceFile) -> Iterator[tuple[int, list[str]]]:
    """The lines and cells of CSV or TSV. In TSV quotes are text, but for files that only quotes make a table."""
    text, separator = source.decode_text(exact=True), _choose_delimiter(source.path)
    if separator == "\t" and not has_enclosing_quotes(text.split("\n")):
        yield from _split_tsv_cells(text)
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    before, rows = 0, []
    try:
        for cells in reader:
            line, before = before + 1, reader.line_num
            if separator == "\t":
                rows.append((line, cells))
            else:
                yield line, cells
    except csv.Error as error:
        if separator == "\t":
            yield from _split_tsv_cells(text)
            return
        source.raise_fault(f"this is not valid CSV: {error}", before + 1)
    swallowed = any("\n" in cell and "\t" in cell for _, cells in rows for cell in cells)
    yield from _split_tsv_cells(text) if swallowed else rows


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
    for number, line in source.list_lines():
        if line.startswith("\\"):
            continue
        fields = line.split("\t", 2)
        if len(fields) < 2:
            source.raise_fault("expected a start, an end and a text, separated by tabs", number)
        start, end, text = [*fields, ""][:3]
        yield number, {"text": text, **source.parse_times(start, end, number)}


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
    for number, entry in parse_json_lines(source):
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
        yield number, row


def parse_json_lines(source: SourceFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a JSON Lines file, with their line numbers."""
    for number, line in source.list_lines():
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            source.raise_fault(f"this is not valid JSON: {error}", number)
        if not isinstance(entry, dict):
            source.raise_fault(f"{line!r:.60} is not a JSON object", number)
        yield number, entry


def _check_seconds_value(source: SourceFile, value: object, line: int, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        source.raise_fault(f"the {what} is {value!r:.40}; expected a number of seconds, 0 or more", line)
    return float(value)


def read_seglst(source: SourceFile) -> pd.DataFrame:
    """Read SegLST: one JSON list of objects."""
    try:
        entries = json.loads(source.decode_text())
    except (ValueError, RecursionError) as error:
        source.raise_fault(f"this is not valid JSON: {error}", getattr(error, "lineno", None))
    if not isinstance(entries, list):
        source.raise_fault("expected a JSON list of objects")
    with source.translate_faults():
        return from_seglst(entries)


def encode_seglst(table: pd.DataFrame, sink: Sink) -> str:
    """Write SegLST, without the end of the list."""
    rows = [json.dumps(row, ensure_ascii=False) for row in to_seglst(table)]
    return "".join(f"{',' if number else '['}\n{row}" for number, row in enumerate(rows, sink.before))


def encode_seglst_end(sink: Sink) -> str:
    """Write the end of SegLST."""
    return "\n]\n" if sink.before else "[]\n"
