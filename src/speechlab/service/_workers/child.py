"""What the service's worker processes share on their side: the messages, and the limits that they set themselves.

A worker reads from its standard input and writes to its standard output; it knows no keys, opens no sockets and
writes no files, and ends with its input.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import sys
from typing import IO, Any

import orjson
import psutil

if sys.platform != "win32":  # where only the time that passes is limited
    import resource

HEAD = struct.Struct(">IQ")
"""Lengths of the JSON and of the bytes that follow it."""


def write_message(stream: IO[bytes], fields: dict[str, Any], data: bytes | memoryview = b"") -> None:
    """Write some fields and the bytes that belong to them."""
    head = orjson.dumps(fields)
    stream.write(HEAD.pack(len(head), len(data)) + head)
    stream.write(data)
    stream.flush()


def read_message(stream: IO[bytes]) -> tuple[dict[str, Any], bytearray] | None:
    """Read what :func:`write_message` wrote; None at the end of the stream."""
    head = _read(stream, HEAD.size)
    if head is None:
        return None
    fields_length, data_length = HEAD.unpack(head)
    fields, data = _read(stream, fields_length), _read(stream, data_length)
    if fields is None or data is None:
        return None
    return orjson.loads(fields), data


def _read(stream: IO[bytes], length: int) -> bytearray | None:
    data = bytearray(length)
    view, filled = memoryview(data), 0
    while filled < length:
        count = stream.readinto(view[filled:])  # type: ignore[attr-defined]  # buffered and raw streams have it
        if not count:
            return None
        filled += count
    return data


def own_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Take standard input and output for messages; what libraries print goes nowhere."""
    # An interrupt at the terminal is for the service, which lets running requests finish.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source = os.fdopen(os.dup(0), "rb", buffering=0)
    sink = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    return source, sink


def limit_memory(most: int) -> None:
    """Allow so many bytes beside those that are taken already; called when all libraries are loaded."""
    if sys.platform == "win32":
        return
    own = psutil.Process().memory_info().vms
    # Some systems know these limits and do not let them be set; the other limits still hold there.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (own + most, own + most))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def limit_cpu(seconds: float) -> None:
    """Allow so many seconds of processor time from now on; one more ends the process."""
    if sys.platform == "win32":
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    until = int(used.ru_utime + used.ru_stime + seconds) + 1
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (until, resource.getrlimit(resource.RLIMIT_CPU)[1]))
