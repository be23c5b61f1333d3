"""Measures of samples alone: level, loudness, silence, clipping, endings, and fundamental frequency by YIN.

YIN is implemented here because the good packages are either GPL (praat-parselmouth) or larger than the rest of this
room (librosa with numba). YIN with a median filter is enough for statistics of F0 over a clip. The tests compare it
with signals of known pitch.

Source: A. de Cheveigné, H. Kawahara, YIN, a fundamental frequency estimator for speech and music (JASA 111, 2002).
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from speechlab._arguments import is_number
from speechlab.audio import find_loud_windows
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from numpy.typing import NDArray

WINDOW_S = 0.01
_FULL_SCALE = 0.999
_CLIPPED_RUN = 3

# -- silence


class Silence(NamedTuple):
    """Silences of a clip, in windows of 10 ms."""

    loud: NDArray[np.bool_]
    power: NDArray[np.float64]

    @property
    def ratio(self) -> float:
        """Fraction of the clip that is silent."""
        return 1.0 - float(self.loud.mean()) if len(self.loud) else math.nan

    @property
    def edges(self) -> tuple[int, int]:
        """Silent windows before the first and after the last sound; without any sound, all windows twice."""
        at = np.flatnonzero(self.loud)
        return (int(at[0]), len(self.loud) - 1 - int(at[-1])) if at.size else (len(self.loud), len(self.loud))

    @property
    def longest_pause(self) -> int:
        """Number of windows in the longest silence between two sounds."""
        gaps = np.diff(np.flatnonzero(self.loud)) - 1
        return int(gaps.max()) if gaps.size else 0


def find_silence(mono: NDArray[np.float32], sample_rate: int, threshold_db: float) -> Silence:
    """Find the windows whose power is less than ``threshold_db`` below that of the loudest, and above -70 dBFS."""
    _, loud, power = find_loud_windows(mono, sample_rate, threshold_db)
    return Silence(loud, power)


# -- level


def measure_clipping_ratio(samples: NDArray[np.float32]) -> float:
    """Fraction of samples at full scale in runs of three or more; a shorter run is not clipping."""
    if not samples.size:
        return math.nan
    columns = samples.reshape(len(samples), -1)
    full = np.abs(columns) >= _FULL_SCALE
    runs = full[2:] & full[1:-1] & full[:-2]
    clipped = np.zeros_like(full)
    for offset in range(_CLIPPED_RUN):
        clipped[offset : offset + len(runs)] |= runs
    return float(clipped.mean())


_BLOCK_S, _STEP_S = 0.4, 0.1
_ABSOLUTE_GATE = -70.0
_RELATIVE_GATE = -10.0
_OFFSET = -0.691
_FFT_SIZE = 1 << 18
# The surround channels of 5.1 count more (BS.1770, table 3). The low-frequency channel counts like the others here.
_CHANNEL_GAINS = (1.0, 1.0, 1.0, 1.41, 1.41)


def integrated_loudness(samples: NDArray[np.float32], sample_rate: int) -> float:
    """Integrated loudness in LUFS; NaN for less than 0.4 s, or where everything is below the gate.

    Source: ITU-R BS.1770-4, annex 1; filters for any sample rate after B. De Man, Evaluation of implementations of
    the EBU R128 loudness measurement (AES 145, 2018).
    """
    if len(samples) < _BLOCK_S * sample_rate:
        return math.nan
    columns = samples.reshape(len(samples), -1)
    blocks = int((len(columns) / sample_rate - _BLOCK_S) / _STEP_S + 1e-9) + 1
    starts = (np.arange(blocks) * _STEP_S * sample_rate).astype(int)
    stops = np.minimum((starts + _BLOCK_S * sample_rate).astype(int), len(columns))
    total = np.zeros(blocks)
    for channel, column in enumerate(columns.T):
        gain = _CHANNEL_GAINS[channel] if channel < len(_CHANNEL_GAINS) else 1.0
        sums = np.concatenate([[0.0], np.square(_apply_k_weighting(column, sample_rate)).cumsum()])
        total += gain * (sums[stops] - sums[starts]) / (_BLOCK_S * sample_rate)
    gated = total[total > 10 ** ((_ABSOLUTE_GATE - _OFFSET) / 10)]
    if not gated.size:
        return math.nan
    gated = gated[gated > gated.mean() * 10 ** (_RELATIVE_GATE / 10)]
    return _OFFSET + 10 * math.log10(float(gated.mean()))


def _apply_k_weighting(column: NDArray[np.float32], sample_rate: int) -> NDArray[np.float64]:
    # Filtered in chunks, by the frequency response. The filters decay within milliseconds, so half a second of the
    # samples before and of zeros after removes the seams between chunks (below 1e-9).
    roll = min(sample_rate // 2, _FFT_SIZE // 4)
    chunk = _FFT_SIZE - 2 * roll
    size = min(_FFT_SIZE, 1 << (len(column) + roll).bit_length())
    response = _compute_k_weighting_response(size, sample_rate)
    weighted = np.empty(len(column))
    for start in range(0, len(column), chunk):
        first = max(start - roll, 0)
        piece = column[first : start + chunk].astype(np.float64)
        filtered = np.fft.irfft(np.fft.rfft(piece, size) * response, size)
        weighted[start : start + chunk] = filtered[start - first : len(piece)]
    return weighted


@lru_cache(maxsize=16)
def _compute_k_weighting_response(size: int, sample_rate: int) -> NDArray[np.complex128]:
    z = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)
    shelf_k = math.tan(math.pi * 1681.974450955533 / sample_rate)
    shelf_q = 0.7071752369554196
    high = 10 ** (3.999843853973347 / 20)
    middle = high**0.4996667741545416
    shelf = (
        (high + middle * shelf_k / shelf_q + shelf_k**2)
        + 2 * (shelf_k**2 - high) * z
        + (high - middle * shelf_k / shelf_q + shelf_k**2) * z**2
    ) / (
        (1 + shelf_k / shelf_q + shelf_k**2)
        + 2 * (shelf_k**2 - 1) * z
        + (1 - shelf_k / shelf_q + shelf_k**2) * z**2
    )
    pass_k = math.tan(math.pi * 38.13547087602444 / sample_rate)
    pass_q = 0.5003270373238773
    # The standard does not scale the high pass, so its gain is a little above 1.
    scale = 1 + pass_k / pass_q + pass_k**2
    high_pass = (1 - 2 * z + z**2) / (
        1 + 2 * (pass_k**2 - 1) / scale * z + (1 - pass_k / pass_q + pass_k**2) / scale * z**2
    )
    return np.asarray(shelf * high_pass, dtype=np.complex128)


# -- endings

_TAIL_S = 0.03
_ABRUPT_DB = 10.0


def has_abrupt_end(quiet: Silence) -> bool:
    """Return whether the last 30 ms are nearly as loud as the speech: a sign that the end was cut off.

    Speech takes at least some tens of milliseconds to fade. A clip that stops less than 10 dB below the median of its
    sounding windows has probably lost its end.
    """
    tail = round(_TAIL_S / WINDOW_S)
    if len(quiet.power) <= tail or not quiet.loud.any():
        return False
    speech = float(np.median(quiet.power[quiet.loud]))
    # A mean over windows, because the last window may have few samples.
    return float(quiet.power[-tail:].mean()) > speech * 10 ** (-_ABRUPT_DB / 10)


_BANDS = 24
_HOP_S = 0.01
_FRAME_S = 0.025
_SHORTEST_REPEAT_S, _LONGEST_REPEAT_S = 0.15, 2.5
_PART = 0.75  # share of the period that must be alike; the rest may be a pause
_ALIKE = 0.85
_CONTRAST = 0.5  # in natural logarithm of power; steadier sounds have no shape to repeat


def has_repeated_end(mono: NDArray[np.float32], sample_rate: int, quiet: Silence) -> bool:
    """Whether the last 0.15 to 2.5 s sound like the part before: a loop, which is a known fault of synthesizers.

    The spectra of the end and of the part before it are correlated, with or without a pause between them. The spectra
    have 24 logarithmic bands, without the level of each frame and without their mean. A steady sound has no shape
    then, and is not a repetition.
    """
    lead, trail = quiet.edges
    window = max(round(sample_rate * WINDOW_S), 1)
    sound = mono[lead * window : len(mono) - trail * window]
    features = _measure_band_levels(sound, sample_rate)
    features = features - features.mean(axis=1, keepdims=True)
    shortest, longest = round(_SHORTEST_REPEAT_S / _HOP_S), round(_LONGEST_REPEAT_S / _HOP_S)
    lags = np.arange(shortest, min(longest, len(features) // 2) + 1)
    return bool(len(lags)) and bool(are_ends_alike(features, lags, shortest).any())


def are_ends_alike(
    features: NDArray[np.float64], lags: NDArray[np.int64], shortest: int
) -> NDArray[np.bool_]:
    """Return for each lag whether as many last frames, or most of them, are like those ``lag`` frames before."""
    backward, most = np.ascontiguousarray(features[::-1]), int(lags[-1])
    # Sums over the last k frames: of each band, of squares, and of products with the frames a lag before.
    sums = np.concatenate([np.zeros((1, _BANDS)), backward.cumsum(axis=0)])
    squares = np.concatenate([[0.0], np.square(backward).sum(axis=1).cumsum()])
    # not ``@``: the threads of a linear algebra library take longer to start than this sum takes
    products = np.einsum("kb,bl->kl", backward[:most], np.ascontiguousarray(backward[: 2 * most].T))
    row, column = products.strides
    diagonals = np.lib.stride_tricks.as_strided(
        products[:, lags[0] :], (len(lags), most), (column, row + column), writeable=False
    )
    lengths = np.stack([lags, np.maximum(np.rint(_PART * lags).astype(np.int64), shortest)])
    together = diagonals.cumsum(axis=1)[np.arange(len(lags)), lengths - 1]
    end, before = sums[lengths], sums[lags + lengths] - sums[lags]
    end_spread = squares[lengths] - np.square(end).sum(axis=-1) / lengths
    spread_before = squares[lags + lengths] - squares[lags] - np.square(before).sum(axis=-1) / lengths
    alike = (together - (end * before).sum(axis=-1) / lengths) / (lengths * _BANDS)
    spread = np.sqrt(np.maximum(end_spread * spread_before, 0)) / (lengths * _BANDS)
    is_alike: NDArray[np.bool_] = ((spread > _CONTRAST**2) & (alike > _ALIKE * spread)).any(axis=0)
    return is_alike


def _measure_band_levels(sound: NDArray[np.float32], sample_rate: int) -> NDArray[np.float64]:
    """Logarithmic power of bands of equal width on a mel-like scale, every 10 ms; shape (frames, bands)."""
    size, hop = round(_FRAME_S * sample_rate), round(_HOP_S * sample_rate)
    tail = round((2 * _LONGEST_REPEAT_S + 0.1) * sample_rate)
    sound = sound[-tail:]
    if len(sound) < size:
        return np.zeros((0, _BANDS))
    frames = np.lib.stride_tricks.sliding_window_view(sound, size)[::hop]
    power = np.square(np.abs(np.fft.rfft(frames * np.hanning(size), axis=1)))
    top = min(sample_rate / 2, 8_000.0)
    edges = 700 * ((1 + top / 700) ** (np.arange(_BANDS + 1) / _BANDS) - 1)
    places = np.minimum((edges / sample_rate * size).astype(int), power.shape[1] - 1)
    bands = np.add.reduceat(power, places[:-1], axis=1)
    return np.asarray(np.log(np.maximum(bands, power.max() * 1e-5 + 1e-12)))


# Greatest aperiodic share of the power in a voiced frame. YIN's paper has 0.1, for clean speech. On 37 recordings of
# synthesized speech, 0.3 came closest to the voiced frames of Praat, and did not change the median.
_VOICED = 0.3
_NEARLY = 0.1
_QUIET = 10 ** (-40 / 10)  # frames more than 40 dB below the loudest are ignored
_FRAMES_AT_ONCE = 2_000
_OCTAVE = 1.6  # a jump by more than this factor within 50 ms is an octave error, not speech


def measure_f0(
    samples: NDArray[np.float32], sample_rate: int, low_hz: float = 60.0, high_hz: float = 500.0
) -> NDArray[np.float64]:
    """F0 every 10 ms, in Hz; NaN for frames without voice."""
    check_pitch_range((low_hz, high_hz), sample_rate)
    window, step = round(_FRAME_S * sample_rate), round(_HOP_S * sample_rate)
    longest = int(sample_rate / low_hz) + 2
    size = window + longest
    count = (len(samples) - size) // step + 1
    if count < 1:
        return np.full(0, np.nan)
    frames = np.lib.stride_tricks.sliding_window_view(samples, size)[::step][:count]
    power = np.empty(count)
    for start in range(0, count, _FRAMES_AT_ONCE):
        power[start : start + _FRAMES_AT_ONCE] = np.square(
            frames[start : start + _FRAMES_AT_ONCE], dtype=np.float64
        ).mean(axis=1)
    pitch = np.full(count, np.nan)
    loud = np.flatnonzero(power > power.max() * _QUIET)
    for start in range(0, len(loud), _FRAMES_AT_ONCE):
        chosen = loud[start : start + _FRAMES_AT_ONCE]
        pitch[chosen] = _estimate_pitch(
            frames[chosen].astype(np.float64), window, longest, sample_rate, high_hz
        )
    return _mask_pitch_jumps(pitch)


def check_pitch_range(f0_range_hz: object, sample_rate: int) -> None:
    """Refuse an invalid range of pitches, or a range that is too high for the sample rate."""
    pair = f0_range_hz if isinstance(f0_range_hz, tuple | list) else ()
    numbers = [float(value) for value in pair if is_number(value)]
    if len(pair) != 2 or len(numbers) != 2 or not 0 < numbers[0] < numbers[1] <= sample_rate / 4:
        message = (
            f"f0_range_hz={f0_range_hz!r:.60} is not a range of pitches at {sample_rate} Hz; give a lower and a "
            "higher pitch in Hz, at most a quarter of the sample rate"
        )
        raise InvalidRequestError(message, parameter="f0_range_hz")


def _estimate_pitch(
    frames: NDArray[np.float64], window: int, longest: int, sample_rate: int, high_hz: float
) -> NDArray[np.float64]:
    # A frame is as long as the window and all lags, so that no product wraps around.
    size = _find_fast_size(frames.shape[1])
    spectrum = np.fft.rfft(frames, size)
    spectrum *= np.fft.rfft(frames[:, :window], size).conj()
    products = np.fft.irfft(spectrum, size)[:, :longest]
    energy = np.concatenate([np.zeros((len(frames), 1)), np.square(frames).cumsum(axis=1)], axis=1)
    shifted = energy[:, window : window + longest] - energy[:, :longest]
    difference = np.maximum(shifted[:, :1] + shifted - 2 * products, 0)
    sums = difference[:, 1:].cumsum(axis=1)
    # The cumulative mean normalized difference: 1 at lag 0, small at the period.
    normal = np.ones_like(difference)
    np.divide(difference[:, 1:] * np.arange(1, longest), sums, out=normal[:, 1:], where=sums > 0)
    first = int(sample_rate / high_hz)
    inner = normal[:, first : longest - 1]
    dips = (
        (inner < _VOICED) & (inner <= normal[:, first - 1 : longest - 2]) & (inner < normal[:, first + 1 :])
    )
    # The first dip that is nearly as deep as the deepest one. Later dips are multiples of the period, and shallower
    # dips before it belong to a formant.
    deepest = np.where(dips, inner, 1.0).min(axis=1, keepdims=True)
    dips &= inner <= deepest + _NEARLY
    lags = dips.argmax(axis=1) + first
    rows = np.arange(len(frames))
    before, peak, after = (normal[rows, lags + offset] for offset in (-1, 0, 1))
    bend = before - 2 * peak + after
    fine = np.divide(before - after, 2 * bend, out=np.zeros_like(bend), where=bend > 0)
    return np.where(dips.any(axis=1), sample_rate / (lags + fine), np.nan)


@cache
def _find_fast_size(least: int) -> int:
    """Return the smallest size of at least ``least`` whose transform is fast: 8 times factors of at most 5."""
    sizes = [8 << i for i in range(40)]
    sizes = [size * 3**j * 5**k for size in sizes for j in range(8) for k in range(6)]
    return min(size for size in sizes if size >= least)


def _mask_pitch_jumps(pitch: NDArray[np.float64]) -> NDArray[np.float64]:
    """Drop frames that differ from the frames around them: octave errors, and single frames."""
    padded = np.pad(pitch, 2, constant_values=np.nan)
    around = np.lib.stride_tricks.sliding_window_view(padded, 5)
    ordered, voiced = np.sort(around, axis=1), (~np.isnan(around)).sum(axis=1)  # NaN is last
    rows = np.arange(len(pitch))
    median = (ordered[rows, np.maximum(voiced - 1, 0) // 2] + ordered[rows, voiced // 2]) / 2
    ratio = pitch / median
    plausible = (ratio < _OCTAVE) & (ratio > 1 / _OCTAVE) & (voiced >= 3)
    return np.where(plausible, pitch, np.nan)
