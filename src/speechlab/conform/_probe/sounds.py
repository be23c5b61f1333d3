"""Recordings to send, and the format and content of received audio."""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING

from speechlab.conform._probe.findings import CheckSkipped

if TYPE_CHECKING:
    from speechlab.audio import AudioClip
    from speechlab.conform._probe.target import Target

NOT_AUDIO = b"This is a text, and no recording at all. " * 4
# Content types of each format; pcm has none.
MEDIA_TYPES = {
    "mp3": {"audio/mpeg"},
    "wav": {"audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"},
    "ogg": {"audio/ogg", "application/ogg"},
    "flac": {"audio/flac", "audio/x-flac"},
}
_RATE = 16_000


def sniff_container(data: bytes) -> str | None:
    """Return the name of the container with this header; None for raw samples and other data."""
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return "wav"
    if data[:4] == b"OggS":
        return "ogg"
    if data[:4] == b"fLaC":
        return "flac"
    layer_three = len(data) > 1 and data[0] == 0xFF and data[1] & 0xE0 == 0xE0 and data[1] & 0x06
    return "mp3" if data[:3] == b"ID3" or layer_three else None


def can_be_format(data: bytes, name: str) -> bool:
    """Whether bytes can be audio of a format. Raw samples can be any bytes except a container or text."""
    if name == "pcm":
        return len(data) % 2 == 0 and sniff_container(data[:16]) in {None, "mp3"} and data[:1] not in b"{[<"
    return sniff_container(data) == name


def decode_clip(data: bytes, name: str, sample_rate: int) -> AudioClip | None:
    """Decode received audio; None if it cannot be decoded."""
    from speechlab.audio import AudioClip
    from speechlab.errors import SpeechLabError

    if name == "pcm":
        return AudioClip.from_pcm(data[: len(data) // 2 * 2], sample_rate) if len(data) > 1 else None
    try:
        return AudioClip.from_bytes(data)
    except SpeechLabError:
        return None


def request_speech_once(target: Target) -> AudioClip:
    """Return speech that the service itself has made, at 16 kHz."""

    def request_clip() -> AudioClip:
        reply = target.speak(text=target.text * 2)
        clip = decode_clip(reply.body, target.format, 24_000) if reply.status == 200 else None
        if clip is None:
            raise CheckSkipped("there is no speech to recognize, because synthesis fails")
        return clip.resample(_RATE)

    return target.get_or_make("speech", request_clip)


def insert_silence(clip: AudioClip, *seconds_between: float) -> bytes:
    """Return a WAV of a clip, repeated, with seconds of silence before each repetition: (3,) or (1, 2)."""
    import numpy as np

    from speechlab.audio import AudioClip

    blocks = []
    for seconds in seconds_between:
        blocks += [np.zeros(round(seconds * clip.sample_rate), dtype=np.float32), clip.samples.reshape(-1)]
    blocks.append(np.zeros(clip.sample_rate // 2, dtype=np.float32))
    return AudioClip(np.concatenate(blocks), clip.sample_rate).encode("wav")


@cache
def build_silence(seconds: float = 1.0) -> bytes:
    data = bytes(2 * round(seconds * _RATE))
    head = struct.pack(
        "<4sI4s4sIHHIIHH", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 1, 1, _RATE, _RATE * 2, 2, 16
    )
    return head + struct.pack("<4sI", b"data", len(data)) + data
