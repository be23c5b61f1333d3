"""``GET /tts/voices`` and ``POST /tts`` (sections 4.1 and 4.2)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import orjson
from starlette.responses import Response

from speechlab.audio import StreamResampler, build_stream_encoder, can_stream, encode_blocks
from speechlab.contract import CONTENT_TYPES, TRANSLATES_HEADER, AudioFormat, SpeechRequest, parse_json_object
from speechlab.errors import InvalidRequestError
from speechlab.service._config import TEXT_BODY_BYTES
from speechlab.service._engines.turn import Turn
from speechlab.service._faults import Fault, build_invalid_fault
from speechlab.service._held_bytes import BLOCK_BYTES, HeldBytes
from speechlab.service._routes.bodies import read_body
from speechlab.service._routes.streams import HeldReply, StreamReply, run_while_connected
from speechlab.service._state import (
    ServiceState,
    begin_operation,
    get_principal,
    get_service,
    open_held_bytes,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from starlette.requests import Request

    from speechlab.service._accounts.metering import Meter
    from speechlab.service._engines.voices import CatalogueVoice


@dataclass(frozen=True, slots=True)
class Utterance:
    """An accepted text, with everything that its synthesis needs."""

    voice: CatalogueVoice
    text: str
    format: AudioFormat
    sample_rate: int
    temperature: float | None

    def check_text(self) -> None:
        """Check that the voice can read the text; blocks for a moment."""
        check = getattr(self.voice.lane.get_or_create_engine(), "check_text", None)
        if check is not None:
            check(self.text, self.voice.voice.name)

    def speak_pieces(self, meter: Meter) -> Generator[NDArray[np.float32]]:
        """Speak, and report the amount to the meter; blocks at each piece. Samples have the engine's rate."""
        engine = self.voice.lane.get_or_create_engine()
        samples = engine.synthesize(self.text, self.voice.voice.name, temperature=self.temperature)
        try:
            for piece in samples:
                meter.row.audio_s += len(piece) / engine.sample_rate
                yield piece
        finally:  # whatever iterator it is, closing this one reaches the engine
            getattr(samples, "close", lambda: None)()

    def speak_and_encode(self, meter: Meter) -> Iterator[bytes]:
        """Speak and encode; blocks at each piece. No piece is empty, and joined they are one file."""
        engine = self.voice.lane.get_or_create_engine()
        resampler = StreamResampler(engine.sample_rate, self.sample_rate)
        with (
            contextlib.closing(self.speak_pieces(meter)) as pieces,
            build_stream_encoder(self.format, self.sample_rate) as encoder,
        ):
            for piece in pieces:
                if data := encoder.write(resampler.write(piece)):
                    yield data
            if data := encoder.write(resampler.flush()) + encoder.close():
                yield data

    def speak_into_held(self, meter: Meter, samples: HeldBytes) -> Iterator[None]:
        """Speak, and hold the samples at the wanted rate; blocks at each piece."""
        resampler = StreamResampler(self.voice.lane.get_or_create_engine().sample_rate, self.sample_rate)
        with contextlib.closing(self.speak_pieces(meter)) as pieces:
            for piece in pieces:
                samples.write(np.ascontiguousarray(resampler.write(piece)).data.cast("B"))
                yield None
            samples.write(resampler.flush().data.cast("B"))

    def encode_and_close_samples(self, samples: HeldBytes, reply: HeldBytes) -> None:
        """Encode all samples, and give them up; for worker threads. Takes memory for a block only."""
        starts = range(0, samples.size, BLOCK_BYTES)
        blocks = (np.frombuffer(samples.read(start, BLOCK_BYTES), dtype=np.float32) for start in starts)
        for piece in encode_blocks(blocks, (samples.size // 4,), self.sample_rate, self.format):
            reply.write(piece)
        samples.close()

    def build_headers(self) -> dict[str, str]:
        return {**self.voice.lane.build_headers(), "X-Speechlab-Sample-Rate": str(self.sample_rate)}


async def list_voices(request: Request) -> Response:
    service = get_service(request)
    _check_speech_offered(service)
    listing = await service.engines.threads.run_task(service.engines.catalogue.build_listing)
    languages = await service.engines.threads.run_task(service.engines.list_translator_languages)
    headers = {"X-Speechlab-Service": service.identity, TRANSLATES_HEADER: ", ".join(languages)}
    return Response(orjson.dumps(listing), media_type="application/json", headers=headers)


async def speak(request: Request) -> Response:
    """Speak a text, whole or as a stream."""
    service = get_service(request)
    _check_speech_offered(service)
    meter = begin_operation(request, "tts")
    body = await read_body(request, TEXT_BODY_BYTES, "tts")
    try:
        fields = SpeechRequest.parse(parse_json_object(body.read()), text_limit=service.config.tts_text_limit)
        utterance = await _build_utterance(service, fields)
    except InvalidRequestError as error:
        raise build_invalid_fault(error, "tts") from None
    if not get_principal(request).can_use_voice(utterance.voice.provider.name, utterance.voice.id):
        message = f"this key may not use this voice of the provider {utterance.voice.provider.name!r}"
        raise Fault("ErrPermissionDenied", message, "tts", "voice_id")
    size = len(utterance.text.encode("utf-8"))
    meter.admit_by_service_limits(
        utterance.voice.provider.name, characters=len(utterance.text), input_bytes=size
    )
    work = (
        _start_stream_reply(utterance, meter)
        if fields.stream
        else _synthesize_whole_reply(request, utterance, meter)
    )
    return await run_while_connected(request.receive, work)


def _check_speech_offered(service: ServiceState) -> None:
    if not service.engines.synthesizers:
        raise Fault("ErrServiceNotFound", "no text-to-speech engine is registered here", "tts")


async def _build_utterance(service: ServiceState, wanted: SpeechRequest) -> Utterance:
    catalogue = service.engines.catalogue
    voice = await service.engines.threads.run_task(lambda: catalogue.find_voice(wanted.voice_id))
    if voice is None:
        message = f"there is no voice {wanted.voice_id}; take one from GET /tts/voices"
        raise InvalidRequestError(message, parameter="voice_id", rule="2.2", code="unknown_voice_id")
    rate = voice.rules.check(format=wanted.format.value, sample_rate=wanted.sample_rate, stream=wanted.stream)
    if wanted.stream and not can_stream(wanted.format, rate):
        message = f"format {wanted.format.value!r} cannot stream at {rate:,} Hz"
        raise InvalidRequestError(
            message, parameter="stream", rule="2.2", code="unsupported_streaming_format"
        )
    default = voice.provider.temperature
    temperature = None if default is None else default if wanted.temperature is None else wanted.temperature
    utterance = Utterance(voice, wanted.text, wanted.format, rate, temperature)
    await service.engines.threads.run_task(utterance.check_text)
    return utterance


async def _synthesize_whole_reply(request: Request, utterance: Utterance, meter: Meter) -> Response:
    service, samples, reply = (
        get_service(request),
        open_held_bytes(request, "tts"),
        open_held_bytes(request, "tts"),
    )
    async with Turn(utterance.voice.lane, meter) as turn:
        async for _ in turn.iterate_pieces(partial(utterance.speak_into_held, meter, samples)):
            pass
        await service.engines.threads.run_task(partial(utterance.encode_and_close_samples, samples, reply))
        meter.row.audio_bytes = reply.size
    headers = {
        **utterance.build_headers(),
        "Server-Timing": turn.format_server_timing(),
        "X-Speechlab-Audio-Seconds": f"{meter.row.audio_s:.3f}",
    }
    return HeldReply(service, reply, media_type=CONTENT_TYPES[utterance.format], headers=headers)


async def _start_stream_reply(utterance: Utterance, meter: Meter) -> Response:
    pieces, media_type = _stream_audio(utterance, meter), CONTENT_TYPES[utterance.format]
    return StreamReply(
        await anext(pieces, b""), pieces, media_type=media_type, headers=utterance.build_headers()
    )


async def _stream_audio(utterance: Utterance, meter: Meter) -> AsyncGenerator[bytes]:
    async with Turn(utterance.voice.lane, meter) as turn:
        async for piece in turn.iterate_pieces(partial(utterance.speak_and_encode, meter)):
            meter.row.audio_bytes += len(piece)
            yield piece
