"""Where a file is: a path, the copy of an address, or the copy of an archive's file."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from speechlab._files import expand_user_path
from speechlab._require import EXTRAS, require
from speechlab.errors import InvalidRequestError, MissingDependencyError, SpeechLabError
from speechlab.remote._addresses import (
    find_file_name,
    hide_secrets,
    is_remote,
    is_web,
    reveal_secrets,
    scrub,
    split_chain,
)
from speechlab.remote._archives import extract_file, is_packed, list_names, read_files, unpack_tar
from speechlab.remote._copies import COPIES
from speechlab.remote._web import list_links, open_session

# A file without an end, or a disk that fills: a recording of two days in WAV has less.
_MAX_BYTES = 8 << 30
_FETCHED_AT_ONCE = 16
_MAX_LINKS = 8  # of an address: an archive in an archive
# Rows of a table whose files are fetched together.
PREFETCHED_ROWS = 256
# What tells two states of a file apart, by kind of store.
_STAMPS = (
    "ETag", "etag", "md5Hash", "crc32c", "Content-MD5", "checksum", "sha", "oid", "blob_id", "mtime", "LastModified",
    "last_modified", "updated", "created", "modified",
)  # fmt: skip
# Packages for a kind of address that no extra installs.
_OTHER_PACKAGES = {"gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs"}
_SEGMENT = re.compile(r"#t=[\d.]+(?:,[\d.]+)?\Z")
_REFUSED = {
    401: "asks for credentials",
    403: "refuses the credentials, or wants some",
    407: "is behind a proxy",
}


def locate_file(path: str | os.PathLike[str]) -> Path:
    """Return where a file is on this machine: a user's path as it is, or a copy of what an address names.

    Raises:
        InvalidRequestError: The text is data or an address of no known kind, or the file is too large.
        MissingDependencyError: The extra ``remote`` is not installed.
        OSError: The file cannot be had: it is not there, the server refuses, the archive is damaged.
    """
    if not isinstance(path, str) or not is_remote(path):
        return expand_user_path(path)
    address = str(hide_secrets(path))
    kind, member, target = split_chain(address)
    if address.count("::") > _MAX_LINKS:
        raise InvalidRequestError(
            f"{address:.80}… names archives within each other more than {_MAX_LINKS} times"
        )
    if _SEGMENT.search(address):
        message = f"{address:.200} names a segment; give sl.audio.FileSegment(address, start_s, end_s), or the table"
        raise InvalidRequestError(f"{message} by sl.datasets.read")
    if not kind and address.lower().startswith(("zip://", "tar://")):
        raise InvalidRequestError(
            f"{address:.200} names a file in no archive; give both, as in zip://a.wav::shard.zip"
        )
    if kind:
        archive = locate_archive(target, kind)
        fetch: Callable[[Path], None] = partial(extract_file, archive, kind, member, address)
        return COPIES.keep(address, find_file_name(address), partial(_stamp_local, archive), fetch, 0.0)
    return COPIES.keep(
        address, find_file_name(address), partial(_stamp_remote, address), partial(_fetch, address)
    )


def locate_archive(target: str, kind: str) -> Path:
    """Return where an archive is on this machine; a packed tar is unpacked."""
    archive = locate_file(target)
    if kind != "tar" or not is_packed(archive):
        return archive
    unpack = partial(unpack_tar, archive, target)
    return COPIES.keep(f"tar::{target}", "unpacked.tar", partial(_stamp_local, archive), unpack, 0.0)


def list_archive(target: str, kind: str) -> list[str]:
    """Return the names of the files in an archive, which is a path or an address."""
    return list_names(locate_archive(target, kind), kind, target)


def read_archive(target: str, kind: str, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the names and bytes of small files of an archive, which is a path or an address."""
    yield from read_files(locate_archive(target, kind), kind, names, target)


def list_file_names(address: str) -> list[str]:
    """Return the names of the files in a folder; none if it is none, or cannot be listed."""
    kind, inner, target = split_chain(address)
    if kind:
        folder = inner.rstrip("/") + "/" if inner.strip("/") else ""
        names = (name.removeprefix(folder) for name in list_archive(target, kind) if name.startswith(folder))
        return sorted(name for name in names if "/" not in name)
    try:
        system, inner = _open_system(address)
        if is_web(address):
            return list_links(system, inner.rstrip("/") + "/")
        entries = system.ls(inner, detail=True)
    except SpeechLabError:
        raise
    except Exception:  # noqa: BLE001 - of any library; reading will say why
        return []
    files = [entry["name"].rstrip("/") for entry in entries if entry.get("type") == "file"]
    return sorted(name.rpartition("/")[2] for name in files if name != inner.rstrip("/"))


def prefetch(cells: Iterable[object]) -> None:
    """Fetch the files of some cells at once; faults show when a file is read."""
    addresses = list(dict.fromkeys(str(cell) for cell in cells if is_remote(cell)))
    if not addresses:
        return
    with ThreadPoolExecutor(min(_FETCHED_AT_ONCE, len(addresses))) as threads:
        list(threads.map(_try_to_locate, addresses))


def _try_to_locate(address: str) -> None:
    try:
        locate_file(address)
    except (SpeechLabError, OSError, ValueError):
        return


def _stamp_local(path: Path) -> Hashable:
    status = path.stat()
    return str(path), status.st_size, status.st_mtime_ns


def _stamp_remote(address: str) -> Hashable:
    """Return what tells the state of a remote file; None if its server does not tell."""
    try:
        system, inner = _open_system(address)
        facts = system.info(inner)
    except Exception:  # noqa: BLE001 - of any library; servers that refuse to tell may still send the file
        return None
    found = tuple(str(facts[name]) for name in _STAMPS if facts.get(name) is not None)
    return (facts.get("size"), *found) if found else None


def _open_system(address: str) -> tuple[Any, str]:
    """Return the file system of an address, and the file's name there."""
    protocol, between, rest = reveal_secrets(address).partition("://")
    protocol = protocol.lower()
    full = f"{protocol}{between}{rest}"
    core = require("fsspec.core")
    try:
        options = {"get_client": open_session} if is_web(full) else {}
        system, inner = core.url_to_fs(full, use_listings_cache=False, **options)
    except ImportError:
        package = _OTHER_PACKAGES.get(protocol)
        name = {"s3": "s3fs", "s3a": "s3fs", "hf": "huggingface_hub", "http": "aiohttp", "https": "aiohttp"}
        needed = package or name.get(protocol, f"for {protocol}://")
        extra = EXTRAS.get(needed)
        command = f"pip install 'speechlab[{extra}]'" if extra else f"pip install {needed}"
        message = (
            f"{protocol}:// needs the package {needed}, which is not installed; install it with: {command}"
        )
        raise MissingDependencyError(message) from None
    except ValueError as error:
        message = f"{address:.200} is an address of no known kind: {scrub(str(error)):.200}"
        raise InvalidRequestError(message) from None
    return system, inner


def _fetch(address: str, target: Path) -> None:
    system, inner = _open_system(address)
    callbacks = require("fsspec.callbacks")

    class Limit(callbacks.Callback):  # type: ignore[misc, name-defined]  # of a package that may be missing
        def relative_update(self, inc: int = 1) -> None:
            self.value += inc
            if self.value > _MAX_BYTES:
                raise InvalidRequestError(
                    f"{address:.200} has more than {_MAX_BYTES / 1e9:.0f} GB; download what is needed of it"
                )

    try:
        system.get_file(inner, str(target), callback=Limit())
    except SpeechLabError:
        raise
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, "there is no such file", address) from None
    except PermissionError:
        raise PermissionError(errno.EACCES, f"the store {_REFUSED[403]}", address) from None
    except IsADirectoryError:
        raise IsADirectoryError(errno.EISDIR, "it is a folder", address) from None
    except Exception as error:  # noqa: BLE001 - of any library, as fsspec promises no kinds
        status = getattr(error, "status", None)
        if status in _REFUSED:
            raise PermissionError(errno.EACCES, f"the server {_REFUSED[status]}", address) from None
        if type(error).__name__ in {"NoCredentialsError", "PartialCredentialsError"}:
            reason = "there are no credentials; for a public bucket set FSSPEC_S3_ANON=true"
            raise PermissionError(errno.EACCES, reason, address) from None
        if isinstance(error, TimeoutError):
            raise TimeoutError(errno.ETIMEDOUT, "the server did not answer in time", address) from None
        reason = " ".join(scrub(str(error)).split()) or type(error).__name__
        raise OSError(errno.EIO, f"{reason:.300}", address) from None
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder", address)
