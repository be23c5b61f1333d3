"""Clips, the value type of this room."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_number
from speechlab._brief import shorten_tracebacks
from speechlab._files import expand_user_path, read_regular_file, write_atomically
from speechlab._formats import AudioFormat
from speechlab._require import import_lazily
from speechlab.audio._codec.decode import DecodeLimits, decode_samples
from speechlab.audio._codec.encode import encode_samples
from speechlab.audio._measure import compute_peaks, rms_dbfs
from speechlab.audio._samples import (
    Samples,
    check_rate,
    count_channels,
    format_layout,
    from_pcm16,
    mix_to_mono,
    parse_format,
    resample,
    to_samples,
)
from speechlab.errors import AudioError, UnsupportedAudioError
from speechlab.remote import find_file_name, locate_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = import_lazily("numpy")

_HASH = re.compile(r"[0-9a-f]{64}")
_SUFFIXES = {"wave": "wav", "oga": "ogg", "opus": "ogg", "raw": "pcm"}


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class AudioClip:
    """An immutable audio clip: samples and their rate.

    Two clips are equal if their samples and rates are equal; title and source format are not compared. In a notebook
    a clip shows its waveform and a player.

    Attributes:
        samples: float32 in [-1, 1], shape (frames,) for mono or (frames, channels); read-only. The constructor
            accepts floats of any type, and int16 or int32 over their full range. Overshoot up to 12 dB is clipped to
            ±1.
        sample_rate: Sample rate in Hz.
        title: Title for display.
        source_format: Format of the decoded file, or None.

    Raises:
        AudioError: Samples or rate are not usable. The message has the reason.

    Example:
        >>> clip = AudioClip([0.0, 0.5, -0.5, 0.0], sample_rate=8_000)
        >>> clip.duration_s, clip.peak
        (0.0005, 0.5)
        >>> AudioClip.from_bytes(clip.encode("wav")) == clip
        True
    """

    samples: NDArray[np.float32]
    sample_rate: int
    title: str | None = None
    source_format: AudioFormat | None = None

    def __post_init__(self) -> None:
        samples = to_samples(self.samples)
        if samples.flags.writeable or samples.base is not None:
            # The caller may keep the memory, and an immutable value must not change.
            samples = samples.copy()
        samples.flags.writeable = False
        object.__setattr__(self, "samples", samples)
        object.__setattr__(self, "sample_rate", check_rate(self.sample_rate))
        if self.source_format is not None:
            object.__setattr__(self, "source_format", parse_format(self.source_format))

    # -- constructors

    @classmethod
    @shorten_tracebacks
    def from_file(cls, path: str | os.PathLike[str], *, limits: DecodeLimits | None = None) -> AudioClip:
        """Read a WAV, OGG, MP3 or FLAC file. Its content decides the format, not its name.

        Args:
            path: The file, or its address, as ``https://…``, ``s3://…`` (the extra ``remote``), ``zip://a.wav::b.zip``.
                Its name becomes the title, unless it is a hash, as in the store.
            limits: Limits of the decoded audio; by default four hours and 2 GiB of samples.

        Raises:
            UnsupportedAudioError: The file has another format.
            AudioDecodeError: The file is damaged or truncated.
            AudioLimitError: The audio exceeds the limits.
            OSError: The file cannot be read.
        """
        name = find_file_name(path)
        title = None if _HASH.fullmatch(Path(name).stem) else name
        samples, sample_rate, kind = decode_samples(
            read_regular_file(locate_file(path)), limits or DecodeLimits()
        )
        return AudioClip(samples, sample_rate, title, kind)

    @classmethod
    def from_bytes(
        cls, data: bytes | bytearray | memoryview, limits: DecodeLimits | None = None
    ) -> AudioClip:
        """Decode the bytes of a WAV, OGG, MP3 or FLAC file; the same as :func:`decode`."""
        given: object = data  # type hints are not enforced at run time
        if not isinstance(given, bytes | bytearray | memoryview):
            raise AudioError(f"data is a {type(data).__name__}; give the bytes of a file")
        samples, sample_rate, kind = decode_samples(bytes(data), limits or DecodeLimits())
        return AudioClip(samples, sample_rate, source_format=kind)

    @classmethod
    def from_pcm(cls, data: bytes | bytearray | memoryview, sample_rate: int, channels: int = 1) -> AudioClip:
        """Make a clip of raw PCM: signed 16-bit little-endian, channels interleaved.

        Args:
            data: The bytes.
            sample_rate: Sample rate in Hz, which PCM does not contain.
            channels: Number of channels.

        Raises:
            AudioDecodeError: The bytes end within a frame.
            AudioError: Rate or channels are not usable.
        """
        return cls(from_pcm16(data, channels), sample_rate, source_format=AudioFormat.PCM)

    @classmethod
    def concatenate(cls, clips: Iterable[AudioClip], gap_s: float = 0.0) -> AudioClip:
        """Join clips of one rate and one number of channels; the same as :func:`concatenate`."""
        given: object = clips  # type hints are not enforced at run time
        all_clips: list[Any] = list(given) if isinstance(given, Iterable) else [given]
        for clip in all_clips:
            if not isinstance(clip, AudioClip):
                raise AudioError(f"clips has a {type(clip).__name__}; give a list of AudioClips")
        if not all_clips:
            raise AudioError("there are no clips to concatenate; give at least one")
        first = all_clips[0]
        for clip in all_clips:
            if (clip.sample_rate, clip.channels) != (first.sample_rate, first.channels):
                raise AudioError(f"{clip!r} differs from {first!r}; use resample() or to_mono() first")
        if not is_number(gap_s) or not 0 <= gap_s < float("inf"):
            raise AudioError(f"gap_s is {gap_s!r}; it has to be 0 s or more")
        gap = np.zeros((round(gap_s * first.sample_rate), *first.samples.shape[1:]), dtype=np.float32)
        pieces = [piece for clip in all_clips for piece in (gap, clip.samples)][1:]
        title = first.title if len(all_clips) == 1 else None
        return AudioClip(np.concatenate(pieces), first.sample_rate, title)

    # -- properties

    @property
    def frames(self) -> int:
        """Number of samples in each channel."""
        return len(self.samples)

    @property
    def channels(self) -> int:
        """Number of channels."""
        return count_channels(self.samples)

    @property
    def duration_s(self) -> float:
        """Duration in seconds."""
        return self.frames / self.sample_rate

    @property
    def peak(self) -> float:
        """Largest absolute sample, 0 to 1; 0 for an empty clip."""
        return float(np.abs(self.samples).max()) if self.samples.size else 0.0

    @property
    def rms_dbfs(self) -> float:
        """Root mean square in dB below full scale; minus infinity for silence."""
        return rms_dbfs(self.samples)

    def peaks(self, n: int) -> NDArray[np.float32]:
        """Minimum and maximum of ``n`` equal sections, shape (n, 2), for drawing."""
        return compute_peaks(self.samples, n)

    # -- other clips

    def to_mono(self) -> AudioClip:
        """The average of the channels, or the loudest where they cancel each other; the clip itself if it is mono.

        Channels in opposite phase, as a cable of wrong polarity makes them, have an average without sound.
        """
        return self if self.channels == 1 else self._replace_samples(mix_to_mono(self.samples))

    def resample(self, hz: int) -> AudioClip:
        """Return the clip resampled to another rate in Hz; the clip itself if it has that rate.

        Raises:
            AudioError: The rate is not usable.
        """
        rate = check_rate(hz)
        if rate == self.sample_rate:
            return self
        return self._replace_samples(resample(self.samples, self.sample_rate, rate), rate)

    def crop(self, start_s: float = 0.0, end_s: float | None = None) -> AudioClip:
        """Return the section from ``start_s`` to ``end_s`` seconds, to the nearest sample.

        An end beyond the end of the clip is reduced to it.

        Args:
            start_s: Start in seconds, 0 or more.
            end_s: End in seconds, not before the start; None for the end of the clip.

        Raises:
            AudioError: The times are negative, out of order or not numbers.
        """
        end = self.duration_s if end_s is None else end_s
        if not (start_s >= 0 and (start_s <= end or end_s is None)):
            raise AudioError(f"crop from {start_s!r} to {end_s!r} s; give 0 <= start_s <= end_s, in seconds")
        first = round(min(start_s, self.duration_s) * self.sample_rate)
        last = round(min(end, self.duration_s) * self.sample_rate)
        return self._replace_samples(self.samples[first:last])

    def with_title(self, title: str | None) -> AudioClip:
        """Return the same clip under another title."""
        return AudioClip(self.samples, self.sample_rate, title, self.source_format)

    # -- bytes

    def encode(self, format: AudioFormat | str, sample_rate: int | None = None) -> bytes:  # noqa: A002 - the contract's name
        """Return the clip as a whole file of one of the five formats; see :func:`encode`."""
        clip = self if sample_rate is None else self.resample(sample_rate)
        return encode_samples(clip.samples, clip.sample_rate, parse_format(format))

    @shorten_tracebacks
    def save(self, path: str | os.PathLike[str], format: AudioFormat | str | None = None) -> Path:  # noqa: A002 - the contract's name
        """Write the clip to a file atomically: the file appears under its name only when it is complete.

        Args:
            path: The file; an existing one is replaced.
            format: One of the five formats; by default that of the suffix (``.wav``, ``.mp3``, ``.ogg``,
                ``.opus``, ``.flac``, ``.pcm``).

        Returns:
            The path.

        Raises:
            UnsupportedAudioError: Suffix or format is none of the five, or does not support this clip.
            OSError: The file cannot be written.
        """
        file = expand_user_path(path)
        suffix = file.suffix.lower().removeprefix(".")
        if format is None and not suffix:
            raise UnsupportedAudioError(f"{file.name!r} has no suffix that sets the format; give format=")
        data = self.encode(format if format is not None else _SUFFIXES.get(suffix, suffix))
        with write_atomically(file) as draft:
            draft.write_bytes(data)
        return file

    # -- as an array, and in parts

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the samples, as ``np.asarray(clip)`` asks for them; among objects the clip is one value."""
        if dtype is not None and np.dtype(dtype).kind == "O":  # a cell of a table, which pandas sets
            value = np.empty((), dtype=object)
            value[()] = self
            return value
        return self.samples if dtype is None and not copy else np.array(self.samples, dtype, copy=copy)

    def __len__(self) -> int:
        """Return the number of samples in each channel."""
        return self.frames

    __iter__ = None  # a clip is one value, also for pandas; its samples are clip.samples

    def __bool__(self) -> bool:
        """Return True: a clip is a value, also without samples."""
        return True

    def __getitem__(self, span: slice) -> AudioClip:
        """Return the part between two times in seconds, as in ``clip[1.0:2.5]``; times below 0 count from the end."""
        times: list[Any] = [getattr(span, name, self) for name in ("start", "stop", "step")]
        if times.pop() is not None or not all(time is None or is_number(time) for time in times):
            message = f"clip[{span!r}] is no part of a clip; give two times in seconds, as in clip[1.0:2.5]"
            raise AudioError(f"{message}; samples are clip.samples[first:last]")
        start, end = (time if time is None or time >= 0 else max(time + self.duration_s, 0) for time in times)
        return self.crop(start or 0.0, end if end is None else max(end, start or 0.0))

    def __add__(self, other: object) -> AudioClip:
        """Return this clip and then another, of the same rate and channels."""
        if not isinstance(other, AudioClip):
            return NotImplemented
        return AudioClip.concatenate([self, other])

    # -- as a value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AudioClip):
            return NotImplemented
        return self.sample_rate == other.sample_rate and np.array_equal(self.samples, other.samples)

    def __hash__(self) -> int:
        # -0.0 equals 0.0, so that both have to hash alike.
        digest = hashlib.blake2b((self.samples + np.float32(0.0)).tobytes(), digest_size=8).digest()
        return hash((self.sample_rate, self.samples.shape, digest))

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, since pickle forgets that an array is read-only.
        return AudioClip, (self.samples, self.sample_rate, self.title, self.source_format)

    def __repr__(self) -> str:
        title = f", {self.title!r}" if self.title else ""
        return (
            f"AudioClip({self.duration_s:.2f} s, {self.sample_rate} Hz, {format_layout(self.samples)}{title})"
        )

    def _repr_html_(self) -> str:
        from speechlab.audio._figure import render_clip_figure

        return str(render_clip_figure(self, title=self.title))

    def _repr_png_(self) -> bytes | None:
        from speechlab.audio._figure import draw_still

        return draw_still(self.samples) if len(self.samples) else None

    def _replace_samples(self, samples: Samples, sample_rate: int | None = None) -> AudioClip:
        rate = self.sample_rate if sample_rate is None else sample_rate
        return AudioClip(samples, rate, self.title, self.source_format)
