"""WAV: where its sound is. Sizes in headers are checked; those that writers leave open are replaced."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from speechlab.audio._codec.containers import SoundPart, check_stream_count, skip_tags
from speechlab.errors import AudioDecodeError

if TYPE_CHECKING:
    from speechlab.audio._codec.containers import Bytes

# Data sizes near these mean an unknown length: writers that cannot go back to the header leave them there, some less
# the size of the header, or a number of bytes or frames that is round and beyond all recordings.
_LARGEST = (1 << 32) - 1
_POWERS = (1 << 30, (1 << 31) - 1, 1 << 31, _LARGEST)
_NEAR = 1 << 16
_ROUND = 100_000_000
_HEADERS = (0, 8, 36, 44)
_FILE = re.compile(rb"RIFF.{4}WAVE", re.DOTALL)
_CHUNK_NAMES = """
    LIST INFO bext cue smpl fact PEAK iXML axml JUNK junk PAD FLLR afsp inst labl note DISP umid acid strc cart chna
    SyLp id3 ID3 _PMX plst levl mext link ltxt slnt resu minf elm1 regn
"""
_CHUNKS = frozenset(name.encode().ljust(4) for name in _CHUNK_NAMES.split())
_CHUNK_NAME = re.compile(rb"[ -~]{4}")
_MAX_CHUNKS = 4_096
_MAX_CHUNKS_BEHIND = 64


def is_placeholder_size(size: int) -> bool:
    """Return whether the declared size of a data chunk is one that no recording has, for an unknown length."""
    if size == 0 or size < 1_000_000_000:
        return size == 0
    if any(abs(size - power) <= _NEAR for power in _POWERS):
        return True
    return any((size + header) % _ROUND == 0 for header in _HEADERS)


def is_wav(data: Bytes, position: int) -> bool:
    """Return whether a WAV file begins at a position."""
    return data[position : position + 4] == b"RIFF" and data[position + 8 : position + 12] == b"WAVE"


def list_wav_chunks(data: Bytes, position: int = 0) -> Iterator[tuple[bytes, int, int]]:
    """Walk the chunks of a WAV file at a position, or of its beginning: name, start and size of each."""
    position += 12
    for _ in range(_MAX_CHUNKS):
        if position + 8 > len(data) or is_wav(data, position):
            return
        name, size = struct.unpack_from("<4sI", data, position)
        yield name, position + 8, size
        position += 8 + size + size % 2


def find_wav_streams(data: Bytes, position: int) -> list[SoundPart]:
    """Find the WAV files that stand behind each other, from a position on.

    Raises:
        AudioDecodeError: The sound is cut short, or something unknown is behind it.
    """
    parts: list[SoundPart] = []
    while True:
        part, end = _read_wav_file(data, position)
        parts.append(part)
        check_stream_count(len(parts), position)
        position = skip_padding(data, skip_tags(data, end))
        if len(data) - position < 8:  # less than a chunk
            break
        if not is_wav(data, position):
            rest = f"the {len(data) - position:,} bytes behind it are neither a chunk nor another WAV file"
            text = f"the WAV file's sound ends at byte {position:,} by its header, and {rest}"
            raise AudioDecodeError(f"{text}; correct the header, or cut them off")
    if len(parts) > 1:
        return [SoundPart(part.start, part.spans, part.head, part.pcm) for part in parts]
    return parts


def skip_padding(data: Bytes, position: int) -> int:
    """Return the end of the file if it has zeros alone from a position on, or else the position."""
    for start in range(position, len(data), 1 << 16):
        if data[start : start + (1 << 16)].strip(b"\0"):
            return position
    return len(data)


def _read_wav_file(data: Bytes, position: int) -> tuple[SoundPart, int]:
    """Return the sound of the WAV file at a position, and where the file ends."""
    layout, spans, head, at, is_true = b"", list[tuple[int, int]](), b"", position + 12, position == 0
    riff = int.from_bytes(data[position + 4 : position + 8], "little")
    for _ in range(_MAX_CHUNKS):
        if at + 8 > len(data) or is_wav(data, at):
            break
        name, size = struct.unpack_from("<4sI", data, at)
        start = at + 8
        if name == b"data":
            end, is_true_size = _find_data_end(data, start, size, riff)
            is_true = is_true and is_true_size and not spans
            head = head or data[position : start - 4]
            spans.append((start, end))
            if end != start + size:  # its length was open, so that there are no chunks behind it
                at = end
                break
        elif spans and not _has_chunk_at(data, at, size):
            break
        elif name == b"fmt " and not spans:
            layout = data[start : start + size] if size <= 64 else b""
        at = _find_next_chunk(data, start + size, size)
    if not spans:
        raise AudioDecodeError("the WAV file ends before its sound: it has no data chunk")
    return _build_part(position, tuple(spans), head, layout, is_true=is_true), min(at, len(data))


def _find_next_chunk(data: Bytes, end: int, size: int) -> int:
    """Return where the next chunk begins: at an even place, unless the writer forgot to fill up an odd size."""
    if size % 2 and (data[end : end + 4] in _CHUNKS or is_wav(data, end)):
        return end
    return end + size % 2


def _find_data_end(data: Bytes, start: int, declared: int, file_size: int) -> tuple[int, bool]:
    """Return where a data chunk ends, and whether libsndfile finds the same.

    A size of the whole file that is a placeholder says that the writer could not go back, and had to guess the other.
    """
    available = len(data) - start
    is_guess = is_placeholder_size(declared) or is_placeholder_size(file_size)
    if declared <= available and not (is_guess and declared < available):
        return start + declared, True
    if declared <= available and _has_chunks_only(data, start + declared):
        return start + declared, True
    if not is_guess:
        text = f"the WAV file is cut short: its data chunk declares {declared} bytes and has {available}"
        raise AudioDecodeError(text)
    following = _FILE.search(data, start)
    return (following.start() if following else len(data)), declared > available and following is None


def _has_chunks_only(data: Bytes, position: int) -> bool:
    """Return whether there are chunks, other files or tags from a position on, and no sound without a size."""
    for _ in range(_MAX_CHUNKS_BEHIND):
        if position + 8 > len(data) or is_wav(data, position):
            return True
        size = int.from_bytes(data[position + 4 : position + 8], "little")
        if not _has_chunk_at(data, position, size):
            return skip_tags(data, position) == len(data)
        position = _find_next_chunk(data, position + 8 + size, size)
    return False


def _has_chunk_at(data: Bytes, position: int, size: int) -> bool:
    """Return whether there is a chunk at a position: of a usual name, or of any name and complete."""
    name = data[position : position + 4]
    return (
        name in _CHUNKS
        or name == b"data"
        or (_CHUNK_NAME.fullmatch(name) is not None and position + 8 + size <= len(data))
    )


def _build_part(
    position: int, spans: tuple[tuple[int, int], ...], head: bytes, layout: bytes, *, is_true: bool
) -> SoundPart:
    size = min(sum(end - start for start, end in spans), _LARGEST)
    riff = min(len(head) - 4 + size, _LARGEST)
    head = head[:4] + struct.pack("<I", riff) + head[8:] + struct.pack("<I", size)
    pcm, frames = None, None
    if len(layout) >= 16:
        kind, channels, rate, per_second, per_frame, bits = struct.unpack_from("<HHIIHH", layout)
        if (kind, bits, per_frame, per_second) == (1, 16, 2 * channels, 2 * channels * rate) and channels:
            pcm = (channels, rate) if len(layout) == 16 else None
            frames = sum((end - start) // per_frame for start, end in spans)
    return SoundPart(position, spans, head, pcm, frames, is_file=is_true)


def set_wav_sizes(data: bytes) -> bytes:
    """Return one WAV file with its true sizes, where they were left open or files stand behind each other.

    Raises:
        AudioDecodeError: The sound is cut short, or the files have different layouts.
    """
    first, *others = find_wav_streams(data, 0)
    place = len(first.head)
    if not others and data[place - 4 : place] == first.head[-4:]:
        return data
    for other in others:
        if other.pcm is None or other.pcm != first.pcm:
            text = f"at byte {other.start:,} begins another WAV file, of another layout than the first"
            raise AudioDecodeError(text)
    spans = tuple(span for part in (first, *others) for span in part.spans)
    return _build_part(0, spans, first.head[:-4], b"", is_true=False).read_for_decoder(data)


def check_wav(data: bytes) -> None:
    """Raise an ``AudioDecodeError`` if the bytes are not one or several complete WAV files."""
    find_wav_streams(data, 0)
