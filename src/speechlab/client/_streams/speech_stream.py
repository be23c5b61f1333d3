"""Streamed speech, for ``await``."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from speechlab._files import expand_user_path, write_atomically
from speechlab.audio import AudioClip, set_wav_sizes
from speechlab.client._operations.samples import SampleReader, describe_truncation
from speechlab.client._operations.speech import (
    ExpectedSpeech,
    SpeechClip,
    StreamSpeech,
    build_not_audio_error,
    can_be_audio_type,
    count_speech_usage,
)
from speechlab.client._streams.base import Playable, Stream, read_start
from speechlab.client._transport.wire_errors import WireError
from speechlab.errors import (
    ConfigurationError,
    ContractError,
    InvalidRequestError,
    SpeechLabError,
    StreamTruncatedError,
)

if TYPE_CHECKING:
    from speechlab.client._services.sender import Sender
    from speechlab.client._streams.base import StoredCallOf
    from speechlab.contract import AudioFormat

    Prepare = Callable[[], Awaitable[StreamSpeech]]


class AsyncSpeechStream(Playable, Stream):
    """Speech while it is made: iterate for its bytes, or :meth:`clips` for sound.

    Use it with ``async with``; leaving it early stops the service's work.
    """

    def __init__(self, sender: Sender, prepare: Prepare, stored_call_of: StoredCallOf) -> None:
        super().__init__(sender, stored_call_of)
        self._prepare = prepare
        self._expected: ExpectedSpeech | None = None
        self._sent_text = ""
        self._audio: list[bytes] = []
        self._ended = False
        self._copy: FileCopy | None = None

    @property
    def partial(self) -> bytes:
        """The bytes received so far."""
        return b"".join(self._audio)

    @property
    def content_type(self) -> str:
        """Media type from the service; empty before the stream is open."""
        return self.headers.get("content-type", "")

    async def _open_reply(self) -> None:
        operation = await self._prepare()
        self._expected, self._sent_text = operation.expected, operation.sent_text
        if self._copy is not None:
            self._copy.check_suffix_or_drop(self._expected.format)
        body = await self._find_or_request_body(operation)
        if not can_be_audio_type(self._media_type):
            raise await self._close_with_error(
                build_not_audio_error(self._media_type, await read_start(body))
            )

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        """Return the next bytes as they arrive.

        Raises:
            StreamTruncatedError: The connection broke, or sound is missing; ``partial`` contains what has come.
        """
        if self._ended:
            raise StopAsyncIteration
        await self.open()
        try:
            piece = await self._read_bytes()
        except WireError as error:
            text = f"the audio was cut short after {len(self.partial):,} bytes ({error})"
        else:
            if piece is not None:
                self._audio.append(piece)
                if self._copy is not None:
                    self._copy.add(piece)
                return piece
            lacks = (
                describe_truncation(self._expected.format, self.partial)
                if self._expected and self._audio
                else ""
            )
            if not lacks:
                await self._finish_stream()
                raise StopAsyncIteration
            text = f"the audio was cut short after {len(self.partial):,} bytes: {lacks}"
        raise await self._close_with_error(StreamTruncatedError(text, partial=self.partial))

    def save_to(self, path: str | os.PathLike[str]) -> Self:
        """Write the bytes to a file as well, while the stream is read or played.

        The file appears when the stream is complete. It includes the bytes that were read before this call. If the
        stream breaks off or is left early, no file remains, and ``partial`` contains what has come.

        Args:
            path: The file; an existing one is replaced.

        Returns:
            The stream itself, as in ``stream.save_to("a.mp3").collect()``.

        Raises:
            OSError: The file cannot be written.
            InvalidRequestError: The file name has the extension of another format.
            ConfigurationError: The stream is closed, or is being saved already.
        """
        if self._copy is not None or (self._closed and not self._ended):
            why = "is closed; make a new one" if self._copy is None else "is being saved to a file already"
            raise ConfigurationError(f"this stream {why}")
        copy = FileCopy(path)
        if self._expected is not None:
            copy.check_suffix_or_drop(self._expected.format)
        copy.add(self.partial)
        if self._ended:
            copy.finish(self.partial)
        else:
            self._copy = copy
        return self

    async def aclose(self) -> None:
        """Close the connection, which stops the service's work."""
        await super().aclose()
        copy, self._copy = self._copy, None
        if copy is not None:
            copy.drop()

    async def _finish_stream(self) -> None:
        self._ended = True
        if self._copy is not None and self._audio:
            copy, self._copy = self._copy, None
            copy.finish(self.partial)
        await self.aclose()
        if not self._audio:
            raise self._attach_facts_and_count(
                ContractError("the service answered 200 without a single byte of audio")
            )
        if self._expected is not None:
            await self._save_and_count_stream(count_speech_usage(self._sent_text, len(self.partial)))

    async def clips(self) -> AsyncIterator[AudioClip]:
        """Yield the sound in short clips as it arrives, for the formats pcm and wav.

        It continues after the bytes read so far.

        Raises:
            InvalidRequestError: The stream has another format, which cannot be decoded in pieces.
            StreamTruncatedError: The connection broke.
        """
        await self.open()
        assert self._expected is not None
        reader = SampleReader(self._expected, self.content_type)
        if self._audio:  # skip what was returned as bytes or clips before
            reader.feed(self.partial)
        async for piece in self:
            clip = reader.feed(piece)
            if clip is not None:
                yield clip
        clip = reader.close()
        if clip is not None:
            yield clip

    async def collect(self) -> SpeechClip:
        """Wait for the rest, and return all of it as one clip.

        Raises:
            StreamTruncatedError: The connection broke.
        """
        async for _ in self:
            pass
        assert self._expected is not None
        return await asyncio.to_thread(self._expected.decode, self.partial, self.content_type, self.timing)

    def __repr__(self) -> str:
        state = "closed" if self._closed else "not open" if self._body is None else "open"
        return f"{type(self).__name__}({state}, {len(self.partial):,} bytes)"


_FORMATS_BY_SUFFIX = {
    "mp3": "mp3",
    "wav": "wav",
    "wave": "wav",
    "ogg": "ogg",
    "oga": "ogg",
    "flac": "flac",
    "pcm": "pcm",
}


class FileCopy:
    """The file, which gets its name when the stream is complete and does not exist before."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = expand_user_path(path)
        with ExitStack() as stack:  # errors about the temporary file name the final file
            self._file = stack.enter_context(stack.enter_context(write_atomically(self._path)).open("wb"))
            self._left = stack.pop_all()

    def check_suffix_or_drop(self, audio_format: AudioFormat) -> None:
        """Refuse a file name with the extension of another format."""
        ending = _FORMATS_BY_SUFFIX.get(self._path.suffix[1:].lower(), str(audio_format))
        if ending != audio_format:
            self.drop()
            message = (
                f"the stream is {audio_format}, and {self._path.name} is named as {ending}; ask for "
                f"format={ending!r}, or name the file otherwise"
            )
            raise InvalidRequestError(message, parameter="format")

    def add(self, piece: bytes) -> None:
        """Write the next bytes."""
        self._file.write(piece)

    def finish(self, data: bytes) -> None:
        """Give the file its name; a streamed WAV, whose header left its sizes open, is written with them."""
        closed = set_wav_sizes(data) if data[:4] == b"RIFF" else data
        if closed is not data:
            self._file.seek(0)
            self._file.truncate()
            self._file.write(closed)
        self._left.close()

    def drop(self) -> None:
        """Delete the incomplete file."""
        failure = SpeechLabError("not whole")
        self._left.__exit__(type(failure), failure, None)
