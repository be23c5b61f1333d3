"""The worker's side of a worker process: its messages, and the limits that it sets itself.

A worker reads from its standard input and writes to its standard output. It knows no keys, opens no sockets, writes
no files, and ends with its input.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import IO, Any, NoReturn

import psutil

from speechlab._children import read_message, write_message

if sys.platform != "win32":  # where only the elapsed time is limited
    import resource

# Answers a message: fields and bytes in, fields and bytes out.
Work = Callable[[dict[str, Any], bytearray], tuple[dict[str, Any], "bytes | memoryview"]]

# The failure of a worker that reached its limit of memory.
OUT_OF_MEMORY = "memory"


def answer_messages(prepare: Callable[[dict[str, Any]], Work]) -> NoReturn:
    """Answer messages until the input ends, and end the process."""
    source, sink = _take_over_pipes()
    first = read_message(source)
    if first is not None:
        limits, _ = first
        work = prepare(limits)
        _limit_memory(limits["memory_bytes"])
        write_message(sink, {"ready": True})
        while (message := read_message(source)) is not None:
            _limit_cpu_time(limits["cpu_s"])
            try:
                fields, data = work(*message)
            except MemoryError:
                # The process ends, and its memory with it.
                write_message(sink, {"failed": OUT_OF_MEMORY})
                break
            _limit_cpu_time(0)  # no limit while it waits
            del message
            write_message(sink, fields, data)
    os._exit(0)  # nothing has to be cleaned up, and the service may be waiting for the end


def _take_over_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Take standard input and output for messages; output of libraries is discarded."""
    # A signal to all processes of a terminal or a unit is for the service, which lets requests under way finish.
    for name in {"SIGINT", "SIGTERM", "SIGHUP"} & set(signal.Signals.__members__):
        signal.signal(signal.Signals[name], signal.SIG_IGN)
    source = os.fdopen(os.dup(0), "rb", buffering=0)
    sink = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    return source, sink


def _limit_memory(max_bytes: int) -> None:
    if sys.platform == "win32":
        return
    used_bytes = psutil.Process().memory_info().vms
    # Some systems have these limits but do not allow setting them; the other limits still apply there.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (used_bytes + max_bytes, used_bytes + max_bytes))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _limit_cpu_time(max_s: float) -> None:
    """Limit further processor time to ``max_s``, 0 for no limit. SIGPROF, which is not handled, ends the process."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, max_s)
