"""The folder of a report, written and read: tables, figures, sounds, page and record."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import shutil
from collections.abc import Collection, Hashable, Mapping
from errno import EACCES, ENOTDIR
from os import W_OK, PathLike, access, strerror
from pathlib import Path
from typing import Any

import orjson

from speechlab._arguments import build_argument_error, is_missing
from speechlab._files import expand_user_path, write_atomically
from speechlab._pandas import pd
from speechlab.audio import AudioClip, detect_format
from speechlab.errors import AudioError, InvalidRequestError, StoreError
from speechlab.evaluate._writing.columns import View
from speechlab.evaluate._writing.contents import Conclusion, Contents, Drawing, ShownRows, to_findings
from speechlab.evaluate._writing.methods import Methods
from speechlab.metrics import judge
from speechlab.tables import guard_frame

_RECORD = "record.json"
_FORMAT = 1
# Columns of recordings, and folders of their copies.
SOUNDS = ("audio", "spoken")
_UNSAFE = re.compile(r"[^\w.-]+")
# Files that a record may name; none of them is outside the folder.
_REPORT_FILE = re.compile(r"[\w-]+\.parquet|figures/[\w.-]+\.svg")
# Maximum length of a recording's name without its suffix; file systems allow 255 in all.
_MAX_NAME_BYTES = 120
# Fields of a report that are tables.
_FRAMES = ("table", "summary", "differences", "speed")
# Names of files that differ from those of the field.
_NAMES = {"table": "results"}
# Tables that are always written, also as CSV.
_CSV_TABLES = {"results", "summary"}
PAGES = (".html", ".htm")
# Suffixes of files in whose formats a report cannot be saved.
_UNSUPPORTED_SUFFIXES = (".csv", ".json", ".md", ".parquet", ".pdf", ".svg", ".tex", ".tsv", ".xlsx", ".zip")


def resolve_report_path(path: object) -> Path:
    """Return the page or folder for a report, without writing it."""
    if not isinstance(path, str | PathLike) or not str(path) or "\0" in str(path):
        raise build_argument_error("path", path, "the name of a page (.html) or of a folder")
    where = expand_user_path(path)
    try:
        if not where.is_dir():
            if where.suffix.lower() in _UNSUPPORTED_SUFFIXES or (
                where.is_file() and where.suffix.lower() not in PAGES
            ):
                message = (
                    f"{where.name} names neither a page (.html) nor a folder; to_parquet, to_latex and to_markdown "
                    "give the tables, and a folder has the figures"
                )
                raise InvalidRequestError(message, parameter="path")
        elif not (where / _RECORD).is_file():
            names = [f"{name}{end}" for name in sorted(_CSV_TABLES) for end in (".csv", ".parquet")]
            if foreign := [name for name in ["report.html", *names] if (where / name).exists()]:
                overwritten = f"{', '.join(foreign)}, which would be lost"
                message = f"{where} is no report and has {overwritten}; name another folder"
                raise InvalidRequestError(message, parameter="path")
        nearest = next(place for place in (where, *where.absolute().parents) if place.exists())
        if nearest != where and not nearest.is_dir():
            raise NotADirectoryError(ENOTDIR, strerror(ENOTDIR))
        if not access(nearest, W_OK):
            raise PermissionError(EACCES, strerror(EACCES))
    except OSError as error:
        raise build_write_error(where, error) from error
    return where


def write_folder(
    path: Path, report: Contents, *, html: str, figures: Mapping[str, tuple[bytes, bytes]]
) -> None:
    """Write a report to a folder. The recordings of its tables are copied, and the tables name the copies."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        earlier, written = _list_report_files(path), set()
        (path / _RECORD).touch()  # marks an incomplete folder as that of a report
        copies = {
            name: _copy_recordings(report.table, path, name)
            for name in SOUNDS
            if name in report.table.columns
        }
        frames = {_NAMES.get(name, name): getattr(report, name) for name in _FRAMES} | dict(report.tables)
        for name, frame in frames.items():
            _write_table(
                _replace_recordings(frame, report.table, copies, rows=name == _NAMES["table"]), path / name
            )
            written.add(f"{name}.parquet")
        for name, (vectors, _) in figures.items():
            (path / "figures").mkdir(exist_ok=True)
            label = _UNSAFE.sub("-", name.lower()).strip("-")
            (path / "figures" / f"{label}.svg").write_bytes(vectors)
            written.add(f"figures/{label}.svg")
        with write_atomically(path / "report.html") as draft:
            draft.write_text(html, encoding="utf-8")
        names = {*written, "report.html", *(f"{name}.csv" for name in _CSV_TABLES)}
        names |= {place for places in copies.values() for place in places.dropna()}
        values = {field.name: getattr(report, field.name) for field in dataclasses.fields(Contents)}
        record = {
            "format": _FORMAT,
            "study": report.study,
            "fields": {
                name: value for name, value in values.items() if name not in {*_FRAMES, "tables", "record"}
            },
            "tables": list(report.tables),
            "record": dict(report.record),
            "files": sorted(written),
            "sha256": {name: _hash_file(path / name) for name in sorted(names) if (path / name).is_file()},
        }
        with write_atomically(path / _RECORD) as draft:
            draft.write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2, default=to_plain))
        for stale in earlier - written:
            (path / stale).unlink(missing_ok=True)
    except OSError as error:
        raise build_write_error(path, error) from error


def _hash_file(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def compare_file_hashes(folder: Path) -> tuple[str, list[tuple[str, str, str]]]:
    """Compare the files of a report with the hashes in its record, which has thus a hash for all of them."""
    hashes = orjson.loads((folder / _RECORD).read_bytes()).get("sha256", {})
    actual = {name: _hash_file(folder / name) if (folder / name).is_file() else "missing" for name in hashes}
    changed = [(name, actual[name], follows) for name, follows in hashes.items() if actual[name] != follows]
    return _hash_file(folder / _RECORD), changed


def to_plain(value: Any) -> Any:
    """Return the form of a value that JSON lacks: tuples with names as lists, and what has no other form as text."""
    if isinstance(value, tuple):
        return list(value)
    return None if is_missing(value) else value.item() if hasattr(value, "item") else str(value)


def _list_report_files(folder: Path) -> set[str]:
    """Return the tables and figures of the report in a folder, as named in its record."""
    try:
        names = orjson.loads((folder / _RECORD).read_bytes())["files"]
        return {name for name in names if _REPORT_FILE.fullmatch(name)}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def build_write_error(path: Path, error: OSError) -> StoreError:
    """Return the error for a report that cannot be written, with a remedy."""
    reason = error.strerror or error
    return StoreError(f"cannot write the report into {path}: {reason}; free space or name another place")


def write_parquet(frame: pd.DataFrame, file: Path, metadata: Mapping[str, Any] | None = None) -> None:
    """Write a table as Parquet, atomically."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        if metadata is not None:
            metadata_of_file = {b"speechlab_report": orjson.dumps(metadata, default=str)}
            table = table.replace_schema_metadata({**table.schema.metadata, **metadata_of_file})
        with write_atomically(file) as draft, draft.open("wb") as sink:
            pq.write_table(table, sink)
    except (pa.ArrowException, OverflowError, ValueError) as error:
        where = next((f", column {name!r}" for name, cells in frame.items() if not _can_store(cells)), "")
        why = ": ".join(map(str, error.args)) if isinstance(error, pa.ArrowException) else error
        what = f"the table {file.stem!r}{where} holds what Parquet cannot"
        raise StoreError(f"{what}: {why}; drop the column, or give it plain text") from error


def _can_store(cells: pd.Series[Any]) -> bool:
    """Return whether Parquet supports the values of a column."""
    import pyarrow as pa

    try:
        pa.Array.from_pandas(cells)
    except (pa.ArrowException, OverflowError, ValueError):
        return False
    return True


def read_folder(folder: str | PathLike[str]) -> Contents:
    """Read a report that :func:`write_folder` wrote. Its tables have the current paths of the recordings."""
    if not isinstance(folder, str | PathLike):
        raise build_argument_error("folder", folder, "a folder that report.save wrote")
    path = expand_user_path(folder)
    if not path.is_dir():
        problem = "is no folder" if path.exists() else "is not there"
        raise StoreError(f"{path} holds no report: it {problem}; name a folder that report.save wrote")
    try:
        saved = orjson.loads((path / _RECORD).read_bytes())
        if saved["format"] != _FORMAT:
            raise StoreError(
                f"another version of speechlab saved the report in {path} (its format is {saved['format']}, the one "
                f"known here {_FORMAT}); read it with that version, or do the study again"
            )
        fields = {**saved["fields"], "record": saved["record"]}
        frames = {
            name: _read_table(path, _NAMES.get(name, name), empty=name not in _NAMES) for name in _FRAMES
        }
        if not len(frames["differences"]):
            frames["differences"] = judge([])
        tables = {name: _read_table(path, name, empty=True) for name in saved["tables"]}
        return Contents(
            **fields
            | frames
            | {
                "tables": tables,
                "conclusion": Conclusion(*fields["conclusion"]),
                "findings": to_findings(fields["findings"]),
                "notes": tuple(fields["notes"]),
                "views": tuple(map(View.from_plain, fields["views"])),
                "drawings": tuple(
                    Drawing(**{**drawing, "frames": tuple(drawing["frames"])})
                    for drawing in fields["drawings"]
                ),
                "shown": ShownRows(**fields["shown"]),
                "said": Methods(fields["said"][0], tuple(fields["said"][1])),
            }
        )
    except FileNotFoundError as error:
        absent = Path(error.filename or _RECORD).name
        message = f"{path} holds no report: {absent} is missing; name a folder that report.save wrote"
        raise StoreError(message) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"the report in {path} cannot be read ({type(error).__name__}: {error}); save it again"
        raise StoreError(message) from error


def _read_table(folder: Path, name: str, *, empty: bool = False) -> pd.DataFrame:
    """Read a table, with the full paths of recordings in the folder; one without rows has no file if ``empty``."""
    file = folder / f"{name}.parquet"
    if empty and not file.is_file():
        return pd.DataFrame()
    try:
        frame = pd.read_parquet(file)
    except FileNotFoundError as error:
        raise ValueError(f"{file.name} is missing") from error
    for column in {*SOUNDS, "file"} & set(frame.columns):
        frame[column] = frame[column].map(
            lambda cell: str(folder / cell) if isinstance(cell, str) and (folder / cell).is_file() else cell
        )
    return frame


def _write_table(frame: pd.DataFrame, path: Path) -> None:
    file = path.with_suffix(".parquet")
    if path.name in _CSV_TABLES:
        write_parquet(frame, file)
        guard_frame(frame).to_csv(path.with_suffix(".csv"), index=False)
    elif len(frame):
        write_parquet(frame, file)
    else:
        file.unlink(missing_ok=True)  # of an earlier report


def _copy_recordings(table: pd.DataFrame, folder: Path, column: str) -> pd.Series[str]:
    """Copy the recordings of a column to the folder; return their relative paths.

    Recordings that are in the folder already stay unchanged, and their names are not reused. A recording of several
    rows, such as rows of several systems, is copied once.
    """
    home = folder / column
    sources = [expand_user_path(cell) if isinstance(cell, str | PathLike) else None for cell in table[column]]
    present = [
        source.name if source and source.is_file() and source.parent.resolve() == home.resolve() else None
        for source in sources
    ]
    names_taken = set(present)
    copied: dict[str | int, str | None] = {}
    names = []
    for number, (name, row) in enumerate(zip(present, table.to_dict("records"), strict=True)):
        cell = row[column]
        key = _to_cell_key(cell)
        if name is None and key not in copied:
            copied[key] = _copy_recording(number, cell, row, home, names_taken)
        names.append(name or copied[key])
    places = [name and f"{column}/{name}" for name in names]
    return pd.Series(places, index=table.index, dtype="object")


def _to_cell_key(cell: object) -> str | int:
    return str(cell) if isinstance(cell, str | PathLike) else id(cell)


def _copy_recording(
    number: int, cell: object, row: Mapping[Hashable, Any], home: Path, names_taken: Collection[str | None]
) -> str | None:
    """Write the recording of a row under a unique name; return the name, or None if there is no recording."""
    if isinstance(cell, str | PathLike):
        source = expand_user_path(cell)
        if not source.is_file():
            return None
        data, ending, stem = None, source.suffix, source.stem
    elif isinstance(cell, AudioClip):
        data, ending, stem = cell.encode("wav"), ".wav", "clip"
    elif isinstance(cell, bytes | bytearray | memoryview):
        try:
            data, ending, stem = bytes(cell), f".{detect_format(bytes(cell))}", "clip"
        except AudioError:
            return None
    else:
        return None
    identifier = row.get("id")
    voice = row.get("voice_name")  # for unknown speakers, studies of recognition have the file here
    name_parts = [
        f"{number:03d}",
        str(stem[:24] if is_missing(identifier) else identifier),
        "" if is_missing(voice) or str(voice) == f"{stem}{ending}" else str(voice),
    ]
    # The number distinguishes files with otherwise equal names.
    label = _UNSAFE.sub("-", "-".join(name_part for name_part in name_parts if name_part)).strip("-")
    label = label.encode()[:_MAX_NAME_BYTES].decode(errors="ignore")
    while label + ending in names_taken:
        label += "-"
    home.mkdir(exist_ok=True)
    target = home / (label + ending)
    if data is None:
        shutil.copyfile(source, target)
    else:
        target.write_bytes(data)
    return target.name


def _replace_recordings(
    frame: pd.DataFrame, table: pd.DataFrame, places: Mapping[str, pd.Series[str]], *, rows: bool
) -> pd.DataFrame:
    """Return rows of a report, or their segments, with the recordings in the folder instead of the original ones."""
    if rows:
        return frame.assign(**places)
    copies = {
        _to_cell_key(cell): place
        for name in places
        for cell, place in zip(table[name], places[name], strict=True)
    }
    for name in set(SOUNDS) & set(frame.columns):
        cells: list[Any] = [copies.get(_to_cell_key(cell)) for cell in frame[name]]
        frame = frame.assign(**{name: cells})
    copied = places.get(SOUNDS[0])
    if copied is None or not {"file", "position"} <= set(frame.columns) or not len(frame):
        return frame
    files = copied.iloc[frame["position"]].to_numpy()
    paths = [str(old) if is_missing(new) else new for old, new in zip(frame["file"], files, strict=True)]
    return frame.assign(file=paths)
