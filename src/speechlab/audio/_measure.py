"""Small measurements: outline, level, and the beginning and end of the sound."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from speechlab._require import later
from speechlab.audio._samples import as_rate, as_samples, mix_to_mono
from speechlab.errors import AudioError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray
else:
    np = later("numpy")

_WINDOW_S = 0.01
_FLOOR = 10 ** (-70 / 10)
"""Power of silence: a window below it is silent even in a quiet clip."""


def peaks(samples: ArrayLike, n: int) -> NDArray[np.float32]:
    """Lowest and highest sample of each of ``n`` equal sections, for drawing a waveform.

    Returns:
        Shape (n, 2), float32 in [-1, 1]: minimum and maximum. If there are fewer frames than sections, frames repeat;
        without frames, all values are zero.
    """
    if n < 1:
        raise AudioError(f"n is {n!r}; it has to be at least 1 section")
    checked = as_samples(samples)
    frames = len(checked)
    if frames == 0:
        return np.zeros((n, 2), dtype=np.float32)
    low = checked if checked.ndim == 1 else checked.min(axis=1)
    high = checked if checked.ndim == 1 else checked.max(axis=1)
    starts = np.arange(n) * frames // n
    if frames < n:
        return np.stack([low[starts], high[starts]], axis=1)
    return np.stack([np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)], axis=1)


def rms_dbfs(samples: ArrayLike) -> float:
    """Root mean square in dB below full scale (a full-scale square wave is 0); minus infinity for silence.

    Example:
        >>> round(rms_dbfs([0.5, -0.5]), 2), rms_dbfs([0.0])
        (-6.02, -inf)
    """
    checked = as_samples(samples)
    power = float(np.mean(np.square(checked, dtype=np.float64))) if checked.size else 0.0
    return 10.0 * math.log10(power) if power > 0 else -math.inf


def trim_silence(
    samples: ArrayLike, sample_rate: int, *, threshold_db: float = 40.0, keep_s: float = 0.05
) -> NDArray[np.float32]:
    """Cut the silence before the first and after the last sound.

    A window of 10 ms is sound if its root mean square is less than ``threshold_db`` below that of the loudest window.

    Args:
        samples: Shape (frames,) or (frames, channels).
        sample_rate: Their rate, in Hz.
        threshold_db: Level of silence in dB below the loudest window, above 0.
        keep_s: Seconds of silence to keep on both sides.

    Returns:
        float32, with at most as many frames and the same channels; no frames if all samples are zero.
    """
    rate, checked = as_rate(sample_rate), as_samples(samples)
    if not (threshold_db > 0 and keep_s >= 0):
        raise AudioError(
            f"threshold_db is {threshold_db!r} and keep_s {keep_s!r}; they have to be above 0, and 0 or more"
        )
    window, power = _powers(checked, rate)
    if not power.size:
        return checked
    if not power.max() > 0:
        return checked[:0]
    loud = np.flatnonzero(power > power.max() * 10.0 ** (-threshold_db / 10.0))
    keep = round(keep_s * rate)
    first, last = int(loud[0]) * window - keep, (int(loud[-1]) + 1) * window + keep
    return checked[max(first, 0) : last]


def leading_silence_s(samples: ArrayLike, sample_rate: int, *, threshold_db: float = 40.0) -> float:
    """Seconds of silence before the first sound, in steps of 10 ms.

    A window of 10 ms is sound if its root mean square is less than ``threshold_db`` below that of the loudest window,
    and above -70 dBFS.

    Args:
        samples: Shape (frames,) or (frames, channels).
        sample_rate: Their rate, in Hz.
        threshold_db: Level of silence in dB below the loudest window, above 0.

    Returns:
        Seconds, 0 or more; infinity if there is no sound.

    Raises:
        AudioError: The samples or the rate are not usable.

    Example:
        >>> leading_silence_s(np.concatenate([np.zeros(8_000), np.ones(8_000) * 0.5]), 8_000)
        1.0
    """
    span = sound_span_s(samples, sample_rate, threshold_db=threshold_db)
    return math.inf if span is None else span[0]


def sound_span_s(
    samples: ArrayLike, sample_rate: int, *, threshold_db: float = 40.0
) -> tuple[float, float] | None:
    """Seconds from the first to the last sound, by the threshold of :func:`leading_silence_s`; None without sound."""
    rate, checked = as_rate(sample_rate), as_samples(samples)
    window, power = _powers(checked, rate)
    if not power.size:
        return None
    loud = np.flatnonzero(power > max(float(power.max()) * 10.0 ** (-threshold_db / 10.0), _FLOOR))
    if not loud.size:
        return None
    return int(loud[0]) * window / rate, min((int(loud[-1]) + 1) * window, len(checked)) / rate


def _powers(samples: NDArray[np.float32], rate: int) -> tuple[int, NDArray[np.float64]]:
    """The frames of a window, and the mean power of each window."""
    window, mono = max(round(rate * _WINDOW_S), 1), mix_to_mono(samples)
    starts = np.arange(0, len(mono), window)
    if not starts.size:
        return window, np.zeros(0)
    sums = np.add.reduceat(np.square(mono, dtype=np.float64), starts)
    return window, sums / np.diff(np.append(starts, len(mono)))
