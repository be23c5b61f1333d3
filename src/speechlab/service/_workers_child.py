"""The other side of ``_workers``: a process that decodes recordings, one after the other, within limits.

Run as ``python -m speechlab.service._workers_child``. It reads recordings from its standard input and writes samples
to its standard output; it knows no keys, opens no files and no sockets, and ends with its input.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import sys
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import orjson
import psutil

from speechlab.audio import DecodeLimits, decode, encode, resample
from speechlab.errors import AudioError, AudioLimitError

if sys.platform != "win32":  # where only the time that passes is limited
    import resource

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["HEAD", "read_message", "write_message"]

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


def main() -> None:
    """Work until the input ends."""
    # An interrupt at the terminal is for the service, which lets running requests finish.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source = os.fdopen(os.dup(0), "rb", buffering=0)
    sink = os.fdopen(os.dup(1), "wb")
    # Decoders that print something must not print it between the samples.
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    _warm_up()
    limits = read_message(source)
    if limits is None:
        return
    fields, _ = limits
    _limit_memory(fields["memory_bytes"])
    decoding = DecodeLimits(**fields["decoding"])
    write_message(sink, {"ready": True})
    while (message := read_message(source)) is not None:
        wanted, data = message
        _limit_cpu(fields["cpu_s"])
        try:
            reply, samples = _decode(bytes(data), decoding, wanted["sample_rate"])
        except MemoryError:
            # What is left of the attempt goes with the process.
            write_message(sink, {"refused": "memory"})
            return
        del message, data
        write_message(sink, reply, samples.data.cast("B") if len(samples) else b"")


def _decode(data: bytes, limits: DecodeLimits, rate: int) -> tuple[dict[str, Any], NDArray[np.float32]]:
    nothing = np.zeros(0, dtype=np.float32)
    try:
        clip = decode(data, limits)
        return {}, np.ascontiguousarray(resample(clip.to_mono().samples, clip.sample_rate, rate))
    except AudioLimitError as error:
        return {"refused": "limit", "message": error.message}, nothing
    except AudioError:
        return {"refused": "damaged"}, nothing


def _warm_up() -> None:
    """Load all libraries, so that the limit of memory counts what recordings take."""
    silence = np.zeros(4_800, dtype=np.float32)
    for name in ("wav", "flac", "ogg", "mp3"):
        clip = decode(encode(silence, name, 24_000))
        resample(clip.samples, clip.sample_rate, 16_000)


def _limit_memory(most: int) -> None:
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


def _limit_cpu(seconds: float) -> None:
    if sys.platform == "win32":
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    until = int(used.ru_utime + used.ru_stime + seconds) + 1
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (until, resource.getrlimit(resource.RLIMIT_CPU)[1]))


if __name__ == "__main__":
    main()
    os._exit(0)  # nothing is left to be tidied up, and whoever waits need not wait for it
