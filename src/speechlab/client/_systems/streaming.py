"""Recognition while a recording is spoken: its pieces at the pace of speech, and the texts that come meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from speechlab.audio import AudioClip, sound_span_s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from speechlab.client._clock import Clock


class PacedClips:
    """The pieces of a recording, each once it has been spoken: for ``for``, and in async functions ``async for``."""

    def __init__(self, clip: AudioClip, rate: float | None, piece_s: float, clock: Clock) -> None:
        self._clip, self._rate, self._clock = clip, rate, clock
        self._step = max(1, round(piece_s * clip.sample_rate))
        self._place, self._began, self.waited_s = 0, clock.monotonic(), 0.0

    def __iter__(self) -> PacedClips:
        return self

    def __aiter__(self) -> PacedClips:
        return self

    def __next__(self) -> AudioClip:
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            raise TypeError(
                "an async function reads its clips with `async for`, as `for` would stop the others"
            )
        if (wait_s := self._wait_s()) is None:
            raise StopIteration
        if wait_s > 0:
            self._clock.wait(wait_s)
        return self._piece(wait_s)

    async def __anext__(self) -> AudioClip:
        if (wait_s := self._wait_s()) is None:
            raise StopAsyncIteration
        if wait_s > 0:
            await self._clock.sleep(wait_s)
        return self._piece(wait_s)

    def _wait_s(self) -> float | None:
        """Seconds until the end of the next piece has been spoken; None if there is none."""
        if self._place >= self._clip.frames:
            return None
        if self._rate is None:
            return 0.0
        end = min(self._place + self._step, self._clip.frames) / self._clip.sample_rate
        return max(0.0, self._began + end / self._rate - self._clock.monotonic())

    def _piece(self, waited_s: float) -> AudioClip:
        self.waited_s += waited_s
        first, self._place = self._place, self._place + self._step
        return AudioClip(self._clip.samples[first : self._place], self._clip.sample_rate)


def streamed_transcript(
    heard: Sequence[tuple[float, str, bool]],
    ended_s: float,
    clip: AudioClip,
    rate: float | None,
    language: str | None,
) -> dict[str, Any]:
    """The fields of a transcript that came in pieces: (seconds since the first sample, text, whether it is final)."""
    from speechlab.text import join_texts

    texts: list[dict[str, Any]] = []
    for time_s, text, final in heard:
        if final or not texts or (text, False) != (texts[-1]["text"], texts[-1]["final"]):
            texts.append({"time_s": time_s, "text": text, "final": final})
    if texts and not texts[-1]["final"] and texts[-1]["text"].strip():
        texts.append({**texts[-1], "time_s": ended_s, "final": True})
    worded = [entry for entry in texts if any(map(str.isalnum, entry["text"]))]
    finals = [entry for entry in worded if entry["final"]]
    span = sound_span_s(clip.samples, clip.sample_rate)
    times: dict[str, float] = {}
    if worded and span is not None and rate is not None:
        times["first_partial_s"] = worded[0]["time_s"] - span[0] / rate
        if finals:
            times["finalization_s"] = finals[-1]["time_s"] - span[1] / rate
    text = join_texts([entry["text"] for entry in texts if entry["final"]], language or "")
    return {"text": text, "language": language, "partials": texts, **times}
