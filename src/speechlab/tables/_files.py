"""Files of tables: their formats, their columns, and their rows in pieces."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab._pandas import pd
from speechlab._require import require
from speechlab._untrusted import check_packed_text, load_json, open_maybe_gzip
from speechlab.errors import InvalidRequestError
from speechlab.tables._lines import split_csv_lines

if TYPE_CHECKING:
    import pyarrow as pa


_MAX_COLUMNS = 20_000
_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_GUARD_MARK = re.compile(r"\A'(?='*[=+\-@\t\r\n＝＋－＠])")


def escape_frame_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table for a CSV file, with an apostrophe before texts and names that begin as formulas do."""
    out = frame.copy()
    for name in out.select_dtypes(exclude=["number", "bool", "datetime"]):
        out[name] = out[name].astype(object).map(escape_formula)
    return out.rename(columns=escape_formula)


def escape_formula(cell: Any) -> Any:
    """Return a cell or a name, with an apostrophe if it is a text that begins as a formula does."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def unescape_formula(cell: Any) -> Any:
    """Return a cell or a name of a CSV file without the apostrophe of :func:`guard`."""
    return _GUARD_MARK.sub("", cell) if isinstance(cell, str) else cell


_QUOTED = re.compile(r'"(?:[^"]|"")*"\Z')
_QUOTED_NAMES = re.compile(r'"(?:[^"\t]|"")*"(?:\t"(?:[^"\t]|"")*")*\s*\Z')


def unquote_tsv_cell(cell: Any) -> Any:
    """Return a cell of TSV without the quotes of a writer that has them: outer ones around doubled ones."""
    if not isinstance(cell, str) or cell[:1] != '"' or not _QUOTED.match(cell):
        return cell
    inner = cell[1:-1]
    return inner.replace('""', '"') if '"' in inner or "\r" in inner or not inner else cell


def has_enclosing_quotes(lines: Iterable[str], separator: str = "\t") -> bool:
    """Return whether quotes enclose cells in TSV or another table without quotes of its own.

    They do if all names are in quotes, or if a line has not as many cells as there are names.
    """
    lines = iter(lines)
    head = next((line for line in lines if line.strip()), "")
    if _QUOTED_NAMES.match(head.replace(separator, "\t")):
        return True
    count, any_quote, is_even = head.count(separator), '"' in head, True
    for line in lines:
        any_quote = any_quote or '"' in line
        is_even = is_even and (line.count(separator) == count or not line.strip())
    return any_quote and not is_even


# Separators of tables without quotes.
_PLAIN = ("\t", "|")
_CUE_TIME = re.compile(r"\d:[0-5]?\d(?:[.,:]\d+)*\s*-->|-->\s*\d+:[0-5]?\d")
HELD_ROWS = "holds times of captions, or a tab and a line end, so it is several texts"


def has_unsplit_rows(text: str) -> bool:
    """Return whether a text holds rows of a file that a reader has not separated."""
    return ("-->" in text and _CUE_TIME.search(text) is not None) or ("\t" in text and "\n" in text.strip())


def read_delimited(path: Path) -> pd.DataFrame:
    """Return the rows of a CSV or TSV file; ValueError if it is not UTF-8, empty or torn."""
    return parse_delimited(read_text(path), "\t" if ".tsv" in path.suffixes else ",")


def read_text(path: Path) -> str:
    """Text of a file: UTF-8, or UTF-16 with a byte order mark, as spreadsheets write it; also with .gz."""
    with open_maybe_gzip(path) as stream:
        data = stream.read()
    if path.suffix.lower() == ".gz":
        check_packed_text(path.name, data, path.stat().st_size)
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(f"line {line:,} is not UTF-8; save it as UTF-8") from None
    if not text.strip():
        raise ValueError("it is empty")
    return text


def parse_delimited(text: str, usual: str, faults: list[str] | None = None) -> pd.DataFrame:
    """Rows of CSV or TSV; in some countries, spreadsheets write semicolons or tabs for commas.

    With ``faults``, a malformed line costs itself, and is added to them; else it costs the file.
    """
    # Excel's line that names the separator; its line break stays, so that lines keep their numbers.
    text = re.sub(r"\Asep=[,;\t|](?=\r?\n)", "", text, flags=re.IGNORECASE)
    head = re.search(r"[^\r\n]+", text)
    if head is not None and max(map(head[0].count, ",;\t|")) >= _MAX_COLUMNS:
        raise ValueError(f"it has {_MAX_COLUMNS:,} columns or more")
    try:
        return _parse_delimited_lines(text, usual)
    except ValueError:
        kept = None if faults is None else _drop_malformed_lines(text, usual, faults)
        if kept is None:
            raise
    return _parse_delimited_lines(kept, usual)


def _drop_malformed_lines(text: str, usual: str, faults: list[str]) -> str | None:
    """Return the text without lines of too many cells or with quotes out of place; None if none is left."""
    separator = _find_separator(text, usual)
    is_plain = separator in _PLAIN and not has_enclosing_quotes(text.split("\n"), separator)
    found: list[tuple[int, str]] = []
    lines: Iterable[tuple[int, list[str]]] = (
        ((number, line.rstrip("\r").split(separator)) for number, line in enumerate(text.split("\n"), 1))
        if is_plain
        else split_csv_lines(text, separator, lambda message, line: found.append((line, message)))
    )
    kept: list[list[str]] = []
    for number, cells in lines:
        if kept and len(cells) > len(kept[0]):
            torn = f"it has {len(cells)} cells, and the first line names {len(kept[0])}"
            found.append((number, _TORN.format(torn)))
        elif cells and (kept or any(cells)):
            kept.append(cells)
    if len(kept) < 2 or not found:
        return None
    faults += [f"line {line:,}: {message}" for line, message in sorted(found)]
    out = StringIO()
    if is_plain:
        return "\n".join(separator.join(cells) for cells in kept) + "\n"
    csv.writer(out, delimiter=separator, lineterminator="\n").writerows(kept)
    return out.getvalue()


def _find_separator(text: str, usual: str) -> str:
    head = text.lstrip().splitlines()[0]
    return next((character for character in (usual, ";", "\t", "|") if character in head), usual)


def _parse_delimited_lines(text: str, usual: str) -> pd.DataFrame:
    separator = _find_separator(text, usual)
    options: dict[str, Any] = {"sep": separator, "dtype": "string", "keep_default_na": False}
    may_be_plain = separator in _PLAIN and '"' in text
    plain = options | {"quoting": csv.QUOTE_NONE}
    if may_be_plain and not has_enclosing_quotes(text.split("\n"), separator):
        options = plain
    empty = ["", '""'] if options is plain else [""]
    try:
        rows: pd.DataFrame = pd.read_csv(StringIO(text), na_values=empty, **options)
    except ValueError as error:
        raise ValueError(describe_torn_line(error)) from None
    if may_be_plain and options is not plain and _has_swallowed_lines(rows, separator):
        options = plain
        rows = pd.read_csv(StringIO(text), na_values=["", '""'], **options)
    if not isinstance(rows.index, pd.RangeIndex):  # pandas makes surplus leading cells row labels
        raise ValueError(_SURPLUS)  # noqa: TRY004 - what the file holds
    first = pd.read_csv(StringIO(text), header=None, nrows=1, **options)
    heads = [str(name) for name in first.iloc[0] if name]
    names = [unescape_formula(name) for name in heads]
    if twice := next((name for name in names if names.count(name) > 1), None):
        but = "" if heads.count(twice) > 1 else ", one of them with an apostrophe before it"
        raise ValueError(f"two columns are named {twice!r}{but}")
    rows.columns = [unescape_formula(str(name)) for name in rows.columns]
    clean = (lambda cell: unescape_formula(unquote_tsv_cell(cell))) if options is plain else unescape_formula
    for name in rows.columns:
        rows[name] = rows[name].map(clean, na_action="ignore").astype("string")
    return rows


_TORN = "{}; put texts with commas into quotes"
_SURPLUS = _TORN.format("line 2 has more cells than the first line has names")
_TOO_MANY = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")


def describe_torn_line(error: Exception) -> str:
    """Return the message of an error of reading CSV, for a line with too many cells with what to do."""
    if (found := _TOO_MANY.search(str(error))) is None:
        return str(error)
    names, line, cells = found.groups()
    return _TORN.format(f"line {int(line):,} has {cells} cells, and the first line {names} names")


def _has_swallowed_lines(rows: pd.DataFrame, separator: str) -> bool:
    """Return whether a quote at the beginning of a text has taken the following lines for one cell."""
    return any(
        isinstance(cell, str) and "\n" in cell and separator in cell for name in rows for cell in rows[name]
    )


def parse_json_lines(text: str, faults: list[str] | None = None) -> list[Any]:
    """Return the objects of JSON Lines. With ``faults``, a malformed line costs itself, and is added to them."""
    rows = []
    names: set[str] = set()
    # not at other line separators, which texts may contain
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = load_json(line)
            fault = "" if isinstance(row, dict) else f"line {number:,} is no object"
        except ValueError as error:  # orjson's is one
            fault = f"line {number:,}: {error}"
        if not fault:
            names.update(row)
            if len(names) > _MAX_COLUMNS:
                raise ValueError(f"it has more than {_MAX_COLUMNS:,} columns, from line {number:,} on")
            rows.append(row)
        elif faults is None:
            raise ValueError(fault)
        else:
            faults.append(fault)
    if faults and not rows:
        raise ValueError(faults[0])
    return rows


_HEAD_LINES = 100
# The cells of a CSV file that are empty for pandas. In a column of texts, "None" and "NA" are texts.
_EMPTY_TEXTS = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
_FORMATS = {
    ".parquet": ("parquet", ""),
    ".csv": ("csv", ","),
    ".tsv": ("csv", "\t"),
    ".jsonl": ("jsonl", ""),
    ".ndjson": ("jsonl", ""),
}
FILES_ALLOWED = "a path that ends in .parquet, .csv, .tsv or .jsonl (all but the first also with .gz)"


@dataclass(frozen=True, slots=True)
class TableFormat:
    """The format of a table's file."""

    kind: str
    separator: str = ""
    packed: bool = False


def resolve_table_format(path: Path, parameter: str = "source") -> TableFormat:
    """Return the format of a file, by its name."""
    packed = path.suffix.lower() == ".gz"
    ending = (path.with_suffix("") if packed else path).suffix.lower()
    if ending in _FORMATS and not (packed and ending == ".parquet"):
        return TableFormat(*_FORMATS[ending], packed)
    has = f"ends in {path.suffix!r}" if path.suffix.strip(".") else "has no ending that names its format"
    message = f"{str(path)!r:.80} {has}; give {FILES_ALLOWED}"
    raise InvalidRequestError(message, parameter=parameter)


def has_table(folder: Path) -> bool:
    """Return whether a folder has Parquet files."""
    return bool(_list_parquet_files(folder))


def check_table_path(path: Path) -> None:
    """Refuse a path without a table."""
    if path.is_dir():
        if not _list_parquet_files(path):
            message = (
                f"{path} is a folder without Parquet files; name a file with a table, or a folder of them"
            )
            raise InvalidRequestError(message, parameter="source")
        return
    resolve_table_format(path)
    if not path.is_file():
        message = f"{path} does not exist; name a file with a table, or a folder of Parquet files"
        raise InvalidRequestError(message, parameter="source")


def read_column_names(path: Path) -> tuple[Any, ...]:
    """Return the names of a file's columns; for JSON Lines, those in its first lines."""
    require("pyarrow")
    import pyarrow.parquet as pq

    with _translate_read_errors(path):
        if path.is_dir():
            return tuple(_open_dataset(path).schema.empty_table().to_pandas().columns)
        format_ = resolve_table_format(path)
        if format_.kind == "parquet":
            return tuple(pq.read_schema(path).empty_table().to_pandas().columns)
        with open_maybe_gzip(path) as stream:
            if format_.kind == "csv":
                head = pd.read_csv(stream, nrows=0, **_detect_csv_options(path, format_))
                return tuple(map(unescape_formula, head.columns))
            return tuple(pd.read_json(stream, lines=True, nrows=_HEAD_LINES).columns)


def read_pieces(path: Path, rows: int, texts: Collection[str]) -> Iterator[pd.DataFrame]:
    """Read a file, or a folder of Parquet files in the order of their names."""
    with _translate_read_errors(path):
        if path.is_dir() or resolve_table_format(path).kind == "parquet":
            yield from _to_frames(
                _read_folder_batches(path, rows) if path.is_dir() else _read_parquet_batches(path, rows)
            )
        elif (format_ := resolve_table_format(path)).kind == "csv":
            dialect = _detect_csv_options(path, format_)
            with open_maybe_gzip(path) as stream:
                names = pd.read_csv(stream, nrows=0, **dialect).columns
            as_text = {name: str for name in names if unescape_formula(name) in texts}
            empty = {name: ["", '""'] if name in as_text else _EMPTY_TEXTS for name in names}
            options: dict[str, Any] = {"dtype": as_text, "na_values": empty, "keep_default_na": False}
            is_plain = "quoting" in dialect
            with (
                open_maybe_gzip(path) as stream,
                pd.read_csv(stream, chunksize=rows, **options, **dialect) as reader,
            ):
                for frame in reader:
                    if not isinstance(frame.index, pd.RangeIndex):  # surplus cells, which pandas makes labels
                        raise ValueError(_SURPLUS)  # noqa: TRY004 - what the file holds
                    yield _unescape_frame_cells(frame, is_plain=is_plain)
        else:
            # JSON distinguishes texts from numbers
            with (
                open_maybe_gzip(path) as stream,
                pd.read_json(stream, lines=True, chunksize=rows, dtype=False) as lines,
            ):
                yield from lines


def _detect_csv_options(path: Path, format_: TableFormat) -> dict[str, Any]:
    """Return the options of pandas for a file of CSV or TSV."""
    if format_.separator not in _PLAIN:
        return {"sep": format_.separator}
    with open_maybe_gzip(path) as stream:
        quoted = has_enclosing_quotes((line.decode("utf-8") for line in stream), format_.separator)
    return {"sep": format_.separator} | ({} if quoted else {"quoting": csv.QUOTE_NONE})


def _unescape_frame_cells(frame: pd.DataFrame, *, is_plain: bool) -> pd.DataFrame:
    for name in frame.columns[[kind.kind not in "biufM" for kind in frame.dtypes]]:
        cells = frame[name].map(unquote_tsv_cell) if is_plain else frame[name]
        frame[name] = cells.map(unescape_formula)
    return frame.rename(columns=unescape_formula)


@contextmanager
def _translate_read_errors(path: Path) -> Iterator[None]:
    """Translate the errors of reading a table file."""
    try:
        yield
    # Arrow has errors of these kinds, and a torn or damaged gzip is made one of them.
    except (OSError, ValueError, TypeError) as error:
        if isinstance(error, InvalidRequestError):
            raise
        why = (
            "it is no UTF-8; save it as such"
            if isinstance(error, UnicodeDecodeError)
            else describe_torn_line(error)
        )
        message = f"{path} cannot be read as a table: {why}"
        raise InvalidRequestError(message, parameter="source") from error


def _read_parquet_batches(path: Path, rows: int) -> Iterator[pa.Table]:
    require("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        if not file.metadata.num_rows:
            yield file.read()
        for batch in file.iter_batches(batch_size=rows):
            yield pa.Table.from_batches([batch])


def _list_parquet_files(folder: Path) -> list[Path]:
    """The Parquet files of a folder in the order of their names, without files that begin with ``_`` or ``.``."""
    files = sorted(file for file in folder.rglob("*.parquet") if file.is_file())
    return [file for file in files if not any(name[0] in "_." for name in file.relative_to(folder).parts)]


def _open_dataset(folder: Path) -> Any:
    """A folder as an Arrow dataset, with the columns that the names of its folders define (``language=ja``)."""
    require("pyarrow")
    import pyarrow as pa
    import pyarrow.dataset as ds

    files = [str(file) for file in _list_parquet_files(folder)]
    options: dict[str, Any] = {"format": "parquet", "partition_base_dir": str(folder)}
    options["partitioning"] = ds.partitioning(flavor="hive")
    dataset = ds.dataset(files, **options)
    schemas = [fragment.physical_schema for fragment in dataset.get_fragments()]
    merged = pa.unify_schemas([*schemas, dataset.schema], promote_options="permissive")
    return ds.dataset(files, schema=merged.with_metadata(schemas[0].metadata), **options)


def _read_folder_batches(folder: Path, rows: int) -> Iterator[pa.Table]:
    import pyarrow as pa

    dataset, any_row = _open_dataset(folder), False
    for file in dataset.get_fragments():
        for batch in file.to_batches(schema=dataset.schema, batch_size=rows, batch_readahead=1):
            if len(batch):
                any_row = True
                yield pa.Table.from_batches([batch])
    if not any_row:
        yield dataset.schema.empty_table()


def _to_frames(tables: Iterator[pa.Table]) -> Iterator[pd.DataFrame]:
    start = 0
    for table in tables:
        frame: pd.DataFrame = table.to_pandas()
        if isinstance(frame.index, pd.RangeIndex) and frame.index.name is None:
            frame.index = pd.RangeIndex(start, start + len(frame))
        start += len(frame)
        yield frame
