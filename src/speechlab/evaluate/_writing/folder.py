"""The folder of a report, written and read: tables, figures, sounds, page and record."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from errno import EACCES, ENOTDIR
from os import W_OK, PathLike, access, strerror
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from speechlab._arguments import build_argument_error, is_missing
from speechlab._files import expand_user_path, read_regular_file, write_atomically, write_together
from speechlab._pandas import pd
from speechlab._traces import warn_user
from speechlab._untrusted import find_path_inside, is_valid_name
from speechlab.errors import InvalidRequestError, StoreError
from speechlab.evaluate._writing.columns import View  # noqa: TC001 - pydantic reads the annotations
from speechlab.evaluate._writing.contents import Conclusion, Contents, Drawing, Finding, ShownRows
from speechlab.evaluate._writing.methods import Methods  # noqa: TC001 - as above
from speechlab.evaluate._writing.recordings import (
    SOUNDS,
    UNSAFE,
    copy_recordings,
    list_sound_columns,
    replace_with_copies,
    resolve_recording_paths,
)
from speechlab.metrics import judge
from speechlab.tables import check_parquet_unpacked_size, escape_frame_formulas

_RECORD = "record.json"
_FORMAT = 1
# Files that a record may name; none of them is outside the folder.
_REPORT_FILE = re.compile(r"[\w-]+\.parquet|figures/[\w.-]+\.svg")
_COPY = re.compile(rf"({'|'.join(SOUNDS)})/(?!\.)[\w.-]+")
# Fields of a report that are tables.
_FRAMES = ("table", "summary", "differences", "speed")
# Names of files that differ from those of the field.
_NAMES = {"table": "results"}
# Maximum number of files that a warning names.
_TOLD = 3
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


def write_folder(path: Path, report: Contents, *, html: str, figures: Mapping[str, bytes]) -> None:
    """Write a report to a folder. The recordings of its tables are copied, and the tables name the copies."""
    left: list[str] = []
    try:
        _check_table_names(report.tables, path)
        earlier, copies = _list_report_files(path), _list_copies(path)
        with write_together(path, _RECORD) as draft:
            written = _write_files(path, draft, report, html, figures, left)
            if not (path / _RECORD).is_file():  # marks an incomplete folder as that of a report
                (path / _RECORD).touch()
        tables = {f"{_NAMES.get(name, name)}.parquet" for name in (*_FRAMES, *report.tables)}
        for stale in (earlier | tables) - written:
            (path / stale).unlink(missing_ok=True)
        for name in copies.keys() - written:
            copy = path / name
            if copy.is_file() and _hash_file(copy) == copies[name]:  # else it is somebody's own
                copy.unlink()
    except OSError as error:
        raise build_write_error(path, error) from error
    if left:
        _warn_of_omitted_files(
            left,
            "is gone or no recording (WAV, OGG, MP3 or FLAC) and was not copied",
            "are gone or no recordings (WAV, OGG, MP3 or FLAC) and were not copied",
        )


def _write_files(
    path: Path,
    draft: Path,
    report: Contents,
    html: str,
    figures: Mapping[str, bytes],
    left: list[str],
) -> set[str]:
    """Write a report to the draft of its folder; return the names of its tables, figures and recordings."""
    written = set()
    own = report.table if list_sound_columns(report.table) else report.tables.get("sounds")
    recordings = report.table if own is None else own
    names_of_sounds = list_sound_columns(recordings)
    copies = {name: copy_recordings(recordings, path, draft, name, left) for name in names_of_sounds}
    frames = {_NAMES.get(name, name): getattr(report, name) for name in _FRAMES} | dict(report.tables)
    for name, frame in frames.items():
        table = replace_with_copies(frame, recordings, copies, rows=frame is recordings)
        if name in _CSV_TABLES or len(table):
            write_parquet(table, draft / f"{name}.parquet")
            written.add(f"{name}.parquet")
        if name in _CSV_TABLES:
            escape_frame_formulas(table).to_csv(draft / f"{name}.csv", index=False)
    for name, vectors in figures.items():
        (draft / "figures").mkdir(exist_ok=True)
        label = UNSAFE.sub("-", name.lower()).strip("-")
        (draft / "figures" / f"{label}.svg").write_bytes(vectors)
        written.add(f"figures/{label}.svg")
    (draft / "report.html").write_text(html, encoding="utf-8")
    sounds = {place for places in copies.values() for place in places.dropna()}
    names = {*written, *sounds, "report.html", *(f"{name}.csv" for name in _CSV_TABLES)}
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
        "sha256": {name: _hash_file(_find_written(path, draft, name)) for name in sorted(names)},
    }
    (draft / _RECORD).write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2, default=to_json_value))
    return written | sounds


def _find_written(path: Path, draft: Path, name: str) -> Path:
    """Return a file of a report that is written; recordings that were in its folder are not in the draft."""
    return draft / name if (draft / name).exists() else path / name


def _check_table_names(tables: Mapping[str, object], folder: Path) -> None:
    """Refuse names of tables, and folders in the folder of a report, with which it would be written elsewhere."""
    for name in tables:
        if not is_valid_name(name) or name in {*_FRAMES, *_NAMES.values()}:
            message = (
                f"a table has the name {name!r:.60}; give one of letters, digits, _ and - that is not taken"
            )
            raise InvalidRequestError(message, parameter="tables")
    for name in (*SOUNDS, "figures"):
        if find_path_inside(folder, name) is None:
            raise StoreError(
                f"{folder / name} is a link to another folder, in which no report is written; remove it"
            )


def _warn_of_omitted_files(files: list[str], one: str, several: str) -> None:
    """Warn of files that were left out; the user is six frames up."""
    names = list(dict.fromkeys(files))
    some = ", ".join(f"{name!r:.200}" for name in names[:_TOLD]) + (", …" if len(names) > _TOLD else "")
    what = f"1 file {one}" if len(names) == 1 else f"{len(names):,} files {several}"
    warn_user(f"{what}: {some}", stacklevel=5)


def _hash_file(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def compare_file_hashes(folder: Path) -> tuple[str, list[tuple[str, str, str]]]:
    """Compare the files of a report with the hashes in its record, which has thus a hash for all of them."""
    hashes = orjson.loads(read_regular_file(folder / _RECORD)).get("sha256", {})
    files = {name: find_path_inside(folder, name) for name in hashes}
    actual = {
        name: _hash_file(file) if file and file.is_file() else "missing" for name, file in files.items()
    }
    changed = [(name, actual[name], follows) for name, follows in hashes.items() if actual[name] != follows]
    return _hash_file(folder / _RECORD), changed


def to_json_value(value: Any) -> Any:
    """Return the form of a value that JSON lacks: tuples with names as lists, and what has no other form as text."""
    if isinstance(value, tuple):
        return list(value)
    return None if is_missing(value) else value.item() if hasattr(value, "item") else str(value)


def _list_report_files(folder: Path) -> set[str]:
    """Return the tables and figures of the report in a folder, as named in its record."""
    try:
        names = orjson.loads(read_regular_file(folder / _RECORD))["files"]
        return {name for name in names if _REPORT_FILE.fullmatch(name)}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _list_copies(folder: Path) -> dict[str, str]:
    """Return the hashes of the recordings that were copied into the folder of a report, as its record has them."""
    try:
        hashes = orjson.loads(read_regular_file(folder / _RECORD))["sha256"]
        return {name: digest for name, digest in hashes.items() if _COPY.fullmatch(name)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


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
        where = next(
            (f", column {name!r}" for name, cells in frame.items() if not _can_store_as_parquet(cells)), ""
        )
        why = ": ".join(map(str, error.args)) if isinstance(error, pa.ArrowException) else error
        what = f"the table {file.stem!r}{where} holds what Parquet cannot"
        raise StoreError(f"{what}: {why}; drop the column, or give it plain text") from error


def _can_store_as_parquet(cells: pd.Series[Any]) -> bool:
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
        saved = orjson.loads(read_regular_file(path / _RECORD))
        if saved["format"] != _FORMAT:
            raise StoreError(
                f"another version of speechlab saved the report in {path} (its format is {saved['format']}, the one "
                f"known here {_FORMAT}); read it with that version, or do the study again"
            )
        fields = _FIELDS.validate_python(saved["fields"])
        _check_table_names(dict.fromkeys(saved["tables"]), path)
        outside: list[str] = []
        frames = {
            name: _read_table(path, _NAMES.get(name, name), outside, empty=name not in _NAMES)
            for name in _FRAMES
        }
        if not len(frames["differences"]):
            frames["differences"] = judge([])
        tables = {name: _read_table(path, name, outside, empty=True) for name in saved["tables"]}
        _check_frame_references(fields, {*frames, *tables})
        values: dict[str, Any] = {**vars(fields), **frames, "tables": tables, "record": dict(saved["record"])}
        contents = Contents(**values)
    except FileNotFoundError as error:
        absent = Path(error.filename or _RECORD).name
        message = f"{path} holds no report: {absent} is missing; name a folder that report.save wrote"
        raise StoreError(message) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise StoreError(
            f"the report in {path} is damaged: {_RECORD}, {place}: {first['msg']}; save it again"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"the report in {path} cannot be read ({type(error).__name__}: {error}); save it again"
        raise StoreError(message) from error
    if outside:
        _warn_of_omitted_files(
            outside,
            "is outside the report's folder and is left out",
            "are outside the report's folder and are left out",
        )
    return contents


@dataclass(frozen=True)
class _Fields:
    """The fields of a report in its record."""

    title: str
    conclusion: Conclusion
    study: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    columns: dict[str, str]
    views: tuple[View, ...]
    drawings: tuple[Drawing, ...]
    shown: ShownRows
    said: Methods
    facts: dict[str, str]


_FIELDS = TypeAdapter(_Fields)


def _check_frame_references(fields: _Fields, frames: set[str]) -> None:
    """Refuse figures and rows of tables that the report does not have, and sounds in other columns."""
    drawn = {name for drawing in fields.drawings for name in drawing.frames}
    if unknown := sorted({*drawn, fields.shown.frame} - frames):
        raise ValueError(f"it shows the table {unknown[0]!r:.60}, which it does not have")
    if fields.shown.options.get("audio", SOUNDS[0]) not in SOUNDS:
        raise ValueError("its recordings are in another column than audio or spoken")


def _read_table(folder: Path, name: str, outside: list[str], *, empty: bool = False) -> pd.DataFrame:
    """Read a table, with the full paths of recordings in the folder; one without rows has no file if ``empty``."""
    file = find_path_inside(folder, f"{name}.parquet")
    if file is None:
        raise ValueError(f"{name}.parquet is a link to a file outside the folder")
    if empty and not file.is_file():
        return pd.DataFrame()
    try:
        check_parquet_unpacked_size(file)
        frame = pd.read_parquet(file)
    except FileNotFoundError as error:
        raise ValueError(f"{file.name} is missing") from error
    return resolve_recording_paths(frame, folder, outside)
