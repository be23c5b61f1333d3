"""A take that arrives from the browser: chunks of PCM, each acknowledged, in any order and perhaps twice."""

from __future__ import annotations

from typing import Any

from speechlab._arguments import is_whole_number

MAX_CHUNK_BYTES = 2_000_000
_RATES = (8_000, 384_000)


class IncomingTake:
    """The received part of a take.

    Args:
        max_s: Maximum length of a take in seconds.
    """

    def __init__(self, max_s: float) -> None:
        self._max_s = max_s
        self._chunks: dict[int, bytes] = {}
        self._bytes = 0

    def add(self, number: Any, rate: Any, data: bytes) -> None:
        """Keep a chunk of 16-bit samples. A chunk that was received before is not replaced.

        Raises:
            ValueError: The values are not a chunk, or the take would be too long.
        """
        if not is_whole_number(number) or not 0 <= number < 1_000_000:
            raise ValueError(f"{number!r} is not the number of a chunk")
        if not data or len(data) % 2 or len(data) > MAX_CHUNK_BYTES:
            raise ValueError(f"a chunk has {len(data)} bytes")
        if int(number) in self._chunks:
            return
        if self._bytes + len(data) > 2 * (self._max_s + 1) * checked_rate(rate):
            raise ValueError("the take is longer than allowed")
        self._chunks[int(number)] = data
        self._bytes += len(data)

    def has(self, count: int) -> bool:
        """Whether ``count`` is above 0 and the first ``count`` chunks have arrived."""
        return count > 0 and all(number in self._chunks for number in range(count))

    def samples(self, count: int) -> bytes:
        """Return the first ``count`` chunks as one."""
        return b"".join(self._chunks[number] for number in range(count))


def checked_rate(rate: Any) -> int:
    """Check a sample rate in Hz, and return it.

    Raises:
        ValueError: No microphone has this rate.
    """
    slowest, fastest = _RATES
    if not is_whole_number(rate) or not slowest <= rate <= fastest:
        raise ValueError(f"{rate!r} is not a sample rate of a microphone")
    return int(rate)
