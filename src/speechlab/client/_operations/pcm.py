"""Sound from a PCM or WAV stream, piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab.audio import OPEN_ENDED_SIZE, AudioClip, wav_chunks
from speechlab.client._operations.speech import pcm_rate
from speechlab.contract import AudioFormat
from speechlab.errors import AudioError, ContractError, InvalidRequestError

if TYPE_CHECKING:
    from speechlab.client._operations.speech import ExpectedSpeech

_MAX_HEADER = 1 << 16
_PCM, _EXTENSIBLE = 1, 0xFFFE


class SampleReader:
    """Converts arriving bytes to clips of whole frames."""

    def __init__(self, expected: ExpectedSpeech, content_type: str) -> None:
        if expected.format not in {AudioFormat.PCM, AudioFormat.WAV}:
            message = (
                f"a stream of {expected.format} cannot be decoded in pieces; ask for format='wav' or 'pcm', or use "
                "collect() for the whole"
            )
            raise InvalidRequestError(message, parameter="format")
        self._rate = pcm_rate(content_type, expected.sample_rate)
        self._channels = 1
        self._in_header = expected.format is AudioFormat.WAV
        self._rest = b""
        self._left: int | None = None

    def feed(self, data: bytes) -> AudioClip | None:
        """Add the next bytes, and return the sound that they complete, or None."""
        self._rest += data
        if self._in_header and not self._read_header():
            return None
        if self._left is not None:  # RIFF chunks after the data chunk are not sound
            self._rest = self._rest[: self._left]
        frame = 2 * self._channels
        whole = len(self._rest) - len(self._rest) % frame
        taken, self._rest = self._rest[:whole], self._rest[whole:]
        if self._left is not None:
            self._left -= whole
        try:
            return AudioClip.from_pcm(taken, self._rate, self._channels) if taken else None
        except AudioError as error:
            raise ContractError(f"the service streams sound that is not usable: {error}") from error

    def _read_header(self) -> bool:
        """Read up to the first sample; False if more bytes are needed."""
        data = self._rest
        if len(data) < 12:
            return False
        if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
            raise ContractError(f"the service streams {data[:4]!r} in place of a WAV file")
        for name, start, size in wav_chunks(data):
            if name == b"data":
                # Streams have an unknown length, and announce 0 or nearly the largest number instead.
                self._left = size if 0 < size < OPEN_ENDED_SIZE else None
                self._rest = data[start:]
                self._in_header = False
                return True
            if name == b"fmt " and start + 16 <= len(data):
                self._read_format(data[start : start + 16])
        if len(data) > _MAX_HEADER:
            raise ContractError("the service streams a WAV file whose sound never begins")
        return False

    def _read_format(self, fields: bytes) -> None:
        kind, channels = int.from_bytes(fields[:2], "little"), int.from_bytes(fields[2:4], "little")
        bits = int.from_bytes(fields[14:16], "little")
        if kind not in {_PCM, _EXTENSIBLE} or bits != 16 or channels < 1:
            raise ContractError(
                f"the service streams WAV of {bits} bits (kind {kind}); 16-bit PCM is expected"
            )
        self._channels = channels
        self._rate = int.from_bytes(fields[4:8], "little")


def what_is_missing(audio_format: AudioFormat, data: bytes) -> str:
    """The missing part of a PCM or WAV stream by its own header, as text for errors; empty if it is complete."""
    if audio_format is AudioFormat.PCM and data[:4] != b"RIFF":
        return "it ends within a sample" if len(data) % 2 else ""
    if audio_format is not AudioFormat.WAV or data[:4] != b"RIFF"[: len(data)]:
        return ""
    for name, start, size in wav_chunks(data):
        if name == b"data":
            there = len(data) - start
            short = 0 < size < OPEN_ENDED_SIZE and there < size
            return f"its data chunk says {size:,} bytes, but {there:,} are there" if short else ""
    return "it ends before its sound"
