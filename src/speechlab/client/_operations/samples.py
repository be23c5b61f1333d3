"""Sound while it arrives: samples from the bytes of a stream, and what a stream lacks at its end."""

from __future__ import annotations

import re
import struct

from speechlab.audio import AudioClip, check_wav, is_placeholder_size, is_wav, list_wav_chunks
from speechlab.client._operations.speech import ExpectedSpeech, parse_pcm_rate
from speechlab.contract import AudioFormat
from speechlab.errors import AudioDecodeError, AudioError, ContractError, InvalidRequestError

_MAX_HEADER = 1 << 16
_PCM, _EXTENSIBLE = 1, 0xFFFE
_HEAD = 12  # bytes that show whether a WAV file begins
_FILE = re.compile(rb"RIFF.{4}WAVE", re.DOTALL)
_PERHAPS_FILE = re.compile(rb"R(?:I(?:F(?:F.{0,7})?)?)?\Z", re.DOTALL)


class SampleReader:
    """Converts arriving bytes to clips of whole frames: PCM, or WAV files, one or several behind each other."""

    def __init__(self, expected: ExpectedSpeech, content_type: str) -> None:
        if expected.format not in {AudioFormat.PCM, AudioFormat.WAV}:
            message = (
                f"a stream of {expected.format} cannot be decoded in pieces; ask for format='wav' or 'pcm', or use "
                "collect() for the whole"
            )
            raise InvalidRequestError(message, parameter="format")
        self._layout: tuple[int, int] | None = None  # channels and rate
        self._is_wav = self._in_header = expected.format is AudioFormat.WAV
        if not self._is_wav:
            self._layout = (1, parse_pcm_rate(content_type, expected.sample_rate))
        self._rest = b""
        self._left: int | None = None  # bytes of sound by the header; None if it does not say
        self._place = 0  # of the rest in the stream

    def feed(self, data: bytes) -> AudioClip | None:
        """Add the next bytes, and return the sound that they complete, or None."""
        self._rest += data
        frames: list[bytes] = []
        while self._read_header() if self._in_header else self._move_sound_to(frames):
            pass
        return self._build_clip(b"".join(frames))

    def close(self) -> AudioClip | None:
        """Return the sound that was held back because it could have been a header, or None."""
        is_sound = not self._in_header and self._left is None
        return self._build_clip(self._take_frames(len(self._rest)) if is_sound else b"")

    def _build_clip(self, frames: bytes) -> AudioClip | None:
        if not frames or self._layout is None:
            return None
        channels, rate = self._layout
        try:
            return AudioClip.from_pcm(frames, rate, channels)
        except AudioError as error:
            raise ContractError(f"the service streams sound that is not usable: {error}") from error

    def _take_frames(self, count: int) -> bytes:
        """Remove and return whole frames from the rest, up to a number of bytes."""
        assert self._layout is not None
        count -= count % (2 * self._layout[0])
        taken = self._rest[:count]
        self._skip_bytes(count)
        return taken

    def _skip_bytes(self, count: int) -> None:
        self._rest = self._rest[count:]
        self._place += count

    def _move_sound_to(self, frames: list[bytes]) -> bool:
        """Move sound from the rest to ``frames``; True if a header or chunk follows it."""
        if self._left is not None:
            sound = self._take_frames(min(self._left, len(self._rest)))
            self._left -= len(sound)
            frames.append(sound)
            return self._left < 2 and self._skip_trailing_chunks()
        following = _FILE.search(self._rest) if self._is_wav else None
        if following is not None:
            end = following.start()
            frames.append(self._take_frames(end))
            self._skip_bytes(end - len(frames[-1]))
            self._in_header = True
            return True
        held = _PERHAPS_FILE.search(self._rest) if self._is_wav else None
        frames.append(self._take_frames(held.start() if held else len(self._rest)))
        return False

    def _skip_trailing_chunks(self) -> bool:
        """Skip the chunks behind the sound, which have none; True if another file begins."""
        while len(self._rest) >= _HEAD:
            if is_wav(self._rest, 0):
                self._in_header = True
                return True
            size = int.from_bytes(self._rest[4:8], "little")
            if not self._rest[:4].isascii() or not self._rest[:4].decode("ascii").isprintable():
                raise ContractError(
                    f"the service streams a WAV file that ends at byte {self._place:,} by its header, and more bytes "
                    "that are neither a chunk nor another file"
                )
            if len(self._rest) < 8 + size:
                return False
            self._skip_bytes(8 + size + size % 2)
        return False

    def _read_header(self) -> bool:
        """Read up to the first sample; False if more bytes are needed."""
        data = self._rest
        if len(data) < _HEAD:
            return False
        if not is_wav(data, 0):
            raise ContractError(f"the service streams {data[:4]!r} in place of a WAV file")
        layout = None
        for name, start, size in list_wav_chunks(data):
            if name == b"data":
                # Streams have an unknown length, and announce 0 or nearly the largest number instead.
                self._left = None if is_placeholder_size(size) else size
                self._skip_bytes(start)
                self._in_header = False
                self._check_and_set_layout(layout or (1, 0))
                return True
            if name == b"fmt " and start + 16 <= len(data):
                kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", data, start)
                if kind not in {_PCM, _EXTENSIBLE} or bits != 16 or channels < 1:
                    raise ContractError(
                        f"the service streams WAV of {bits} bits (kind {kind}); 16-bit PCM is expected"
                    )
                layout = (channels, rate)
        if len(data) > _MAX_HEADER:
            raise ContractError("the service streams a WAV file whose sound never begins")
        return False

    def _check_and_set_layout(self, layout: tuple[int, int]) -> None:
        if self._layout is not None and layout != self._layout:
            raise ContractError(
                f"at byte {self._place:,} of the stream begins a WAV file of {layout[1]} Hz and {layout[0]} "
                f"channels, and that before it has {self._layout[1]} Hz and {self._layout[0]}"
            )
        self._layout = layout


def describe_truncation(audio_format: AudioFormat, data: bytes) -> str:
    """Return what a PCM or WAV stream lacks by its own header, as text for errors; empty if it is complete."""
    if audio_format is AudioFormat.PCM and data[:4] != b"RIFF":
        return "it ends within a sample" if len(data) % 2 else ""
    if audio_format is not AudioFormat.WAV or data[:4] != b"RIFF"[: len(data)]:
        return ""
    if len(data) < _HEAD:
        return "it ends before its sound"
    try:
        check_wav(data)
    except AudioDecodeError as error:
        return str(error)
    return ""
