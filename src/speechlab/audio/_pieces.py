"""Long recordings in pieces: read block by block, and cut at their quietest places."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from mmap import ACCESS_READ, mmap
from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab._files import expand_user_path
from speechlab._require import import_lazily
from speechlab.audio._clip import AudioClip
from speechlab.audio._codec.containers import check_mp3, check_ogg, check_wav, detect_format
from speechlab.audio._samples import StreamResampler, mix_to_mono, to_pcm16
from speechlab.contract import AudioFormat
from speechlab.errors import AudioDecodeError, AudioError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = import_lazily("numpy")

# Maximum rate of pieces, which recognizers do not exceed. A recording with a lower rate keeps it.
PIECE_RATE_HZ = 16_000
_BLOCK = 1 << 16
# Containers with the length in the header.
RELIABLE_FORMATS = {"WAV", "WAVEX", "FLAC", "OGG"}
# Number of frames that marks an unknown length; no recording has so many.
_ENDLESS = 1 << 40
_WINDOW_S = 0.02
_QUIET_WINDOWS = 15


class SoundPiece(NamedTuple):
    """A part of a recording."""

    start_s: float
    flac: bytes


def measure_length_s(source: AudioClip | bytes | str | os.PathLike[str]) -> float:
    """Return the duration of a recording in seconds, from its header if that is reliable.

    MP3 files, whose headers only have an estimate, and streamed files without a length are decoded.
    """
    if isinstance(source, AudioClip):
        return source.duration_s
    with open_recording(source) as (file, name):
        if file is not None and file.format in RELIABLE_FORMATS and 0 < file.frames < _ENDLESS:
            return float(file.frames / file.samplerate)
    return _decode_source(source, name).duration_s


def cut_at_silences(
    source: AudioClip | bytes | str | os.PathLike[str], piece_s: float
) -> Iterator[SoundPiece]:
    """Cut a recording into pieces, each at the quietest place in the last third of the maximum length.

    Files are read block by block, so one piece is in memory for a recording of any length. A file that libsndfile
    cannot read is decoded as a whole.
    """
    if isinstance(source, AudioClip):
        yield from _cut_pieces(_cut_blocks(source), source.sample_rate, piece_s)
        return
    with open_recording(source) as (file, name):
        if file is not None:
            yield from _cut_pieces(_read_blocks(file, name), file.samplerate, piece_s)
            return
    clip = _decode_source(source, name)
    yield from _cut_pieces(_cut_blocks(clip), clip.sample_rate, piece_s)


@contextmanager
def open_recording(source: bytes | str | os.PathLike[str]) -> Iterator[tuple[Any, str]]:
    """The file for reading in blocks (None if its container does not confirm its length), and its name."""
    import soundfile

    path = None if isinstance(source, bytes) else expand_user_path(source)
    name = "the recording" if path is None else str(path)
    try:
        if isinstance(source, bytes):
            _check_whole(source)
        else:
            with (
                expand_user_path(source).open("rb") as raw,
                mmap(raw.fileno(), 0, access=ACCESS_READ) as data,
            ):
                _check_whole(data)
        file = soundfile.SoundFile(
            BytesIO(source) if isinstance(source, bytes) else os.fspath(expand_user_path(source))
        )
    except FileNotFoundError as error:
        raise AudioDecodeError(f"there is no file {name}") from error
    except IsADirectoryError as error:
        raise AudioDecodeError(f"{name} is a folder; give a recording") from error
    except soundfile.LibsndfileError:
        yield None, name
    except (AudioError, OSError, ValueError) as error:  # an empty file cannot be mapped
        raise AudioDecodeError(f"{name} cannot be read: {error}") from error
    else:
        with file:
            try:
                yield file, name
            except (soundfile.LibsndfileError, OSError) as error:
                raise AudioDecodeError(f"{name} cannot be read to its end: {error}") from error


def _check_whole(data: bytes | mmap) -> None:
    """Refuse a file that is not a recording, or that is truncated according to its container."""
    match detect_format(data[:12]):
        case AudioFormat.WAV:
            check_wav(data)
        case AudioFormat.OGG:
            check_ogg(data)
        case AudioFormat.MP3:
            check_mp3(data)


def _decode_source(source: bytes | str | os.PathLike[str], name: str) -> AudioClip:
    try:
        return AudioClip.from_bytes(source) if isinstance(source, bytes) else AudioClip.from_file(source)
    except (AudioError, OSError) as error:
        raise AudioDecodeError(f"{name} cannot be read: {error}") from error


def _cut_blocks(clip: AudioClip) -> Iterator[NDArray[np.float32]]:
    for start in range(0, clip.frames, _BLOCK):
        yield mix_to_mono(clip.samples[start : start + _BLOCK])


def _read_blocks(file: Any, name: str) -> Iterator[NDArray[np.float32]]:
    count, frames = max(1, _BLOCK // file.channels), 0
    # The length in the header is never trusted: a forged one would need any amount of memory.
    while len(block := file.read(count, dtype="float32", always_2d=True)):
        frames += len(block)
        yield mix_to_mono(block)
    if file.format == "FLAC" and frames < file.frames < _ENDLESS:
        raise AudioDecodeError(f"{name} is cut short: it has {frames} of {file.frames} frames")


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
            end = find_quietest(buffer[:longest], target)
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


def find_quietest(samples: NDArray[np.int16], rate: int) -> int:
    """Return the place of the cut: the middle of the quietest 0.3 seconds in the last third."""
    width = max(1, int(_WINDOW_S * rate))
    first = len(samples) * 2 // 3
    windows = (len(samples) - first) // width
    if windows < _QUIET_WINDOWS:
        return len(samples)
    block = samples[first : first + windows * width].reshape(windows, width)
    power = np.convolve(np.square(block.astype(np.float32)).mean(axis=1), np.ones(_QUIET_WINDOWS), "valid")
    return first + (int(power.argmin()) + _QUIET_WINDOWS // 2) * width
