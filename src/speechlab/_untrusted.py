"""What comes from strangers as files: one rule each for names, paths and sizes.

A report, a store, a page or a table may be anybody's. A name in it is a pattern, a path stays inside its folder after
links are resolved, and what is unpacked has a limit. Each function is called where such a value is read, before it
names a file or takes memory.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import orjson

from speechlab._files import open_regular_file
from speechlab.errors import InvalidRequestError

_NAME = re.compile(r"[\w-]{1,100}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SUFFIX = re.compile(r"(?:\.\w{1,20})?")
# Tables and manifests shrink to a fifth to a twentieth; a bomb to a thousandth.
_FREE_BYTES = 16 << 20
_MAX_RATIO = 40
# Words with times of twelve hours have a million.
_MAX_VALUES = 1_500_000
_VALUES_PER_BYTE = 8  # of a packed text; ours have one at most
_MAX_LINES = 200_000  # of a packed text; where it has more, each takes a packed byte at least
# The preset of lzma.compress needs 9 MiB to unpack; a header may ask for 4 GiB.
_LZMA_BYTES = 64 << 20


def is_valid_name(text: object) -> bool:
    """Return whether a text can be the name of a table: letters, digits, underscores and hyphens."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def is_digest(text: object) -> bool:
    """Return whether a text is a SHA-256 in hexadecimal."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


def is_suffix(text: object) -> bool:
    """Return whether a text is the suffix of a file, with its dot, or empty."""
    return isinstance(text, str) and _SUFFIX.fullmatch(text) is not None


def find_path_inside(folder: Path, name: object) -> Path | None:
    """Return the path of a name in a folder; None if that is outside, also by a link."""
    if not isinstance(name, str | os.PathLike):
        return None
    try:
        path = folder / name
        inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # too long, a NUL, links in a circle
        return None
    return path if inside else None


def compute_max_unpacked(packed_bytes: int) -> int:
    """Return how many bytes a packed file may unpack to."""
    return max(_FREE_BYTES, _MAX_RATIO * packed_bytes)


def check_unpacked_size(name: str, size: int, packed_bytes: int) -> None:
    """Refuse what takes more memory than a packed file may; raises InvalidRequestError."""
    if size > (limit := compute_max_unpacked(packed_bytes)):
        raise _build_unpack_size_error(name, limit)


@contextmanager
def open_maybe_gzip(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, unpacked if its name ends in ``.gz``; reading beyond the limit raises InvalidRequestError."""
    with open_regular_file(path) as stream:
        if path.suffix.lower() != ".gz":
            yield stream
            return
        limit = compute_max_unpacked(os.fstat(stream.fileno()).st_size)
        with gzip.GzipFile(fileobj=stream) as packed:
            yield io.BufferedReader(_Limited(packed, limit, path.name), 1 << 20)


def unpack_lzma(data: bytes) -> bytes:
    """Unpack what ``lzma.compress`` made; more than the limit raises InvalidRequestError."""
    limit = compute_max_unpacked(len(data))
    unpacked = lzma.LZMADecompressor(memlimit=_LZMA_BYTES).decompress(data, limit + 1)
    if len(unpacked) > limit:
        raise _build_unpack_size_error("it", limit)
    return unpacked


def check_packed_text(name: str, data: bytes, packed_bytes: int) -> None:
    """Refuse an unpacked text of more lines, or JSON of more values, than memory; raises ValueError."""
    limit = max(_MAX_LINES, packed_bytes)
    if data.count(b"\n") > limit:
        raise ValueError(
            f"it has more than {limit:,} lines, more than its packed bytes; if you trust it, unpack it first"
        )
    if name.lower().removesuffix(".gz").endswith((".json", ".jsonl")):
        _check_json_size(data, packed_bytes)


def load_json(data: bytes | str, packed_bytes: int = 0) -> Any:
    """Parse JSON; a ValueError if it has more values than memory."""
    _check_json_size(data, packed_bytes)
    return orjson.loads(data)


def _check_json_size(data: bytes | str, packed_bytes: int) -> None:
    """Refuse JSON with too many values: brackets take twenty times their size in memory."""
    limit = max(_MAX_VALUES, _VALUES_PER_BYTE * packed_bytes)
    if len(data) > limit and _count_values(data) > limit:
        raise ValueError(f"the JSON has more than {limit:,} values")


def _count_values(data: bytes | str) -> int:
    """Return how many values, names of fields included, a JSON text has at most."""
    if isinstance(data, str):
        return sum(map(data.count, "[{,:"))
    return sum(map(data.count, (b"[", b"{", b",", b":")))


class _Limited(io.RawIOBase):
    """A stream that ends in an error after a number of bytes."""

    def __init__(self, stream: gzip.GzipFile, limit: int, name: str) -> None:
        self._stream, self._limit, self._name, self._read = stream, limit, name, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        count = self._stream.readinto(buffer)
        self._read += count
        if self._read > self._limit:
            raise _build_unpack_size_error(self._name, self._limit)
        return count


def _build_unpack_size_error(name: str, limit: int) -> InvalidRequestError:
    return InvalidRequestError(
        f"{name} unpacks to more than {limit / 1e6:,.0f} MB, {_MAX_RATIO} times its size, as files do that are made "
        "to fill the memory; if you trust it, unpack it first"
    )
