"""Long recordings in pieces: read block by block, and cut at their quietest places."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from io import BufferedReader, BytesIO, RawIOBase
from itertools import chain
from mmap import ACCESS_READ, mmap
from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab._files import open_regular_file
from speechlab._formats import AudioFormat
from speechlab._require import import_lazily, require
from speechlab.audio._clip import AudioClip
from speechlab.audio._codec.containers import check_same_layout
from speechlab.audio._codec.decode import read_file_blocks, read_part_blocks
from speechlab.audio._codec.layout import detect_sound_layout
from speechlab.audio._recordings import require_recording
from speechlab.audio._samples import StreamResampler, mix_to_mono, to_pcm16
from speechlab.errors import AudioDecodeError, AudioError
from speechlab.remote import hide_secrets, is_remote, locate_file

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import soundfile
    from numpy.typing import NDArray

    from speechlab.audio._codec.containers import Bytes, SoundPart
    from speechlab.audio._codec.layout import SoundLayout
else:
    np = import_lazily("numpy")

# Maximum rate of pieces, which recognizers do not exceed. A recording with a lower rate keeps it.
PIECE_RATE_HZ = 16_000
_BLOCK = 1 << 16
_BUFFER = 1 << 16
# Number of frames that marks an unknown length; no recording has so many.
_ENDLESS = 1 << 40
_WINDOW_S = 0.02
_QUIET_WINDOWS = 15


class SoundPiece(NamedTuple):
    """A part of a recording."""

    start_s: float
    flac: bytes


def measure_length_s(source: object) -> float:
    """Return the duration of a recording in seconds, without decoding it if its container states it.

    Raises:
        AudioDecodeError: The recording cannot be read, or is not complete.
    """
    recording = require_recording(source)
    if isinstance(recording, AudioClip):
        return recording.duration_s
    with open_sound(recording) as sound:
        if sound.file is not None:
            return float(sound.file.frames / sound.file.samplerate)
        frames, rates = (
            [part.frames for part in sound.layout.parts],
            {part.rate for part in sound.layout.parts},
        )
        rate = rates.pop()
        if rate is not None and None not in frames:
            return sum(count or 0 for count in frames) / rate
        counts = [(len(block), rate) for rate, block in sound.read_blocks()]
        return sum(count for count, _ in counts) / counts[0][1]


def cut_at_silences(source: object, piece_s: float) -> Iterator[SoundPiece]:
    """Cut a recording into pieces, each at the quietest place in the last third of the maximum length.

    Files are read block by block, so one piece is in memory for a recording of any length.
    """
    recording = require_recording(source)
    if isinstance(recording, AudioClip):
        yield from _cut_pieces(_cut_mono_blocks(recording), recording.sample_rate, piece_s)
        return
    with open_sound(recording) as sound:
        blocks = sound.read_blocks()
        rate, first = next(blocks)
        yield from _cut_pieces(
            map(mix_to_mono, chain([first], (block for _, block in blocks))), rate, piece_s
        )


class OpenSound(NamedTuple):
    """A recording that is open: as a file of libsndfile, or with its streams."""

    name: str
    data: Bytes
    layout: SoundLayout
    file: soundfile.SoundFile | None  # None if there are several streams, or libsndfile does not read it

    def read_blocks(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield the rate and a block of samples, shape (frames, channels), at least one."""
        if self.file is not None:
            yield from read_file_blocks(self.file, self.layout.parts[0])
            return
        first: tuple[int, int] | None = None
        for part in self.layout.parts:
            for rate, block in read_part_blocks(part, self.data, self.layout.format):
                first = first or (rate, block.shape[1])
                check_same_layout(part.start, (rate, block.shape[1]), first)
                yield rate, block


@contextmanager
def open_sound(source: bytes | str | os.PathLike[str]) -> Iterator[OpenSound]:
    """Open a recording to read it in blocks.

    Raises:
        AudioDecodeError: It cannot be read, or is not complete.
    """
    require("soundfile")
    import soundfile

    name = "the recording" if isinstance(source, bytes) else str(hide_secrets(source))
    with ExitStack() as stack:
        try:
            path = None if isinstance(source, bytes) else locate_file(source)
            name = name if path is None or is_remote(source) else str(path)
            sound = _open_sound_into(source, path, name, stack)
        except FileNotFoundError as error:
            raise AudioDecodeError(f"there is no file {name}") from error
        except IsADirectoryError as error:
            raise AudioDecodeError(f"{name} is a folder; give a recording") from error
        except (AudioError, OSError, ValueError) as error:  # an empty file cannot be mapped
            reason = getattr(error, "strerror", None) or error
            raise AudioDecodeError(f"{name} cannot be read: {reason}") from error
        try:
            yield sound
        except (AudioDecodeError, OSError, soundfile.LibsndfileError) as error:
            if str(error).startswith(name):
                raise
            raise AudioDecodeError(f"{name} cannot be read to its end: {error}") from error


def _open_sound_into(
    source: bytes | str | os.PathLike[str], path: Path | None, name: str, stack: ExitStack
) -> OpenSound:
    if path is None:
        data: Bytes = bytes(source)  # type: ignore[arg-type]  # without a path there are bytes
        layout = detect_sound_layout(data)
    else:
        raw = stack.enter_context(open_regular_file(path))
        data = stack.enter_context(mmap(raw.fileno(), 0, access=ACCESS_READ))
        status = path.stat()
        layout = _find_layout(path, status.st_size, status.st_mtime_ns)
    file = _open_single_stream(path, data, layout)
    if file is not None:
        stack.enter_context(file)
    return OpenSound(name, data, layout, file)


@lru_cache(maxsize=256)
def _find_layout(path: Path, _size: int, _changed: int) -> SoundLayout:
    """Return the layout of a file, which is found once for all segments of it."""
    with path.open("rb") as raw, mmap(raw.fileno(), 0, access=ACCESS_READ) as data:
        return detect_sound_layout(data)


def _open_single_stream(path: Path | None, data: Bytes, layout: SoundLayout) -> soundfile.SoundFile | None:
    """Return the file for libsndfile; None if it has several streams, or one of unknown length."""
    require("soundfile")
    import soundfile

    part = layout.parts[0]
    if layout.format is AudioFormat.MP3 or len(layout.parts) > 1:
        return None
    if part.is_file:
        source: Any = BytesIO(data) if path is None else os.fspath(path)
    else:
        source = (
            BytesIO(part.read_for_decoder(data))
            if path is None
            else BufferedReader(PartFile(part, data), _BUFFER)
        )
    try:
        file = soundfile.SoundFile(source)
    except soundfile.LibsndfileError:
        return None
    if layout.format is AudioFormat.WAV or 0 < file.frames < _ENDLESS:
        return file
    file.close()
    return None


class PartFile(RawIOBase):
    """A stream within a file, as a file of its own."""

    def __init__(self, part: SoundPart, data: Bytes) -> None:
        self._data, self._at = data, 0
        self._pieces: list[tuple[int, Bytes, int, int]] = []  # where each begins here; its bytes, from and to
        size = 0
        for source, start, end in [(part.head, 0, len(part.head)), *((data, *span) for span in part.spans)]:
            self._pieces.append((size, source, start, end))
            size += end - start
        self._size = size

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Set the position."""
        self._at = max(0, offset + (0, self._at, self._size)[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes."""
        for place, source, start, end in self._pieces:
            if place <= self._at < place + end - start:
                first = start + self._at - place
                found = source[first : min(first + len(buffer), end)]
                buffer[: len(found)] = found
                self._at += len(found)
                return len(found)
        return 0


def _cut_mono_blocks(clip: AudioClip) -> Iterator[NDArray[np.float32]]:
    for start in range(0, clip.frames, _BLOCK):
        yield mix_to_mono(clip.samples[start : start + _BLOCK])


def _cut_pieces(blocks: Iterator[NDArray[np.float32]], rate: int, piece_s: float) -> Iterator[SoundPiece]:
    target = min(rate, PIECE_RATE_HZ)
    longest = max(1, int(piece_s * target))
    # One buffer for all pieces, because an allocation for each would fragment the memory.
    buffer = np.empty(min(longest, 2 * _BLOCK) + _BLOCK, dtype=np.int16)
    count = start = 0
    for block in _resample_blocks(blocks, rate, target):
        if count + len(block) > len(buffer):
            buffer = np.concatenate([buffer[:count], np.empty(count + len(block), dtype=np.int16)])
        buffer[count : count + len(block)] = np.frombuffer(to_pcm16(block), dtype="<i2")
        count += len(block)
        while count > longest:  # the last part is not cut
            end = find_quietest_cut(buffer[:longest], target)
            yield SoundPiece(start / target, _encode_flac(buffer[:end], target))
            buffer[: count - end] = buffer[end:count].copy()
            count, start = count - end, start + end
    if count:
        yield SoundPiece(start / target, _encode_flac(buffer[:count], target))


def _resample_blocks(
    blocks: Iterator[NDArray[np.float32]], rate: int, target: int
) -> Iterator[NDArray[np.float32]]:
    resampler = StreamResampler(rate, target)
    for block in blocks:
        yield resampler.write(block)
    yield resampler.flush()


def _encode_flac(samples: NDArray[np.int16], rate: int) -> bytes:
    import soundfile

    buffer = BytesIO()
    soundfile.write(buffer, samples, rate, format="FLAC", subtype="PCM_16")
    return buffer.getvalue()


def find_quietest_cut(samples: NDArray[np.int16], rate: int) -> int:
    """Return the place of the cut: the middle of the quietest 0.3 seconds in the last third."""
    width = max(1, int(_WINDOW_S * rate))
    first = len(samples) * 2 // 3
    windows = (len(samples) - first) // width
    if windows < _QUIET_WINDOWS:
        return len(samples)
    block = samples[first : first + windows * width].reshape(windows, width)
    power = np.convolve(np.square(block.astype(np.float32)).mean(axis=1), np.ones(_QUIET_WINDOWS), "valid")
    return first + (int(power.argmin()) + _QUIET_WINDOWS // 2) * width
