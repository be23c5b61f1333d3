"""Child processes of this package: their messages over pipes, and the environment that they get."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable
from typing import IO, Any

import orjson

# Variables that a child process does not get.
_SECRET = re.compile("^SPEECHLAB_SERVICE_|KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)

# Lengths of the JSON and of the bytes after it.
HEAD = struct.Struct(">IQ")


def write_message(stream: IO[bytes], fields: dict[str, Any], data: bytes | memoryview = b"") -> None:
    head = orjson.dumps(fields)
    stream.write(HEAD.pack(len(head), len(data)) + head)
    stream.write(data)
    stream.flush()


def read_message(
    stream: IO[bytes], keep: Callable[[bytearray], None] | None = None
) -> tuple[dict[str, Any], bytearray] | None:
    """Read a message of :func:`write_message`, or give its bytes in blocks to ``keep``; None at the end."""
    head = _read_exact_bytes(stream, HEAD.size)
    if head is None:
        return None
    fields_length, data_length = HEAD.unpack(head)
    fields = _read_exact_bytes(stream, fields_length)
    while keep is not None and data_length > 0:
        block = _read_exact_bytes(stream, min(data_length, 1024 * 1024))
        if block is None:
            return None
        keep(block)
        data_length -= len(block)
    data = _read_exact_bytes(stream, data_length)
    if fields is None or data is None:
        return None
    return orjson.loads(fields), data


def _read_exact_bytes(stream: IO[bytes], length: int) -> bytearray | None:
    data = bytearray(length)
    view, filled = memoryview(data), 0
    while filled < length:
        count = stream.readinto(view[filled:])  # type: ignore[attr-defined]  # buffered and raw streams have it
        if not count:
            return None
        filled += count
    return data


def build_child_environment(**added: str) -> dict[str, str]:
    """Return the environment of this process without secrets, for a child that works on data of strangers."""
    return {name: value for name, value in os.environ.items() if not _SECRET.search(name)} | added
