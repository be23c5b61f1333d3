"""Voice activity detection, and cuts of a recording at its pauses."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from speechlab._require import require
from speechlab.engines._recognition.spans import Span
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
