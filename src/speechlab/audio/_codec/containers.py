"""Containers of sound: recognized by their header alone, with the tags that stand before, between and behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from speechlab._formats import AudioFormat
from speechlab.errors import AudioDecodeError, UnsupportedAudioError

if TYPE_CHECKING:
    from mmap import mmap

    Bytes = bytes | mmap


# Look-alikes that people do send, so that the error can name them: (offset, bytes, name).
_UNSUPPORTED_FORMATS: tuple[tuple[int, bytes, str], ...] = (
    (0, b"FORM", "AIFF"),
    (0, b"riff\x2e\x91\xcf\x11", "Sony Wave64 (W64)"),
    (0, b"RF64", "RF64, the 64-bit WAV"),
    (0, b"BW64", "BW64, the 64-bit WAV"),
    (0, b"RIFX", "RIFX, the big-endian WAV"),
    (0, b"RIFF", "RIFF, but not WAVE (AVI or WebP, say)"),
    (0, b"caff", "Core Audio (CAF)"),
    (0, b".snd", "Sun AU"),
    (0, b"\x1a\x45\xdf\xa3", "WebM or Matroska"),
    (4, b"ftyp", "MP4 or M4A"),
    (0, b"\x30\x26\xb2\x75", "Windows Media (ASF)"),
    (0, b"#!AMR", "AMR"),
    (0, b"data:", "a data URL, not the bytes themselves"),
)


_MAX_LYRICS = 1 << 20
_MAX_STREAMS = 10_000


@dataclass(frozen=True, slots=True)
class SoundPart:
    """One stream of sound in a file, which a decoder reads on its own."""

    start: int  # where it begins, for messages
    spans: tuple[tuple[int, int], ...]  # its bytes, without the tags between them
    head: bytes = b""  # the header, in place of a wrong one
    pcm: tuple[int, int] | None = None  # channels and rate, if the spans are 16-bit PCM alone
    frames: int | None = None  # their number, if the container alone states it
    rate: int | None = None  # likewise
    is_file: bool = False  # whether libsndfile reads the file as it is, and all of this part

    def read_for_decoder(self, data: Bytes) -> bytes:
        """Return the bytes for a decoder."""
        if self.head or len(self.spans) > 1:
            return b"".join([self.head, *(data[start:end] for start, end in self.spans)])
        start, end = self.spans[0]
        return data[start:end]  # of bytes, no copy if it is all of them


def detect_format(data: bytes | bytearray | memoryview) -> AudioFormat:
    """Detect WAV, OGG, MP3 or FLAC by the first bytes.

    File names and MIME types are ignored. MP3 means the sync bits of MPEG-1, 2 or 2.5 layer III with a valid bitrate
    and sample rate, unlike AAC in ADTS. Tags before the sound (ID3v2, APE) are skipped; if nothing else is known of
    what is behind them, the file is MP3.

    Args:
        data: The bytes; only the first 12 are read, and the first 12 behind tags.
    """
    with memoryview(data) as view:
        head = behind = bytes(view[:12])
        if head[:3] == b"ID3" or head[:8] == b"APETAGEX":
            place = skip_tags(view, 0)
            behind = bytes(view[place : place + 12])
    if behind is head:
        return _detect_header_format(head)
    if is_mp3_header(behind) or not behind.strip(b"\0"):
        return AudioFormat.MP3
    try:
        return _detect_header_format(behind)
    except UnsupportedAudioError as error:
        if _name_unsupported_format(behind):
            raise UnsupportedAudioError(f"behind its tag, {error}") from None
    return AudioFormat.MP3


def _detect_header_format(head: bytes) -> AudioFormat:
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return AudioFormat.WAV
    if head[:4] == b"OggS":
        return AudioFormat.OGG
    if head[:4] == b"fLaC":
        return AudioFormat.FLAC
    if is_mp3_header(head[:4]):
        return AudioFormat.MP3
    kind = f"this is {name}" if (name := _name_unsupported_format(head)) else f"it starts with {head!r}"
    if not head:
        kind = "there are no bytes"
    raise UnsupportedAudioError(
        f"unsupported audio: {kind}; WAV, OGG, MP3 and FLAC are recognized, by their header"
    )


def is_mp3_header(head: bytes) -> bool:
    """Return whether four bytes are a possible header of an MPEG layer III frame."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return False
    version, layer = (head[1] >> 3) & 3, (head[1] >> 1) & 3
    bitrate, rate = head[2] >> 4, (head[2] >> 2) & 3
    return version != 1 and layer == 1 and bitrate != 15 and rate != 3


def _name_unsupported_format(head: bytes) -> str:
    for offset, magic, name in _UNSUPPORTED_FORMATS:
        if head[offset : offset + len(magic)] == magic:
            return name
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xF6 == 0xF0:
        return "AAC in ADTS"
    return ""


def skip_tags(data: Bytes | memoryview, position: int) -> int:
    """Return where the tags that begin at a position end: ID3 of all versions, APE and Lyrics3.

    A tag that says to be longer than the file ends with it.
    """
    while size := _measure_tag(bytes(data[position : position + 32]), data, position):
        position = min(position + size, len(data))
    return position


def _measure_tag(head: bytes, data: Bytes | memoryview, position: int) -> int:
    """Return the size of the tag at a position; 0 if there is none."""
    if head[:3] == b"ID3" and len(head) >= 10:
        size = head[6] << 21 | head[7] << 14 | head[8] << 7 | head[9]
        return 10 + size + (10 if head[5] & 0x10 else 0)  # bit 4: a footer
    if head[:3] == b"3DI" and len(head) >= 10:
        return 10
    if head[:8] == b"APETAGEX" and len(head) == 32:
        flags = int.from_bytes(head[20:24], "little")
        return 32 + (
            int.from_bytes(head[12:16], "little") if flags & 0x2000_0000 else 0
        )  # a header, or a footer
    if head[:4] == b"TAG+":
        return 227
    if head[:3] == b"TAG" and len(data) - position >= 128:
        return 128
    if head[:11] == b"LYRICSBEGIN" and not isinstance(data, memoryview):  # never at the beginning
        for mark in (b"LYRICS200", b"LYRICSEND"):
            if (end := data.find(mark, position, position + _MAX_LYRICS)) > 0:
                return end + len(mark) - position
    return 0


def find_format_at(data: Bytes, position: int) -> AudioFormat | None:
    """Return the format of the file that begins at a position in another one; None if there is none."""
    head = bytes(data[position : position + 12])
    try:
        return None if is_mp3_header(head) else _detect_header_format(head)
    except UnsupportedAudioError:
        return None


def check_same_layout(position: int, found: tuple[int, int], first: tuple[int, int]) -> None:
    """Raise if a stream has not the rate and the channels of the first one in its file."""
    if found != first:
        rate, channels = found
        raise AudioDecodeError(
            f"at byte {position:,} begins a stream of {rate} Hz and {channels} channels, and those before have "
            f"{first[0]} Hz and {first[1]}; cut the file there, or convert it to one rate"
        )


def check_stream_count(count: int, position: int) -> None:
    """Raise if a file has so many streams that reading it would take memory out of proportion."""
    if count > _MAX_STREAMS:
        raise AudioDecodeError(
            f"the file has more than {_MAX_STREAMS:,} streams of sound before byte {position:,}"
        )
