"""Whether the files of a model are whole: their sizes against their own tables of contents, without loading them.

An interrupted copy of a model otherwise fails at its first use, in words of the library that loads it.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from speechlab.engines._weights.onnx_header import read_onnx_header
from speechlab.errors import ModelError

# Numbers of values in a block of each type of GGUF, and its bytes. Of other types only the beginning is known.
_GGUF_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 36),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292),
    16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82),
    23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2),
    34: (256, 54), 35: (256, 66), 39: (32, 17),
}  # fmt: skip
# Formats of the values of GGUF's properties, by the numbers of their types; 8 is a text, 9 an array.
_GGUF_VALUES = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
_GGUF_TEXT, _GGUF_ARRAY = 8, 9
_GGUF_ALIGNMENT = 32
# More of anything is not in a model, but in a file that is none.
_MOST_ITEMS = 10_000_000
_MOST_DIMENSIONS = 8
_LENGTH = struct.Struct("<Q")
_AT_ONCE = 1 << 20


class _FormatError(Exception):
    """The bytes do not have the format, or end too early."""


def check_model_file(path: Path) -> None:
    """Refuse a file of a model that is not whole, by its name's ending; others are not looked at.

    Raises:
        ModelError: The file ends early, or has not the format of its ending.
    """
    if path.suffix == ".onnx":
        read_onnx_header(path)
        return
    check = _CHECKS.get(path.name) or _CHECKS.get(path.suffix)
    if check is None:
        return
    with path.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        try:
            is_whole = check(stream, size) <= size
        except (_FormatError, UnicodeDecodeError):
            is_whole = False
    if not is_whole:
        raise ModelError(f"{path.name} is not a whole model ({size:,} bytes): copy or download it again")


def _find_ctranslate2_end(stream: BinaryIO, size: int) -> int:
    """Return where a model.bin of CTranslate2 ends by its own account."""
    (version,) = _read(stream, "I")
    if not 1 <= version <= 99:
        raise _FormatError
    if version >= 2:
        _skip_text(stream, "H", size)
        _read(stream, "I")
    for _ in _count(stream, "I"):
        _skip_text(stream, "H", size)
        (rank,) = _read(stream, "B")
        _read(stream, f"{rank}I")
        kind, count = _read(stream, "BI")
        _skip(stream, count if version >= 4 else count * kind, size)
    if version >= 3:
        for _ in _count(stream, "I"):
            _skip_text(stream, "H", size)
            _skip_text(stream, "H", size)
    return stream.tell()


def _find_gguf_end(stream: BinaryIO, size: int) -> int:
    """Return where a GGUF file ends by its own account."""
    magic, version = _read(stream, "4sI")
    if magic != b"GGUF" or not 2 <= version <= 99:
        raise _FormatError
    tensors, properties = _read(stream, "QQ")
    if max(tensors, properties) > _MOST_ITEMS:
        raise _FormatError
    alignment = _GGUF_ALIGNMENT
    for _ in range(properties):
        name = _read_text(stream)
        value = _read_gguf_value(stream, size)
        if name == b"general.alignment" and value:
            alignment = value
    end = 0
    for _ in range(tensors):
        _skip_text(stream, "Q", size)
        (rank,) = _read(stream, "I")
        if rank > _MOST_DIMENSIONS:
            raise _FormatError
        values = 1
        for dimension in _read(stream, f"{rank}Q"):
            values *= dimension
        kind, offset = _read(stream, "IQ")
        block, block_bytes = _GGUF_BLOCKS.get(kind, (values or 1, 0))
        end = max(end, offset + values // block * block_bytes)
    head = stream.tell()
    return head + -head % alignment + end if tensors else head


def _read_gguf_value(stream: BinaryIO, size: int) -> int:
    """Read one value; numbers alone are returned."""
    (kind,) = _read(stream, "I")
    if kind == _GGUF_TEXT:
        _skip_text(stream, "Q", size)
        return 0
    if kind != _GGUF_ARRAY:
        (value,) = _read(stream, _get_gguf_format(kind))
        return int(value)
    item_kind, count = _read(stream, "IQ")
    if item_kind != _GGUF_TEXT:
        _skip(stream, struct.calcsize("<" + _get_gguf_format(item_kind)) * count, size)
        return 0
    _skip_texts(stream, count, size)
    return 0


def _get_gguf_format(kind: int) -> str:
    if kind not in _GGUF_VALUES:
        raise _FormatError
    return _GGUF_VALUES[kind]


def _check_json(stream: BinaryIO, size: int) -> int:
    try:
        json.loads(stream.read())
    except (ValueError, RecursionError):
        raise _FormatError from None
    return size


def _read(stream: BinaryIO, layout: str) -> tuple[Any, ...]:
    """Read numbers, little-endian and without gaps."""
    length = struct.calcsize("<" + layout)
    data = stream.read(length)
    if len(data) < length:
        raise _FormatError
    return struct.unpack("<" + layout, data)


def _count(stream: BinaryIO, layout: str) -> Iterator[int]:
    (count,) = _read(stream, layout)
    if count > _MOST_ITEMS:
        raise _FormatError
    return iter(range(count))


def _read_text(stream: BinaryIO) -> bytes:
    (length,) = _read(stream, "Q")
    if length > 1 << 16:
        raise _FormatError
    return stream.read(length)


def _skip_text(stream: BinaryIO, length_layout: str, size: int) -> None:
    (length,) = _read(stream, length_layout)
    _skip(stream, length, size)


def _skip_texts(stream: BinaryIO, count: int, size: int) -> None:
    """Skip the texts of an array, such as 260,000 words, which takes long one by one."""
    data, at = b"", 0
    for _ in range(count):
        if at + _LENGTH.size > len(data):
            data, at = data[at:] + stream.read(_AT_ONCE), 0
            if len(data) < _LENGTH.size:
                raise _FormatError
        at += _LENGTH.size + _LENGTH.unpack_from(data, at)[0]
        if at > len(data):
            _skip(stream, at - len(data), size)
            data, at = b"", 0
    stream.seek(at - len(data), os.SEEK_CUR)


def _skip(stream: BinaryIO, length: int, size: int) -> None:
    """Skip bytes, which must be there."""
    if stream.tell() + length > size:
        raise _FormatError
    stream.seek(length, os.SEEK_CUR)


_CHECKS = {"model.bin": _find_ctranslate2_end, ".gguf": _find_gguf_end, ".json": _check_json}
