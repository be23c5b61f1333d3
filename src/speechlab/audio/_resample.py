"""Conversion of sample rates, by soxr."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._require import later
from speechlab.audio._samples import as_rate, as_samples, channels_of
from speechlab.errors import AudioError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray
else:
    np = later("numpy")

_QUALITY = "HQ"


def resample(samples: ArrayLike, from_hz: int, to_hz: int) -> NDArray[np.float32]:
    """Change the sample rate (soxr, high quality: linear phase, 20 bit).

    Args:
        samples: Shape (frames,) or (frames, channels), floats in [-1, 1] or int16.
        from_hz: Current rate, in Hz.
        to_hz: New rate, in Hz.

    Returns:
        float32 in [-1, 1] (overshoot is clipped), with about ``frames * to_hz / from_hz`` frames and the same
        channels.

    Raises:
        AudioError: Samples or rates are not usable.

    Example:
        >>> resample(np.zeros(800), 8_000, 16_000).shape
        (1600,)
    """
    source, target = as_rate(from_hz, "from_hz"), as_rate(to_hz, "to_hz")
    checked = as_samples(samples)
    if source == target or len(checked) == 0:
        return checked
    import soxr

    return as_samples(soxr.resample(checked, source, target, quality=_QUALITY))


class StreamResampler:
    """A resampler for audio in pieces.

    The joined output is that of :func:`resample` over the joined input.
    """

    def __init__(self, from_hz: int, to_hz: int, channels: int = 1) -> None:
        self.from_hz = as_rate(from_hz, "from_hz")
        self.to_hz = as_rate(to_hz, "to_hz")
        self.channels = channels
        self._finished = False
        self._stream: Any = None
        if self.from_hz != self.to_hz:
            import soxr

            self._stream = soxr.ResampleStream(from_hz, to_hz, channels, dtype="float32", quality=_QUALITY)

    def write(self, samples: ArrayLike) -> NDArray[np.float32]:
        """Resample samples, and return the finished output. The filter delays a part of it."""
        checked = as_samples(samples)
        if channels_of(checked) != self.channels:
            raise AudioError(f"samples have {channels_of(checked)} channels; this stream has {self.channels}")
        return self._run(checked, last=False)

    def flush(self) -> NDArray[np.float32]:
        """Return the delayed part of the output. No samples can be written afterwards."""
        shape = (0,) if self.channels == 1 else (0, self.channels)
        tail = self._run(np.zeros(shape, dtype=np.float32), last=True)
        self._finished = True
        return tail

    def _run(self, samples: NDArray[np.float32], *, last: bool) -> NDArray[np.float32]:
        if self._finished:
            raise AudioError("the resampler was flushed; make a new one for more samples")
        if self._stream is None:
            return samples
        return as_samples(self._stream.resample_chunk(samples, last=last))
