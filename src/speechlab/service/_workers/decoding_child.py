"""The other side of ``_workers``: a process that decodes recordings, one after the other, within limits.

Run as ``python -m speechlab.service._workers.decoding_child``. It reads recordings and writes samples.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab.audio import DecodeLimits, decode, encode, resample
from speechlab.errors import AudioError, AudioLimitError
from speechlab.service._workers.child import limit_cpu, limit_memory, own_pipes, read_message, write_message

if TYPE_CHECKING:
    from numpy.typing import NDArray


def main() -> None:
    """Work until the input ends."""
    source, sink = own_pipes()
    _warm_up()
    limits = read_message(source)
    if limits is None:
        return
    fields, _ = limits
    limit_memory(fields["memory_bytes"])
    decoding = DecodeLimits(**fields["decoding"])
    write_message(sink, {"ready": True})
    while (message := read_message(source)) is not None:
        wanted, data = message
        limit_cpu(fields["cpu_s"])
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


if __name__ == "__main__":
    main()
    os._exit(0)  # nothing is left to be tidied up, and whoever waits need not wait for it
