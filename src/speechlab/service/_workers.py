"""Recordings of strangers are decoded in processes of their own, with limits of memory, processor and time.

A file that makes a decoder crash, spin or unfold without end then costs a worker, which is replaced, and its sender
an error. What comes back is plain samples. Workers start when they are first needed.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab.contract import ASR_UNAVAILABLE, NO_AUDIO, UNSUPPORTED_AUDIO
from speechlab.service._config import ENVIRONMENT_PREFIX
from speechlab.service._faults import Fault
from speechlab.service._logs import log
from speechlab.service._workers_child import read_message, write_message

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.service._config import ServiceConfig

__all__ = ["Decoders"]

_MODULE = "speechlab.service._workers_child"
_STOP_S = 2.0
_START_S = 60.0
_PIPE_BYTES = 1024 * 1024
_F_SETPIPE_SZ = 1031  # Linux's; not named before Python 3.10, nor on other systems
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True, slots=True)
class _Limits:
    memory_bytes: int
    cpu_s: float
    wall_s: float
    decoding: dict[str, Any]


class Decoders:
    """A few processes that decode.

    Args:
        config: How many, and within which limits.
    """

    def __init__(self, config: ServiceConfig) -> None:
        self._limits = _Limits(
            memory_bytes=config.decode_memory_bytes,
            cpu_s=config.decode_cpu_s,
            wall_s=config.decode_wall_s,
            decoding={
                "max_seconds": config.audio_seconds,
                "max_decoded_bytes": config.audio_decoded_bytes,
                "max_channels": config.audio_channels,
            },
        )
        self._free: queue.LifoQueue[_Worker] = queue.LifoQueue()
        self._all = [_Worker(self._limits) for _ in range(config.decode_workers)]
        for worker in self._all:
            self._free.put(worker)
        self._used_at = time.monotonic()

    @property
    def running(self) -> int:
        """How many of the processes there are now."""
        return sum(worker.running for worker in self._all)

    def decode(self, data: bytes, sample_rate: int) -> NDArray[np.float32]:
        """Decode a recording to one channel at a rate in Hz. Blocks; for worker threads.

        Raises:
            Fault: 400 for what cannot be decoded or is empty, 413 for what goes over a limit, 500 if no process can
                be started.
        """
        worker = self._free.get()
        try:
            return worker.decode(data, sample_rate)
        finally:
            self._used_at = time.monotonic()
            self._free.put(worker)

    def close_idle(self, idle_s: float) -> bool:
        """End processes that have had nothing to do for so long; whether there was one."""
        if time.monotonic() - self._used_at < idle_s:
            return False
        free = self._taken()
        ended = [worker.end() for worker in free]
        for worker in free:
            self._free.put(worker)
        return any(ended)

    def close(self) -> None:
        """End all of them, also those that work."""
        for worker in self._taken():
            worker.end()
        for worker in self._all:
            worker.kill()

    def _taken(self) -> list[_Worker]:
        """Take all that have nothing to do."""
        taken: list[_Worker] = []
        with contextlib.suppress(queue.Empty):
            while True:
                taken.append(self._free.get_nowait())
        return taken


class _Worker:
    """One process, which is replaced when it has ended; used by one thread at a time."""

    def __init__(self, limits: _Limits) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def decode(self, data: bytes, sample_rate: int) -> NDArray[np.float32]:
        process = self._started()
        reply, late = _asked(process, {"sample_rate": sample_rate}, data, within_s=self._limits.wall_s)
        if reply is None:
            raise self._ended(process, late=late)
        fields, samples = reply
        if fields.get("refused") == "memory":
            self.end()
        _check(fields, samples)
        return np.frombuffer(samples, dtype=np.float32)

    def kill(self) -> None:
        """End it from another thread; the one that waits for its answer clears it away."""
        if self._process is not None:
            self._process.kill()

    def end(self) -> bool:
        """End it; whether it ran."""
        process, self._process = self._process, None
        if process is None:
            return False
        # Its end is the end of its input; one that does not look there is killed.
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return True

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.end()
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(ENVIRONMENT_PREFIX)
        }
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", _MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**environment, **_ONE_THREAD},
            )
        except OSError as error:
            log("no process to decode in", level="error", error=type(error).__name__)
            raise _unavailable() from error
        _widen(process)
        self._process = process
        limits = {
            "memory_bytes": self._limits.memory_bytes,
            "cpu_s": self._limits.cpu_s,
            "decoding": self._limits.decoding,
        }
        ready, _ = _asked(process, limits, b"", within_s=_START_S)
        if ready is None:
            self.end()
            log("a decoding process did not start", level="error", status=process.returncode)
            raise _unavailable()
        return process

    def _ended(self, process: subprocess.Popen[bytes], *, late: bool) -> Fault:
        """What to say about a process that ended instead of answering."""
        self.end()
        status = process.returncode
        log("a decoding process ended", level="warning", status=status, late=late)
        if late:
            return _too_large(f"it took more than {self._limits.wall_s:g} s (decode_wall_s)")
        if os.name == "posix" and status == -signal.SIGXCPU:
            return _too_large(f"it took more than {self._limits.cpu_s:g} s of processor time (decode_cpu_s)")
        if os.name == "posix" and status == -signal.SIGKILL:
            return _too_large(f"there was not enough memory ({_allowed(self._limits.memory_bytes)})")
        return Fault("ErrInvalidRequest", UNSUPPORTED_AUDIO, "asr", "audio", short=True)


def _asked(
    process: subprocess.Popen[bytes], fields: dict[str, Any], data: bytes, *, within_s: float
) -> tuple[tuple[dict[str, Any], bytearray] | None, bool]:
    """Send a message and wait for the answer, which is None if the process ended; and whether it was too late."""
    assert process.stdin is not None
    assert process.stdout is not None
    late = threading.Event()

    def stop() -> None:
        late.set()
        process.kill()

    # Reading cannot be given a time on every system, but a process that is killed ends it everywhere.
    alarm = threading.Timer(within_s, stop)
    alarm.daemon = True
    alarm.start()
    try:
        write_message(process.stdin, fields, data)
        return read_message(process.stdout), late.is_set()
    except OSError:
        return None, late.is_set()
    finally:
        alarm.cancel()


def _check(fields: dict[str, Any], samples: bytearray) -> None:
    match fields.get("refused"):
        case "memory":
            raise _too_large("it took more memory than a recording may (decode_memory_bytes)")
        case "limit":
            raise Fault("ErrTooLarge", fields["message"], "asr", "audio")
        case "damaged":
            raise Fault("ErrInvalidRequest", UNSUPPORTED_AUDIO, "asr", "audio", short=True)
    if not samples:
        raise Fault("ErrInvalidRequest", NO_AUDIO, "asr", "audio", short=True)


def _too_large(reason: str) -> Fault:
    return Fault(
        "ErrTooLarge", f"the recording cannot be decoded within the limits: {reason}", "asr", "audio"
    )


def _allowed(memory_bytes: int) -> str:
    return f"decode_memory_bytes allows {memory_bytes // 2**20} MiB"


def _unavailable() -> Fault:
    return Fault("ErrInternal", ASR_UNAVAILABLE, "asr", "decoder")


def _widen(process: subprocess.Popen[bytes]) -> None:
    """Give its pipes more room where that can be done: fewer turns for a long recording."""
    if sys.platform == "linux":
        import fcntl

        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                fcntl.fcntl(stream.fileno(), _F_SETPIPE_SZ, _PIPE_BYTES)  # type: ignore[union-attr]
