"""The audio formats of the contract, which sound needs where the contract's models are not installed."""

from __future__ import annotations

from enum import StrEnum

# Hz; the meaning of an omitted or zero ``sample_rate`` (sections 2.2, 4.3 and 8).
DEFAULT_SAMPLE_RATE = 24_000


class AudioFormat(StrEnum):
    """The five output formats (section 2.1).

    Example:
        >>> [str(format) for format in AudioFormat]
        ['mp3', 'wav', 'ogg', 'pcm', 'flac']
    """

    MP3 = "mp3"
    WAV = "wav"
    OGG = "ogg"
    PCM = "pcm"
    FLAC = "flac"


# ``Content-Type`` of each format: mp3 by section 4.1, the other containers by the table of section 2.3.
# PCM, whose type the contract leaves open, is signed 16-bit little-endian mono.
CONTENT_TYPES: dict[AudioFormat, str] = {
    AudioFormat.MP3: "audio/mpeg",
    AudioFormat.WAV: "audio/wav",
    AudioFormat.OGG: "audio/ogg",
    AudioFormat.PCM: "audio/pcm",
    AudioFormat.FLAC: "audio/flac",
}
