"""Mel spectrograms as librosa computes them, on which networks that rate or compare recordings were trained."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MEL_RATE = 16_000
"""Sample rate of the input, in Hz."""


def mel_power(samples: NDArray[np.float32], bands: int, frame: int, hop: int) -> NDArray[np.float64]:
    """Power in mel bands of frames centered on every ``hop``-th sample; shape (frames, bands)."""
    padded = np.pad(samples.astype(np.float64), frame // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, frame)[::hop]
    taper = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(frame) / frame)
    spectrum = np.square(np.abs(np.fft.rfft(frames * taper, axis=1)))
    return np.asarray(spectrum @ _mel_weights(bands, frame).T)


@lru_cache(maxsize=4)
def _mel_weights(bands: int, frame: int) -> NDArray[np.float64]:
    """Triangular filters of equal area on Slaney's mel scale (linear below 1 kHz, then logarithmic)."""
    top = 15 + np.log(MEL_RATE / 2 / 1000) / (np.log(6.4) / 27)
    mels = np.linspace(0, top, bands + 2)
    edges = np.where(mels < 15, mels * 200 / 3, 1000 * np.exp(np.log(6.4) / 27 * (mels - 15)))
    bins = np.arange(frame // 2 + 1) * MEL_RATE / frame
    rising = (bins - edges[:-2, np.newaxis]) / np.diff(edges)[:-1, np.newaxis]
    falling = (edges[2:, np.newaxis] - bins) / np.diff(edges)[1:, np.newaxis]
    heights = 2 / (edges[2:] - edges[:-2])
    return np.asarray(np.maximum(0, np.minimum(rising, falling)) * heights[:, np.newaxis])
