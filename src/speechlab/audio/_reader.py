"""Recordings of any length, of which only the requested parts are read."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab._require import import_lazily
from speechlab._traces import warn_user
from speechlab.audio._clip import AudioClip
from speechlab.audio._codec.decode import check_expansion
from speechlab.audio._measure import compute_extremes, compute_peaks
from speechlab.audio._pieces import open_sound
from speechlab.audio._recordings import require_recording
from speechlab.errors import AudioDecodeError, AudioError
from speechlab.remote import find_file_name, hide_secrets, is_remote, locate_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = import_lazily("numpy")

# Number of samples above which a file stays on disk (at 16 kHz: 17 minutes).
_MAX_KEPT_SAMPLES = 1 << 24
_SECTION_FRAMES = 256
# Seconds by which tools round the ends of segments.
_SLACK_S = 0.1
_BLOCK = _SECTION_FRAMES << 10


class _Survey(NamedTuple):
    """Results of one pass over a recording: minimum and maximum of each 256 frames, and the mean square."""

    low: NDArray[np.float32]
    high: NDArray[np.float32]
    power: float


class SoundReader:
    """A recording of which only the requested parts are read, so that a long file needs little memory.

    WAV, FLAC and Ogg files stay on disk. Short files, and MP3 files, whose headers only have an estimate of the
    length, are decoded once.
    """

    def __init__(self, recording: object) -> None:
        source = require_recording(recording)
        self._lock = threading.Lock()
        self._found: _Survey | None = None
        self._path: Path | None = None
        if not isinstance(source, AudioClip | bytes):
            self._path = locate_file(source)
            self._path.stat()
        self._clip = source if isinstance(source, AudioClip) else self._load_short_clip(source)
        if self._clip is not None:
            self.sample_rate, self.frames = self._clip.sample_rate, self._clip.frames
            self.channels, self.title = self._clip.channels, self._clip.title
        elif self._path is not None:
            self.title = find_file_name(source)

    @property
    def duration_s(self) -> float:
        """Duration in seconds."""
        return self.frames / self.sample_rate

    def read(self, start_s: float, end_s: float) -> AudioClip:
        """Return the clip from ``start_s`` to ``end_s`` seconds, without the part beyond the end."""
        first, last = self._to_frame_number(start_s), self._to_frame_number(end_s)
        if self._clip is not None:
            return AudioClip(self._clip.samples[first:last], self.sample_rate)
        return AudioClip(
            next(self._read_blocks(first, max(last - first, 1)))[: last - first], self.sample_rate
        )

    def read_outline(self, start_s: float, end_s: float, count: int) -> NDArray[np.float32]:
        """Return the lowest and highest sample of each of ``count`` equal sections, shape (count, 2).

        The first call for a long section reads the whole recording once.
        """
        first, last = self._to_frame_number(start_s), self._to_frame_number(end_s)
        if last - first < 2 * _SECTION_FRAMES * count:
            return compute_peaks(self.read(start_s, end_s).samples, count)
        survey = self._measure_extremes_and_power()
        starts = ((first + np.arange(count) * ((last - first) / count)) / _SECTION_FRAMES).astype(np.int64)
        end = math.ceil(last / _SECTION_FRAMES)
        low = np.minimum.reduceat(survey.low[:end], starts)
        return np.stack([low, np.maximum.reduceat(survey.high[:end], starts)], axis=1)

    def rms_dbfs(self) -> float:
        """Return the level of the whole recording in dB below full scale; minus infinity for silence."""
        power = self._measure_extremes_and_power().power
        return 10.0 * math.log10(power) if power > 0 else -math.inf

    def _to_frame_number(self, seconds: float) -> int:
        return min(max(round(seconds * self.sample_rate), 0), self.frames)

    def _load_short_clip(self, source: bytes | str | os.PathLike[str]) -> AudioClip | None:
        """Return the decoded clip; None for a long recording, which is read from its file."""
        if self._path is not None:
            with open_sound(source) as sound:
                file = sound.file
                if (
                    file is not None
                    and _MAX_KEPT_SAMPLES < file.frames * file.channels < _MAX_KEPT_SAMPLES**2
                ):
                    self.sample_rate, self.channels = file.samplerate, file.channels
                    self.frames = file.frames
                    return None
        return AudioClip.from_bytes(source) if isinstance(source, bytes) else AudioClip.from_file(source)

    def _measure_extremes_and_power(self) -> _Survey:
        with self._lock:
            if self._found is None:
                surveys = [_measure_block(block) for block in self._read_blocks(0, _BLOCK)]
                power = sum(survey.power for survey in surveys) / max(self.frames * self.channels, 1)
                low, high = (np.concatenate([survey[side] for survey in surveys]) for side in (0, 1))
                self._found = _Survey(low, high, power)
            return self._found

    def _read_blocks(self, first: int, size: int) -> Iterator[NDArray[np.float32]]:
        """Yield the samples from a frame on, ``size`` frames at a time."""
        if self._clip is not None:
            for start in range(first, self.frames, size):
                yield self._clip.samples[start : start + size]
            return
        assert self._path is not None
        self._path.stat()
        with open_sound(self._path) as sound:
            if sound.file is None or sound.file.frames < self.frames:
                raise AudioDecodeError(f"{self.title} is shorter than it was")
            check_expansion(min(size, self.frames - first) * self.channels * 4, len(sound.data))
            sound.file.seek(first)
            # Read without conversion, which is several times as fast.
            exact = sound.file.subtype == "PCM_16"
            for start in range(first, self.frames, size):
                block = sound.file.read(min(size, self.frames - start), dtype="int16" if exact else "float32")
                if len(block) < min(size, self.frames - start):
                    raise AudioDecodeError(f"{self.title} ends before the length that it states")
                yield block.astype(np.float32) / 32_768 if exact else block


def _measure_block(block: NDArray[np.float32]) -> _Survey:
    flat = block.reshape(-1)
    return _Survey(
        *compute_extremes(block, np.arange(0, len(block), _SECTION_FRAMES)), float(np.dot(flat, flat))
    )


class FileSegment(AudioClip):
    """A segment of a file as a clip: its samples are read from the file each time they are used, and are not kept.

    A table may therefore have thousands of segments of long recordings. As a text it is the path with the seconds, as
    in ``talk.wav#t=1.5,4`` (W3C Media Fragments).

    Args:
        path: A WAV, FLAC, OGG or MP3 file, or its address.
        start_s: Start in seconds, 0 or more.
        end_s: End in seconds, after the start; None, or a time after the end of the file, for the end of the file.

    Attributes:
        path: The file; a text if it is an address.
        start_s: Start in seconds.
        end_s: End in seconds, as given.

    Raises:
        AudioError: The times are no such numbers. The file is opened later; if it cannot be read, the samples and
            their properties raise an ``AudioDecodeError``.

    Example:
        >>> AudioClip(np.zeros(16_000), 8_000).save("talk.wav")
        PosixPath('talk.wav')
        >>> segment = FileSegment("talk.wav", 0.5, 1.25)
        >>> segment.duration_s, str(segment)
        (0.75, 'talk.wav#t=0.5,1.25')
    """

    path: Path | str
    start_s: float
    end_s: float | None

    def __init__(
        self, path: str | os.PathLike[str], start_s: float = 0.0, end_s: float | None = None
    ) -> None:
        if not 0 <= start_s < math.inf or not (end_s is None or start_s < end_s < math.inf):
            raise AudioError(
                f"a segment from {start_s!r} to {end_s!r} s; give 0 <= start_s < end_s, in seconds"
            )
        name = find_file_name(path)
        title = f"{name} from {start_s:.2f} s" if end_s is None else f"{name} {start_s:.2f} to {end_s:.2f} s"
        object.__setattr__(self, "title", title)
        object.__setattr__(self, "source_format", None)
        place = str(hide_secrets(path)) if is_remote(path) else Path(path)
        self.__dict__.update(path=place, start_s=start_s, end_s=end_s)

    @property
    def samples(self) -> NDArray[np.float32]:
        """The samples of the segment: float32 in [-1, 1], shape (frames,) or (frames, channels)."""
        first, last = self._facts.first, self._facts.last
        with open_sound(self.path) as sound:
            if sound.file is None:
                return AudioClip(self._decode_file().samples[first:last], self.sample_rate).samples
            check_expansion((last - first) * self.channels * 4, len(sound.data))
            sound.file.seek(first)
            samples = sound.file.read(last - first, dtype="float32")
            if len(samples) < last - first:
                raise AudioDecodeError(f"it has {first + len(samples)} of {sound.file.frames} frames")
            return AudioClip(samples, self.sample_rate).samples

    @property
    def sample_rate(self) -> int:
        """Sample rate in Hz."""
        return self._facts.sample_rate

    @property
    def frames(self) -> int:
        """Number of samples in each channel."""
        return self._facts.last - self._facts.first

    @property
    def channels(self) -> int:
        """Number of channels."""
        return self._facts.channels

    @cached_property
    def _facts(self) -> _SegmentFacts:
        with open_sound(self.path) as sound:
            source: Any = sound.file or self._decode_file()
            rate = source.sample_rate if sound.file is None else source.samplerate
            last = source.frames if self.end_s is None else min(round(self.end_s * rate), source.frames)
            if (
                is_remote(self.path)
                and self.end_s is not None
                and self.end_s > source.frames / rate + _SLACK_S
            ):
                message = (
                    f"{self} ends after its recording of {source.frames / rate:.10g} s, and is cut there"
                )
                warn_user(message, stacklevel=3)
            return _SegmentFacts(rate, source.channels, min(round(self.start_s * rate), last), last)

    def _decode_file(self) -> AudioClip:
        place = locate_file(self.path)
        return _decode_whole_file(place, place.stat().st_mtime_ns)

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)  # a check for missing values reads no file

    __hash__ = AudioClip.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return FileSegment, (self.path, self.start_s, self.end_s)

    def __repr__(self) -> str:
        return f"FileSegment({str(self.path)!r}, {self.start_s!r}, {self.end_s!r})"

    def __str__(self) -> str:
        end = "" if self.end_s is None else f",{self.end_s:.10g}"
        return f"{self.path}#t={self.start_s:.10g}{end}"


class _SegmentFacts(NamedTuple):
    """Properties of a file that a segment of it has, and its first frame and the one after its last."""

    sample_rate: int
    channels: int
    first: int
    last: int


@lru_cache(maxsize=1)
def _decode_whole_file(path: Path, _: int) -> AudioClip:
    """Return a file that has to be decoded as a whole; the last one is kept, as long as it does not change."""
    return AudioClip.from_file(path)
