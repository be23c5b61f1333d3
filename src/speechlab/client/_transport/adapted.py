"""Wires for services with another API than the contract, and for functions in place of a service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import orjson

from speechlab.audio import AudioClip, build_stream_encoder, concatenate, detect_format
from speechlab.client._settings.settings import Settings, normalize_url
from speechlab.client._systems.functions import (
    FunctionCall,
    FunctionSystem,
    build_catalogue,
    build_streamed_transcript,
)
from speechlab.client._systems.workers import Workers
from speechlab.client._transport.http import Reply, RequestAttempt, Wire, WireError
from speechlab.contract import CONTENT_TYPES, VOICES_PATH, AudioFormat
from speechlab.errors import AudioError, ConfigurationError, ContractError

if TYPE_CHECKING:
    from speechlab.client._openai import OpenAIAdapter


class _WholeReply(Reply):
    """A reply that is already complete."""

    def __init__(self, status: int, headers: dict[str, str], content: bytes) -> None:
        super().__init__()
        self.status = status
        self.headers = headers
        self._content: bytes | None = content

    async def _read_next_piece(self) -> bytes | None:
        content, self._content = self._content, None
        return content

    async def close(self) -> None:
        """Do nothing: no connection is open."""


class AdaptedWire(Wire):
    """A wire whose calls and replies pass through an adapter."""

    def __init__(self, settings: Settings, wire: Wire, adapter: OpenAIAdapter) -> None:
        super().__init__(settings)
        self._wire = wire
        self._adapter = adapter
        self._service = f"{adapter.identity}, at {normalize_url(settings.base_url)}"

    async def open(self, attempt: RequestAttempt) -> Reply:
        """Send a request, and wait for the headers of the reply; the catalogue comes from the adapter."""
        call = attempt.call
        if call.path == VOICES_PATH:
            return _build_catalog_reply(self._service, self._adapter.catalogue)
        attempt.call = await self._adapter.to_openai_call(call)
        reply = await self._wire.open(attempt)
        if not self._adapter.needs_whole_reply(call, reply.status):
            return reply
        try:
            pieces = []
            while (piece := await reply.next()) is not None:
                pieces.append(piece)
        finally:
            await reply.close()
        status, content = self._adapter.to_contract_reply(call, reply.status, b"".join(pieces))
        return _WholeReply(status, reply.headers, content)

    async def close(self) -> None:
        await super().close()
        await self._wire.close()


def _build_catalog_reply(service: str, voices: list[dict[str, Any]]) -> Reply:
    headers = {"content-type": "application/json", "x-speechlab-service": service}
    return _WholeReply(200, headers, orjson.dumps({"voices": voices}))


class FunctionWire(Wire):
    """A wire whose calls are calls of functions. Only what they made is encoded, after its time was taken."""

    def __init__(self, settings: Settings, system: FunctionSystem) -> None:
        super().__init__(settings)
        self._system = system
        self._workers = Workers(system, settings.clock)

    async def open(self, attempt: RequestAttempt) -> Reply:
        """Call a function: wait for its result, or for the first piece of a stream."""
        call = attempt.call
        if call.path == VOICES_PATH:
            return _build_catalog_reply(self._system.identity, build_catalogue(self._system.voices))
        function_call: FunctionCall | None = call.asked
        if function_call is None:
            name = self._system.name
            raise ConfigurationError(
                f"{name!r} is a system of functions, which answers no HTTP request; call its operations"
            )
        pieces = self._workers.iterate_pieces(function_call)
        if function_call.stream:
            reply = _FunctionStream(function_call, pieces, call.timeouts.read, self._system.name)
            await reply.wait_for_first_piece()
            return reply
        async with aclosing(pieces):
            *results, seconds = [piece async for piece in pieces]
        headers = {"server-timing": f"engine;dur={1000 * seconds:.3f}"}
        if function_call.operation == "synthesize":
            content = await asyncio.to_thread(_encode_pieces_to_file, results, function_call.format)
            headers["content-type"] = CONTENT_TYPES[AudioFormat(function_call.format)]
            return _WholeReply(200, headers, content)
        if function_call.operation == "transcribe":
            (body,) = results
            body.setdefault("language", function_call.fields.get("language"))
        elif function_call.pace is not None:
            body = build_streamed_transcript(function_call, results, seconds)
        else:
            message = {"role": "assistant", "content": "".join(results)}
            body = {"model": self._system.name, "choices": [{"index": 0, "message": message}]}
        headers["content-type"] = "application/json"
        return _WholeReply(200, headers, orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY))

    async def close(self) -> None:
        """End the threads and processes of the functions."""
        await super().close()
        await asyncio.to_thread(self._workers.close)


class _FunctionStream(Reply):
    """The pieces of a function as they come, encoded: sound, or events with text."""

    def __init__(
        self, asked: FunctionCall, pieces: AsyncGenerator[Any, None], read_s: float, name: str
    ) -> None:
        super().__init__()
        self.status = 200
        self._speaks = asked.operation == "synthesize"
        kind = CONTENT_TYPES[AudioFormat(asked.format)] if self._speaks else "text/event-stream"
        self.headers = {"content-type": kind}
        self._asked, self._pieces, self._read_s, self._name = asked, pieces, read_s, name
        self._first: Any = None
        self._over = False
        self._encoder: Any = None

    async def wait_for_first_piece(self) -> None:
        """Wait for the first piece."""
        self._first = await self._wait_for_piece()

    async def _wait_for_piece(self) -> Any:
        """Return the next piece of the function."""
        try:
            async with asyncio.timeout(self._read_s):
                return await anext(self._pieces, None)
        except TimeoutError:
            text = f"the function of {self._name!r} gave nothing for {self._read_s:g} s"
            raise WireError(text, timed_out=True, final=True) from None

    async def _read_next_piece(self) -> bytes | None:
        data = b""
        while not data and not self._over:
            piece, self._first = await self._wait_for_piece() if self._first is None else self._first, None
            self._over = piece is None or isinstance(piece, float)
            if not self._over:
                data = self._encode_sound(piece) if self._speaks else self._encode_translation_event(piece)
            elif not self._speaks:
                data = self._encode_translation_event("") + b"data: [DONE]\n\n"
            elif self._encoder is not None:
                data = self._encoder.close()
        return data or None

    def _encode_sound(self, piece: AudioClip | bytes) -> bytes:
        kind = self._asked.format
        if isinstance(piece, bytes):
            if self._encoder is None and not _is_in_format(piece, kind):
                raise ContractError(
                    f"the function streams bytes that do not begin a file of {kind}; let it yield (samples, rate)"
                )
            self._encoder = self._encoder or _PassThrough()
        elif self._encoder is None:
            self._encoder = build_stream_encoder(kind, piece.sample_rate, piece.channels)
            self._rate = piece.sample_rate
        if isinstance(piece, bytes) != isinstance(self._encoder, _PassThrough):
            raise ContractError(
                f"the function streams bytes of a file of {kind}, and samples; let it yield (samples, rate) alone"
            )
        if isinstance(piece, bytes):
            return piece
        if piece.sample_rate != self._rate:
            piece = piece.resample(self._rate)
        return bytes(self._encoder.write(piece.samples))

    def _encode_translation_event(self, piece: str) -> bytes:
        ending = {} if piece else {"finish_reason": "stop"}
        languages = {name: self._asked.fields[name] for name in ("source_lang", "target_lang")}
        chunk = {
            "model": self._name,
            **languages,
            "choices": [{"index": 0, "delta": {"content": piece}, **ending}],
        }
        return b"data: " + orjson.dumps(chunk) + b"\n\n"

    async def close(self) -> None:
        """End the call."""
        await self._pieces.aclose()


class _PassThrough:
    """The encoder of pieces that are encoded."""

    def close(self) -> bytes:
        return b""


def _is_in_format(data: bytes, kind: str) -> bool:
    try:
        return detect_format(data) == kind
    except AudioError:
        return kind == AudioFormat.PCM


def _encode_pieces_to_file(pieces: list[AudioClip | bytes], kind: str) -> bytes:
    """Return the file of a result: as the function made it, if it has the format."""
    if not pieces:
        raise ContractError("the function of synthesize ended without any sound")
    if all(isinstance(piece, bytes) for piece in pieces):
        data = b"".join(pieces)  # type: ignore[arg-type]  # as seen
        if _is_in_format(data, kind):
            return data
        pieces = [AudioClip.from_bytes(data)]
    clips = [AudioClip.from_bytes(piece) if isinstance(piece, bytes) else piece for piece in pieces]
    rate = clips[0].sample_rate
    return concatenate([clip.resample(rate) for clip in clips]).encode(kind)
