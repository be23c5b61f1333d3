"""Conditions of recordings: unchanged, with noise at given levels, or limited to bands."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab._arguments import build_argument_error, is_number
from speechlab._pandas import pd
from speechlab.audio import AudioClip, to_clip
from speechlab.errors import AudioError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.store import Store

AS_RECORDED = "as recorded"
# Sample rate of recognizers in Hz. Noise above half of it would count in the level, but not reach a
# recognizer.
RATE = 16_000
# Assumed level of speech of a recording without speech (ITU-T P.56, nominal).
_NOMINAL_DB = -26.0
_SLOPE_HZ = 100.0
_TIME_S, _HANGOVER_S, _MARGIN_DB = 0.03, 0.2, 15.9
# Rate at which the envelope, with a time constant of 30 ms, is sampled.
_STEP_S = 0.005
_THRESHOLDS = 2.0 ** -np.arange(16)
_NOISES = "'speech' (shaped like the recording), 'white', or a recording of noise"


class Condition(NamedTuple):
    """A change of a recording, such as added noise."""

    name: str
    snr_db: float | None = None
    band_hz: tuple[float, float] | None = None


def build_conditions(noise_db: object, band_hz: object) -> list[Condition]:
    """Return the conditions, with the unchanged recordings first; none if no change is requested."""
    levels = noise_db if isinstance(noise_db, Iterable) and not isinstance(noise_db, str) else [noise_db]
    conditions = []
    for level in levels:
        if not is_number(level) or not -60 <= level <= 100:
            raise build_argument_error(
                "noise_db", noise_db, "signal-to-noise ratios in dB from -60 to 100, as in [20, 10, 0]"
            )
        conditions.append(Condition(f"noise {float(level):g} dB", snr_db=float(level)))
    conditions.sort(key=lambda condition: -(condition.snr_db or 0.0))
    bands = band_hz if isinstance(band_hz, Iterable) and not isinstance(band_hz, str) else [band_hz]
    for band in bands:
        limits = list(band) if isinstance(band, tuple | list) else []
        if len(limits) != 2 or not all(map(is_number, limits)) or not 0 <= limits[0] < limits[1] <= RATE / 2:
            allowed = f"bands of two frequencies from 0 to {RATE // 2} Hz, as in [(300, 3400)]"
            raise build_argument_error("band_hz", band_hz, allowed)
        low, high = map(float, limits)
        conditions.append(Condition(f"{low:g} to {high:g} Hz", band_hz=(low, high)))
    distinct = list(dict.fromkeys(conditions))
    return [Condition(AS_RECORDED), *distinct] if distinct else []


def apply_conditions(
    rows: pd.DataFrame, conditions: list[Condition], noise: object, seed: int, store: Store
) -> pd.DataFrame:
    """Return the rows under each of the conditions, with ``condition`` and ``snr_db``.

    The recordings are converted to mono at 16 kHz, changed, and kept in the store as FLAC. Unreadable recordings stay
    unchanged, and fail later.
    """
    masking = _resolve_noise(noise)
    changed: dict[str, list[object]] = {condition.name: [] for condition in conditions[1:]}
    for cell in rows["audio"]:
        try:
            clip = to_clip(cell)
        except (AudioError, OSError, TypeError, ValueError):
            clip = None
        samples = None if clip is None else clip.to_mono().resample(RATE).samples
        masker = None if samples is None else _generate_noise(samples, masking, seed)
        for condition in conditions[1:]:
            if samples is None or masker is None:
                changed[condition.name].append(cell)
                continue
            if condition.band_hz:
                samples_now = _limit_band(samples, *condition.band_hz)
            else:
                samples_now = _add_noise(samples, masker, condition.snr_db or 0.0)
            blob = store.blobs.add_bytes(AudioClip(samples_now, RATE).encode("flac"), ".flac")
            changed[condition.name].append(str(store.blobs.resolve_path(blob.sha256, blob.suffix)))
    tables = [
        rows.assign(
            audio=rows["audio"]
            if condition.name == AS_RECORDED
            else pd.Series(changed[condition.name], rows.index, object),
            condition=condition.name,
            snr_db=pd.array([condition.snr_db] * len(rows), dtype="Float64"),
        )
        for condition in conditions
    ]
    return pd.concat(tables, ignore_index=True)


def _resolve_noise(noise: object) -> NDArray[np.float32] | str:
    """Return the samples of a recording of noise, or the name of a kind of noise."""
    if isinstance(noise, str) and noise in {"speech", "white"}:
        return noise
    try:
        samples = to_clip(noise).to_mono().resample(RATE).samples
    except (AudioError, OSError, TypeError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise build_argument_error("noise", noise, f"{_NOISES}, and is not read as one: {why}") from error
    if measure_level_db(samples) is None:
        raise build_argument_error("noise", noise, f"{_NOISES}; this one is silent")
    return samples


def _generate_noise(samples: NDArray[np.float32], noise: object, seed: int) -> NDArray[np.float64]:
    """Return noise of the length of the recording, at any level; the same recording and seed give the same noise."""
    digest = hashlib.sha256(samples.tobytes()).digest()[:8]
    generator = np.random.default_rng([seed, int.from_bytes(digest, "big")])
    count = len(samples)
    if isinstance(noise, np.ndarray):
        start = int(generator.integers(len(noise)))
        return np.resize(np.roll(noise, -start), count).astype(np.float64)
    if noise == "speech" and measure_level_db(samples) is not None:
        spectrum = np.fft.rfft(samples.astype(np.float64))
        phases = np.exp(2j * np.pi * generator.random(len(spectrum)))
        return np.fft.irfft(np.abs(spectrum) * phases, count)
    return generator.standard_normal(count)


def _add_noise(
    samples: NDArray[np.float32], noise: NDArray[np.float64], snr_db: float
) -> NDArray[np.float32]:
    """Return the recording with noise, attenuated as a whole if it would exceed full scale."""
    speech = measure_active_level_db(samples, RATE)
    target_db = (_NOMINAL_DB if speech is None else speech) - snr_db
    noise_db = measure_level_db(noise)
    mixed = samples + noise * (0.0 if noise_db is None else 10 ** ((target_db - noise_db) / 20))
    peak = float(np.abs(mixed).max(initial=0.0))
    return (mixed / max(1.0, peak)).astype(np.float32)


def _limit_band(samples: NDArray[np.float32], low_hz: float, high_hz: float) -> NDArray[np.float32]:
    """Return the recording limited to a band, with zero phase and edges of raised cosines of 100 Hz."""
    size = len(samples) + RATE  # padding, so that the end does not wrap to the beginning
    frequencies = np.fft.rfftfreq(size, 1 / RATE)
    outside = np.maximum(np.maximum(low_hz - frequencies, frequencies - high_hz), 0.0) / _SLOPE_HZ
    gain = np.where(outside < 1, 0.5 + 0.5 * np.cos(np.pi * np.minimum(outside, 1)), 0.0)
    limited = np.fft.irfft(np.fft.rfft(samples.astype(np.float64), size) * gain, size)[: len(samples)]
    return (limited / max(1.0, float(np.abs(limited).max(initial=0.0)))).astype(np.float32)


def measure_level_db(samples: NDArray[Any]) -> float | None:
    """Return the level of all samples (root mean square) in dB relative to full scale; None for silence."""
    power = float(np.square(samples, dtype=np.float64).mean()) if len(samples) else 0.0
    return 10 * math.log10(power) if power > 0 else None


def measure_active_level_db(samples: NDArray[np.float32], rate: int) -> float | None:
    """Return the level of the active speech in dB relative to full scale; None for silence.

    Source: ITU-T P.56 (2011), Objective measurement of active speech level, method B.
    """
    level = measure_level_db(samples)
    if level is None:
        return None
    envelope = _compute_envelope(np.abs(samples.astype(np.float64)), rate)[:: max(1, round(_STEP_S * rate))]
    steps = round(_HANGOVER_S / _STEP_S)
    held = np.lib.stride_tricks.sliding_window_view(np.pad(envelope, (steps - 1, 0)), steps).max(axis=1)
    active = (held[:, None] >= _THRESHOLDS).mean(axis=0)
    reached = active > 0
    if not reached.any():
        return None
    levels = level - 10 * np.log10(active[reached])
    margins = levels - 20 * np.log10(_THRESHOLDS[reached])
    return float(np.interp(_MARGIN_DB, margins, levels))


def _compute_envelope(sound: NDArray[np.float64], rate: int) -> NDArray[np.float64]:
    """Return the envelope: two exponential averages in series."""
    decay = math.exp(-1 / (_TIME_S * rate))
    at = np.arange(round(10 * _TIME_S * rate))
    weights = (1 - decay) ** 2 * (at + 1) * decay**at
    size = len(sound) + len(weights) - 1
    smooth = np.fft.irfft(np.fft.rfft(sound, size) * np.fft.rfft(weights, size), size)
    return np.maximum(smooth[: len(sound)], 0.0)
