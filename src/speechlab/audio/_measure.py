"""Small measurements: outline, level, and the beginning and end of the sound."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from speechlab._require import import_lazily
from speechlab.audio._samples import check_rate, mix_to_mono, to_samples
from speechlab.errors import AudioError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from speechlab.audio._samples import Samples
else:
    np = import_lazily("numpy")

_WINDOW_S = 0.01
# Power of silence: a window below it is silent even in a quiet clip.
_FLOOR = 10 ** (-70 / 10)


def compute_peaks(samples: ArrayLike, n: int) -> NDArray[np.float32]:
    """Lowest and highest sample of each of ``n`` equal sections, for drawing a waveform.

    Returns:
        Shape (n, 2), float32 in [-1, 1]: minimum and maximum. If there are fewer frames than sections, frames repeat;
        without frames, all values are zero.
    """
    if n < 1:
        raise AudioError(f"n is {n!r}; it has to be at least 1 section")
    checked = to_samples(samples)
    if not len(checked):
        return np.zeros((n, 2), dtype=np.float32)
    return np.stack(compute_extremes(checked, np.arange(n) * len(checked) // n), axis=1)


def compute_extremes(samples: Samples, starts: NDArray[np.int64]) -> tuple[Samples, Samples]:
    """Lowest and highest sample, of all channels, from each start to the next; at equal starts, of one frame."""
    low = samples if samples.ndim == 1 else samples.min(axis=1)
    high = samples if samples.ndim == 1 else samples.max(axis=1)
    return np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)


def rms_dbfs(samples: ArrayLike) -> float:
    """Root mean square in dB below full scale (a full-scale square wave is 0); minus infinity for silence.

    Example:
        >>> round(rms_dbfs([0.5, -0.5]), 2), rms_dbfs([0.0])
        (-6.02, -inf)
    """
    checked = to_samples(samples)
    power = float(np.mean(np.square(checked, dtype=np.float64))) if checked.size else 0.0
    return 10.0 * math.log10(power) if power > 0 else -math.inf


def leading_silence_s(samples: ArrayLike, sample_rate: int) -> float:
    """Seconds of silence before the first sound, in steps of 10 ms.

    A window of 10 ms is sound if its root mean square is less than 40 dB below that of the loudest window, and above
    -70 dBFS.

    Args:
        samples: Shape (frames,) or (frames, channels).
        sample_rate: Their rate, in Hz.

    Returns:
        Seconds, 0 or more; infinity if there is no sound.

    Raises:
        AudioError: The samples or the rate are not usable.

    Example:
        >>> leading_silence_s(np.concatenate([np.zeros(8_000), np.ones(8_000) * 0.5]), 8_000)
        1.0
    """
    span = measure_sound_span_s(samples, sample_rate)
    return math.inf if span is None else span[0]


def measure_sound_span_s(samples: ArrayLike, sample_rate: int) -> tuple[float, float] | None:
    """Seconds from the first to the last sound, as :func:`leading_silence_s` hears it; None without sound."""
    rate, checked = check_rate(sample_rate), to_samples(samples)
    window, loud, _ = find_loud_windows(mix_to_mono(checked), rate)
    at = np.flatnonzero(loud)
    if not at.size:
        return None
    return int(at[0]) * window / rate, min((int(at[-1]) + 1) * window, len(checked)) / rate


def find_loud_windows(
    mono: NDArray[np.float32], sample_rate: int, threshold_db: float = 40.0
) -> tuple[int, NDArray[np.bool_], NDArray[np.float64]]:
    """Return the frames of a window of 10 ms, and for each window whether it is sound, and its mean power."""
    window = max(round(sample_rate * _WINDOW_S), 1)
    starts = np.arange(0, len(mono), window)
    if not starts.size:
        return window, np.zeros(0, dtype=bool), np.zeros(0)
    sums = np.add.reduceat(np.square(mono, dtype=np.float64), starts)
    power = sums / np.diff(np.append(starts, len(mono)))
    threshold = max(float(power.max()) * 10.0 ** (-threshold_db / 10.0), _FLOOR)
    return window, power > threshold, power
