"""Worker processes that read untrusted recordings and texts, with limits of memory, processor time and time.

They are started on demand, used for one message at a time, and replaced after their end. A file that makes a decoder
crash, loop or expand without end costs one worker, and its sender gets an error; so does a text. Each language
has its own reader, since the dictionaries are large and take seconds to load; the service's own interpreter lock is
free while texts are read.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

from speechlab._children import build_child_environment, read_message, write_message
from speechlab.contract import ASR_UNAVAILABLE, NO_AUDIO, UNSUPPORTED_AUDIO
from speechlab.errors import EngineError, MissingDependencyError
from speechlab.service._faults import Fault
from speechlab.service._logs import log
from speechlab.service._workers.child import OUT_OF_MEMORY

if TYPE_CHECKING:
    from speechlab.service._config import ServiceConfig
    from speechlab.service._held_bytes import HeldBytes

Answer = tuple[dict[str, Any], bytearray]
Reason = Literal["start", "time", "cpu", "memory", "killed", "ended"]

_START_S = 60.0
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class WorkerFailed(Exception):  # noqa: N818 - reported in terms of the request
    """A worker that sent no reply."""

    def __init__(self, reason: Reason, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class Worker:
    """One process, which is replaced after its end; used by one thread at a time."""

    def __init__(self, module: str, limits: dict[str, Any]) -> None:
        self._module = module
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def send_and_wait(
        self, fields: dict[str, Any], data: bytes | memoryview, kept: HeldBytes | None, *, within_s: float
    ) -> Answer:
        """Send a message and wait for the reply; starts the process if necessary. Blocks."""
        try:
            process = self.start_process_if_needed()
        except OSError as error:
            raise WorkerFailed("start") from error
        try:
            answer, late = _exchange_message(process, fields, data, kept, within_s=within_s)
        except BaseException:
            self.end_process()  # a part of the reply is still in the pipe
            raise
        if answer is not None and answer[0].get("failed") != OUT_OF_MEMORY:
            return answer
        self.end_process()
        if answer is not None:
            raise WorkerFailed("memory")
        raise WorkerFailed("time" if late else _classify_exit_status(process.returncode), process.returncode)

    def kill_process(self) -> None:
        """Kill the process from another thread; the thread that waits for its reply cleans up."""
        if self._process is not None:
            self._process.kill()

    def end_process(self) -> bool:
        process, self._process = self._process, None
        if process is None:
            return False
        # A worker ends at the end of its input; a hanging one is killed.
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        try:
            process.wait(2.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return True

    def start_process_if_needed(self) -> subprocess.Popen[bytes]:
        """Start the process now, if it does not run. Blocks for a second or more."""
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.end_process()
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", self._module],  # -P: a module of the working folder is a stranger's
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=build_child_environment(**_ONE_THREAD),
        )
        self._process = process
        ready, _ = _exchange_message(process, self._limits, b"", None, within_s=_START_S)
        if ready is None:
            self.end_process()
            raise OSError(f"{self._module} ended with the status {process.returncode}")
        return process


class Pool:
    """A few workers of one kind, each used by one thread at a time."""

    def __init__(self, count: int, module: str, limits: dict[str, Any], *, within_s: float) -> None:
        self._module = module
        self._within_s = within_s
        self._free: queue.LifoQueue[Worker] = queue.LifoQueue()
        self._all = [Worker(module, limits) for _ in range(count)]
        for worker in self._all:
            self._free.put(worker)
        self._used_at = time.monotonic()
        self._closed = False

    @property
    def running_count(self) -> int:
        """Number of processes that run."""
        return sum(worker.is_running for worker in self._all)

    def start_one(self) -> None:
        """Start one of the processes now, which will get the next message. Blocks for a second or more."""
        worker = self._free.get()
        try:
            worker.start_process_if_needed()
        finally:
            self._free.put(worker)

    def send_and_wait(
        self, fields: dict[str, Any], load: Callable[[], bytes | memoryview], kept: HeldBytes | None = None
    ) -> Answer:
        """Send a message to a free worker, as soon as there is one, and wait for the reply. Blocks.

        A message whose worker the system killed, as if memory runs out, is tried once more.
        """
        worker, tries = self._free.get(), 0
        try:
            data = load()
            while True:
                try:
                    return worker.send_and_wait(fields, data, kept, within_s=self._within_s)
                except WorkerFailed as failure:
                    tries += 1
                    reason, status, size = failure.reason, failure.status, len(data)
                    level = "error" if reason == "start" else "warning"
                    log(
                        "a worker failed",
                        level=level,
                        kind=self._module,
                        reason=reason,
                        status=status,
                        bytes=size,
                    )
                    if self._closed or reason != "killed" or tries > 1 or (kept is not None and kept.size):
                        raise
        finally:
            self._used_at = time.monotonic()
            self._free.put(worker)

    def end_idle_processes(self, idle_s: float) -> bool:
        """End processes that have been idle for this long; return whether there were any."""
        if time.monotonic() - self._used_at < idle_s:
            return False
        free = self._take_free_workers()
        ended = [worker.end_process() for worker in free]
        for worker in free:
            self._free.put(worker)
        return any(ended)

    def close(self) -> None:
        self._closed = True
        for worker in self._take_free_workers():
            worker.end_process()
        for worker in self._all:
            worker.kill_process()

    def _take_free_workers(self) -> list[Worker]:
        workers: list[Worker] = []
        with contextlib.suppress(queue.Empty):
            while True:
                workers.append(self._free.get_nowait())
        return workers


def _classify_exit_status(status: int | None) -> Reason:
    if os.name == "posix" and status == -signal.SIGPROF:
        return "cpu"
    if os.name == "posix" and status == -signal.SIGKILL:
        return "killed"
    return "ended"


def _exchange_message(
    process: subprocess.Popen[bytes],
    fields: dict[str, Any],
    data: bytes | memoryview,
    kept: HeldBytes | None,
    *,
    within_s: float,
) -> tuple[Answer | None, bool]:
    """Send a message; return the reply, or None if the process ended, and whether it was killed after the timeout."""
    assert process.stdin is not None
    assert process.stdout is not None
    late = threading.Event()

    def kill_late() -> None:
        late.set()
        process.kill()

    # Some systems have no timeout for reading a pipe, but killing the process ends the read on all of them.
    alarm = threading.Timer(within_s, kill_late)
    alarm.daemon = True
    alarm.start()
    try:
        write_message(process.stdin, fields, data)
        return read_message(process.stdout, kept.write if kept is not None else None), late.is_set()
    except OSError:
        return None, late.is_set()
    finally:
        alarm.cancel()


_DECODING_MODULE = "speechlab.service._workers.decoding_child"
_LIMIT = re.compile(r"DecodeLimits\.max_(seconds|decoded_bytes)")


class Decoders(Pool):
    """Processes that decode recordings."""

    def __init__(self, config: ServiceConfig) -> None:
        self._memory_bytes = config.decode_memory_bytes
        seconds = config.audio_seconds
        size = max(1, round(seconds * 224_000))  # somewhat above 48 kHz mono
        decoding = {"max_seconds": seconds, "max_decoded_bytes": size, "max_channels": 8}
        decoding["max_expansion"] = size  # no limit: the process has those of memory and time
        limits = {"memory_bytes": self._memory_bytes, "cpu_s": config.decode_wall_s, "decoding": decoding}
        super().__init__(config.decode_workers, _DECODING_MODULE, limits, within_s=config.decode_wall_s)

    def decode_into(self, recording: HeldBytes, samples: HeldBytes, sample_rate: int) -> None:
        """Decode a recording to one channel of 32-bit floats at a rate in Hz. Blocks; for worker threads."""
        try:
            fields, _ = self.send_and_wait({"sample_rate": sample_rate}, recording.view, samples)
        except WorkerFailed as failure:
            raise self._build_decode_fault(failure) from failure
        match fields.get("refused"):
            case "limit":
                raise Fault("ErrTooLarge", _LIMIT.sub("audio_seconds", fields["message"]), "asr", "audio")
            case "damaged":
                raise Fault("ErrInvalidRequest", UNSUPPORTED_AUDIO, "asr", "audio", short=True)
        if not samples.size:
            raise Fault("ErrInvalidRequest", NO_AUDIO, "asr", "audio", short=True)

    def _build_decode_fault(self, failure: WorkerFailed) -> Fault:
        match failure.reason:
            case "start":
                return Fault("ErrInternal", ASR_UNAVAILABLE, "asr", "decoder")
            case "time" | "cpu":
                return _build_too_large_fault(f"it took more than {self._within_s:g} s (decode_wall_s)")
            case "memory":
                return _build_too_large_fault("it took more memory than allowed (decode_memory_bytes)")
            case "killed":
                allowed = f"decode_memory_bytes allows {self._memory_bytes // 2**20} MiB"
                return _build_too_large_fault(f"there was not enough memory ({allowed})")
        return Fault("ErrInvalidRequest", UNSUPPORTED_AUDIO, "asr", "audio", short=True)


def _build_too_large_fault(reason: str) -> Fault:
    return Fault(
        "ErrTooLarge", f"the recording cannot be decoded within the limits: {reason}", "asr", "audio"
    )


_READING_MODULE = "speechlab.service._workers.reading_child"
_WARM_UP_TEXTS = {
    # British English has its own dictionary, loaded for voices that need it.
    "english": {"english": "Ready."},
    "japanese": {"japanese": "準備。", "labels": "準備。"},
}
_LANGUAGES = {"en": "english", "ja": "japanese"}


class Readers:
    """A :class:`~speechlab.engines.Reader` that reads in other processes."""

    def __init__(self, config: ServiceConfig) -> None:
        limits = {"memory_bytes": config.read_memory_bytes, "cpu_s": config.read_wall_s}
        self._within_s = config.read_wall_s
        self._pools = {
            language: Pool(
                config.read_workers, _READING_MODULE, {**limits, "warm": warm}, within_s=self._within_s
            )
            for language, warm in _WARM_UP_TEXTS.items()
        }

    @property
    def running_count(self) -> int:
        """Number of processes that run."""
        return sum(pool.running_count for pool in self._pools.values())

    def start_for_languages(self, languages: Iterable[str]) -> None:
        """Start one process for each of these languages (``en``, ``ja``) now. Blocks for seconds."""
        for code in languages:
            if code in _LANGUAGES:
                self._pools[_LANGUAGES[code]].start_one()

    def end_idle_processes(self, idle_s: float) -> bool:
        """End the processes of languages that have been idle for this long; return whether there were any."""
        ended = [pool.end_idle_processes(idle_s) for pool in self._pools.values()]
        return any(ended)

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()

    def english(self, text: str, *, british: bool = False) -> str:
        return str(self._request_reading("english", "british" if british else "english", text))

    def japanese(self, text: str) -> str:
        return str(self._request_reading("japanese", "japanese", text))

    def labels(self, text: str) -> list[str]:
        return [str(label) for label in self._request_reading("japanese", "labels", text)]

    def _request_reading(self, language: str, way: str, text: str) -> Any:
        try:
            fields, _ = self._pools[language].send_and_wait({"way": way}, text.encode)
        except WorkerFailed as failure:
            if failure.reason == "start":
                message = "the process that reads texts cannot be started"
                raise EngineError(message) from failure
            reason = {
                "time": f"it took more than {self._within_s:g} s (read_wall_s)",
                "memory": "it took more memory than allowed (read_memory_bytes)",
            }.get(failure.reason, "the process that read it ended; the log has the reason")
            message = f"a piece of {len(text)} characters cannot be read aloud: {reason}"
            raise EngineError(message) from failure
        if "missing" in fields:
            raise MissingDependencyError(fields["missing"])
        if "failed" in fields:
            raise EngineError(fields["failed"])
        return fields["read"]
