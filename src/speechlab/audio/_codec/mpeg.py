"""MP3: the streams of a file, frame by frame, without the tags before, between and behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from speechlab.audio._codec.containers import (
    SoundPart,
    check_same_layout,
    check_stream_count,
    find_format_at,
    is_mp3_header,
    skip_tags,
)
from speechlab.errors import AudioDecodeError

if TYPE_CHECKING:
    from speechlab.audio._codec.containers import Bytes

_MPEG1_KBPS = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_MPEG2_KBPS = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_MPEG_RATES_HZ = (44_100, 48_000, 32_000)
_MONO = 3
_MARKS = frozenset({b"Xing", b"Info"})
_ENCODERS = frozenset({b"LAME", b"Lavf", b"Lavc"})
_DECODER_DELAY = 529  # samples
_MAX_LEAD = 1 << 16


class _FrameKind(NamedTuple):
    """What all frames of a stream have in common."""

    rate: int
    channels: int
    samples: int  # in a frame
    mark_at: int  # where a frame has the mark of a Xing header


class _Header(NamedTuple):
    """A Xing, Info or VBRI header: the number of frames behind it, and the samples that a decoder drops."""

    frames: int
    skipped: int
    cut: int


class _Stream:
    """A stream while it is read."""

    def __init__(self, start: int, kind: _FrameKind, header: _Header | None) -> None:
        self.start, self.kind, self.header = start, kind, header
        self.frames = 0 if header is None else -1  # the frame of the header is not counted
        self.spans: list[tuple[int, int]] = []

    def build_part(self) -> SoundPart:
        """Return the stream as a part; raise if frames are missing."""
        promised, skipped, cut = self.header or (0, 0, 0)
        if self.frames < promised:
            raise AudioDecodeError(
                f"the MP3 file is cut short: it has {self.frames} of {promised} frames, up to byte "
                f"{self.spans[-1][1]:,}"
            )
        frames = max(0, self.frames * self.kind.samples - skipped - cut)
        return SoundPart(self.start, tuple(self.spans), frames=frames, rate=self.kind.rate)


def find_mp3_streams(data: Bytes, position: int) -> list[SoundPart]:
    """Find the streams that stand behind each other, from a position on; each has a Xing header, or another kind.

    Raises:
        AudioDecodeError: A frame is cut short or missing, or something unknown is between frames.
    """
    streams: list[_Stream] = []
    known: dict[bytes, tuple[int, _FrameKind]] = {}
    size = len(data)
    at = span = (
        position if is_mp3_header(data[position : position + 4]) else _find_first_frame(data, position)
    )
    while True:
        head = data[at : at + 4]
        found = known.get(head) or known.setdefault(head, _read_header(head))
        length, kind = found
        if not length:
            if streams:
                streams[-1].spans.append((span, at))
            if is_mp3_header(head):  # free format: lengths are not in the headers
                streams.append(_Stream(at, kind, None))
                streams[-1].spans.append((at, size))
                return [
                    SoundPart(each.start, tuple(each.spans)) for each in streams
                ]  # a decoder has to count
            at = span = _find_next_frame(data, at)
            if at >= size:
                break
            continue
        end = at + length
        if end > size:
            count = sum(max(each.frames, 0) for each in streams) + 1
            raise AudioDecodeError(f"the MP3 file is cut short: frame {count} ends after byte {size}")
        mark = at + kind.mark_at
        is_header = data[mark : mark + 4] in _MARKS
        if is_header or not streams or kind is not streams[-1].kind:
            if streams and at > span:
                streams[-1].spans.append((span, at))
            header = _read_xing(data[mark:end]) if is_header else _read_vbri(data[at + 36 : end])
            streams.append(_Stream(at, kind, header))
            check_stream_count(len(streams), at)
            first, span = streams[0].kind, at
            check_same_layout(at, kind[:2], first[:2])
        streams[-1].frames += 1
        at = end
    return [stream.build_part() for stream in streams]


_KINDS: dict[tuple[int, int, bool], _FrameKind] = {}
_NO_KIND = _FrameKind(0, 0, 0, 0)


def _read_header(head: bytes) -> tuple[int, _FrameKind]:
    """Return the length of a frame, 0 if its header does not state it or is none, and its kind."""
    if not is_mp3_header(head):
        return 0, _NO_KIND
    version = (head[1] >> 3) & 3
    is_mpeg1 = version == 3
    rate = _MPEG_RATES_HZ[(head[2] >> 2) & 3] // (1 if is_mpeg1 else 2 if version == 2 else 4)
    is_mono = head[3] >> 6 == _MONO
    side = (17 if is_mono else 32) if is_mpeg1 else (9 if is_mono else 17)
    new = _FrameKind(rate, 1 if is_mono else 2, 1152 if is_mpeg1 else 576, 4 + side)
    kind = _KINDS.setdefault((version, rate, is_mono), new)
    kbps = (_MPEG1_KBPS if is_mpeg1 else _MPEG2_KBPS)[head[2] >> 4]
    if not kbps:
        return 0, kind
    return (144 if is_mpeg1 else 72) * kbps * 1000 // rate + ((head[2] >> 1) & 1), kind


def _read_xing(tag: bytes) -> _Header:
    """Read a Xing or Info header, with the samples that its encoder added."""
    flags = int.from_bytes(tag[4:8], "big")
    frames = int.from_bytes(tag[8:12], "big") if flags & 1 else 0
    encoder = 8 + 4 * (flags & 1) + 4 * (flags >> 1 & 1) + 100 * (flags >> 2 & 1) + 4 * (flags >> 3 & 1)
    if tag[encoder : encoder + 4] not in _ENCODERS or len(tag) < encoder + 24:
        return _Header(frames, 0, 0)
    added = int.from_bytes(tag[encoder + 21 : encoder + 24], "big")
    cut = max(0, (added & 0xFFF) - _DECODER_DELAY) if frames else 0
    return _Header(frames, (added >> 12) + _DECODER_DELAY, cut)


def _read_vbri(tag: bytes) -> _Header | None:
    return _Header(int.from_bytes(tag[14:18], "big"), 0, 0) if tag[:4] == b"VBRI" else None


def _find_first_frame(data: Bytes, position: int) -> int:
    """Return where the first frame begins, behind padding and what is left of tags."""
    found = _find_frame_pair(data, position, min(len(data), position + _MAX_LEAD))
    if found < 0:
        raise AudioDecodeError("the MP3 file has no frames behind its tag")
    return found


def _find_frame_pair(data: Bytes, position: int, end: int) -> int:
    """Return where two frames of one kind follow each other; -1 if nowhere."""
    while (position := data.find(b"\xff", position, end)) >= 0:
        length, kind = _read_header(data[position : position + 4])
        if length and _read_header(data[position + length : position + length + 4])[1] is kind:
            return position
        position += 1
    return -1


def _find_next_frame(data: Bytes, position: int) -> int:
    """Return where the next frame begins behind tags and zeros, or the end of the file; raise if some are damaged."""
    at = position
    while True:
        start, at = at, skip_tags(data, at)
        while at < len(data) and not data[at : at + 512].strip(b"\0"):
            at = min(at + 512, len(data))
        while at < len(data) and not data[at] and not any(data[at : at + 8]):
            at += 1
        if at == start:
            break
    if is_mp3_header(data[at : at + 4]) or at >= len(data):
        return at
    zeros = at
    while zeros < len(data) and not data[zeros]:
        zeros += 1
    if is_mp3_header(data[zeros : zeros + 4]):
        return zeros
    if other := find_format_at(data, at):
        raise AudioDecodeError(f"at byte {at:,} of the MP3 file begins another file ({other.upper()})")
    following = _find_frame_pair(data, at, len(data))
    if following >= 0:
        raise AudioDecodeError(
            f"the MP3 file is damaged at byte {at:,}: the next frame begins at byte {following:,}"
        )
    return len(data)
