"""Audio formats, sample rates and the other small vocabularies of section 2; the limits of section 8."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from speechlab._formats import AudioFormat

# Formats that recognition accepts, recognized by their headers (section 2.3).
INPUT_FORMATS: frozenset[AudioFormat] = frozenset(
    {AudioFormat.WAV, AudioFormat.OGG, AudioFormat.MP3, AudioFormat.FLAC}
)


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


@dataclass(frozen=True, slots=True)
class Range:
    """A closed interval."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the contract. Characters are Unicode code points, never bytes or UTF-16 units.

    The contract does not limit rates, quotas, connections or the size of recordings. They belong to the configuration
    of each service.

    Example:
        >>> LIMITS.tts_text_chars, LIMITS.top_p.high
        (5000, 1.0)
    """

    tts_text_chars: int = 5_000
    translation_text_chars: int = 10_000
    translation_keywords: int = 20
    translation_keyword_bytes: int = 100
    translation_context_chars: int = 2_000
    segment_padding_ms: Range = Range(0, 5_000)
    temperature: Range = Range(0.0, 2.0)
    top_p: Range = Range(0.0, 1.0)
    frequency_penalty: Range = Range(-2.0, 2.0)
    repetition_penalty: Range = Range(1.0, 2.0)


# The limits of the contract.
LIMITS = Limits()

# Code points; the contract names ``id_too_long`` but no length.
CORRELATION_ID_MAX_CHARS = 128

# Maximum bytes of a control message. The contract leaves the limit open; a valid text of 5,000 astral
# characters needs 60,033 bytes if each is written as an escaped pair.
WS_MESSAGE_MAX_BYTES = 128 * 1024

# Bytes of a control message above which the connection closes with 1009, without reading the message.
WS_READ_MAX_BYTES = 256 * 1024

# Header of replies, beyond the contract: how many calls the service works on at once, as ``tts=4, asr=2``.
CONCURRENCY_HEADER = "x-speechlab-concurrency"
# Why the service cannot do what the message of the contract only calls unavailable.
REASON_HEADER = "x-speechlab-reason"

# Header of requests, beyond the contract: the client reads interim replies (100) while its call waits in a
# queue.
INTERIM_HEADER = "x-speechlab-interim"

# Header of the catalogue, beyond the contract: codes of the languages between which the service translates.
TRANSLATES_HEADER = "x-speechlab-translates"


_AT_ONCE = re.compile(r"[0-9]{1,6}")


def parse_concurrency_header(header: str) -> dict[str, int]:
    """Return the numbers of a ``CONCURRENCY_HEADER`` by service; what is not of its form is left out."""
    pairs = [entry.strip().partition("=") for entry in header.split(",")]
    numbers = {name: int(number) for name, _, number in pairs if _AT_ONCE.fullmatch(number)}
    return {
        name: number for name, number in numbers.items() if number and name in {"tts", "asr", "translate"}
    }
