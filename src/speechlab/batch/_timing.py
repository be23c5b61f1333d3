"""The stop-watch: one call with its times, and calls in turns, for studies of speed and for whoever shows a time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from speechlab.audio import AudioClip, leading_silence_s
from speechlab.batch._run.progress import Progress, show_progress
from speechlab.errors import APIError, SpeechLabError

if TYPE_CHECKING:
    from speechlab.client import SpeechClip, SpeechStream

K = TypeVar("K")
T = TypeVar("T")
R = TypeVar("R")
_PATIENCE_S = 60.0
_FIRST_WAIT_S = 0.5


class Arrivals:
    """What arrives during one call, with the times since the call began."""

    def __init__(self) -> None:
        self.pieces: list[tuple[float, int]] = []
        """The time of each piece of sound, in seconds, and its frames."""
        self.first_word_s: float | None = None
        self._began = time.perf_counter()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the call began."""
        return time.perf_counter() - self._began

    def add_sound(self, frames: int) -> None:
        """Note a piece of sound."""
        if frames:
            self.pieces.append((self.elapsed_s, frames))

    def add_text(self, text: str) -> None:
        """Note a piece of text; the first one with a letter or a digit counts."""
        if self.first_word_s is None and any(map(str.isalnum, text)):
            self.first_word_s = self.elapsed_s

    def read_stream(self, stream: SpeechStream, after_each: Callable[[], None] | None = None) -> SpeechClip:
        """Read a stream to its end and note its pieces."""
        for piece in stream.clips():
            self.add_sound(piece.frames)
            if after_each is not None:
                after_each()
        return stream.collect()


@dataclass(frozen=True)
class TimedCall(Generic[T]):
    """One call with its times."""

    total_s: float
    arrivals: Arrivals
    refusals: int = 0
    result: T | None = None
    error: SpeechLabError | OSError | None = None

    def to_columns(self) -> dict[str, Any]:
        """Return the columns of the call in a table of timed calls."""
        if self.error is not None:
            return {"error": str(self.error), "refusals": self.refusals}
        columns: dict[str, Any] = {"total_s": self.total_s, "refusals": self.refusals}
        if self.arrivals.first_word_s is not None:
            columns["first_word_s"] = self.arrivals.first_word_s
        if isinstance(self.result, AudioClip):
            columns |= _compute_playback_times(
                self.arrivals.pieces or [(self.total_s, self.result.frames)], self.result
            )
            columns["rtf"] = self.total_s / self.result.duration_s if self.result.duration_s else None
        return columns


def time_call_with_retries(call: Callable[[Arrivals], T], *, patience_s: float = _PATIENCE_S) -> TimedCall[T]:
    """Make one call and time it; where the service says "later", wait, and make it again with a new clock."""
    refusals, waited_s = 0, 0.0
    while True:
        arrivals = Arrivals()
        try:
            result = call(arrivals)
        except (SpeechLabError, OSError) as error:
            total_s = arrivals.elapsed_s
            wait_s = _compute_refusal_wait_s(error, refusals)
            if wait_s is None or waited_s + wait_s > patience_s:
                return TimedCall(total_s, arrivals, refusals, error=error)
        else:
            return TimedCall(arrivals.elapsed_s, arrivals, refusals, result)
        refusals, waited_s = refusals + 1, waited_s + wait_s
        time.sleep(wait_s)


def time_in_turns(
    parts: Mapping[K, Sequence[R]],
    call: Callable[[K, R], dict[str, Any]],
    concurrency: Sequence[int] = (1,),
    progress: Progress = False,
) -> list[dict[str, Any]]:
    """Make timed calls in turns, one item of each part after the other, after a call of each that does not count."""
    keys = [key for key, items in parts.items() if items]
    total = len(keys) + sum(map(len, parts.values())) * sum(concurrency)
    rows: list[dict[str, Any]] = []
    with show_progress(progress, total if keys else 0, "speed") as advance:
        for key in keys:
            call(key, parts[key][0])
            advance()
        for callers in concurrency:
            with ThreadPoolExecutor(callers) as pool:
                make = map if callers == 1 else pool.map
                for turn in range(max((len(items) for items in parts.values()), default=0)):
                    start = turn % len(keys)
                    for key in keys[start:] + keys[:start]:
                        items = parts[key]
                        if turn >= len(items):
                            continue
                        chosen = [items[(turn + caller) % len(items)] for caller in range(callers)]
                        facts = {"turn": turn, "concurrency": callers}
                        for row in make(partial(call, key), chosen):
                            rows.append({**row, **facts})
                            advance()
    return rows


def _compute_refusal_wait_s(error: Exception, refusals: int) -> float | None:
    """Seconds to wait after a refusal; None after another error."""
    if not isinstance(error, APIError):
        return None
    if error.status == 429 or (error.status == 503 and error.retry_after_s is not None):
        return _FIRST_WAIT_S * 2**refusals if error.retry_after_s is None else error.retry_after_s
    return None


def _compute_playback_times(pieces: Sequence[tuple[float, int]], clip: AudioClip) -> dict[str, Any]:
    """Times of a player that starts with the first piece, and waits where the next one is late."""
    frames = sum(count for _, count in pieces)
    if not frames:
        return {"duration_s": clip.duration_s}
    silence_s = leading_silence_s(clip.samples, clip.sample_rate)
    # the clock at which the player needs more, and its place in the sound
    ends_s, position_s = pieces[0][0], 0.0
    audible_s, stalls, stalled_s = None, 0, 0.0
    for came_s, count in pieces:
        if came_s > ends_s:
            stalls, stalled_s, ends_s = stalls + 1, stalled_s + came_s - ends_s, came_s
        length_s = clip.duration_s * count / frames
        if audible_s is None and silence_s < position_s + length_s:
            audible_s = ends_s + max(0.0, silence_s - position_s)
        ends_s, position_s = ends_s + length_s, position_s + length_s
    if audible_s is None and math.isfinite(silence_s):  # rounding, at the very end
        audible_s = ends_s
    return {
        "first_byte_s": pieces[0][0],
        "first_audible_s": audible_s,
        "duration_s": clip.duration_s,
        "stalls": stalls,
        "stalled_s": stalled_s,
    }
