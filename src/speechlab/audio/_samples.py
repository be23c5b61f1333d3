"""Samples: their checks and scalings for all modules of this room, and the conversion of rates, by soxr."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, TypeAlias

from speechlab._arguments import to_int_if_whole_rate
from speechlab._formats import AudioFormat
from speechlab._require import import_lazily, require
from speechlab.errors import AudioDecodeError, AudioError, UnsupportedAudioError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray
else:
    np = import_lazily("numpy")

# float32 in [-1, 1], shape (frames,) for mono or (frames, channels).
Samples: TypeAlias = "NDArray[np.float32]"

MIN_RATE_HZ = 1_000
MAX_RATE_HZ = 384_000
MAX_CHANNELS = 64

# Lossy codecs and resamplers overshoot by a few tenths of a dB, and engines by a little more; 12 dB is far above
# that and far below unscaled samples (32767.0).
_OVERSHOOT = 4.0
_INTEGER_SCALES = {"int16": 2.0**15, "int32": 2.0**31}
_QUALITY = "HQ"


def parse_format(value: AudioFormat | str) -> AudioFormat:
    """Read the name of a format."""
    try:
        return AudioFormat(value)
    except ValueError:
        names = ", ".join(AudioFormat)
        raise UnsupportedAudioError(f"{value!r} is not an audio format; choose one of: {names}") from None


def check_rate(value: Any, name: str = "sample_rate") -> int:
    """Check a sample rate in Hz."""
    try:
        rate = operator.index(to_int_if_whole_rate(value))
    except TypeError:
        rate = 0
    if isinstance(value, bool) or not MIN_RATE_HZ <= rate <= MAX_RATE_HZ:
        limits = f"a whole number of Hz from {MIN_RATE_HZ} to {MAX_RATE_HZ}"
        raise AudioError(f"{name} is {value!r}; it has to be {limits}, such as 24000")
    return rate


def to_samples(values: ArrayLike) -> Samples:
    """Convert samples to float32 in [-1, 1], shape (frames,) for mono or (frames, channels).

    The result may share memory with the argument. Overshoot of up to 12 dB, which codecs, resamplers and engines
    produce, is clipped to ±1. More than that is a scaling mistake, and raises an error.

    Args:
        values: Floats in [-1, 1], or int16 or int32 over their full range.
    """
    array = np.asarray(values)
    if array.dtype.name in _INTEGER_SCALES:
        array = (array / _INTEGER_SCALES[array.dtype.name]).astype(np.float32)
    elif array.dtype.kind != "f":
        raise AudioError(
            f"samples have dtype {array.dtype}, which does not set their full scale; give floats in [-1, 1], or "
            "int16 or int32: samples.astype('int16') if they are 16-bit samples in a wider type"
        )
    array = _normalize_shape(array)
    if array.dtype != np.float32:
        # A float64 beyond the range of float32 becomes infinite, and is caught below.
        with np.errstate(over="ignore"):
            array = array.astype(np.float32)
    if array.size == 0:
        return array
    peak = max(float(array.max()), -float(array.min()))
    if not np.isfinite(peak):
        bad = int(array.size - np.count_nonzero(np.isfinite(array)))
        raise AudioError(
            f"{bad} of {array.size} samples are not finite (NaN or infinite); replace them first"
        )
    if peak > _OVERSHOOT:
        text = f"samples reach {peak:g}, but floats are read as [-1, 1]; divide by full scale, or give int16"
        raise AudioError(text)
    return np.clip(array, -1.0, 1.0) if peak > 1.0 else array


def _normalize_shape(array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in {1, 2}:
        raise AudioError(f"samples have shape {array.shape}; give (frames,) or (frames, channels)")
    if array.ndim == 2 and not 1 <= array.shape[1] <= MAX_CHANNELS:
        hint = "; transpose them if that is (channels, frames)" if array.shape[1] > array.shape[0] else ""
        raise AudioError(f"samples have shape {array.shape}; they need 1 to {MAX_CHANNELS} channels{hint}")
    return array


def count_channels(samples: Samples) -> int:
    """Number of channels of checked samples."""
    return 1 if samples.ndim == 1 else int(samples.shape[1])


def format_layout(samples: Samples) -> str:
    """Name of the channel layout of checked samples: ``"mono"``, ``"stereo"``, ``"6 channels"``."""
    channels = count_channels(samples)
    return {1: "mono", 2: "stereo"}.get(channels, f"{channels} channels")


# Least power of a mix, over the mean power of its channels. Channels that have nothing in common keep a part by their
# number, 1/64 of the most channels that there are; only a wrong polarity makes them cancel each other.
_CANCELLATION_RATIO = 0.01


def mix_to_mono(samples: Samples) -> Samples:
    """Average the channels, or take the loudest if they cancel each other: shape (frames,); itself if it is mono."""
    if samples.ndim == 1:
        return samples
    mono: Samples = samples.mean(axis=1, dtype=np.float32)
    powers = np.einsum("fc,fc->c", samples, samples, dtype=np.float64)
    if np.einsum("f,f->", mono, mono, dtype=np.float64) < _CANCELLATION_RATIO * powers.mean():
        return np.ascontiguousarray(samples[:, powers.argmax()])
    return mono


def to_pcm16(samples: Samples) -> bytes:
    """Signed 16-bit little-endian bytes, channels interleaved; the inverse of :func:`from_pcm16`."""
    scaled = np.rint(samples.astype(np.float64) * 32768.0)
    return np.clip(scaled, -32768, 32767).astype("<i2").tobytes()


def from_pcm16(data: bytes | bytearray | memoryview, channels: int) -> Samples:
    """Samples of signed 16-bit little-endian bytes."""
    if isinstance(channels, bool) or not 1 <= channels <= MAX_CHANNELS:
        raise AudioError(f"channels is {channels!r}; it has to be 1 to {MAX_CHANNELS}")
    size = memoryview(data).nbytes
    if size % (2 * channels):
        text = (
            f"{size} bytes are not whole frames of {channels} x 16 bits; the data is truncated, or is not PCM"
        )
        raise AudioDecodeError(text)
    flat = np.frombuffer(data, dtype="<i2").astype(np.float32) / np.float32(32768.0)
    return flat if channels == 1 else flat.reshape(-1, channels)


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
    source, target = check_rate(from_hz, "from_hz"), check_rate(to_hz, "to_hz")
    checked = to_samples(samples)
    if source == target or len(checked) == 0:
        return checked
    require("soxr")
    import soxr

    return to_samples(soxr.resample(checked, source, target, quality=_QUALITY))


class StreamResampler:
    """A resampler for one channel of audio in pieces.

    The joined output is that of :func:`resample` over the joined input.
    """

    def __init__(self, from_hz: int, to_hz: int) -> None:
        source, target = check_rate(from_hz, "from_hz"), check_rate(to_hz, "to_hz")
        self._finished = False
        self._stream: Any = None
        if source != target:
            require("soxr")
            import soxr

            self._stream = soxr.ResampleStream(source, target, 1, dtype="float32", quality=_QUALITY)

    def write(self, samples: ArrayLike) -> NDArray[np.float32]:
        """Resample samples, and return the finished output. The filter delays a part of it."""
        checked = to_samples(samples)
        if checked.ndim != 1:
            raise AudioError(f"samples have {count_channels(checked)} channels; this stream has 1")
        return self._resample_chunk(checked, last=False)

    def flush(self) -> NDArray[np.float32]:
        """Return the delayed part of the output. No samples can be written afterwards."""
        tail = self._resample_chunk(np.zeros(0, dtype=np.float32), last=True)
        self._finished = True
        return tail

    def _resample_chunk(self, samples: NDArray[np.float32], *, last: bool) -> NDArray[np.float32]:
        if self._finished:
            raise AudioError("the resampler was flushed; make a new one for more samples")
        if self._stream is None:
            return samples
        return to_samples(self._stream.resample_chunk(samples, last=last))
