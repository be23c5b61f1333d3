"""The limits of section 8, and the ranges of sections 2.3 and 2.5 that they refer to."""

from __future__ import annotations

from dataclasses import dataclass


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


LIMITS = Limits()
"""The limits of the contract."""

CORRELATION_ID_MAX_CHARS = 128
"""Code points; the contract names ``id_too_long`` but no length."""

WS_MESSAGE_MAX_BYTES = 128 * 1024
"""Maximum bytes of a control message. The contract leaves the limit open; a valid text of 5,000 astral characters
needs 60,033 bytes if each is written as an escaped pair."""

WS_READ_MAX_BYTES = 256 * 1024
"""Bytes of a control message above which the connection closes with 1009, without reading the message."""

CONCURRENCY_HEADER = "x-speechlab-concurrency"
"""Header of replies, beyond the contract: how many calls the service works on at once, as ``tts=4, asr=2``."""

INTERIM_HEADER = "x-speechlab-interim"
"""Header of requests, beyond the contract: the client reads interim replies (100) while its call waits in a queue."""

TRANSLATES_HEADER = "x-speechlab-translates"
"""Header of the catalogue, beyond the contract: codes of the languages between which the service translates."""


def read_concurrency(told: str) -> dict[str, int]:
    """The numbers of a ``CONCURRENCY_HEADER`` by service; what is not of its form is left out."""
    pairs = [entry.strip().partition("=") for entry in told.split(",")]
    numbers = {name: int(number) for name, _, number in pairs if number.isascii() and number.isdecimal()}
    return {
        name: number for name, number in numbers.items() if number and name in {"tts", "asr", "translate"}
    }
