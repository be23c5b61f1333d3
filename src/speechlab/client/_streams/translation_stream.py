"""Streamed translations, for ``await``."""

from __future__ import annotations

import asyncio
import codecs
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from speechlab.client._clock import LoopTurns
from speechlab.client._operations.call import RawResponse
from speechlab.client._operations.failures import build_error_from_value
from speechlab.client._operations.translation import (
    StreamTranslation,
    Translation,
    TranslationChunk,
    parse_chunk,
)
from speechlab.client._secret import redact
from speechlab.client._streams.base import Stream, read_start
from speechlab.client._transport.wire_errors import WireError
from speechlab.contract import STREAM_END, parse_lenient_json
from speechlab.errors import ConfigurationError, ContractError, SpeechLabError, StreamTruncatedError

if TYPE_CHECKING:
    from speechlab.client._services.sender import Sender
    from speechlab.client._streams.base import StoredCallOf, StreamBody

# Wait after the last event for the end of the body, after which the connection can be used again.
_LINGER_S = 0.2


class AsyncTranslationStream(Stream):
    """A translation while it is made: iterate for its chunks; ``text`` is the translation so far.

    Use it with ``async with``; leaving it early stops the service's work.
    """

    def __init__(self, sender: Sender, operation: StreamTranslation, stored_call_of: StoredCallOf) -> None:
        super().__init__(sender, stored_call_of)
        sender.service.build_parameters(operation)  # raises for an invalid request
        self._operation = operation
        self._reader = EventReader()
        self._waiting: deque[str] = deque()
        self._chunks: list[TranslationChunk] = []
        self._complete = False
        self._result: Translation | None = None
        self._whole: tuple[TranslationChunk, Translation] | None = None
        self._turns = LoopTurns()
        self._at_end = False
        self._fault = ""

    @property
    def text(self) -> str:
        """The translation so far."""
        return "".join(chunk.text for chunk in self._chunks)

    @property
    def translation(self) -> Translation:
        """The whole translation, after the end of the stream.

        Raises:
            ConfigurationError: The stream has not ended.
        """
        if self._result is None:
            raise ConfigurationError(
                "the translation is not complete yet; iterate to the end, or use collect()"
            )
        return self._result

    async def _open_reply(self) -> None:
        body = await self._find_or_request_body(self._operation)
        if self._media_type == "application/json":
            await self._read_whole_translation(body)
        elif self._media_type != "text/event-stream":
            start, what = await read_start(body), self._media_type or "an untyped body"
            text = f"the service answered 200 with {what} instead of text/event-stream: {start[:200]!r}"
            raise await self._close_with_error(ContractError(text, body=start))

    async def _read_whole_translation(self, body: StreamBody) -> None:
        """Read a whole translation, as sent by services that do not stream."""
        content = b""
        try:
            while (piece := await self._read_bytes()) is not None:
                content += piece
        except WireError as error:
            text = f"the reply was cut short after {len(content):,} bytes ({error})"
        else:
            reply = RawResponse(body.status or 200, body.headers, content, body.timing)
            await body.close()
            try:
                result = self._operation.read(reply)
            except ContractError as error:
                self._attach_facts_and_count(error)
                raise
            only = TranslationChunk(result.text, result.id, result.finish_reason, result.usage)
            self._whole = (only, result)
            return
        raise await self._close_with_error(StreamTruncatedError(text, partial=""))

    def __aiter__(self) -> AsyncIterator[TranslationChunk]:
        return self

    async def __anext__(self) -> TranslationChunk:
        """Return the next chunk as it arrives.

        Raises:
            StreamTruncatedError: The stream broke off without an end, or the service reported a failure in it;
                ``partial`` contains the text so far.
            ContractError: An event is not a chunk.
        """
        with self._count_time_spent():
            await self._turns.yield_to_loop_if_due()
            return await self._read_chunk()

    async def _read_chunk(self) -> TranslationChunk:
        if self._result is not None:
            raise StopAsyncIteration
        if self._whole is None:
            await self.open()
        if self._whole is not None:
            chunk, self._result = self._whole
            await self._save_and_count_stream(self._operation.count_usage(self._result))
            self._chunks.append(chunk)
            return chunk
        data = await self._read_event_data()
        if data is None or data.strip() == STREAM_END:
            self._complete = self._complete or data is not None
            await self._finish_stream()
            raise StopAsyncIteration
        chunk = await self._parse_chunk(data)
        self._complete = self._complete or chunk.finish_reason is not None
        self._chunks.append(chunk)
        return chunk

    async def _read_event_data(self) -> str | None:
        """Data of the next event, or None at the end of the stream."""
        if self._waiting:
            try:
                self._check_time_left()
            except WireError as error:
                why = str(error)
            else:
                return self._waiting.popleft()
            raise await self._close_as_truncated(why)
        while not self._waiting:
            if self._at_end:
                return None
            try:
                piece = await self._read_bytes()
            except WireError as error:
                self._fault = str(error)
                piece = None
            self._at_end = piece is None
            self._waiting.extend(self._reader.close() if piece is None else self._reader.feed(piece))
        return self._waiting.popleft()

    async def _parse_chunk(self, data: str) -> TranslationChunk:
        value, problem = None, None
        try:
            value = parse_lenient_json(data)
        except ValueError:
            problem = ContractError(f"an event of the stream is not JSON: {data[:200]!r}", body=data[:2000])
        if problem is not None and self._at_end:
            raise await self._close_as_truncated(self._fault or "it ends within an event")
        if isinstance(value, dict) and value.get("error") and not value.get("choices"):
            cause = build_error_from_value(500, {}, value, redact(data[:2_000]))
            raise await self._close_as_truncated(
                cause.message, "the service stopped the translation"
            ) from cause
        try:
            if problem is None:
                return parse_chunk(value)
        except ContractError as error:
            problem = error
        raise await self._close_with_error(problem)

    async def _finish_stream(self) -> None:
        # The end of the body is no sign of a complete stream: a broken connection may look the same.
        if not self._complete:
            raise await self._close_as_truncated(self._fault or "it ends without [DONE]")
        if self._body is not None and not self._at_end:
            with suppress(WireError, TimeoutError):
                async with asyncio.timeout(_LINGER_S):
                    while await self._read_bytes() is not None:
                        pass
        await self.aclose()
        self._result = self._build_translation()
        await self._save_and_count_stream(self._operation.count_usage(self._result))

    async def _close_as_truncated(
        self, why: str, what: str = "the translation was cut short"
    ) -> SpeechLabError:
        text = f"{what} after {len(self.text):,} characters: {why}"
        return await self._close_with_error(StreamTruncatedError(text, partial=self.text))

    def _build_translation(self) -> Translation:
        replies = [chunk.reply for chunk in self._chunks if chunk.reply is not None]

        def find_last(name: str) -> object:
            return next((value for reply in reversed(replies) if (value := getattr(reply, name))), None)

        return Translation(
            text=self.text,
            id=str(find_last("id") or ""),
            model=str(find_last("model") or ""),
            source_lang=str(find_last("source_lang") or self._operation.source_lang),
            target_lang=str(find_last("target_lang") or self._operation.target_lang),
            transcription=find_last("transcription"),  # type: ignore[arg-type]  # read by its name
            finish_reason=next((c.finish_reason for c in reversed(self._chunks) if c.finish_reason), None),
            usage=find_last("usage"),  # type: ignore[arg-type]  # read by its name
            balance=find_last("balance"),  # type: ignore[arg-type]  # read by its name
            timing=self.timing,
        )

    async def collect(self) -> Translation:
        """Wait for the rest, and return the whole translation.

        Raises:
            StreamTruncatedError: The stream is incomplete.
        """
        async for _ in self:
            pass
        return self.translation

    def __repr__(self) -> str:
        state = "complete" if self._result else "closed" if self._closed else "running"
        return f"{type(self).__name__}({state}, {len(self.text):,} characters)"


_MAX_EVENT_CHARS = 4 << 20


class EventReader:
    """Extracts the data of server-sent events from bytes, by the standard: lines end in LF, CR or CRLF alone."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._line: list[str] = []
        self._data: list[str] = []
        self._size = 0
        self._after_cr = False

    def feed(self, data: bytes) -> Iterator[str]:
        """Add the next bytes, and give the data of each event that they complete."""
        yield from self._iterate_events(self._decode(data))

    def close(self) -> Iterator[str]:
        """Give the data of the last event, which the end of the stream completes."""
        yield from self._iterate_events(self._decode(b"", final=True))
        if self._line:
            yield from self._end_line_and_iterate_events()
        yield from self._take_event_data()

    def _iterate_events(self, text: str) -> Iterator[str]:
        if self._after_cr and text:
            text = text.removeprefix("\n")
            self._after_cr = False
        if not text:
            return
        # A CR at the end of the bytes ends its line at once; an LF at the start of the next bytes belongs to it.
        self._after_cr = text.endswith("\r")
        *lines, tail = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines:
            self._append_to_line(line)
            yield from self._end_line_and_iterate_events()
        self._append_to_line(tail)

    def _append_to_line(self, text: str) -> None:
        if text:
            self._line.append(text)
            self._size += len(text)
            if self._size > _MAX_EVENT_CHARS:
                raise ContractError(f"an event of the stream is larger than {_MAX_EVENT_CHARS:,} characters")

    def _end_line_and_iterate_events(self) -> Iterator[str]:
        line = "".join(self._line)
        self._line.clear()
        if not line:
            yield from self._take_event_data()
            return
        name, _, value = line.partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))

    def _take_event_data(self) -> Iterator[str]:
        data = "\n".join(self._data)
        self._data.clear()
        self._size = 0
        if data.strip():
            yield data
