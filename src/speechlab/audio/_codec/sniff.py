"""Recognition of the four input formats by their header alone (section 2.3 of the contract)."""

from __future__ import annotations

from speechlab.contract import AudioFormat
from speechlab.errors import UnsupportedAudioError

_ALLOWED = "WAV, OGG, MP3 and FLAC are recognised"

# Look-alikes that people do send, so that the error can name them: (offset, bytes, name).
_STRANGERS: tuple[tuple[int, bytes, str], ...] = (
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


def sniff(data: bytes | bytearray | memoryview) -> AudioFormat:
    """Detect WAV, OGG, MP3 or FLAC by the first bytes.

    File names and MIME types are ignored. MP3 means an ID3 tag, or the sync bits of MPEG-1, 2 or 2.5 layer III with a
    valid bitrate and sample rate, unlike AAC in ADTS.

    Args:
        data: The bytes; only the first 12 are read.

    Returns:
        One of ``INPUT_FORMATS``.

    Raises:
        UnsupportedAudioError: The bytes have another format. The message names it if it is known.

    Example:
        >>> str(sniff(AudioClip([0.0], 8_000).encode("flac")))
        'flac'
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
    raise UnsupportedAudioError(f"unsupported audio: {_describe(head)}; {_ALLOWED}, by their header")


def is_mp3_header(head: bytes) -> bool:
    """Whether four bytes are a possible header of an MPEG layer III frame."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return False
    version, layer = (head[1] >> 3) & 3, (head[1] >> 1) & 3
    bitrate, rate = head[2] >> 4, (head[2] >> 2) & 3
    return version != 1 and layer == 1 and bitrate != 15 and rate != 3


def _describe(head: bytes) -> str:
    if not head:
        return "there are no bytes"
    for offset, magic, name in _STRANGERS:
        if head[offset : offset + len(magic)] == magic:
            return f"this is {name}"
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xF6 == 0xF0:
        return "this is AAC in ADTS"
    return f"it starts with {head!r}"
