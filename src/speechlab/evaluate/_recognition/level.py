"""The level of speech in a recording, without its pauses.

Source: ITU-T P.56 (2011), Objective measurement of active speech level, method B.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TIME_S, _HANGOVER_S, _MARGIN_DB = 0.03, 0.2, 15.9
_STEP_S = 0.005
"""Rate at which the envelope, with a time constant of 30 ms, is sampled."""
_THRESHOLDS = 2.0 ** -np.arange(16)


def level_db(samples: NDArray[Any]) -> float | None:
    """Return the level of all samples (root mean square) in dB relative to full scale; None for silence."""
    power = float(np.square(samples, dtype=np.float64).mean()) if len(samples) else 0.0
    return 10 * math.log10(power) if power > 0 else None


def active_level_db(samples: NDArray[np.float32], rate: int) -> float | None:
    """Return the level of the active speech in dB relative to full scale; None for silence.

    Args:
        samples: Mono, shape (frames,).
        rate: Sample rate in Hz.
    """
    whole = level_db(samples)
    if whole is None:
        return None
    envelope = _envelope(np.abs(samples.astype(np.float64)), rate)[:: max(1, round(_STEP_S * rate))]
    steps = round(_HANGOVER_S / _STEP_S)
    held = np.lib.stride_tricks.sliding_window_view(np.pad(envelope, (steps - 1, 0)), steps).max(axis=1)
    active = (held[:, None] >= _THRESHOLDS).mean(axis=0)
    known = active > 0
    if not known.any():
        return None
    levels = whole - 10 * np.log10(active[known])
    margins = levels - 20 * np.log10(_THRESHOLDS[known])
    return float(np.interp(_MARGIN_DB, margins, levels))


def _envelope(sound: NDArray[np.float64], rate: int) -> NDArray[np.float64]:
    """Return the envelope: two exponential averages in series."""
    decay = math.exp(-1 / (_TIME_S * rate))
    at = np.arange(round(10 * _TIME_S * rate))
    weights = (1 - decay) ** 2 * (at + 1) * decay**at
    size = len(sound) + len(weights) - 1
    smooth = np.fft.irfft(np.fft.rfft(sound, size) * np.fft.rfft(weights, size), size)
    return np.maximum(smooth[: len(sound)], 0.0)
