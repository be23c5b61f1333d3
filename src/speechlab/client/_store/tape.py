"""Recording of streams for the store, and their replay."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from speechlab.client._store.memory import StoredCall, timing_from

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from speechlab.client._clock import Clock
    from speechlab.client._events import Timing


async def wait_until(clock: Clock, began: float, at_s: float) -> None:
    """Wait until a recorded time."""
    wait = began + at_s - clock.monotonic()
    if wait > 0:
        await clock.sleep(wait)


class Tape:
    """Records a body while it arrives."""

    def __init__(self, clock: Clock, call: StoredCall) -> None:
        self._clock, self._call = clock, call
        self._began = clock.monotonic()
        self._pieces: list[bytes] = []
        self._frames: list[tuple[float, int]] = []

    def add(self, piece: bytes) -> None:
        """Record the next bytes."""
        self._frames.append((round(self._clock.monotonic() - self._began, 6), len(piece)))
        self._pieces.append(piece)

    def keep(self, content_type: str, timing: Timing) -> None:
        """Keep the body after it was checked to be complete."""
        body = b"".join(self._pieces)
        facts: dict[str, Any] = {
            "headers": {"content-type": content_type},
            "timing": asdict(timing),
            "frames": self._frames,
        }
        self._call.keep({"bytes": len(body)}, facts, {"body": (body, ".bin")})


class TapedBody:
    """A recorded body, replayed at once or at the recorded times."""

    def __init__(self, body: Path, facts: Mapping[str, Any], clock: Clock, *, at_pace: bool) -> None:
        self.status = 200
        self.headers: Mapping[str, str] = facts["headers"]
        self.timing = timing_from(facts)
        self.ended = False
        self._frames = facts["frames"]
        self._body, self._clock, self._at_pace = memoryview(body.read_bytes()), clock, at_pace
        self._began = clock.monotonic()

    async def pieces(self) -> AsyncIterator[bytes]:
        """The bytes as recorded."""
        given = 0
        for at_s, size in self._frames:
            if self._at_pace:
                await wait_until(self._clock, self._began, at_s)
            yield bytes(self._body[given : given + size])
            given += size
        self.ended = True

    async def close(self) -> None:
        """Do nothing: a recorded body has no connection."""
