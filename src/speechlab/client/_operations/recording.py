"""Recordings to be transcribed, of all forms that :func:`speechlab.audio.unify_recording` knows.

Each becomes an object with a known size that can be read again from its start, so that a retry can send it again.
Long recordings are never in memory as a whole: they are read, encoded and sent in slices.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from typing import IO, Any, TypeAlias, cast

import orjson
import pybase64

from speechlab._files import open_regular_file
from speechlab.audio import (
    RECORDINGS_ALLOWED,
    AudioClip,
    detect_format,
    measure_length_s,
    require_bytes,
    unify_recording,
)
from speechlab.client._operations.call import Body
from speechlab.contract import INPUT_FORMATS, NO_AUDIO, AudioFormat
from speechlab.errors import InvalidRequestError, SpeechLabError, UnsupportedAudioError
from speechlab.remote import locate_file

# Input for recognition. A tuple contains samples, as AudioClip takes them, and their rate in Hz, in either
# order; a mapping is a cell of a data set of Hugging Face.
AudioInput: TypeAlias = (
    str
    | os.PathLike[str]
    | bytes
    | bytearray
    | memoryview
    | IO[bytes]
    | tuple[Any, Any]
    | Mapping[str, Any]
    | AudioClip
)

# Bytes; a multiple of 3, so that the slices' base64 can be joined without padding in between.
_SLICE = 3 * 131_072
_WHOLE = 2 * _SLICE
_HEAD = 4_096
# Lowest bit rate of compressed files in practice; the longer timeout for other files does no harm.
_SLOWEST_BYTES_PER_S = 4_000


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording that can be opened repeatedly; a duration that is not ``exact`` is an upper estimate."""

    size: int
    duration_s: float
    exact: bool
    open: Callable[[], IO[bytes]] = field(repr=False)


def compute_digest(recording: Recording) -> str:
    """Return the SHA-256 of a recording's bytes in hexadecimal; it represents the recording in a key."""
    digest = hashlib.sha256()
    with closing(recording.open()) as file:
        while data := file.read(_WHOLE):
            digest.update(data)
    return digest.hexdigest()


def measure_sound_s(recording: Recording | AudioClip) -> float:
    """Return the seconds of a recording; 0 if it cannot be measured, since its transcript must not be lost."""
    if isinstance(recording, AudioClip) or recording.exact:
        return recording.duration_s
    with suppress(SpeechLabError, OSError, ValueError), closing(recording.open()) as file:
        path = getattr(file, "name", None)  # of a file on disk, of which the headers are read alone
        is_path = isinstance(path, str | os.PathLike)
        return measure_length_s(path if is_path else file.read(recording.size))
    return 0.0


def build_recording(audio: AudioInput) -> Recording:
    """Read size, format and duration of a recording from its content."""
    if isinstance(audio, str) and not audio:
        raise InvalidRequestError("audio is an empty text; give a path", parameter="audio", rule="2.3")
    if callable(getattr(audio, "read", None)):  # read piece by piece
        return _build_recording_from_file(cast("IO[bytes]", audio))
    found = unify_recording(audio)
    if isinstance(found, AudioClip):
        return _build_recording_from_clip(found)
    if isinstance(found, bytes):
        return _build_recording_from_bytes(found)
    if found is not None:
        with open_regular_file(locate_file(found)) as file:
            head = file.read(_HEAD)
            size = file.seek(0, os.SEEK_END)
        return Recording(size, *_estimate_duration(head, size), open=partial(_open_path, found))
    message = f"audio is a {type(audio).__name__}; give {RECORDINGS_ALLOWED}"
    raise InvalidRequestError(message, parameter="audio", rule="2.3")


def _build_recording_from_clip(clip: AudioClip) -> Recording:
    if clip.frames == 0:
        raise InvalidRequestError(NO_AUDIO, parameter="audio", rule="7.1")
    encoded = getattr(clip, "encoded", b"")
    packed = clip.source_format in INPUT_FORMATS - {AudioFormat.WAV}
    # A file compressed by a service is sent unchanged; a streamed WAV file may have the wrong length in its header.
    data = encoded if encoded and packed else clip.encode("wav")
    return Recording(len(data), clip.duration_s, exact=True, open=partial(BytesIO, data))


def _build_recording_from_bytes(data: bytes) -> Recording:
    return Recording(len(data), *_estimate_duration(data[:_HEAD], len(data)), open=partial(BytesIO, data))


def _open_path(path: str | os.PathLike[str]) -> IO[bytes]:
    return locate_file(path).open("rb")


def _build_recording_from_file(file: IO[bytes]) -> Recording:
    try:
        start = file.tell()
        size = file.seek(0, os.SEEK_END) - start
        file.seek(start)
    except (OSError, AttributeError):
        return _build_recording_from_bytes(require_bytes(file.read()))
    if start and not size:  # something was just written to it
        start, size = 0, start
        file.seek(start)
    head = require_bytes(file.read(_HEAD))
    file.seek(start)

    def reopen() -> IO[bytes]:
        file.seek(start)
        return cast("IO[bytes]", _KeepOpen(file))

    return Recording(size, *_estimate_duration(head, size), open=reopen)


class _KeepOpen:
    """A file that stays open, because its owner closes it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.read = file.read

    def close(self) -> None:
        """Leave the file open."""


def _estimate_duration(head: bytes, size: int) -> tuple[float, bool]:
    """Return the seconds of a recording, and whether they are exact; only compressed ones are estimated."""
    if size == 0:
        raise InvalidRequestError(f"{NO_AUDIO}: it is empty", parameter="audio", rule="7.1")
    try:
        kind = detect_format(head)
    except UnsupportedAudioError as error:
        message = str(error)
    else:
        with_header = kind is AudioFormat.WAV and head[12:16] == b"fmt " and len(head) >= 32
        bytes_per_s = int.from_bytes(head[28:32], "little") if with_header else 0
        return (size / bytes_per_s, True) if bytes_per_s >= 1_000 else (size / _SLOWEST_BYTES_PER_S, False)
    raise InvalidRequestError(message, parameter="audio", rule="2.3")


@dataclass(frozen=True)
class RecordingBody(Body):
    """A body with a recording, read while it is sent, as it is or in base64."""

    recording: Recording
    head: bytes
    tail: bytes
    content_type: str
    base64: bool = False

    @property
    def length(self) -> int:  # type: ignore[override]  # the base class has a field
        """Number of bytes."""
        size = self.recording.size
        return len(self.head) + (4 * -(-size // 3) if self.base64 else size) + len(self.tail)

    def open(self) -> bytes | AsyncIterator[bytes]:
        """Return the bytes of a short recording in base64, and the pieces of others."""
        if not self.base64 or self.recording.size > _WHOLE:
            return self._iterate_pieces()
        with closing(self.recording.open()) as file:
            return b"".join((self.head, pybase64.b64encode(file.read()), self.tail))  # copied once

    async def _iterate_pieces(self) -> AsyncIterator[bytes]:
        yield self.head
        file = await asyncio.to_thread(self.recording.open)
        try:
            remaining = self.recording.size
            while remaining > 0:
                data = await asyncio.to_thread(_read_exactly, file, min(_SLICE, remaining))
                remaining -= len(data)
                yield pybase64.b64encode(data) if self.base64 else data
        finally:
            file.close()
        yield self.tail


def _read_exactly(file: IO[bytes], count: int) -> bytes:
    data = file.read(count)
    while len(data) < count:
        more = file.read(count - len(data))
        if not more:
            message = "the audio file became shorter while it was being sent"
            raise InvalidRequestError(message, parameter="audio", rule="2.3")
        data += more
    return data


def build_recognition_body(recording: Recording, fields: dict[str, Any]) -> RecordingBody:
    """The JSON body of recognition: the recording in base64, then the other fields; a short recording is read now."""
    if recording.size <= _WHOLE:
        with closing(recording.open()) as file:
            data = _read_exactly(file, recording.size)
        recording = replace(recording, open=partial(BytesIO, data))
    tail = b'"' + (b"," + orjson.dumps(fields)[1:] if fields else b"}")
    return RecordingBody(recording, b'{"audio":"', tail, "application/json", base64=True)
