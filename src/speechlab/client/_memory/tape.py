"""Streams that are recorded while they come, and recorded ones that come again."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

from speechlab.client._memory.memory import Memory, Question, timing_from

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from speechlab.client._clock import Clock
    from speechlab.client._events import Timing
    from speechlab.client._transport.sender import ReplyStream


class Source(Protocol):
    """A body that comes in pieces."""

    @property
    def status(self) -> int:
        """HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers, names in lower case."""

    @property
    def timing(self) -> Timing:
        """Timing so far."""

    async def piece(self) -> bytes | None:
        """The next bytes, or None at the end; WireError if it is cut short."""

    async def close(self) -> None:
        """Stop it."""


async def paced(clock: Clock, began: float, at_s: float) -> None:
    """Wait until a recorded moment.

    Args:
        clock: Time.
        began: When replaying began, in seconds of that clock.
        at_s: The moment, in seconds from the beginning of the recording.
    """
    wait = began + at_s - clock.monotonic()
    if wait > 0:
        await clock.sleep(wait)


class Recording:
    """A body that is recorded while it comes."""

    def __init__(self, source: ReplyStream, clock: Clock, memory: Memory, question: Question) -> None:
        self._source, self._clock = source, clock
        self._memory, self._question = memory, question
        self._began = clock.monotonic()
        self._pieces: list[bytes] = []
        self._frames: list[tuple[float, int]] = []
        self.status: int = source.status
        self.headers: Mapping[str, str] = source.headers

    @property
    def timing(self) -> Timing:
        """Timing so far."""
        return self._source.timing

    async def piece(self) -> bytes | None:
        """The next bytes as they arrive, or None at the end."""
        piece = await self._source.piece()
        if piece is not None:
            self._frames.append((round(self._clock.monotonic() - self._began, 6), len(piece)))
            self._pieces.append(piece)
        return piece

    async def close(self) -> None:
        """Close the connection."""
        await self._source.close()

    def keep(self, timing: Timing) -> None:
        """Keep it, now that it has proved to be whole."""
        body = b"".join(self._pieces)
        facts: dict[str, Any] = {
            "headers": {"content-type": self.headers.get("content-type", "")},
            "timing": asdict(timing),
            "frames": self._frames,
        }
        self._memory.keep(self._question, {"bytes": len(body)}, facts, {"body": (body, ".bin")})


class Recorded:
    """A recorded body that comes again, at once or in the times in which it came."""

    def __init__(self, body: Path, facts: Mapping[str, Any], clock: Clock, *, at_pace: bool) -> None:
        self.status = 200
        self.headers: Mapping[str, str] = facts["headers"]
        self.timing = timing_from(facts)
        self._frames = iter(facts["frames"])
        self._body, self._clock, self._at_pace = memoryview(body.read_bytes()), clock, at_pace
        self._began = clock.monotonic()
        self._given = 0

    async def piece(self) -> bytes | None:
        """The next bytes as they were recorded, or None at the end."""
        frame = next(self._frames, None)
        if frame is None:
            return None
        at_s, size = frame
        if self._at_pace:
            await paced(self._clock, self._began, at_s)
        self._given += size
        return bytes(self._body[self._given - size : self._given])

    async def close(self) -> None:
        """There is nothing to close."""
