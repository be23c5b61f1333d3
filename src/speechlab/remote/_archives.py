"""Archives, zip and tar: the names of their files, and the bytes of one, within the limits of packed files."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import tarfile
import weakref
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple, Self, cast

from speechlab._untrusted import check_unpacked_size, compute_max_unpacked
from speechlab.errors import InvalidRequestError

_TARS = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
_PACKERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
_BLOCK = 1 << 20
_MAX_FILES = 500_000  # of a tar: each takes a third of a kilobyte of memory; in a zip it is twice that
_ENTRY = b"PK\x01\x02"  # begins each entry of a zip's directory
_MAX_ENTRY_BYTES = 200  # as mean of a directory: 46, and a name
_MAX_HEADER_BYTES = 1 << 16
# Headers with a long name or further fields for the file behind them, which are read at once.
_LONG_HEADERS = (
    tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE,
)  # fmt: skip
_SPARSE_CONTINUES = 482  # the byte of a header that says so
# What a library raises for an archive that is damaged, encrypted, or packed as it does not know.
_FAULTS = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, ValueError, RuntimeError, OSError,
)  # fmt: skip


def find_archive_kind(name: str) -> str | None:
    """Return whether a name is that of a ``zip`` or a ``tar``; None for others."""
    lower = name.lower()
    return "zip" if lower.endswith(".zip") else "tar" if lower.endswith(_TARS) else None


def list_names(archive: Path, kind: str, shown: str) -> list[str]:
    """Return the names of the files in an archive, in its order."""
    with _name_faults(shown):
        opened = _open_archive(archive, kind, *_stamp(archive))
        return [name for name, info in opened.files.items() if name and info is not None]


def read_files(archive: Path, kind: str, names: Iterable[str], shown: str) -> Iterator[tuple[str, bytes]]:
    """Yield the names and bytes of small files of an archive, such as texts."""
    with _name_faults(shown):
        opened = _open_archive(archive, kind, *_stamp(archive))
        total = 0
        for name in names:
            info = opened.files[name]
            size = info.file_size if kind == "zip" else info.size
            check_unpacked_size(f"{name} in {shown}", size, 0)
            check_unpacked_size(shown, total := total + size, archive.stat().st_size)
            with opened.open(info) as stream:
                yield name, stream.read(size)


def extract_file(archive: Path, kind: str, name: str, shown: str, target: Path) -> None:
    """Write a file of an archive to a path.

    Raises:
        FileNotFoundError: The archive has no such file.
        InvalidRequestError: It unpacks to more than a packed file may.
        OSError: The archive is damaged, or asks for a password.
    """
    with _name_faults(shown):
        opened = _open_archive(archive, kind, *_stamp(archive))
        info = opened.files.get(name)
        if info is None:
            raise FileNotFoundError(errno.ENOENT, "the archive has no such file", shown)
        size = info.file_size if kind == "zip" else info.size
        check_unpacked_size(shown, size, info.compress_size if kind == "zip" else size)
        with opened.open(info) as stream, target.open("wb") as out:
            _copy(stream, out, size)
            if out.tell() < size:
                raise EOFError(f"it ends {size - out.tell():,} bytes early")


def is_packed(archive: Path) -> bool:
    """Return whether a tar is packed as a whole, so that it has to be unpacked to find its files."""
    with archive.open("rb") as stream:
        return stream.read(5).startswith(tuple(_PACKERS))


def unpack_tar(archive: Path, shown: str, target: Path) -> None:
    """Write the tar in a packed file to a path; more than a packed file may hold is an InvalidRequestError."""
    limit = compute_max_unpacked(archive.stat().st_size)
    with _name_faults(shown):
        with archive.open("rb") as stream:
            head = stream.read(5)
        unpack = next(opener for magic, opener in _PACKERS.items() if head.startswith(magic))
        with unpack(archive) as packed, target.open("wb") as out:
            _copy(packed, out, limit + 1)
            check_unpacked_size(shown, out.tell(), archive.stat().st_size)


class _TarHeader(tarfile.TarInfo):
    """A header of a tar, which takes no more memory than names do."""

    @classmethod
    def frombuf(cls, buf: Any, encoding: str, errors: str) -> Self:
        found = super().frombuf(buf, encoding, errors)
        if found.type in _LONG_HEADERS and found.size > _MAX_HEADER_BYTES:
            raise ValueError(f"it has a name or fields of {found.size:,} bytes")
        if found.type == tarfile.GNUTYPE_SPARSE and buf[_SPARSE_CONTINUES]:
            raise ValueError("it has a file with many holes, which is no recording")
        return found


class _Place(NamedTuple):
    """Where a file of a tar is in it."""

    offset_data: int
    size: int


class _ZipFile(io.FileIO):
    """The file of a zip, whose directory is read at once and takes no more memory than names do."""

    def read(self, size: int | None = -1, /) -> bytes:
        most = _MAX_FILES // 2
        data = super().read(-1 if size is None else min(size, most * _MAX_ENTRY_BYTES + 1))
        if len(data) > most * _MAX_ENTRY_BYTES or data.count(_ENTRY) > most:
            raise ValueError(f"it has more than {most:,} files, or very long names; give a part of it")
        return data


class _Archive:
    """An open archive with its files by name; of several of one name the last counts, as when it is unpacked."""

    def __init__(self, path: Path, kind: str) -> None:
        self._path = path
        self._zip = None
        self.files: dict[str, Any] = {}
        if kind == "zip":
            file = _ZipFile(path)
            weakref.finalize(self, file.close)
            self._zip = zipfile.ZipFile(cast("IO[bytes]", file))
            self.files = {
                _to_member(info.filename): info for info in self._zip.infolist() if not info.is_dir()
            }
            return
        with tarfile.open(path, "r:", tarinfo=_TarHeader) as tar:
            reader: Any = tar
            while (info := tar.next()) is not None:
                reader.members = []  # it keeps all that it has read
                if info.isreg() and not info.issparse():
                    self.files[_to_member(info.name)] = _Place(info.offset_data, info.size)
                if len(self.files) > _MAX_FILES:
                    raise ValueError(f"it has more than {_MAX_FILES:,} files; give a part of it")

    def open(self, info: Any) -> IO[bytes]:
        """Open a file."""
        if self._zip is not None:
            return self._zip.open(info)
        stream = self._path.open("rb")
        stream.seek(info.offset_data)
        return stream


def _to_member(name: str) -> str:
    """Return the name of a file as an address has it."""
    return name.removeprefix("./").lstrip("/")


@lru_cache(maxsize=8)
def _open_archive(path: Path, kind: str, _size: int, _changed: int) -> _Archive:
    return _Archive(path, kind)


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _copy(source: IO[bytes], target: IO[bytes], size: int) -> None:
    """Copy at most ``size`` bytes."""
    while size > 0 and (data := source.read(min(_BLOCK, size))):
        target.write(data)
        size -= len(data)


@contextmanager
def _name_faults(shown: str) -> Iterator[None]:
    """Raise faults of an archive as an OSError that names the file."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError, InvalidRequestError):
        raise
    except _FAULTS as error:
        raise OSError(errno.EIO, f"the archive cannot be read: {error}", shown) from None
