"""The recordings of a report, copied into its folder, and its tables, which name the copies."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Hashable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from speechlab._arguments import is_missing
from speechlab._files import expand_user_path, write_atomically
from speechlab._pandas import pd
from speechlab._untrusted import find_path_inside, is_suffix
from speechlab.audio import AudioClip, detect_format, unify_recording
from speechlab.errors import SpeechLabError
from speechlab.remote import find_file_name, hide_secrets, is_remote, locate_file

# Columns of recordings, and folders of their copies.
SOUNDS = ("audio", "spoken")
UNSAFE = re.compile(r"[^\w.-]+")
_SOUND_FILE = re.compile(
    r".*\.(aac|aiff?|flac|m4a|mp3|oga|ogg|opus|pcm|raw|wave?|webm|wma)", re.IGNORECASE | re.DOTALL
)
# Maximum length of a recording's name without its suffix; file systems allow 255 in all.
_MAX_NAME_BYTES = 120


def list_sound_columns(table: pd.DataFrame) -> list[str]:
    """Return the columns of recordings; one that has texts, of which none names a recording, is none."""
    return [name for name in SOUNDS if name in table.columns and not _has_texts_alone(table[name])]


def _has_texts_alone(column: pd.Series[Any]) -> bool:
    cells = [cell for cell in column if not is_missing(cell)]
    return bool(cells) and not any(map(_is_recording, cells))


def _is_recording(cell: object) -> bool:
    if not isinstance(cell, str):
        return True
    try:
        return is_remote(cell) or bool(_SOUND_FILE.fullmatch(cell)) or expand_user_path(cell).is_file()
    except (OSError, ValueError, SpeechLabError):  # too long for a name, or a NUL
        return False


def copy_recordings(
    table: pd.DataFrame, folder: Path, draft: Path, column: str, left: list[str]
) -> pd.Series[str]:
    """Copy the recordings of a column to the draft of the folder; return their relative paths.

    Recordings that are in the folder already stay unchanged, and their names are not reused. A recording of several
    rows, such as rows of several systems, is copied once. Files that are no recordings by their bytes are not copied,
    whatever their names: a table may name any file of its reader. They are added to ``left``, as are those that are
    gone though their rows have no error.
    """
    home = folder / column
    sources = [
        expand_user_path(cell) if isinstance(cell, str | PathLike) and not is_remote(cell) else None
        for cell in table[column]
    ]
    present = [
        source.name if source and source.is_file() and source.parent.resolve() == home.resolve() else None
        for source in sources
    ]
    names_taken = set(present)
    copied: dict[str | int, str | None] = {}
    names = []
    for number, (name, row) in enumerate(zip(present, table.to_dict("records"), strict=True)):
        cell = row[column]
        key = _to_recording_key(cell)
        if name is None and key not in copied:
            copied[key] = _copy_recording(number, cell, row, draft / column, names_taken, left)
        names.append(name or copied[key])
    places = [name and f"{column}/{name}" for name in names]
    return pd.Series(places, index=table.index, dtype="object")


def _to_recording_key(cell: object) -> str | int:
    return str(cell) if isinstance(cell, str | PathLike) else id(cell)


def _copy_recording(
    number: int,
    cell: object,
    row: Mapping[Hashable, Any],
    home: Path,
    names_taken: Collection[str | None],
    left: list[str],
) -> str | None:
    """Write the recording of a row under a unique name; return the name, or None if there is no recording."""
    data, stem, given = b"", "clip", cell
    try:
        cell = None if is_missing(given) else unify_recording(given)
        if isinstance(cell, str | PathLike):
            source, name = locate_file(cell), Path(find_file_name(cell))
            if not source.is_file():
                if is_missing(row.get("error")) and _is_recording(given):  # nothing else says that it is gone
                    left.append(str(hide_secrets(given)))
                return None
            with source.open("rb") as file:
                ending, stem = f".{detect_format(file.read(12))}", name.stem
            ending = name.suffix if name.suffix and is_suffix(name.suffix) else ending
        elif isinstance(cell, AudioClip):
            data, ending = cell.encode("wav"), ".wav"
        elif isinstance(cell, bytes):
            data, ending = cell, f".{detect_format(cell)}"
        else:
            return None
    except (SpeechLabError, OSError):
        if isinstance(given, str | PathLike | AudioClip):  # others have no name
            left.append(str(hide_secrets(given)))
        return None
    identifier = row.get("id")
    voice = row.get("voice_name")  # for unknown speakers, studies of recognition have the file here
    name_parts = [
        f"{number:03d}",
        str(stem[:24] if is_missing(identifier) else identifier),
        "" if is_missing(voice) or str(voice) == f"{stem}{ending}" else str(voice),
    ]
    # The number distinguishes files with otherwise equal names.
    label = UNSAFE.sub("-", "-".join(name_part for name_part in name_parts if name_part)).strip("-")
    label = label.encode()[:_MAX_NAME_BYTES].decode(errors="ignore")
    while label + ending in names_taken:
        label += "-"
    home.mkdir(exist_ok=True)
    target = home / (label + ending)
    with write_atomically(target) as draft:  # which replaces a link, and does not follow it
        if data:
            draft.write_bytes(data)
        else:
            shutil.copyfile(source, draft)
    return target.name


def replace_with_copies(
    frame: pd.DataFrame, table: pd.DataFrame, places: Mapping[str, pd.Series[str]], *, rows: bool
) -> pd.DataFrame:
    """Return rows of a report, or their segments, with the recordings in the folder instead of the original ones."""
    if rows:
        return frame.assign(**places)
    copies = {
        _to_recording_key(cell): place
        for name in places
        for cell, place in zip(table[name], places[name], strict=True)
    }
    for name in list_sound_columns(frame):
        cells: list[Any] = [copies.get(_to_recording_key(cell)) for cell in frame[name]]
        frame = frame.assign(**{name: cells})
    copied = places.get(SOUNDS[0])
    if copied is None or not {"file", "position"} <= set(frame.columns) or not len(frame):
        return frame
    files = copied.iloc[frame["position"]].to_numpy()
    paths = [str(old) if is_missing(new) else new for old, new in zip(frame["file"], files, strict=True)]
    return frame.assign(file=paths)


def resolve_recording_paths(frame: pd.DataFrame, folder: Path, outside: list[str]) -> pd.DataFrame:
    """Return a table of a saved report with the current paths of its recordings.

    A path outside the folder is left out, and added to ``outside``: the folder may be a stranger's, and whoever saves
    the report again or shows it would publish the file.
    """
    for column in set(SOUNDS) & set(frame.columns):
        cells: list[Any] = frame[column].tolist()
        copies = any(isinstance(cell, str) and cell.startswith(f"{column}/") for cell in cells)
        if not copies and _has_texts_alone(frame[column]):
            continue
        for number, cell in enumerate(cells):
            if isinstance(cell, str):
                path = find_path_inside(folder, cell)
                cells[number] = None if path is None else str(path)
                if path is None:
                    outside.append(cell)
        frame[column] = pd.Series(cells, index=frame.index, dtype=frame[column].dtype)
    if "file" in frame.columns:  # names of segments' recordings, which are read by nobody
        files = [
            str(path) if (path := find_path_inside(folder, cell)) and path.is_file() else cell
            for cell in frame["file"]
        ]
        frame["file"] = pd.Series(files, index=frame.index, dtype=frame["file"].dtype)
    return frame
