"""OGG: the streams of a file, page by page. Checks use the bytes alone, in a time limited by their number."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from speechlab.audio._codec.containers import SoundPart, check_stream_count, find_format_at, skip_tags
from speechlab.errors import AudioDecodeError

if TYPE_CHECKING:
    from speechlab.audio._codec.containers import Bytes

_PAGE = struct.Struct("<4sxBqIIxxxxB")
_FIRST = 2
_NO_PACKET_ENDS = -1


def find_ogg_streams(data: Bytes, position: int) -> list[SoundPart]:
    """Find the streams that are chained, from a position on: each begins with its first pages.

    A missing end-of-stream mark is not an error, because live streams have none. They also begin with pages that are
    not the next ones, behind those of the header.

    Raises:
        AudioDecodeError: A page is cut short, or pages are missing.
    """
    starts = [position]
    is_in_sound = False
    following: dict[int, int] = {}  # number of the next page of each logical stream
    times: dict[int, int] = {}  # and the place in time up to which it is heard
    at, size = position, len(data)
    while at < size:
        if at + _PAGE.size > size:
            if data[at : at + 4] == b"OggS"[: size - at]:
                raise _build_truncation_error(size)
            break
        magic, flags, granule, serial, number, segments = _PAGE.unpack_from(data, at)
        if magic != b"OggS":
            after = _find_next_page(data, at)
            if after == size:
                break
            at = after
            continue
        if flags & _FIRST:
            if is_in_sound:
                starts.append(at)
                check_stream_count(len(starts), at)
                following.clear()
                times.clear()
                is_in_sound = False
        else:
            is_in_sound = True
            if following.get(serial, number) != number:
                raise AudioDecodeError(
                    f"the OGG file lacks pages: at byte {at:,} is not the one that follows"
                )
        table = at + _PAGE.size
        end = table + segments + sum(data[table : table + segments])
        if table + segments > size or end > size:
            raise _build_truncation_error(size)
        if granule in {0, _NO_PACKET_ENDS}:  # a page of the header
            following.pop(serial, None)
        else:
            following[serial] = (number + 1) & 0xFFFF_FFFF
            if granule < times.get(serial, 0):  # decoders would end the sound here, as if it were complete
                raise AudioDecodeError(f"the OGG file is damaged at byte {at:,}: its time goes back there")
            times[serial] = granule
        at = end
    return [
        SoundPart(start, ((start, end),), is_file=len(starts) == 1 and start == 0)
        for start, end in zip(starts, [*starts[1:], at], strict=True)
    ]


def _build_truncation_error(size: int) -> AudioDecodeError:
    return AudioDecodeError(f"the OGG file is cut short: it ends within a page, {size} bytes in")


def _find_next_page(data: Bytes, position: int) -> int:
    """Return where the next page begins behind tags, or the end of the file; raise if pages are damaged."""
    at = skip_tags(data, position)
    if at == len(data) or data[at : at + 4] == b"OggS":
        return at
    if other := find_format_at(data, at):
        raise AudioDecodeError(f"at byte {at:,} of the OGG file begins another file ({other.upper()})")
    following = data.find(b"OggS", at)
    if following >= 0:
        raise AudioDecodeError(
            f"the OGG file is damaged at byte {at:,}: the next page begins at byte {following:,}"
        )
    return len(data)
