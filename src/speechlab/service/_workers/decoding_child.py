"""The worker process of ``Decoders``: decodes recordings, one after the other, within limits.

Run as ``python -m speechlab.service._workers.decoding_child``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from speechlab.audio import DecodeLimits, decode, encode, resample
from speechlab.errors import AudioError, AudioLimitError
from speechlab.service._workers.child import Work, answer_messages


def _prepare_decoder(fields: dict[str, Any]) -> Work:
    silence = np.zeros(4_800, dtype=np.float32)
    for name in ("wav", "flac", "ogg", "mp3"):  # loads the decoders before the first recording
        clip = decode(encode(silence, name, 24_000))
        resample(clip.samples, clip.sample_rate, 16_000)
    limits = DecodeLimits(**fields["decoding"])

    def decode_recording(
        wanted: dict[str, Any], data: bytearray
    ) -> tuple[dict[str, Any], bytes | memoryview]:
        try:
            clip = decode(bytes(data), limits)
            samples = resample(clip.to_mono().samples, clip.sample_rate, wanted["sample_rate"])
        except AudioLimitError as error:
            return {"refused": "limit", "message": error.message}, b""
        except AudioError:
            return {"refused": "damaged"}, b""
        return {}, np.ascontiguousarray(samples).data.cast("B") if len(samples) else b""

    return decode_recording


if __name__ == "__main__":
    answer_messages(_prepare_decoder)
