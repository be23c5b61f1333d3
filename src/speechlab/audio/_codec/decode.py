"""Decoding of untrusted bytes to samples, within limits; ``layout`` says which library reads what."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from speechlab._formats import AudioFormat
from speechlab._require import import_lazily, require
from speechlab.audio._codec.containers import check_same_layout
from speechlab.audio._codec.layout import detect_sound_layout
from speechlab.audio._samples import MAX_CHANNELS, MAX_RATE_HZ, MIN_RATE_HZ, Samples, to_samples
from speechlab.errors import AudioDecodeError, AudioError, AudioLimitError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    import soundfile
    from numpy.typing import NDArray

    from speechlab.audio._codec.containers import Bytes, SoundPart
    from speechlab.audio._codec.layout import SoundLayout
else:
    np = import_lazily("numpy")

_BLOCK_FRAMES = 1 << 16
_PLANAR_SCALES = {"u8": 2.0**7, "s16": 2.0**15, "s32": 2.0**31, "flt": 1.0, "dbl": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeLimits:
    """Limits of decoded audio. A small file can decode to much audio: ten minutes of silence are 28 KiB of FLAC.

    A limit of seconds alone is not enough, because with a forged sample rate any number of frames is short.
    Speech takes at most some hundred times the bytes of its file, silence thousands of times.

    Attributes:
        max_seconds: Maximum duration in seconds.
        max_decoded_bytes: Maximum size as float32 in bytes: frames x channels x 4.
        max_expansion: Maximum size as float32 in sizes of the file; the first 64 MiB are always allowed.
        max_channels: Maximum number of channels.
        min_sample_rate: Minimum sample rate in Hz.
        max_sample_rate: Maximum sample rate in Hz.

    Example:
        >>> wav = AudioClip(np.zeros(16_000), 8_000).encode("wav")
        >>> try:
        ...     decode(wav, DecodeLimits(max_seconds=1))
        ... except sl.AudioLimitError as error:
        ...     print(error)
        the recording is too long; the limit is 1 s (DecodeLimits.max_seconds)
    """

    max_seconds: float = 4 * 3600.0
    max_decoded_bytes: int = 2**31
    max_expansion: float = 500.0
    max_channels: int = 32
    min_sample_rate: int = MIN_RATE_HZ
    max_sample_rate: int = MAX_RATE_HZ

    def __post_init__(self) -> None:
        if not (self.max_seconds > 0 and self.max_decoded_bytes > 0 and self.max_expansion > 0):
            raise AudioError(f"{self!r}: the limits of seconds and bytes have to be above 0")
        if not 1 <= self.max_channels <= MAX_CHANNELS:
            raise AudioError(f"max_channels is {self.max_channels!r}; it has to be 1 to {MAX_CHANNELS}")
        if not MIN_RATE_HZ <= self.min_sample_rate <= self.max_sample_rate <= MAX_RATE_HZ:
            raise AudioError(f"{self!r}: sample rates have to lie within {MIN_RATE_HZ} to {MAX_RATE_HZ} Hz")


_FREE_BYTES = 64 << 20
_UNRESERVED_BYTES = 8 << 20


def check_expansion(decoded_bytes: int, file_bytes: int, limits: DecodeLimits | None = None) -> None:
    """Refuse samples that take far more memory than their file, as those of a file that was made to fill it.

    Raises:
        AudioLimitError: They exceed the limit.
    """
    limits = limits or DecodeLimits()
    if decoded_bytes > min(max(_FREE_BYTES, limits.max_expansion * file_bytes), limits.max_decoded_bytes):
        allowed = f"{limits.max_expansion:g} times the size of its file (DecodeLimits.max_expansion)"
        if decoded_bytes > limits.max_decoded_bytes:
            allowed = f"{limits.max_decoded_bytes} bytes of float32 (DecodeLimits.max_decoded_bytes)"
        raise AudioLimitError(f"the recording is too large; the limit is {allowed}")


class _Blocks:
    """Collects blocks of samples, and raises as soon as they exceed the limits."""

    def __init__(
        self, limits: DecodeLimits, sample_rate: int, channels: int, file_bytes: int, *, full_scale: int = 1
    ) -> None:
        if not limits.min_sample_rate <= sample_rate <= limits.max_sample_rate:
            allowed = f"{limits.min_sample_rate} to {limits.max_sample_rate} Hz are allowed"
            raise AudioLimitError(f"the sample rate is {sample_rate} Hz; {allowed}")
        if not 1 <= channels <= limits.max_channels:
            raise AudioLimitError(f"there are {channels} channels; 1 to {limits.max_channels} are allowed")
        self._limits, self._file_bytes = limits, file_bytes
        self.sample_rate = sample_rate
        self.channels = channels
        self.frames = 0
        self._full_scale = full_scale
        self._blocks: list[NDArray[Any]] = []
        self._reserved: Samples | None = None  # in place of the blocks, where the total is known

    def add(self, block: NDArray[Any]) -> None:
        end = self.frames + len(block)
        self.check(end)
        if self._reserved is None:
            self._blocks.append(block)
        else:
            self._to_rows(self._reserved)[self.frames : end] = block
        self.frames = end

    def has_room(self, frames: int) -> bool:
        """Return whether so many frames more need no new memory, or little."""
        if self._reserved is not None:
            return self.frames + frames <= len(self._reserved)
        return (self.frames + frames) * self.channels * 4 <= _UNRESERVED_BYTES

    def reserve(self, frames: int) -> None:
        """Move the samples to memory for a number of frames, so that at the end they are not there twice."""
        self.check(frames)
        self._reserved = self._move_to(self._allocate(frames))

    def _allocate(self, frames: int) -> Samples:
        return np.empty((frames,) if self.channels == 1 else (frames, self.channels), dtype=np.float32)

    def _to_rows(self, samples: Samples) -> Samples:
        return samples.reshape(-1, self.channels)

    def _move_to(self, samples: Samples) -> Samples:
        """Return an array, filled with what was collected."""
        if self._reserved is not None:
            self._blocks, self._reserved = [self._to_rows(self._reserved)[: self.frames]], None
        rows, end = self._to_rows(samples), self.frames
        while self._blocks:  # from the last one on, so that the memory of each is free for the next ones
            block = self._blocks.pop()
            rows[end - len(block) : end] = block
            end -= len(block)
        return samples

    def check(self, frames: int) -> None:
        """Refuse a number of frames above the limits."""
        if frames > self._limits.max_seconds * self.sample_rate:
            allowed = f"the limit is {self._limits.max_seconds:g} s (DecodeLimits.max_seconds)"
            raise AudioLimitError(f"the recording is too long; {allowed}")
        check_expansion(frames * self.channels * 4, self._file_bytes, self._limits)

    def join(self) -> Samples:
        """Return all blocks as one new array, which has no other owner, so that a clip need not copy it."""
        samples = self._reserved
        if samples is None or len(samples) > self.frames:
            samples = self._move_to(self._allocate(self.frames))
        if self._full_scale != 1:
            samples /= np.float32(self._full_scale)
        samples.flags.writeable = False
        return samples


def decode_samples(data: bytes, limits: DecodeLimits) -> tuple[Samples, int, AudioFormat]:
    """Samples, their rate in Hz, and the detected format of the file; see :func:`speechlab.audio.decode`."""
    layout = source_format, parts = detect_sound_layout(data)
    is_plain = all(part.pcm for part in parts)
    blocks: _Blocks | None = None
    for part in parts:
        for rate, block in (
            _read_plain_wav(part, data) if is_plain else read_part_blocks(part, data, source_format)
        ):
            found = (rate, block.shape[1])
            if blocks is None:
                blocks = _Blocks(limits, *found, len(data), full_scale=32_768 if is_plain else 1)
                blocks.check(sum(part.frames or 0 for part in parts))  # before it takes memory
            check_same_layout(part.start, found, (blocks.sample_rate, blocks.channels))
            if not is_plain and not blocks.has_room(len(block)):
                blocks.reserve(_find_total(layout, data, blocks, blocks.frames + len(block)))
            blocks.add(block)
    assert blocks is not None
    try:
        samples = to_samples(blocks.join())
    except AudioError as error:
        raise AudioDecodeError(f"the {source_format.upper()} file has no usable audio: {error}") from error
    return samples, blocks.sample_rate, source_format


def _find_total(layout: SoundLayout, data: bytes, blocks: _Blocks, least: int) -> int:
    """Return the number of all frames, as headers say, or counted where they say less than there are.

    Raises:
        AudioLimitError: They exceed the limits; so a file of unknown length does not take the memory up to them.
    """
    total = sum(_read_frame_count(part, data, layout.format) or 0 for part in layout.parts)
    if total >= least:
        with suppress(AudioLimitError):
            blocks.check(total)
            return total
    total = 0
    for part in layout.parts:
        for _, block in read_part_blocks(part, data, layout.format):
            total += len(block)
            blocks.check(total)
    return total


def _read_frame_count(part: SoundPart, data: bytes, source_format: AudioFormat) -> int | None:
    """Return the number of frames of a stream by its headers; it may be wrong."""
    require("soundfile")
    import soundfile

    if part.frames is None and source_format is not AudioFormat.MP3:
        with (
            suppress(soundfile.LibsndfileError),
            soundfile.SoundFile(BytesIO(part.read_for_decoder(data))) as file,
        ):
            return int(file.frames)
    return part.frames


def _read_plain_wav(part: SoundPart, data: bytes) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield the rate and a block of a WAV with 16-bit PCM, as services send it, in a fifth of soundfile's time."""
    assert part.pcm is not None
    channels, rate = part.pcm
    for start, end in part.spans:
        count = (end - start) // (2 * channels)
        yield rate, np.frombuffer(data, "<i2", count * channels, start).reshape(-1, channels)


def read_part_blocks(
    part: SoundPart, data: Bytes, source_format: AudioFormat
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield the rate and a block of a stream, shape (frames, channels), at least one.

    Raises:
        AudioDecodeError: The stream is damaged, or shorter than it says.
    """
    require("soundfile")
    import soundfile

    if source_format is not AudioFormat.MP3:
        with (
            suppress(soundfile.LibsndfileError),
            soundfile.SoundFile(BytesIO(part.read_for_decoder(data))) as file,
        ):
            yield from read_file_blocks(file, part)
            return
    yield from _iter_and_check_frame_count(
        _read_blocks_with_av(part, data, source_format), part, source_format
    )


def read_file_blocks(file: soundfile.SoundFile, part: SoundPart) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield the rate and a block of a stream that libsndfile reads, as :func:`read_part`."""
    yield from _iter_and_check_frame_count(_read_blocks(file), part, file.format)


def _iter_and_check_frame_count(
    blocks: Iterator[tuple[int, NDArray[np.float32]]], part: SoundPart, name: str
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield the blocks; raise at the end if there are fewer frames than the container says."""
    count = 0
    for rate, block in blocks:
        yield rate, block
        count += len(block)
    if part.frames is not None and count < part.frames:
        raise AudioDecodeError(
            f"the {name.upper()} file is cut short: it has {count} of {part.frames} frames"
        )


def _read_blocks(file: soundfile.SoundFile) -> Iterator[tuple[int, NDArray[np.float32]]]:
    require("soundfile")
    import soundfile

    # Never without a count: a forged total would request any amount of memory.
    count = max(_BLOCK_FRAMES // file.channels, 1)
    block = file.read(count, dtype="float32", always_2d=True)
    yield file.samplerate, block
    try:
        while len(block := file.read(count, dtype="float32", always_2d=True)):
            yield file.samplerate, block
    except soundfile.LibsndfileError as error:
        raise AudioDecodeError(f"the {file.format} file is damaged: {error.error_string}") from error


def _read_blocks_with_av(
    part: SoundPart, data: Bytes, source_format: AudioFormat
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    require("av")
    import av

    left, name = part.frames, source_format.upper()
    try:
        # The format is given, so that only the demuxer of the detected format reads untrusted bytes.
        with av.open(BytesIO(part.read_for_decoder(data)), mode="r", format=source_format.value) as container:
            if not container.streams.audio:
                raise AudioDecodeError(f"the {name} file has no audio")
            stream = container.streams.audio[0]
            context = stream.codec_context
            if context is None:
                raise AudioDecodeError(f"the {name} file is damaged: its codec is not known")
            yield context.sample_rate, np.zeros((0, context.channels), np.float32)
            for rate, block in _join_frames(container.decode(stream)):
                if source_format is AudioFormat.MP3 and left is not None:
                    yield rate, block[:left]  # of very short ones, ffmpeg leaves padding
                    left -= min(left, len(block))
                else:
                    yield rate, block
    except (av.error.FFmpegError, ValueError, EOFError) as error:
        if isinstance(error, AudioError):
            raise
        text = f"the {name} file is damaged: {getattr(error, 'strerror', None) or error}"
        raise AudioDecodeError(text) from error


def _join_frames(frames: Iterable[Any]) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield the rate and a block of many frames of PyAV, which are too short for work on each."""
    require("av")
    import av

    queue = av.AudioFifo()
    for frame in frames:
        frame.pts = None  # the queue does not compare times
        try:
            queue.write(frame)
        except ValueError:  # another rate, or other channels
            if queue.samples:
                yield queue.sample_rate, _interleave_frame(queue.read())
            queue = av.AudioFifo()
            queue.write(frame)
        if queue.samples >= _BLOCK_FRAMES:
            yield queue.sample_rate, _interleave_frame(queue.read())
    if queue.samples:
        yield queue.sample_rate, _interleave_frame(queue.read())


def _interleave_frame(frame: Any) -> Samples:
    """Return one decoded frame as float32, shape (frames, channels)."""
    kind = str(frame.format.name)
    planes = frame.to_ndarray()
    values = planes.T if kind.endswith("p") else planes.reshape(-1, frame.layout.nb_channels)
    name = kind.removesuffix("p")
    if name == "flt":
        return values  # type: ignore[no-any-return]  # PyAV gives the type of the format
    if name not in _PLANAR_SCALES:
        raise AudioDecodeError(f"samples of the type {kind!r} are not supported")
    offset = 128.0 if name == "u8" else 0.0
    scaled: NDArray[np.float64] = (values.astype(np.float64) - offset) / _PLANAR_SCALES[name]
    return scaled.astype(np.float32)
