"""FLAC: the streams of a file, and whether their headers state the number of their frames.

Frames have no lengths. Their headers have numbers, so that a few of them show whether a file is one stream, and how
long it is, without reading all of it.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from speechlab.audio._codec.containers import SoundPart, check_stream_count
from speechlab.errors import AudioDecodeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from speechlab.audio._codec.containers import Bytes

_STREAM = re.compile(rb"fLaC[\x00\x80]\x00\x00\x22")
_TOTAL = (1 << 36) - 1
_WINDOW = 1 << 16
_BEHIND = 256  # bytes of a short tag
_PLACES = 8  # of a file that are looked at
_SMALL = 1 << 19


def find_flac_streams(data: Bytes, position: int) -> list[SoundPart]:
    """Find the streams that stand behind each other, from a position on."""
    total = _read_total_samples(data, position)
    if _list_last_frame_ends(data, position, len(data))[-1:] == [total] and _is_one_stream(data, position):
        spans = ((position, len(data)),)
        return [SoundPart(position, spans, frames=total or None, is_file=position == 0)]
    starts = []
    for found in _STREAM.finditer(data, position):
        starts.append(found.start())
        check_stream_count(len(starts), found.start())
    starts = starts or [position]
    ends = [*starts[1:], len(data)]
    return [
        _build_part(data, start, end, is_alone=len(starts) == 1)
        for start, end in zip(starts, ends, strict=True)
    ]


def _build_part(data: Bytes, start: int, end: int, *, is_alone: bool) -> SoundPart:
    """Return a stream; its header gets the number of frames of its end, if its own is 0 or too small."""
    total, ends = _read_total_samples(data, start), _list_last_frame_ends(data, start, end)
    frames = total if total in ends or not ends else ends[-1]
    if frames < total:
        text = f"the FLAC file is cut short: it has {frames} of {total} frames, up to byte {end:,}"
        raise AudioDecodeError(text)
    if frames == total:
        return SoundPart(start, ((start, end),), frames=total or None, is_file=is_alone and start == 0)
    fields = int.from_bytes(data[start + 18 : start + 26], "big") & ~_TOTAL | frames
    head = data[start : start + 18] + fields.to_bytes(8, "big")
    return SoundPart(start, ((start + 26, end),), head, frames=frames)


def _read_total_samples(data: Bytes, start: int) -> int:
    """Return the number of frames in STREAMINFO; 0 if the writer did not know it."""
    return int.from_bytes(data[start + 18 : start + 26], "big") & _TOTAL


def _list_last_frame_ends(data: Bytes, start: int, end: int) -> list[int]:
    """Return the numbers of samples at the end of each of the last frames of a stream."""
    kind = _read_first_frame_kind(data, start, end)
    if kind is None:
        return []
    longest = int.from_bytes(data[start + 15 : start + 18], "big") or _WINDOW  # of its frames, in bytes
    for window in (longest + _BEHIND, _WINDOW):
        if found := list(_find_frames(data, max(kind.at, end - window), end, kind)):
            return [first + size for first, size in found]
    return []


def _is_one_stream(data: Bytes, start: int) -> bool:
    """Return whether the numbers of frames grow through the file; of a small one, whether it has one header."""
    size = len(data)
    if size - start < _SMALL:
        return _STREAM.search(data, start + 4) is None
    kind = _read_first_frame_kind(data, start, size)
    if kind is None:
        return False
    places = [kind.at + (size - kind.at) * step // _PLACES for step in range(1, _PLACES)]
    frames = [next(_find_frames(data, at, min(at + _WINDOW, size), kind), None) for at in places]
    numbers = [-1 if frame is None else frame[0] for frame in frames]
    return numbers[0] >= 0 and all(before < after for before, after in pairwise(numbers))


class _StreamKind(NamedTuple):
    """What all frames of a stream have in common."""

    at: int  # where the first one begins
    sync: bytes
    codes: tuple[int, int]  # of the rate and of the sample size
    block: int  # samples in each frame but the last one; 0 if that varies


def _read_first_frame_kind(data: Bytes, start: int, end: int) -> _StreamKind | None:
    """Read the first frame, behind the blocks of metadata."""
    at = start + 4
    while at + 4 <= end:
        is_last = data[at] & 0x80
        at += 4 + int.from_bytes(data[at + 1 : at + 4], "big")
        if is_last:
            break
    head = data[at : at + 4]
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xFE != 0xF8:
        return None
    block = 0 if head[1] & 1 else int.from_bytes(data[start + 10 : start + 12], "big")
    return _StreamKind(at, head[:2], (head[2] & 15, head[3] & 15), block)


def _find_frames(data: Bytes, start: int, end: int, kind: _StreamKind) -> Iterator[tuple[int, int]]:
    """Yield the first sample and the number of samples of the frames in a window."""
    window = data[start:end]
    at = window.find(kind.sync)
    while at >= 0:
        head = window[at : at + 16]
        if len(head) > 5 and (head[2] & 15, head[3] & 15) == kind.codes:
            frame = _read_frame_header(head, kind.block)
            if frame is not None:
                yield frame
        at = window.find(kind.sync, at + 1)


def _read_frame_header(head: bytes, block: int) -> tuple[int, int] | None:
    """Read the first sample and the number of samples in the header of a frame; None if it is none."""
    ones = 0
    while ones < 7 and head[4] & 0x80 >> ones:
        ones += 1
    if ones == 1 or ones == 7 + 1:
        return None
    number = head[4] & 0xFF >> ones + 1 if ones else head[4]
    at = 5 + max(0, ones - 1)
    for byte in head[5:at]:
        if byte & 0xC0 != 0x80:
            return None
        number = number << 6 | byte & 0x3F
    size_code, rate_code = head[2] >> 4, head[2] & 15
    sizes = size_code - 5 if size_code in {6, 7} else 0
    size = int.from_bytes(head[at : at + sizes], "big") + 1 if sizes else _SIZES.get(size_code, 0)
    at += sizes + {12: 1, 13: 2, 14: 2}.get(rate_code, 0)
    if not size or at >= len(head) or _compute_crc8(head[:at]) != head[at]:
        return None
    return number * (block or 1), size


def _compute_crc8(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc = _CRC8[crc ^ byte]
    return crc


def _build_crc8_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc << 1 ^ (7 if crc & 0x80 else 0)) & 0xFF
        table.append(crc)
    return table


_SIZES = (
    {1: 192}
    | {code: 576 << code - 2 for code in range(2, 6)}
    | {code: 256 << code - 8 for code in range(8, 16)}
)
_CRC8 = _build_crc8_table()
