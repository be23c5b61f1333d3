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

from speechlab._arguments import is_missing, refused
from speechlab._files import user_path, whole_file
from speechlab._pandas import pd
from speechlab.audio import AudioClip, sniff
from speechlab.errors import AudioError, InvalidRequestError, StoreError
from speechlab.evaluate._writing.columns import View
from speechlab.evaluate._writing.contents import Conclusion, Contents, Drawing, ShownRows, findings_of
from speechlab.evaluate._writing.methods import Methods
from speechlab.metrics import judge
from speechlab.tables import guarded

_RECORD = "record.json"
_FORMAT = 1
SOUNDS = ("audio", "spoken")
"""Columns of recordings, and folders of their copies."""
_UNSAFE = re.compile(r"[^\w.-]+")
_OURS = re.compile(r"[\w-]+\.parquet|figures/[\w.-]+\.svg")
"""Files that a record may name; none of them is outside the folder."""
_MAX_NAME_BYTES = 120
"""Maximum length of a recording's name without its suffix; file systems allow 255 in all."""
_FRAMES = ("table", "summary", "differences", "speed")
"""Fields of a report that are tables."""
_NAMES = {"table": "results"}
"""Names of files that differ from those of the field."""
_FOR_PEOPLE = {"results", "summary"}
"""Tables that are always written, also as CSV."""
PAGES = (".html", ".htm")
_NEITHER = (".csv", ".json", ".md", ".parquet", ".pdf", ".svg", ".tex", ".tsv", ".xlsx", ".zip")
"""Suffixes of files in whose formats a report cannot be saved."""


def report_place(path: object) -> Path:
    """Return the page or folder for a report, without writing it."""
    if not isinstance(path, str | PathLike) or not str(path) or "\0" in str(path):
        raise refused("path", path, "the name of a page (.html) or of a folder")
    where = user_path(path)
    try:
        if not where.is_dir():
            if where.suffix.lower() in _NEITHER or (where.is_file() and where.suffix.lower() not in PAGES):
                message = (
                    f"{where.name} names neither a page (.html) nor a folder; to_parquet, to_latex and to_markdown "
                    "give the tables, and a folder has the figures"
                )
                raise InvalidRequestError(message, parameter="path")
        elif not (where / _RECORD).is_file():
            names = [f"{name}{end}" for name in sorted(_FOR_PEOPLE) for end in (".csv", ".parquet")]
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
        raise unwritten(where, error) from error
    return where


def write_folder(
    path: Path, report: Contents, *, html: str, figures: Mapping[str, tuple[bytes, bytes]]
) -> None:
    """Write a report to a folder. The recordings of its tables are copied, and the tables name the copies."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        earlier, written = _files_of(path), set()
        (path / _RECORD).touch()  # marks an incomplete folder as that of a report
        copies = {name: _sounds(report.table, path, name) for name in SOUNDS if name in report.table.columns}
        frames = {_NAMES.get(name, name): getattr(report, name) for name in _FRAMES} | dict(report.tables)
        for name, frame in frames.items():
            _write(_pointing(frame, report.table, copies, rows=name == _NAMES["table"]), path / name)
            written.add(f"{name}.parquet")
        for name, (vectors, _) in figures.items():
            (path / "figures").mkdir(exist_ok=True)
            label = _UNSAFE.sub("-", name.lower()).strip("-")
            (path / "figures" / f"{label}.svg").write_bytes(vectors)
            written.add(f"figures/{label}.svg")
        with whole_file(path / "report.html") as draft:
            draft.write_text(html, encoding="utf-8")
        names = {*written, "report.html", *(f"{name}.csv" for name in _FOR_PEOPLE)}
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
            "sha256": {name: _digest(path / name) for name in sorted(names) if (path / name).is_file()},
        }
        with whole_file(path / _RECORD) as draft:
            draft.write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2, default=plain))
        for stale in earlier - written:
            (path / stale).unlink(missing_ok=True)
    except OSError as error:
        raise unwritten(path, error) from error


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def changed_files(folder: Path) -> tuple[str, list[tuple[str, str, str]]]:
    """Compare the files of a report with the hashes in its record, which has thus a hash for all of them."""
    hashes = orjson.loads((folder / _RECORD).read_bytes()).get("sha256", {})
    actual = {name: _digest(folder / name) if (folder / name).is_file() else "missing" for name in hashes}
    changed = [(name, actual[name], follows) for name, follows in hashes.items() if actual[name] != follows]
    return _digest(folder / _RECORD), changed


def plain(value: Any) -> Any:
    """The form of a value that JSON lacks: tuples with names as lists, and what has no other form as text."""
    if isinstance(value, tuple):
        return list(value)
    return None if is_missing(value) else value.item() if hasattr(value, "item") else str(value)


def _files_of(folder: Path) -> set[str]:
    """Return the tables and figures of the report in a folder, as named in its record."""
    try:
        names = orjson.loads((folder / _RECORD).read_bytes())["files"]
        return {name for name in names if _OURS.fullmatch(name)}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def unwritten(path: Path, error: OSError) -> StoreError:
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
        with whole_file(file) as draft, draft.open("wb") as sink:
            pq.write_table(table, sink)
    except (pa.ArrowException, OverflowError, ValueError) as error:
        where = next((f", column {name!r}" for name, cells in frame.items() if not _fits(cells)), "")
        why = ": ".join(map(str, error.args)) if isinstance(error, pa.ArrowException) else error
        what = f"the table {file.stem!r}{where} holds what Parquet cannot"
        raise StoreError(f"{what}: {why}; drop the column, or give it plain text") from error


def _fits(cells: pd.Series[Any]) -> bool:
    """Whether Parquet supports the values of a column."""
    import pyarrow as pa

    try:
        pa.Array.from_pandas(cells)
    except (pa.ArrowException, OverflowError, ValueError):
        return False
    return True


def read_folder(folder: str | PathLike[str]) -> Contents:
    """Read a report that :func:`write_folder` wrote. Its tables have the current paths of the recordings."""
    if not isinstance(folder, str | PathLike):
        raise refused("folder", folder, "a folder that report.save wrote")
    path = user_path(folder)
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
        frames = {name: _read(path, _NAMES.get(name, name), empty=name not in _NAMES) for name in _FRAMES}
        if not len(frames["differences"]):
            frames["differences"] = judge([])
        tables = {name: _read(path, name, empty=True) for name in saved["tables"]}
        return Contents(
            **fields
            | frames
            | {
                "tables": tables,
                "conclusion": Conclusion(*fields["conclusion"]),
                "findings": findings_of(fields["findings"]),
                "notes": tuple(fields["notes"]),
                "views": tuple(map(View.read, fields["views"])),
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


def _read(folder: Path, name: str, *, empty: bool = False) -> pd.DataFrame:
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


def _write(frame: pd.DataFrame, path: Path) -> None:
    file = path.with_suffix(".parquet")
    if path.name in _FOR_PEOPLE:
        write_parquet(frame, file)
        guarded(frame).to_csv(path.with_suffix(".csv"), index=False)
    elif len(frame):
        write_parquet(frame, file)
    else:
        file.unlink(missing_ok=True)  # of an earlier report


def _sounds(table: pd.DataFrame, folder: Path, column: str) -> pd.Series[str]:
    """Copy the recordings of a column to the folder; return their relative paths.

    Recordings that are in the folder already stay unchanged, and their names are not reused. A recording of several
    rows, such as rows of several systems, is copied once.
    """
    home = folder / column
    sources = [user_path(cell) if isinstance(cell, str | PathLike) else None for cell in table[column]]
    present = [
        source.name if source and source.is_file() and source.parent.resolve() == home.resolve() else None
        for source in sources
    ]
    names_taken = set(present)
    copied: dict[str | int, str | None] = {}
    names = []
    for number, (name, row) in enumerate(zip(present, table.to_dict("records"), strict=True)):
        cell = row[column]
        key = _cell_key(cell)
        if name is None and key not in copied:
            copied[key] = _copied(number, cell, row, home, names_taken)
        names.append(name or copied[key])
    places = [name and f"{column}/{name}" for name in names]
    return pd.Series(places, index=table.index, dtype="object")


def _cell_key(cell: object) -> str | int:
    return str(cell) if isinstance(cell, str | PathLike) else id(cell)


def _copied(
    number: int, cell: object, row: Mapping[Hashable, Any], home: Path, names_taken: Collection[str | None]
) -> str | None:
    """Write the recording of a row under a unique name; return the name, or None if there is no recording."""
    if isinstance(cell, str | PathLike):
        source = user_path(cell)
        if not source.is_file():
            return None
        data, ending, stem = None, source.suffix, source.stem
    elif isinstance(cell, AudioClip):
        data, ending, stem = cell.encode("wav"), ".wav", "clip"
    elif isinstance(cell, bytes | bytearray | memoryview):
        try:
            data, ending, stem = bytes(cell), f".{sniff(bytes(cell))}", "clip"
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


def _pointing(
    frame: pd.DataFrame, table: pd.DataFrame, places: Mapping[str, pd.Series[str]], *, rows: bool
) -> pd.DataFrame:
    """Return rows of a report, or their segments, with the recordings in the folder instead of the original ones."""
    if rows:
        return frame.assign(**places)
    copies = {
        _cell_key(cell): place
        for name in places
        for cell, place in zip(table[name], places[name], strict=True)
    }
    for name in set(SOUNDS) & set(frame.columns):
        cells: list[Any] = [copies.get(_cell_key(cell)) for cell in frame[name]]
        frame = frame.assign(**{name: cells})
    copied = places.get(SOUNDS[0])
    if copied is None or not {"file", "position"} <= set(frame.columns) or not len(frame):
        return frame
    files = copied.iloc[frame["position"]].to_numpy()
    paths = [str(old) if is_missing(new) else new for old, new in zip(frame["file"], files, strict=True)]
    return frame.assign(file=paths)
