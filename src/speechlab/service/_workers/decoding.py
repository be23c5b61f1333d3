"""Decoding of untrusted recordings in worker processes, with limits of memory, processor time and time.

A file that makes a decoder crash, loop or expand without end ends one worker, which is replaced, and its sender gets
an error. The result is plain samples.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from speechlab.contract import ASR_UNAVAILABLE, NO_AUDIO, UNSUPPORTED_AUDIO
from speechlab.service._faults import Fault
from speechlab.service._workers.pool import Pool, WorkerFailed

if TYPE_CHECKING:
    from speechlab.service._config import ServiceConfig
    from speechlab.service._holding import Held

_MODULE = "speechlab.service._workers.decoding_child"
_CHANNELS = 8
"""Maximum channels of a recording."""
_BYTES_S = 224_000
"""Maximum decoded bytes of a recording for each second of ``audio_seconds``: somewhat above 48 kHz mono."""
_LIMIT = re.compile(r"DecodeLimits\.max_(seconds|decoded_bytes)")


class Decoders(Pool):
    """Processes that decode recordings."""

    def __init__(self, config: ServiceConfig) -> None:
        self._memory_bytes = config.decode_memory_bytes
        seconds = config.audio_seconds
        size = max(1, round(seconds * _BYTES_S))
        decoding = {"max_seconds": seconds, "max_decoded_bytes": size, "max_channels": _CHANNELS}
        limits = {"memory_bytes": self._memory_bytes, "cpu_s": config.decode_wall_s, "decoding": decoding}
        super().__init__(config.decode_workers, _MODULE, limits, within_s=config.decode_wall_s)

    def decode(self, recording: Held, samples: Held, sample_rate: int) -> None:
        """Decode a recording to one channel of 32-bit floats at a rate in Hz. Blocks; for worker threads."""
        try:
            fields, _ = self.ask({"sample_rate": sample_rate}, recording.view, samples)
        except WorkerFailed as failure:
            raise self._fault(failure) from failure
        _check(fields, samples)

    def _fault(self, failure: WorkerFailed) -> Fault:
        match failure.reason:
            case "start":
                return Fault("ErrInternal", ASR_UNAVAILABLE, "asr", "decoder")
            case "time" | "cpu":
                return _too_large(f"it took more than {self._within_s:g} s (decode_wall_s)")
            case "memory":
                return _too_large("it took more memory than allowed (decode_memory_bytes)")
            case "killed":
                allowed = f"decode_memory_bytes allows {self._memory_bytes // 2**20} MiB"
                return _too_large(f"there was not enough memory ({allowed})")
        return Fault("ErrInvalidRequest", UNSUPPORTED_AUDIO, "asr", "audio", short=True)


def _check(fields: dict[str, Any], samples: Held) -> None:
    match fields.get("refused"):
        case "limit":
            raise Fault("ErrTooLarge", _LIMIT.sub("audio_seconds", fields["message"]), "asr", "audio")
        case "damaged":
            raise Fault("ErrInvalidRequest", UNSUPPORTED_AUDIO, "asr", "audio", short=True)
    if not samples.size:
        raise Fault("ErrInvalidRequest", NO_AUDIO, "asr", "audio", short=True)


def _too_large(reason: str) -> Fault:
    return Fault(
        "ErrTooLarge", f"the recording cannot be decoded within the limits: {reason}", "asr", "audio"
    )
