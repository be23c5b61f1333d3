"""Worker processes: started on demand, asked one thing at a time, replaced when they have ended."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Literal

from speechlab.service._config.settings import ENVIRONMENT_PREFIX
from speechlab.service._logs import log
from speechlab.service._workers.child import OUT_OF_MEMORY, read_message, write_message

Answer = tuple[dict[str, Any], bytearray]
Reason = Literal["start", "time", "cpu", "memory", "killed", "ended"]

_STOP_S = 2.0
_START_S = 60.0
_PIPE_BYTES = 1024 * 1024
_F_SETPIPE_SZ = 1031  # Linux's; not named before Python 3.10, nor on other systems
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class WorkerFailed(Exception):  # noqa: N818 - said in the words of what was asked for
    """A worker that did not answer.

    Attributes:
        reason: No process could be started, or this one took too much time, processor time or memory, was killed
            (which a system does that runs out of memory), or ended in another way.
        status: Exit status of the process, if it ended.
    """

    def __init__(self, reason: Reason, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class Worker:
    """One process, which is replaced when it has ended; used by one thread at a time.

    Args:
        module: What it runs.
        limits: Its first message: its limits.
    """

    def __init__(self, module: str, limits: dict[str, Any]) -> None:
        self._module = module
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether there is a process now."""
        return self._process is not None and self._process.poll() is None

    def ask(self, fields: dict[str, Any], data: bytes, *, within_s: float) -> Answer:
        """Send a message and wait for the answer; starts the process if there is none. Blocks.

        Raises:
            WorkerFailed: There is no answer; the next message goes to a new process.
        """
        try:
            process = self._started()
        except OSError as error:
            raise WorkerFailed("start") from error
        answer, late = _asked(process, fields, data, within_s=within_s)
        if answer is not None and answer[0].get("failed") != OUT_OF_MEMORY:
            return answer
        self.end()
        if answer is not None:
            raise WorkerFailed("memory")
        raise WorkerFailed("time" if late else _reason(process.returncode), process.returncode)

    def start(self) -> None:
        """Start the process now, if there is none. Blocks for a second or more.

        Raises:
            OSError: It cannot be started.
        """
        self._started()

    def kill(self) -> None:
        """Kill it from another thread; the one that waits for its answer cleans up."""
        if self._process is not None:
            self._process.kill()

    def end(self) -> bool:
        """End it; whether it ran."""
        process, self._process = self._process, None
        if process is None:
            return False
        # A worker ends at the end of its input; one that hangs is killed.
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
        process = subprocess.Popen(
            [sys.executable, "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**environment, **_ONE_THREAD},
        )
        _widen(process)
        self._process = process
        ready, _ = _asked(process, self._limits, b"", within_s=_START_S)
        if ready is None:
            self.end()
            message = f"{self._module} ended with the status {process.returncode}"
            raise OSError(message)
        return process


class Pool:
    """A few workers of one kind, each used by one thread at a time.

    Args:
        count: How many.
        module: What they run.
        limits: The first message to each.
        within_s: How long an answer may take.
    """

    def __init__(self, count: int, module: str, limits: dict[str, Any], *, within_s: float) -> None:
        self._module = module
        self._within_s = within_s
        self._free: queue.LifoQueue[Worker] = queue.LifoQueue()
        self._all = [Worker(module, limits) for _ in range(count)]
        for worker in self._all:
            self._free.put(worker)
        self._used_at = time.monotonic()

    @property
    def running(self) -> int:
        """How many of the processes there are now."""
        return sum(worker.running for worker in self._all)

    def start(self) -> None:
        """Start one of the processes now, which is the next to be asked. Blocks for a second or more.

        Raises:
            OSError: It cannot be started.
        """
        worker = self._free.get()
        try:
            worker.start()
        finally:
            self._free.put(worker)

    def ask(self, fields: dict[str, Any], data: bytes) -> Answer:
        """Send a message to a free worker, once there is one, and wait for the answer. Blocks.

        Raises:
            WorkerFailed: There is no answer; it is logged.
        """
        worker = self._free.get()
        try:
            return worker.ask(fields, data, within_s=self._within_s)
        except WorkerFailed as failure:
            level = "error" if failure.reason == "start" else "warning"
            reason, status, size = failure.reason, failure.status, len(data)
            log("a worker failed", level=level, kind=self._module, reason=reason, status=status, bytes=size)
            raise
        finally:
            self._used_at = time.monotonic()
            self._free.put(worker)

    def close_idle(self, idle_s: float) -> bool:
        """End processes that have been idle for so long; whether there was one."""
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

    def _taken(self) -> list[Worker]:
        """Take all that are free."""
        taken: list[Worker] = []
        with contextlib.suppress(queue.Empty):
            while True:
                taken.append(self._free.get_nowait())
        return taken


def _reason(status: int | None) -> Reason:
    if os.name == "posix" and status == -signal.SIGPROF:
        return "cpu"
    if os.name == "posix" and status == -signal.SIGKILL:
        return "killed"
    return "ended"


def _asked(
    process: subprocess.Popen[bytes], fields: dict[str, Any], data: bytes, *, within_s: float
) -> tuple[Answer | None, bool]:
    """Send a message; returns the answer, or None if the process ended, and whether it was killed as too late."""
    assert process.stdin is not None
    assert process.stdout is not None
    late = threading.Event()

    def stop() -> None:
        late.set()
        process.kill()

    # Reading a pipe has no timeout on some systems, but killing the process ends it on all.
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


def _widen(process: subprocess.Popen[bytes]) -> None:
    """Enlarge its pipes where the system can: a long recording then takes fewer switches."""
    if sys.platform == "linux":
        import fcntl

        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                fcntl.fcntl(stream.fileno(), _F_SETPIPE_SZ, _PIPE_BYTES)  # type: ignore[union-attr]
