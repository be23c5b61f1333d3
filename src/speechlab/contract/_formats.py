"""Audio formats, sample rates and the other small vocabularies of section 2."""

from __future__ import annotations

from enum import StrEnum

DEFAULT_SAMPLE_RATE = 24_000
"""Hz; the meaning of an omitted or zero ``sample_rate`` (sections 2.2, 4.3 and 8)."""


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


CONTENT_TYPES: dict[AudioFormat, str] = {
    AudioFormat.MP3: "audio/mpeg",
    AudioFormat.WAV: "audio/wav",
    AudioFormat.OGG: "audio/ogg",
    AudioFormat.PCM: "audio/pcm",
    AudioFormat.FLAC: "audio/flac",
}
"""``Content-Type`` of each format: mp3 by section 4.1, the other containers by the table of section 2.3.
PCM, whose type the contract leaves open, is signed 16-bit little-endian mono."""

INPUT_FORMATS: frozenset[AudioFormat] = frozenset(
    {AudioFormat.WAV, AudioFormat.OGG, AudioFormat.MP3, AudioFormat.FLAC}
)
"""Formats that recognition accepts, told apart by the header (section 2.3)."""


class Gender(StrEnum):
    """``gender`` of a voice (section 2.1).

    Example:
        >>> [str(gender) for gender in Gender]
        ['Male', 'Female', 'Neutral']
    """

    MALE = "Male"
    FEMALE = "Female"
    NEUTRAL = "Neutral"


class Language(StrEnum):
    """Languages that identification covers (section 2.4).

    Example:
        >>> [str(language) for language in Language]
        ['ja', 'en', 'zh']
    """

    JAPANESE = "ja"
    ENGLISH = "en"
    CHINESE = "zh"


class VadMode(StrEnum):
    """Voice activity detection (section 2.3): none, speech only, or timestamped chunks.

    Example:
        >>> [str(mode) for mode in VadMode]
        ['off', 'on', 'segments']
    """

    OFF = "off"
    ON = "on"
    SEGMENTS = "segments"


class AudioTransport(StrEnum):
    """Forms in which audio travels over the realtime endpoint (section 4.3)."""

    BINARY = "binary"
    BASE64_JSON = "base64_json"
