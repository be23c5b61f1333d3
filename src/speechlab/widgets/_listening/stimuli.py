"""The sounds of a listening test: at one loudness, each with unique bytes; and anchors made from a reference."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab.audio import AudioClip
from speechlab.batch import show_progress
from speechlab.errors import AudioError, InvalidRequestError
from speechlab.listening import ANCHORS_HZ, Stimulus
from speechlab.metrics import loudness
from speechlab.widgets._shared.sounds import LEVEL_LUFS, PEAK, Sounds, describe_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STEP = 2.0**-15
# Speech-to-noise ratio of the sound of a check. An attentive listener rates it as bad.
_NOISE_DB = -5.0
_MAX_S = 120.0
# Maximum size of a sound in bytes. A sound is one message; connections close without an error above ten
# million.
_MAX_BYTES = 9_500_000
_STOP_HZ = 500.0
_STOP_DB = 60.0


class Stimuli:
    """The recordings of a test at one loudness, and a digest that identifies them."""

    def __init__(
        self, cells: Sequence[Any], names: Sequence[str], *, equal_level: bool, progress: bool = False
    ) -> None:
        self._sounds = Sounds(cells)
        self._names = names
        self._gains = np.ones(len(cells), np.float32)
        self.level_lufs = math.nan
        self._sizes = np.zeros(len(cells), np.int64)
        digest = hashlib.sha256()
        levels, room = np.full(len(cells), np.nan), np.full(len(cells), np.nan)
        with show_progress(progress, len(cells), "sounds", unit="sound", delay_s=1.0) as advance:
            for row in range(len(cells)):  # an unplayable recording is refused before the test begins
                clip = self._read_clip(row)
                self._sizes[row] = 2 * clip.samples.size
                digest.update(f"{clip.sample_rate} {clip.samples.shape}".encode())
                digest.update(clip.samples.tobytes())
                if equal_level:
                    levels[row] = loudness(clip.to_mono())
                    room[row] = 20 * math.log10(PEAK / clip.peak) if clip.peak else np.nan
                advance()
        self.digest = digest.hexdigest()
        measured = np.isfinite(levels)
        if measured.any():  # gains for equal loudness without clipping
            self.level_lufs = min(LEVEL_LUFS, float((levels + room)[measured].min()))
            self._gains[measured] = 10 ** ((self.level_lufs - levels[measured]) / 20)

    def _read_clip(self, row: int) -> AudioClip:
        try:
            clip = self._sounds.read_clip(row)
        except (AudioError, OSError) as error:
            message = f"{self._names[row]}: {describe_error(error)}; a test needs the sound of every row"
            raise InvalidRequestError(message, parameter="audio") from None
        clip = clip if clip.channels <= 2 else clip.to_mono()
        size = 2 * clip.samples.size
        if clip.duration_s > _MAX_S or size > _MAX_BYTES:
            length = f"{self._names[row]} takes {clip.duration_s:.0f} s, {size / 1e6:.1f} MB at 16 bits"
            message = f"{length}; the maximum for a test is {_MAX_S:.0f} s and {_MAX_BYTES / 1e6} MB"
            raise InvalidRequestError(message, parameter="audio")
        return clip

    def get_sample_rate(self, row: int) -> int:
        """Return the sample rate of a recording in Hz."""
        return self._read_clip(row).sample_rate

    def get_size(self, sound: Stimulus) -> int:
        """Return the size of a sound in bytes before encoding, at 16 bits."""
        return int(self._sizes[sound.row])

    def treat_and_encode_sound(self, sound: Stimulus) -> bytes:
        """Return a sound as FLAC with 16 bits."""
        clip = self._read_clip(sound.row)
        random = np.random.default_rng(sound.seed)
        samples = clip.samples * self._gains[sound.row]
        if sound.kind in ANCHORS_HZ:
            samples = _filter_low_pass(samples, clip.sample_rate, ANCHORS_HZ[sound.kind])
        elif sound.kind == "noise":
            samples = _add_noise(samples, random)
        # equal recordings get different bytes, so that no comparison of them reveals the hidden reference
        shape = samples.shape
        dither = (random.random(shape, np.float32) - random.random(shape, np.float32)) * np.float32(_STEP)
        dithered = np.clip(samples + dither, -1.0, 1.0).astype(np.float32)
        return AudioClip(dithered, clip.sample_rate).encode("flac")


def _add_noise(samples: NDArray[np.float32], random: np.random.Generator) -> NDArray[np.float32]:
    """Add white noise to samples without an increase of the level."""
    noise = random.standard_normal(samples.shape, np.float32)
    power = float(np.sqrt(np.mean(samples.astype(np.float64) ** 2))) or 0.05
    mixed = samples + noise * np.float32(power * 10 ** (-_NOISE_DB / 20))
    level = float(np.sqrt(np.mean(mixed.astype(np.float64) ** 2)))
    return np.asarray(np.clip(mixed * np.float32(0.7 * power / level), -1, 1), dtype=np.float32)


def _filter_low_pass(samples: NDArray[np.float32], rate: int, cutoff_hz: float) -> NDArray[np.float32]:
    """Return samples, shape (frames,) or (frames, channels), low-passed without a delay.

    The response is flat within 0.1 dB up to the cutoff, and 60 dB down from 500 Hz above it. ITU-R BS.1534-3 requires
    25 dB there, and 50 dB another 500 Hz above. The filter is a sinc with Kaiser's window (J. F. Kaiser, 1974).
    """
    width = _STOP_HZ / rate
    half = math.ceil((_STOP_DB - 7.95) / (14.36 * width) / 2)
    places = np.arange(-half, half + 1)
    middle = 2 * (cutoff_hz + _STOP_HZ / 2) / rate
    taps = middle * np.sinc(middle * places) * np.kaiser(2 * half + 1, 0.1102 * (_STOP_DB - 8.7))
    taps /= taps.sum()
    size = 1 << (len(samples) + len(taps)).bit_length()
    columns = samples.reshape(len(samples), -1).astype(np.float64)
    spectrum = np.fft.rfft(columns, size, axis=0) * np.fft.rfft(taps, size)[:, None]
    filtered = np.fft.irfft(spectrum, size, axis=0)[half : half + len(samples)]
    return np.asarray(filtered.reshape(samples.shape), dtype=np.float32)
