"""Containers of sound: recognized by their header alone, and checked for completeness by the lengths they declare.

Decoders are lenient: they decode half a WAV, MP3 or OGG file to half a recording without an error. In a study that is
a wrong number, so each container is checked first. The checks use the bytes only, allocate no memory by the values in
a header, and take time limited by the length of the data.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from speechlab.contract import AudioFormat
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


def detect_format(data: bytes | bytearray | memoryview) -> AudioFormat:
    """Detect WAV, OGG, MP3 or FLAC by the first bytes.

    File names and MIME types are ignored. MP3 means an ID3 tag, or the sync bits of MPEG-1, 2 or 2.5 layer III with a
    valid bitrate and sample rate, unlike AAC in ADTS.

    Args:
        data: The bytes; only the first 12 are read.
    """
    head = bytes(memoryview(data)[:12])
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return AudioFormat.WAV
    if head[:4] == b"OggS":
        return AudioFormat.OGG
    if head[:4] == b"fLaC":
        return AudioFormat.FLAC
    if head[:3] == b"ID3" or is_mp3_header(head[:4]):
        return AudioFormat.MP3
    raise UnsupportedAudioError(
        f"unsupported audio: {_describe_content(head)}; WAV, OGG, MP3 and FLAC are recognized, by their header"
    )


def is_mp3_header(head: bytes) -> bool:
    """Return whether four bytes are a possible header of an MPEG layer III frame."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return False
    version, layer = (head[1] >> 3) & 3, (head[1] >> 1) & 3
    bitrate, rate = head[2] >> 4, (head[2] >> 2) & 3
    return version != 1 and layer == 1 and bitrate != 15 and rate != 3


def _describe_content(head: bytes) -> str:
    if not head:
        return "there are no bytes"
    for offset, magic, name in _UNSUPPORTED_FORMATS:
        if head[offset : offset + len(magic)] == magic:
            return f"this is {name}"
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xF6 == 0xF0:
        return "this is AAC in ADTS"
    return f"it starts with {head!r}"


# Data sizes from this value on mean an unknown length: writers that cannot go back to the header leave
# 0x7FFFFFFF or
# 0xFFFFFFFF there, some of them less the size of the header.
OPEN_ENDED_SIZE = 0x7FFF_F000


_MPEG1_KBPS = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_MPEG2_KBPS = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_MPEG_RATES_HZ = (44_100, 48_000, 32_000)


def list_wav_chunks(data: Bytes) -> Iterator[tuple[bytes, int, int]]:
    """Walk the chunks of a WAV file, or of its beginning."""
    position = 12
    for _ in range(4096):
        if position + 8 > len(data):
            return
        name, size = struct.unpack_from("<4sI", data, position)
        yield name, position + 8, size
        position += 8 + size + size % 2


def repair_wav(data: bytes) -> bytes:
    """Return a WAV with the true size of its data chunk, also if it was written to a pipe without one."""
    start, open_ended = check_wav(data)
    if not open_ended:
        return data
    return data[: start - 4] + struct.pack("<I", min(len(data) - start, 0xFFFF_FFFF)) + data[start:]


def check_wav(data: Bytes) -> tuple[int, bool]:
    """Check that the data chunk is complete."""
    data_chunk = next(((start, size) for name, start, size in list_wav_chunks(data) if name == b"data"), None)
    if data_chunk is None:
        raise AudioDecodeError("the WAV file ends before its sound: it has no data chunk")
    start, declared = data_chunk
    available = len(data) - start
    (riff_size,) = struct.unpack_from("<I", data, 4)
    # A size of 0 is an empty recording if the RIFF size includes the rest of the file (such as a LIST chunk).
    # Otherwise the writer never filled in the size.
    open_ended = declared >= OPEN_ENDED_SIZE or (
        declared == 0 and available > 0 and riff_size + 8 != len(data)
    )
    if open_ended and (declared == 0 or available < declared):
        return start, True
    if declared > available:
        text = f"the WAV file is cut short: its data chunk declares {declared} bytes and has {available}"
        raise AudioDecodeError(text)
    return start, False


def count_flac_frames(data: bytes) -> int:
    """Return the number of frames in the STREAMINFO block; 0 if the writer did not know it."""
    return int.from_bytes(data[18:26], "big") & ((1 << 36) - 1) if len(data) >= 26 else 0


def check_ogg(data: Bytes) -> None:
    """Check that the last page is complete.

    A missing end-of-stream mark is not an error, because live streams have none.
    """
    position = 0
    while position < len(data):
        if data[position : position + 4] != b"OggS":
            return  # the decoder finds the next page, or reports the error
        table = position + 27
        segments = data[table - 1] if table <= len(data) else 0
        end = table + segments + sum(data[table : table + segments])
        if table > len(data) or table + segments > len(data) or end > len(data):
            raise AudioDecodeError(f"the OGG file is cut short: it ends within a page, {len(data)} bytes in")
        position = end


def trim_mp3(data: bytes) -> bytes:
    """Check that the last frame is complete and that all frames of a Xing header are present; return the file.

    Zeros after the last frame are removed: some writers add them as padding, and ffmpeg fails on them.
    """
    reached = check_mp3(data)
    return data[:reached] if reached and not any(data[reached:]) else data


def check_mp3(data: Bytes) -> int:
    """Check that no frame is missing or truncated; see :func:`trim_mp3`."""
    frames, promised, reached = 0, 0, 0
    for start, end in _list_mp3_frames(data):
        if end > len(data):
            raise AudioDecodeError(
                f"the MP3 file is cut short: frame {frames + 1} ends after byte {len(data)}"
            )
        if frames == 0:
            promised = _count_xing_frames(data[start:end])
        frames, reached = frames + 1, end
    # The Xing header is in a separate frame, which it does not count.
    if frames - 1 < promised:
        raise AudioDecodeError(f"the MP3 file is cut short: it has {max(frames - 1, 0)} of {promised} frames")
    return reached


def _list_mp3_frames(data: Bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and expected end of each frame, up to the first gap."""
    position = 0
    while data[position : position + 3] == b"ID3" and position + 10 <= len(data):
        size = data[position + 6 : position + 10]
        position += 10 + (size[0] << 21 | size[1] << 14 | size[2] << 7 | size[3])
    while is_mp3_header(head := data[position : position + 4]):
        mpeg1 = (head[1] >> 3) & 3 == 3
        divisor = 1 if mpeg1 else 2 if (head[1] >> 3) & 3 == 2 else 4
        kbps = (_MPEG1_KBPS if mpeg1 else _MPEG2_KBPS)[head[2] >> 4]
        if kbps == 0:
            return  # free format: lengths are not in the header
        rate = _MPEG_RATES_HZ[(head[2] >> 2) & 3] // divisor
        length = (144 if mpeg1 else 72) * kbps * 1000 // rate + ((head[2] >> 1) & 1)
        yield position, position + length
        position += length


def _count_xing_frames(frame: bytes) -> int:
    for mark in (b"Xing", b"Info"):
        at = frame.find(mark, 4, 48)
        if at >= 0 and len(frame) >= at + 12 and frame[at + 7] & 1:
            return int.from_bytes(frame[at + 8 : at + 12], "big")
    return 0
