"""Where a data set lies: manifests at addresses and in archives, shards, folders of recordings with texts."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from speechlab._arguments import build_argument_error, is_missing
from speechlab._files import check_place_exists, expand_user_path
from speechlab._pandas import pd
from speechlab._traces import warn_user
from speechlab.audio import FileSegment
from speechlab.datasets._corpora import CORPORA, SOUND_ENDINGS, find_corpus
from speechlab.datasets._manifests import (
    MANIFEST_ENDINGS,
    find_usual_columns,
    guess_audio_and_text_columns,
    parse_sound,
    read_manifest,
)
from speechlab.datasets._transcripts import describe_fault, read_text_transcripts
from speechlab.errors import InvalidRequestError
from speechlab.remote import (
    find_archive_kind,
    find_file_name,
    find_folder,
    hide_secrets,
    is_remote,
    join_address,
    list_archive,
    list_file_names,
    locate_file,
    may_name,
    read_archive,
)

# The folder of a corpus in manifests of SpeechBrain, such as ``{data_root}/`` or ``$data_root/``.
_PLACEHOLDER = re.compile(r"(?:(?<!\{)\{+\w+\}+|\$\{?\w+\}?)/")
_TEXT_ENDINGS = (".txt", ".json")
_SHOWN = 3


def find_remote_manifest(path: str | os.PathLike[str]) -> tuple[str, pd.DataFrame | None] | None:
    """Return the address of a manifest that is no local file, or the archive's name and its samples.

    Returns:
        None for a local file or folder.
    """
    address = str(hide_secrets(path)) if is_remote(path) else ""
    name = find_file_name(address or path)
    kind = find_archive_kind(name)
    if kind and (address or expand_user_path(path).is_file()):
        archive = address or str(expand_user_path(path).absolute())
        try:
            return _find_in_archive(archive, kind)
        except FileNotFoundError:
            raise
        except OSError as error:
            message = f"{archive} cannot be read: {error.strerror or error}"
            raise InvalidRequestError(message, parameter="path") from None
    if not address:
        return None
    if PurePosixPath(name.lower().removesuffix(".gz")).suffix in MANIFEST_ENDINGS:
        return address, None
    files = list_file_names(address)
    manifest = choose_manifest(files)
    if manifest is None:
        found = f"; it has {', '.join(files[:_SHOWN])}" if files else ""
        message = (
            f"{address} is no manifest, no archive (.zip, .tar) and no folder with one manifest{found}; give the "
            "address of the manifest"
        )
        raise InvalidRequestError(message, parameter="path")
    return join_address(address, manifest), None


def _find_in_archive(archive: str, kind: str) -> tuple[str, pd.DataFrame | None]:
    names = list_archive(archive, kind)
    keys = {_split_key(name)[0] for name in names if _split_key(name)[1] in SOUND_ENDINGS}
    manifest = choose_manifest(name for name in names if _split_key(name)[0] not in keys and "::" not in name)
    if manifest is not None:
        return f"{kind}://{manifest}::{archive}", None
    if not keys:
        some = ", ".join(names[:_SHOWN]) or "nothing"
        message = (
            f"{archive} has neither one manifest nor recordings ({', '.join(SOUND_ENDINGS)}), only {some}"
        )
        raise InvalidRequestError(message, parameter="path")
    return archive, _read_samples(archive, kind, names)


def _split_key(name: str) -> tuple[str, str]:
    """Return what the files of a sample have in common, up to the first dot, and the last ending."""
    folder, slash, base = name.rpartition("/")
    return folder + slash + base.partition(".")[0], PurePosixPath(base).suffix.lower()


def _read_samples(archive: str, kind: str, names: list[str]) -> pd.DataFrame:
    """Rows of a shard of WebDataset: for each recording the text and the columns that have its name."""
    rows: dict[str, dict[str, Any]] = {}
    faults: list[str] = []
    for name in names:
        key, ending = _split_key(name)
        if ending in SOUND_ENDINGS:
            if "::" in name:
                faults.append(f"{name}: a name with ::, which would be part of an address")
            elif "audio" in rows.setdefault(key, {}):
                faults.append(f"{name}: a second recording of {key!r}")
            else:
                rows[key]["audio"] = f"{kind}://{name}::{archive}"
    wanted = [name for name in names if _split_key(name)[0] in rows and _split_key(name)[1] in _TEXT_ENDINGS]
    for name, data in read_archive(archive, kind, wanted):
        key, ending = _split_key(name)
        try:
            text = data.decode("utf-8-sig")
            found = dict(orjson.loads(text)) if ending == ".json" else {"text": " ".join(text.split())}
        except (TypeError, ValueError) as error:
            faults.append(f"{name}: {error}")
            continue
        rows[key] = {**found, **rows[key]}
    if faults:
        more = f", and {len(faults) - _SHOWN:,} more" if len(faults) > _SHOWN else ""
        warn_user(f"{archive}: left out: {'; '.join(faults[:_SHOWN])}{more}", stacklevel=5)
    return pd.DataFrame([{"id": key, **row} for key, row in rows.items()])


def choose_manifest(names: Iterable[str]) -> str | None:
    """Return the manifest among the files of a folder: the only one, or else the only one that is named so."""
    tables, manifests = list_tables(names)
    return next((candidates[0] for candidates in (manifests, tables) if len(candidates) == 1), None)


def list_tables(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the files that may be manifests, and those that are named so."""
    endings = {name: PurePosixPath(name.lower().removesuffix(".gz")).suffix for name in sorted(names)}
    files = [name for name, ending in endings.items() if ending in MANIFEST_ENDINGS]
    manifests = [
        name for name in files if re.search("manifest|metadata", find_file_name(name), re.IGNORECASE)
    ]
    # Other programs keep their settings in .json.
    return [name for name in files if endings[name] != ".json"], manifests


def resolve_recordings(cells: list[Any], folder: Path | str) -> list[Any]:
    """Recordings: absolute paths (relative ones are seen from the manifest's folder), addresses, segments, or bytes.

    A manifest at an address names files of its own store and of public servers; other cells are left out.
    """
    refused: list[str] = []
    resolve = _build_resolver(folder, refused)
    found = [
        None if is_blank(cell) else _resolve_recording(cell, resolve, is_distant=not isinstance(folder, Path))
        for cell in cells
    ]
    if refused:
        message = (
            f"{len(refused):,} of {len(cells):,} recordings are left out, the first: {refused[0]:.200}. The manifest "
            f"lies at {folder}, and names files that its author could not read; if you trust it, download it first"
        )
        warn_user(message, stacklevel=4)
    return found


def is_blank(cell: object) -> bool:
    """Return whether a cell is missing, or a text of spaces."""
    return is_missing(cell) or (isinstance(cell, str) and not cell.strip())


def _resolve_recording(cell: Any, resolve: Callable[[str], str | None], *, is_distant: bool) -> Any:
    if isinstance(cell, dict):  # as Hugging Face's data sets have them in Parquet
        data, path = cell.get("bytes"), cell.get("path")
        if cell.get("array") is not None:
            return cell
        if data is not None or path is None:
            return data
        return _resolve_recording(path, resolve, is_distant=is_distant)
    if not isinstance(cell, str):
        return cell
    bare = str(hide_secrets(cell.strip(), logins=False)) if is_distant else cell.strip()
    sound = parse_sound(_PLACEHOLDER.sub("", bare))
    if isinstance(sound, FileSegment):
        place = resolve(str(sound.path))
        return None if place is None else FileSegment(place, sound.start_s, sound.end_s)
    return resolve(sound)


def _build_resolver(folder: Path | str, refused: list[str]) -> Callable[[str], str | None]:
    def resolve_local(name: str) -> str:
        if not is_remote(name):
            return str(Path(folder) / name)
        link, between, target = name.partition("::")
        own = between and not is_remote(target) and "::" not in target
        return f"{link}::{Path(folder) / target}" if own else str(hide_secrets(name))

    def resolve_remote(name: str) -> str | None:
        if not is_remote(name) and "::" not in name:
            return join_address(str(folder), name)
        address = str(hide_secrets(name, logins=False))
        if is_remote(name) and may_name(str(folder), address):
            return address
        refused.append(address)
        return None

    return resolve_local if isinstance(folder, Path) else resolve_remote


def find_manifest(folder: Path) -> Path | None:
    """Return the manifest in a local folder."""
    name = choose_manifest(path.name for path in folder.iterdir() if path.is_file())
    return None if name is None else folder / name


def locate_manifest(path: Path | str) -> tuple[Path, Path | str]:
    """Return where a manifest is on this machine, and the folder from which its relative names are seen."""
    if isinstance(path, Path):
        return path, path.absolute().parent
    try:
        return locate_file(path), find_folder(path)
    except FileNotFoundError:
        raise InvalidRequestError(f"there is no file {path}; check the address", parameter="path") from None
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}"
        raise InvalidRequestError(message, parameter="path") from None


_ENDINGS = (*SOUND_ENDINGS, ".oga", ".wave")
# Sound that no reader here decodes.
_OTHER_ENDINGS = (".m4a", ".aac", ".wma", ".webm", ".amr", ".aif", ".aiff", ".caf", ".mp4", ".3gp")


def is_recording_file(path: Path) -> bool:
    """Return whether a path has the ending of a recording, and not of a table."""
    return path.suffix.lower() in (*_ENDINGS, *_OTHER_ENDINGS)


def find_recordings(places: Iterable[str | os.PathLike[str]]) -> list[Path | str]:
    """Return the recordings of a list: files as they are given, of folders those in them in the order of their names.

    Hidden files and folders are left out. A warning counts the files of a folder that no reader here decodes.
    """
    found: list[Path | str] = []
    others: Counter[str] = Counter()
    for given in places:
        if is_remote(given):
            found.append(str(hide_secrets(given)))
            continue
        place = expand_user_path(given)
        if not place.is_dir():
            if not is_recording_file(place):
                check_place_exists(place)
            found.append(place.absolute())
            continue
        for folder, names, files in os.walk(place.absolute()):
            names[:] = sorted(name for name in names if not name.startswith("."))
            shown = [Path(folder, name) for name in sorted(files) if not name.startswith(".")]
            found += [path for path in shown if path.suffix.lower() in _ENDINGS]
            others.update(end for path in shown if (end := path.suffix.lower()) in _OTHER_ENDINGS)
    if others:
        counts = ", ".join(f"{count:,} {ending}" for ending, count in others.most_common())
        warn_user(
            f"files of other formats are left out ({counts}); convert them first, as by "
            f"ffmpeg -i talk{others.most_common(1)[0][0]} talk.flac",
            stacklevel=4,
        )
    return found


def read_recordings(paths: Sequence[Path | str]) -> pd.DataFrame:
    """Return a row for each recording: its path, and the text of the ``.txt`` beside it, if any has one."""
    table = pd.DataFrame({"audio": pd.Series([str(path) for path in paths], dtype="object")})
    faults: list[str] = []
    texts = [_read_text_beside(path, faults) for path in paths]
    if faults:
        more = f"; and {len(faults) - _SHOWN:,} more" if len(faults) > _SHOWN else ""
        warn_user("; ".join(faults[:_SHOWN]) + more, stacklevel=4)
    return table if texts.count(None) == len(texts) else table.assign(text=pd.array(texts, dtype="string"))


def _read_text_beside(recording: Path | str, faults: list[str]) -> str | None:
    file = Path(recording).with_suffix(".txt")
    if is_remote(recording) or not file.is_file():
        return None
    try:
        return " ".join(read_text_transcripts(file).values())
    except (OSError, ValueError) as error:
        faults.append(f"{file} cannot be read as a text: {describe_fault(error)}")
        return None


def select_recordings(path: Any, layout: str | None) -> Sequence[Path | str] | None:
    """Return the recordings of a list, a file, or a folder without a layout or manifest; None for other paths."""
    if not isinstance(path, str | os.PathLike):
        places = list(path) if isinstance(path, Iterable) and not isinstance(path, bytes | Mapping) else []
        if not places or not all(isinstance(place, str | os.PathLike) for place in places):
            raise build_argument_error("path", path, "a path, or a list of the paths of recordings")
        return find_recordings(places)
    if is_remote(path):
        is_one = PurePosixPath(find_file_name(str(hide_secrets(path)))).suffix.lower() in _ENDINGS
        return find_recordings([path]) if is_one and layout is None else None
    where = expand_user_path(path)
    if layout is None:
        check_place_exists(where)
    if layout is None and is_recording_file(where) and where.is_file():
        return [where.absolute()]
    if layout is not None or not where.is_dir() or find_corpus(where.absolute(), None) is not None:
        return None
    tables, named_so = list_tables(file.name for file in where.iterdir() if file.is_file())
    manifest = find_manifest(where)
    if manifest is None and named_so:
        return None  # the user has to say which is meant
    if manifest is not None:
        rows = read_manifest(manifest, manifest)
        if "audio" in find_usual_columns(rows) or "audio" in guess_audio_and_text_columns(rows):
            return None
    sounds = find_recordings([where])
    if sounds and tables:
        reason = "names no recordings" if manifest else "and other tables are there"
        message = (
            f"{tables[0]} {reason}, so the rows are the {len(sounds):,} recordings in {where}; give the path of "
            "a table if one is meant"
        )
        warn_user(message, stacklevel=3)
    return sounds or None


def build_empty_folder_error(where: str | os.PathLike[str]) -> InvalidRequestError:
    """Make the error for a folder without recordings."""
    endings = f"{', '.join(_ENDINGS[:-1])} or {_ENDINGS[-1]}"
    message = f"{where} has no recordings; give a folder with files that end in {endings}"
    return InvalidRequestError(message, parameter="path")


def build_layout_error(where: Path, layout: str | None) -> InvalidRequestError:
    if not where.is_dir():
        message = f"there is no folder {where}; check the path, or leave out layout= for a manifest"
        return InvalidRequestError(message, parameter="path")
    names = layout or " or ".join(CORPORA)
    endings = {".csv", ".tsv", ".jsonl", ".json", ".parquet"}
    files = sorted(path.name for path in where.iterdir() if path.suffix in endings)
    if layout is None and not files:
        return build_empty_folder_error(where)
    hint = f", as {' or '.join(files[:3])} there" if files else ""
    message = (
        f"{where} is not a folder in the layout of {names}; give the unpacked folder, recordings, or a "
        f"manifest (.csv, .tsv, .jsonl, .json or .parquet){hint}"
    )
    return InvalidRequestError(message, parameter="path")
