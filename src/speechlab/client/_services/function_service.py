"""Functions in place of a service: called in threads or processes, and what they return made a reply."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from speechlab.audio import AudioClip, build_stream_encoder, concatenate, detect_format
from speechlab.client._operations.call import Reply, ServiceCall
from speechlab.client._operations.translation import Translate
from speechlab.client._operations.voices import VoiceCatalogue
from speechlab.client._scheduling.retry import Failure
from speechlab.client._scheduling.scheduler import Scheduler, get_scheduler
from speechlab.client._services.service import Service
from speechlab.client._settings.settings import FUNCTIONS_PREFIX
from speechlab.client._systems import rules
from speechlab.client._systems.functions import (
    PERFORM,
    PERFORMED,
    SystemCall,
    build_catalogue,
    build_streamed_transcript,
)
from speechlab.client._systems.workers import Workers
from speechlab.client._transport.http import ReplyBody
from speechlab.client._transport.wire_errors import WireError
from speechlab.contract import CONTENT_TYPES, AudioFormat, VoiceList
from speechlab.errors import APITimeoutError, AudioError, ConfigurationError, ContractError, SpeechLabError

if TYPE_CHECKING:
    from random import Random

    from speechlab.client._clock import Clock
    from speechlab.client._operations.operation import Operation
    from speechlab.client._scheduling.waiting import CallPlace
    from speechlab.client._services.connections import ConnectionPool
    from speechlab.client._services.progress import Progress
    from speechlab.client._settings.settings import Settings
    from speechlab.client._systems.functions import FunctionSystem


class FunctionService(Service):
    """A system of functions: its calls are performed here, whole (``perform``) or in pieces (``open_stream``)."""

    other_api = "a system of functions"

    def __init__(self, settings: Settings, system: FunctionSystem) -> None:
        super().__init__()
        self._system, self._clock = system, settings.clock
        self.home = f"{FUNCTIONS_PREFIX}{system.identity}, voices {', '.join(system.voices) or 'none'}"
        self.place = repr(system.name)
        self.functions = PERFORMED if PERFORM in system.functions else frozenset(system.functions)
        self.places = system.calls_at_once
        self.together = system.batch_size if system.takes_many else 1

    # The rules

    def build_parameters(self, operation: Operation[Any]) -> dict[str, Any]:
        return rules.build_parameters(self._system, operation)

    def build_content(self, operation: Operation[Any]) -> dict[str, Any]:
        return rules.build_content(operation)

    def check_options(self, operation: Operation[Any]) -> None:
        rules.collect_fields(self._system, operation)

    def build_known_catalogue(self) -> VoiceCatalogue:
        voices = VoiceList.parse({"voices": build_catalogue(self._system.voices)}).voices
        return VoiceCatalogue(voices, self._system.identity)

    # The work

    def get_scheduler(self, queue: str, clock: Clock, rng: Random) -> Scheduler:
        return get_scheduler(self._system.identity, "", queue, clock, rng, self.places)

    def prepare(self, operation: Operation[Any], timeout: float | None) -> ServiceCall:
        return rules.build_call(self._system, operation, timeout)

    def _iterate_pieces(self, call: ServiceCall) -> AsyncGenerator[Any, None]:
        """Yield the pieces of a result as they come, and then its seconds."""
        if not isinstance(call, SystemCall):
            raise ConfigurationError(
                f"{self.place} is a system of functions, which answers no HTTP request; call its operations"
            )
        workers = self.connections.get("workers", partial(Workers, self._system, self._clock))
        return workers.iterate_pieces(call.function_call)

    async def perform(self, call: ServiceCall, progress: Progress, place: CallPlace) -> Reply | Failure:
        """Call a function, and return what it made."""
        pieces = self._iterate_pieces(call)
        assert isinstance(call, SystemCall)
        try:
            async with asyncio.timeout(progress.left_s), aclosing(pieces):
                *results, progress.processing_s = await self.connections.wait_while_open(
                    partial(_collect_pieces, pieces)
                )
                progress.first_byte_s = progress.clock.monotonic() - place.started
                progress.report("response")
                return await self._build_reply(call, results, progress)
        except TimeoutError:
            text = progress.describe_end_of_time("the function, which may still be running")
        except SpeechLabError as error:
            if (failure := Failure.from_error(error)) is not None:
                return failure
            raise
        return _build_timeout_failure(text, progress)

    async def _build_reply(self, call: SystemCall, results: list[Any], progress: Progress) -> Reply:
        """Return the pieces of a whole result as a reply."""
        function_call, given = call.function_call, Reply()
        if results and isinstance(results[0], Reply):  # of an object that performs operations
            given = results[-1]
            results = [_take_content(reply, call.service) for reply in results]
        if call.service == "tts":
            kind = function_call.format
            audio = await asyncio.to_thread(_encode_pieces_to_file, results, kind)
            return Reply(
                audio=audio, content_type=CONTENT_TYPES[AudioFormat(kind)], timing=progress.build_timing()
            )
        fields: Mapping[str, Any] = given.fields
        if call.service == "translate":
            made = {"text": "".join(results), "model": self._system.name}
            fields = Translate.restore_body({**made, **fields, "text": made["text"]})
        elif function_call.pace is not None:
            fields = build_streamed_transcript(function_call, results, progress.processing_s or 0.0)
        else:
            if len(results) != 1:
                raise ContractError(
                    f"the function of transcribe gave {len(results):,} transcripts; return one"
                )
            fields = {"language": function_call.fields.get("language"), **results[0]}
        return Reply(_to_plain_values(fields), timing=progress.build_timing())

    async def open_stream(
        self, call: ServiceCall, progress: Progress, place: CallPlace
    ) -> ReplyBody | Failure:
        """Call a function, and wait for the first piece of its result."""
        pieces = self._iterate_pieces(call)
        assert isinstance(call, SystemCall)
        stream = _FunctionStream(call, pieces, self._system.name, self.connections)
        opened = False
        try:
            async with asyncio.timeout(progress.left_s):
                await stream.wait_for_first_piece()
                opened = True
        except TimeoutError:
            text = progress.describe_end_of_time("the function, which may still be running")
        except WireError as error:
            text = str(error)
        except SpeechLabError as error:
            if (failure := Failure.from_error(error)) is not None:
                return failure
            raise
        finally:
            if not opened:
                await stream.close()
        if not opened:
            return _build_timeout_failure(text, progress)
        progress.first_byte_s = progress.clock.monotonic() - place.started
        progress.report("response")
        return stream


async def _collect_pieces(pieces: AsyncGenerator[Any, None]) -> list[Any]:
    return [piece async for piece in pieces]


def _take_content(reply: Reply, service: str) -> Any:
    """Return the sound, the text of a translation, or the fields of a transcript that a reply has."""
    if service == "tts":
        if isinstance(reply.audio, bytes) and not reply.audio:
            raise ContractError("perform returned a Reply without sound; return Reply(audio=clip)")
        return reply.audio
    if service != "translate":
        return reply.fields
    if not isinstance(text := reply.fields.get("text"), str):
        raise ContractError(
            f"perform returned a Reply whose text is {text!r:.60}; return Reply({{'text': '…'}})"
        )
    return text


def _build_timeout_failure(text: str, progress: Progress) -> Failure:
    error = APITimeoutError(f"{progress.target}: {text}")
    error.advice = "give a longer time as timeout= of the call, or by with_options(timeout=...)"
    error.retryable = False
    return Failure(error, timed_out=True, final=True)


def _to_plain_values(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields as JSON has them: with Python's numbers in place of NumPy's, and None in place of NaN."""
    plain: dict[str, Any] = orjson.loads(_to_json(dict(fields)))
    return plain


def _to_json(fields: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(fields, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError as error:
        problem = str(error)
    raise ContractError(f"the result of the function cannot be kept: {problem}; return texts and numbers")


class _FunctionStream(ReplyBody):
    """The pieces of a function as they come, in the form in which they are read and kept: sound, or events."""

    def __init__(
        self, call: SystemCall, pieces: AsyncGenerator[Any, None], name: str, connections: ConnectionPool
    ) -> None:
        super().__init__()
        self._connections = connections
        self._speaks, self._call = call.service == "tts", call.function_call
        kind = CONTENT_TYPES[AudioFormat(self._call.format)] if self._speaks else "text/event-stream"
        self.headers = {"content-type": kind}
        self._pieces, self._read_s, self._name = pieces, call.timeouts.read, name
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
                piece = await self._connections.wait_while_open(partial(_fetch_next_piece, self._pieces))
        except TimeoutError:
            text = f"the function of {self._name!r} gave nothing for {self._read_s:g} s"
            raise WireError(text, timed_out=True, final=True) from None
        if isinstance(piece, Reply):  # of an object that performs operations
            piece = _take_content(piece, "tts" if self._speaks else "translate")
        return piece

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
        kind = self._call.format
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
        languages = {name: self._call.fields[name] for name in ("source_lang", "target_lang")}
        chunk = {
            "model": self._name,
            **languages,
            "choices": [{"index": 0, "delta": {"content": piece}, **ending}],
        }
        return b"data: " + _to_json(chunk) + b"\n\n"

    async def close(self) -> None:
        """End the call; one that is waited for ends with its wait, as that of a client that is closed."""
        if not getattr(self._pieces, "ag_running", False):
            await self._pieces.aclose()


async def _fetch_next_piece(pieces: AsyncGenerator[Any, None]) -> Any:
    return await anext(pieces, None)


class _PassThrough:
    """The encoder of pieces that are encoded."""

    def close(self) -> bytes:
        return b""


def _is_in_format(data: bytes, kind: str) -> bool:
    try:
        return detect_format(data) == kind
    except AudioError:
        return kind == AudioFormat.PCM


def _encode_pieces_to_file(pieces: Sequence[AudioClip | bytes], kind: str) -> bytes:
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
