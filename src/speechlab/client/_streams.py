"""Replies that are used while they come: speech as bytes and clips, translations as chunks.

These are the asynchronous ones; the synchronous faces are in ``_sync_streams``. A stream opens its connection when
it is entered, or at the first piece, and leaving it early closes the connection, which stops the service's work.
"""

from __future__ import annotations

import asyncio
import weakref
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Self

import orjson

from speechlab.client._call import RawResponse
from speechlab.client._events import Timing, attach_timing
from speechlab.client._failures import error_from_value
from speechlab.client._pcm import SampleReader
from speechlab.client._speech import SpeechClip, SpeechFacts, check_audio_type
from speechlab.client._sse import EventReader
from speechlab.client._translation import Translation, TranslationChunk, read_chunk, read_translation
from speechlab.client._wire import WireError
from speechlab.contract import STREAM_END
from speechlab.errors import ConfigurationError, ContractError, StreamTruncatedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from types import TracebackType

    from speechlab.audio import AudioClip
    from speechlab.client._call import Call
    from speechlab.client._core import Core, ReplyStream

    Prepare = Callable[[], Awaitable[tuple[Call, SpeechFacts]]]

__all__ = ["AsyncSpeechStream", "AsyncTranslationStream"]

_LINGER_S = 0.2
"""How long to wait, after the last event, for the end of the body that lets the connection be used again."""


class _Stream:
    """Opening, reading and closing, the same for both kinds."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._source: ReplyStream | None = None
        self._closed = False
        self._timing = Timing()

    @property
    def timing(self) -> Timing:
        """How long it has taken so far, and how many attempts."""
        return self._source.timing if self._source is not None and not self._closed else self._timing

    async def _open_call(self, call: Call) -> ReplyStream:
        source = await self._core.open(call)
        self._source = source
        # A stream that is dropped unfinished must not keep its place under the rate limit.
        weakref.finalize(self, _close_abandoned, asyncio.get_running_loop(), source).atexit = False
        return source

    async def aclose(self) -> None:
        """Close the connection; the service stops working for it."""
        if not self._closed:
            self._timing = self.timing
            self._closed = True
            if self._source is not None:
                await self._source.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ConfigurationError("this stream is closed; ask for a new one")


def _close_abandoned(loop: asyncio.AbstractEventLoop, source: ReplyStream) -> None:
    with suppress(RuntimeError):  # the loop is closed, and its connections with it
        loop.call_soon_threadsafe(partial(_spawn, source))


def _spawn(source: ReplyStream) -> None:
    task = asyncio.ensure_future(source.close())
    _closing.add(task)
    task.add_done_callback(_closing.discard)


_closing: set[asyncio.Future[None]] = set()


class AsyncSpeechStream(_Stream):
    """Speech while it is being made: iterate for its bytes, or :meth:`clips` for sound.

    Use it as ``async with``; leaving it early stops the service's work.
    """

    def __init__(self, core: Core, prepare: Prepare) -> None:
        super().__init__(core)
        self._prepare = prepare
        self._facts: SpeechFacts | None = None
        self._pieces: list[bytes] = []

    @property
    def partial(self) -> bytes:
        """The bytes that have come so far."""
        return b"".join(self._pieces)

    @property
    def content_type(self) -> str:
        """Media type that the service named; empty before the stream is open."""
        return self._source.headers.get("content-type", "") if self._source is not None else ""

    async def open(self) -> None:
        """Send the request, and wait until the service begins to answer.

        Raises:
            InvalidRequestError: The request breaks a rule of the contract.
            APIError: The service refused.
            APIConnectionError: No answer came.
            ContractError: The answer is not audio.
        """
        self._check_open()
        if self._source is not None:
            return
        call, self._facts = await self._prepare()
        source = await self._open_call(call)
        try:
            media_type = self.content_type.partition(";")[0].strip().lower()
            check_audio_type(media_type, "" if media_type.startswith("audio/") else await _start(source))
        except ContractError:
            await self.aclose()
            raise

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        piece = await self.next_piece()
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def next_piece(self) -> bytes | None:
        """The next bytes as they arrive, or None at the end.

        Raises:
            StreamTruncatedError: The connection broke; ``partial`` holds what had come.
        """
        if self._closed and self._ended:
            return None
        await self.open()
        try:
            piece = await self._source.piece() if self._source else None
        except WireError as error:
            text = f"the audio was cut short after {len(self.partial):,} bytes ({error})"
        else:
            if piece is not None:
                self._pieces.append(piece)
                return piece
            await self._finish()
            return None
        await self.aclose()
        broken = StreamTruncatedError(text, partial=self.partial)
        attach_timing(broken, self.timing)
        raise broken

    _ended = False

    async def _finish(self) -> None:
        self._ended = True
        await self.aclose()
        if not self._pieces:
            raise ContractError("the service answered 200 without a single byte of audio")
        if self._facts is not None:
            self._core.ledger.add(
                calls=1, synthesized_chars=len(self._facts.text), audio_bytes=len(self.partial)
            )

    async def clips(self) -> AsyncIterator[AudioClip]:
        """The sound as it comes, in short clips; for the formats pcm and wav.

        Raises:
            InvalidRequestError: Another format, which cannot be cut into pieces that can be decoded.
            StreamTruncatedError: The connection broke.
        """
        await self.open()
        assert self._facts is not None
        reader = SampleReader(self._facts, self.content_type)
        while (piece := await self.next_piece()) is not None:
            clip = reader.feed(piece)
            if clip is not None:
                yield clip

    async def collect(self) -> SpeechClip:
        """Wait for the rest, and return all of it as one clip.

        Raises:
            StreamTruncatedError: The connection broke.
        """
        while await self.next_piece() is not None:
            pass
        assert self._facts is not None
        return await asyncio.to_thread(self._facts.decode, self.partial, self.content_type, self.timing)

    def __repr__(self) -> str:
        state = "closed" if self._closed else "not open" if self._source is None else "open"
        return f"{type(self).__name__}({state}, {len(self.partial):,} bytes)"


async def _start(source: ReplyStream) -> str:
    with suppress(WireError):
        return ((await source.piece()) or b"")[:2000].decode("utf-8", "replace")
    return ""


class AsyncTranslationStream(_Stream):
    """A translation while it is being made: iterate for its chunks; ``text`` is what there is so far.

    Use it as ``async with``; leaving it early stops the service's work.
    """

    def __init__(self, core: Core, call: Call, source_lang: str, target_lang: str, chars: int) -> None:
        super().__init__(core)
        self._call = call
        self._chars = chars
        self._reader = EventReader()
        self._waiting: list[str] = []
        self._chunks: list[TranslationChunk] = []
        self._langs = (source_lang, target_lang)
        self._complete = False
        self._result: Translation | None = None

    @property
    def text(self) -> str:
        """The translation so far."""
        return "".join(chunk.text for chunk in self._chunks)

    @property
    def translation(self) -> Translation:
        """The whole translation, once the stream has ended.

        Raises:
            ConfigurationError: It has not.
        """
        if self._result is None:
            raise ConfigurationError(
                "the translation is not complete yet; iterate to the end, or use collect()"
            )
        return self._result

    async def open(self) -> None:
        """Send the request, and wait until the service begins to answer.

        Raises:
            APIError: The service refused.
            APIConnectionError: No answer came.
            ContractError: The answer is neither events nor JSON.
        """
        self._check_open()
        if self._source is not None:
            return
        source = await self._open_call(self._call)
        media_type = source.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type == "application/json":
            await self._read_whole(source)
        elif media_type != "text/event-stream":
            start = await _start(source)
            await self.aclose()
            what = media_type or "an untyped body"
            text = f"the service answered 200 with {what} in place of text/event-stream: {start[:200]!r}"
            raise ContractError(text, body=start)

    async def _read_whole(self, source: ReplyStream) -> None:
        """A service that does not stream may answer with the whole translation at once."""
        content = b""
        try:
            while (piece := await source.piece()) is not None:
                content += piece
        except WireError as error:
            text = f"the reply was cut short after {len(content):,} bytes ({error})"
        else:
            reply = RawResponse(source.status, source.headers, content, source.timing)
            await self.aclose()
            result = read_translation(reply, *self._langs)
            only = TranslationChunk(result.text, result.id, result.finish_reason, result.usage)
            self._whole = (only, result)
            return
        await self.aclose()
        raise StreamTruncatedError(text, partial="")

    _whole: tuple[TranslationChunk, Translation] | None = None

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> AsyncIterator[TranslationChunk]:
        return self

    async def __anext__(self) -> TranslationChunk:
        chunk = await self.next_chunk()
        if chunk is None:
            raise StopAsyncIteration
        return chunk

    async def next_chunk(self) -> TranslationChunk | None:
        """The next chunk as it arrives, or None at the end.

        Raises:
            StreamTruncatedError: The stream ended without saying so, or the service reported a fault in it;
                ``partial`` holds the text so far.
            ContractError: An event is not a chunk.
        """
        if self._result is not None:
            return None
        if self._whole is None:
            await self.open()
        if self._whole is not None:
            chunk, self._result = self._whole
            self._account(self._result)
            self._chunks.append(chunk)
            return chunk
        data = await self._next_data()
        if data is None or data.strip() == STREAM_END:
            self._complete = self._complete or data is not None
            await self._finish()
            return None
        chunk = await self._read(data)
        self._complete = self._complete or chunk.finish_reason is not None
        self._chunks.append(chunk)
        return chunk

    async def _next_data(self) -> str | None:
        """Data of the next event, or None at the end of the stream."""
        source = self._source
        assert source is not None
        while not self._waiting:
            if self._at_end:
                return None
            try:
                piece = await source.piece()
            except WireError as error:
                self._fault = str(error)
                piece = None
            self._at_end = piece is None
            self._waiting.extend(self._reader.close() if piece is None else self._reader.feed(piece))
        return self._waiting.pop(0)

    _at_end = False
    _fault = ""

    async def _read(self, data: str) -> TranslationChunk:
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError:
            value = None
            broken = True
        else:
            broken = False
        if broken and self._at_end:
            await self._raise_truncated(self._fault or "it ends within an event")
        if isinstance(value, dict) and value.get("error") and not value.get("choices"):
            await self._raise_reported(value)
        error = None
        try:
            if not broken:
                return read_chunk(value)
        except ContractError as caught:
            error = caught
        await self.aclose()
        raise error or ContractError(f"an event of the stream is not JSON: {data[:200]!r}", body=data[:2000])

    async def _finish(self) -> None:
        # The end of the body says nothing by itself: connections break in a way that looks the same.
        if not self._complete:
            await self._raise_truncated(self._fault or "it ends without [DONE]")
        await self._drain()
        self._result = self._summary()
        self._account(self._result)

    async def _drain(self) -> None:
        if self._source is not None and not self._at_end:
            with suppress(WireError, TimeoutError):
                async with asyncio.timeout(_LINGER_S):
                    while await self._source.piece() is not None:
                        pass
        await self.aclose()

    async def _raise_truncated(self, why: str) -> None:
        await self.aclose()
        broken = StreamTruncatedError(
            f"the translation was cut short after {len(self.text):,} characters: {why}", partial=self.text
        )
        attach_timing(broken, self.timing)
        raise broken

    async def _raise_reported(self, value: dict[str, object]) -> None:
        await self.aclose()
        cause = error_from_value(500, {}, value)
        broken = StreamTruncatedError(
            f"the service stopped the translation after {len(self.text):,} characters: {cause.message}",
            partial=self.text,
        )
        attach_timing(broken, self.timing)
        raise broken from cause

    def _summary(self) -> Translation:
        replies = [chunk.reply for chunk in self._chunks if chunk.reply is not None]

        def last(name: str) -> object:
            return next((value for reply in reversed(replies) if (value := getattr(reply, name))), None)

        source_lang, target_lang = self._langs
        return Translation(
            text=self.text,
            id=str(last("id") or ""),
            model=str(last("model") or ""),
            source_lang=str(last("source_lang") or source_lang),
            target_lang=str(last("target_lang") or target_lang),
            transcription=last("transcription"),  # type: ignore[arg-type]
            finish_reason=next((c.finish_reason for c in reversed(self._chunks) if c.finish_reason), None),
            usage=last("usage"),  # type: ignore[arg-type]
            balance=last("balance"),  # type: ignore[arg-type]
            timing=self.timing,
        )

    def _account(self, result: Translation) -> None:
        usage = result.usage
        self._core.ledger.add(
            calls=1,
            translated_chars=self._chars,
            prompt_tokens=usage.prompt_tokens if usage else 0,
            completion_tokens=usage.completion_tokens if usage else 0,
        )

    async def collect(self) -> Translation:
        """Wait for the rest, and return the whole translation.

        Raises:
            StreamTruncatedError: The stream was cut short.
        """
        while await self.next_chunk() is not None:
            pass
        return self.translation

    def __repr__(self) -> str:
        state = "complete" if self._result else "closed" if self._closed else "running"
        return f"{type(self).__name__}({state}, {len(self.text):,} characters)"
