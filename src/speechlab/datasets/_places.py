"""Where a data set lies: manifests at addresses and in archives, and shards of recordings with their texts."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from speechlab._arguments import is_missing
from speechlab._files import expand_user_path
from speechlab._pandas import pd
from speechlab.audio import FileSegment
from speechlab.datasets._corpora import SOUND_ENDINGS
from speechlab.datasets._manifests import MANIFEST_ENDINGS, parse_sound
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
        return _find_in_archive(address or str(expand_user_path(path).absolute()), kind)
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
    manifest = choose_manifest([name for name in names if _split_key(name)[0] not in keys])
    if manifest is not None:
        return f"{kind}://{manifest}::{archive}", None
    if not keys:
        some = ", ".join(names[:_SHOWN]) or "nothing"
        message = (
            f"{archive} has neither one manifest nor recordings ({', '.join(SOUND_ENDINGS)}), only {some}"
        )
        raise InvalidRequestError(message, parameter="path")
    return archive, _read_samples(archive, kind, names, keys)


def _split_key(name: str) -> tuple[str, str]:
    """Return what the files of a sample have in common, up to the first dot, and the last ending."""
    folder, slash, base = name.rpartition("/")
    return folder + slash + base.partition(".")[0], PurePosixPath(base).suffix.lower()


def _read_samples(archive: str, kind: str, names: list[str], keys: set[str]) -> pd.DataFrame:
    """Rows of a shard of WebDataset: for each recording the text and the columns that have its name."""
    rows: dict[str, dict[str, Any]] = {}
    faults: list[str] = []
    for name in names:
        key, ending = _split_key(name)
        if ending in SOUND_ENDINGS:
            if "audio" in rows.setdefault(key, {}):
                faults.append(f"{name}: a second recording of {key!r}")
            else:
                rows[key]["audio"] = f"{kind}://{name}::{archive}"
    wanted = [name for name in names if _split_key(name)[0] in keys and _split_key(name)[1] in _TEXT_ENDINGS]
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
        warnings.warn(f"{archive}: left out: {'; '.join(faults[:_SHOWN])}{more}", stacklevel=5)
    return pd.DataFrame([{"id": key, **row} for key, row in rows.items()])


def choose_manifest(names: Iterable[str]) -> str | None:
    """Return the manifest among the files of a folder: the only one, or else the only one that is named so."""
    endings = {name: PurePosixPath(name.lower().removesuffix(".gz")).suffix for name in sorted(names)}
    files = [name for name, ending in endings.items() if ending in MANIFEST_ENDINGS]
    manifests = [
        name for name in files if re.search("manifest|metadata", find_file_name(name), re.IGNORECASE)
    ]
    # Other programs keep their settings in .json.
    tables = [name for name in files if endings[name] != ".json"]
    return next((candidates[0] for candidates in (manifests, tables) if len(candidates) == 1), None)


def resolve_recordings(cells: list[Any], folder: Path | str) -> list[Any]:
    """Recordings: absolute paths (relative ones are seen from the manifest's folder), addresses, segments, or bytes.

    A manifest at an address names files of its own store and of public servers; other cells are left out.
    """
    refused: list[str] = []
    resolve = _build_resolver(folder, refused)
    found = [
        None
        if is_missing(cell) or (isinstance(cell, str) and not cell.strip())
        else _resolve_recording(cell, resolve)
        for cell in cells
    ]
    if refused:
        message = (
            f"{len(refused):,} of {len(cells):,} recordings are left out, the first: {refused[0]:.200}. The manifest "
            f"lies at {folder}, and names files that its author could not read; if you trust it, download it first"
        )
        warnings.warn(message, stacklevel=4)
    return found


def _resolve_recording(cell: Any, resolve: Callable[[str], str | None]) -> Any:
    if isinstance(cell, dict):  # as Hugging Face's data sets have them in Parquet
        data, path = cell.get("bytes"), cell.get("path")
        return data if data is not None or path is None else _resolve_recording(path, resolve)
    if not isinstance(cell, str):
        return cell
    sound = parse_sound(_PLACEHOLDER.sub("", cell.strip()))
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
        if not is_remote(name):
            return join_address(str(folder), name)
        address = str(hide_secrets(name))
        if may_name(str(folder), address):
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
