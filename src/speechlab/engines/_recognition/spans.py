"""Stretches of speech: where they are, and how they become segments. Times are in seconds.

The rules of merging and padding are in ``audio``, because ``segments`` applies them offline.

The steps of ``vad="segments"``, in order:

1. the detector finds speech; silences shorter than ``min_silence_gap`` do not split;
2. ``speech_pad_ms`` widens the detected speech;
3. segments shorter than ``min_segment_duration`` are merged with the neighbour that is nearer in time;
4. words are assigned to segments by time, and segments without a word are dropped;
5. ``segment_padding`` widens the segments; the first one begins ``initial_segment_padding_ms`` before its speech;
6. everything is clamped to the file, and neighbours that would overlap meet in the middle of their gap.

The result is sorted and without overlap, and each segment satisfies ``0 <= start < end <= duration``.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from speechlab._require import require
from speechlab.audio import merge_short_spans, widen_spans
from speechlab.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

SAMPLE_RATE = 16_000
_QUIET_PEAK = 0.05
_PIECE_S = (1.5, 10.0)
"""Minimum and maximum length of a piece in seconds."""


def find_speech(samples: NDArray[np.float32], gap_ms: int) -> list[Span]:
    """Return the stretches of speech.

    Args:
        samples: Mono, float32 in [-1, 1], shape (frames,), at 16,000 Hz.
        gap_ms: Minimum silence between two stretches of speech, in milliseconds.
    """
    if not len(samples):
        return []
    peak = float(np.max(np.abs(samples)))
    if not math.isfinite(peak):
        raise EngineError("the audio has samples that are not numbers; decode it again")
    if 0.0 < peak < _QUIET_PEAK:
        # The detector was trained on speech of a usual level, and misses very soft recordings.
        samples = samples * np.float32(0.5 / max(peak, 1e-3))
    vad = require("faster_whisper.vad")
    # Speech shorter than 0.1 s is a click. Padding follows in this package, after the merging.
    settings = vad.VadOptions(min_silence_duration_ms=gap_ms, speech_pad_ms=0, min_speech_duration_ms=100)
    duration = len(samples) / SAMPLE_RATE
    stretches = vad.get_speech_timestamps(np.asarray(samples, dtype=np.float32), settings)
    return [Span(span["start"] / SAMPLE_RATE, min(span["end"] / SAMPLE_RATE, duration)) for span in stretches]


def pieces_of(sound: NDArray[np.float32], seams_s: Sequence[float]) -> list[tuple[float, float]]:
    """Cut a recording at pauses, and long stretches at their quietest places; return starts and ends in seconds."""
    least, most = (round(limit * SAMPLE_RATE) for limit in _PIECE_S)
    seams = [round(seam * SAMPLE_RATE) for seam in seams_s]
    cuts = [0]
    for seam in (*seams, len(sound)):
        while seam - cuts[-1] > most:
            window = sound[cuts[-1] + least : cuts[-1] + most]
            step = SAMPLE_RATE // 20
            loudness = [
                float(np.abs(window[at : at + step]).mean()) for at in range(0, len(window) - step, step)
            ]
            cuts.append(cuts[-1] + least + int(np.argmin(loudness)) * step + step // 2)
        if seam - cuts[-1] >= least and (len(sound) - seam >= least or seam == len(sound)):
            cuts.append(seam)
    if cuts[-1] != len(sound):
        cuts = [*cuts[:-1], len(sound)] if len(cuts) > 1 else [*cuts, len(sound)]
    return [(first / SAMPLE_RATE, last / SAMPLE_RATE) for first, last in itertools.pairwise(cuts)]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time: ``start`` and ``end`` in seconds, ``start < end``."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class TimedWord:
    """A word (or punctuation) with its time in seconds; the text keeps its leading space."""

    start: float
    end: float
    text: str


def widen(spans: Sequence[Span], margin: float, duration: float) -> list[Span]:
    """Widen each span by a margin on both sides; neighbours that would overlap meet in the middle of their gap."""
    return pad_spans(spans, leading=margin, margin=margin, duration=duration)


def merge_short(spans: Sequence[Span], minimum: float) -> list[Span]:
    """Merge spans shorter than a minimum with the neighbour that is nearer in time."""
    first, last = merge_short_spans(*_times(spans), minimum)
    return [Span(spans[a].start, spans[b].end) for a, b in zip(first.tolist(), last.tolist(), strict=True)]


def pad_spans(spans: Sequence[Span], *, leading: float, margin: float, duration: float) -> list[Span]:
    """Widen spans: the first edge by ``leading``, all other edges by ``margin``; clamp to file and neighbours."""
    before = np.full(len(spans), margin)
    before[:1] = leading
    starts, ends = widen_spans(*_times(spans), before, margin, duration)
    return [Span(start, end) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _times(spans: Sequence[Span]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.array([span.start for span in spans]), np.array([span.end for span in spans])


def keep_spans(speech: Sequence[Span], margin: float, duration: float) -> list[Span]:
    """Return the parts of a recording for the recogniser: speech with a margin, without long silences."""
    spans: list[Span] = []
    for span in speech:
        start, end = max(0.0, span.start - margin), min(duration, span.end + margin)
        if spans and start <= spans[-1].end:
            spans[-1] = Span(spans[-1].start, max(end, spans[-1].end))
        else:
            spans.append(Span(start, end))
    return spans


class Timeline:
    """Maps times in the shortened audio, which has the kept spans end to end, to times in the recording."""

    def __init__(self, kept: Sequence[Span]) -> None:
        self._kept = list(kept)
        self._starts: list[float] = []
        total = 0.0
        for span in self._kept:
            self._starts.append(total)
            total += span.end - span.start

    def original(self, time: float, *, inside: float | None = None) -> float:
        index = max(0, bisect_right(self._starts, time if inside is None else inside) - 1)
        span = self._kept[index]
        return min(span.end, max(span.start, span.start + time - self._starts[index]))

    def word(self, word: TimedWord) -> TimedWord:
        """Return a word with its times in the recording. A word across a seam belongs to the span of its middle."""
        middle = (word.start + word.end) / 2
        return TimedWord(
            self.original(word.start, inside=middle), self.original(word.end, inside=middle), word.text
        )


def assign_words(words: Sequence[TimedWord], spans: Sequence[Span]) -> list[tuple[Span, str]]:
    """Assign each word to the span that it overlaps most, or else to the nearest one, without changing the order."""
    texts = [""] * len(spans)
    position = 0
    for word in words:
        if not spans:
            break
        # Never go back, so that the joined text of the segments has the order of the transcript.
        position = max(range(position, len(spans)), key=lambda index: _closeness(word, spans[index]))
        texts[position] += word.text
    return [(span, text.strip()) for span, text in zip(spans, texts, strict=True) if text.strip()]


def _closeness(word: TimedWord, span: Span) -> float:
    """Seconds of overlap, or minus the seconds of distance."""
    return min(word.end, span.end) - max(word.start, span.start)
