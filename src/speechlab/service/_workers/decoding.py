"""Recordings of strangers are decoded in processes of their own, with limits of memory, processor and time.

A file that makes a decoder crash, spin or unfold without end then costs a worker, which is replaced, and its sender
an error. What comes back is plain samples. Workers start when they are first needed.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab.contract import ASR_UNAVAILABLE, NO_AUDIO, UNSUPPORTED_AUDIO
from speechlab.service._faults import Fault
from speechlab.service._logs import log
from speechlab.service._workers.pool import Pool

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.service._config import ServiceConfig

_MODULE = "speechlab.service._workers.decoding_child"
_SETTINGS = {
    "max_seconds": "audio_seconds",
    "max_decoded_bytes": "audio_decoded_bytes",
    "max_channels": "audio_channels",
}
"""Settings by the limit of decoding that they set."""


class Decoders:
    """A few processes that decode.

    Args:
        config: How many, and within which limits.
    """

    def __init__(self, config: ServiceConfig) -> None:
        self._memory_bytes = config.decode_memory_bytes
        self._cpu_s = config.decode_cpu_s
        self._wall_s = config.decode_wall_s
        decoding = {limit: getattr(config, setting) for limit, setting in _SETTINGS.items()}
        limits = {"memory_bytes": self._memory_bytes, "cpu_s": self._cpu_s, "decoding": decoding}
        self._pool = Pool(config.decode_workers, _MODULE, limits)

    @property
    def running(self) -> int:
        """How many of the processes there are now."""
        return self._pool.running

    def decode(self, data: bytes, sample_rate: int) -> NDArray[np.float32]:
        """Decode a recording to one channel at a rate in Hz. Blocks; for worker threads.

        Raises:
            Fault: 400 for what cannot be decoded or is empty, 413 for what goes over a limit, 500 if no process can
                be started.
        """
        with self._pool.worker() as worker:
            try:
                answer, status, late = worker.ask({"sample_rate": sample_rate}, data, within_s=self._wall_s)
            except OSError as error:
                log("no process to decode in", level="error", error=type(error).__name__)
                raise Fault("ErrInternal", ASR_UNAVAILABLE, "asr", "decoder") from error
            if answer is None:
                raise self._ended(status, late=late)
            fields, samples = answer
            if fields.get("refused") == "memory":
                worker.end()
        _check(fields, samples)
        return np.frombuffer(samples, dtype=np.float32)

    def close_idle(self, idle_s: float) -> bool:
        """End processes that have had nothing to do for so long; whether there was one."""
        return self._pool.close_idle(idle_s)

    def close(self) -> None:
        """End all of them, also those that work."""
        self._pool.close()

    def _ended(self, status: int | None, *, late: bool) -> Fault:
        """What to say about a process that ended instead of answering."""
        log("a decoding process ended", level="warning", status=status, late=late)
        if late:
            return _too_large(f"it took more than {self._wall_s:g} s (decode_wall_s)")
        if os.name == "posix" and status == -signal.SIGXCPU:
            return _too_large(f"it took more than {self._cpu_s:g} s of processor time (decode_cpu_s)")
        if os.name == "posix" and status == -signal.SIGKILL:
            allowed = f"decode_memory_bytes allows {self._memory_bytes // 2**20} MiB"
            return _too_large(f"there was not enough memory ({allowed})")
        return Fault("ErrInvalidRequest", UNSUPPORTED_AUDIO, "asr", "audio", short=True)


def _check(fields: dict[str, Any], samples: bytearray) -> None:
    match fields.get("refused"):
        case "memory":
            raise _too_large("it took more memory than a recording may (decode_memory_bytes)")
        case "limit":
            message = str(fields["message"])
            for limit, setting in _SETTINGS.items():
                message = message.replace(f"DecodeLimits.{limit}", setting)
            raise Fault("ErrTooLarge", message, "asr", "audio")
        case "damaged":
            raise Fault("ErrInvalidRequest", UNSUPPORTED_AUDIO, "asr", "audio", short=True)
    if not samples:
        raise Fault("ErrInvalidRequest", NO_AUDIO, "asr", "audio", short=True)


def _too_large(reason: str) -> Fault:
    return Fault(
        "ErrTooLarge", f"the recording cannot be decoded within the limits: {reason}", "asr", "audio"
    )
