"""``POST /asr/srt/audio_llm`` (section 4.4)."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from starlette.responses import Response

from speechlab.audio import sniff
from speechlab.contract import (
    UNSUPPORTED_AUDIO,
    RecognitionRequest,
    VadMode,
    decode_audio_field,
    read_json_object,
)
from speechlab.engines import RecognitionOptions
from speechlab.errors import AudioError, InvalidRequestError
from speechlab.service._engines.backend import Unreachable
from speechlab.service._engines.turn import Turn
from speechlab.service._faults import Fault, invalid
from speechlab.service._routes.bodies import read_body
from speechlab.service._routes.streams import until_gone
from speechlab.service._state import begin_operation, principal_of, service_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from speechlab.engines import Recognition
    from speechlab.service._accounts.metering import Meter
    from speechlab.service._engines.backend import Backend
    from speechlab.service._state import ServiceState

_ENGINE_RATE = 16_000
_MAX_TOKENS = 50_000
"""Maximum of quotes and commas; base64 has none. Reading JSON holds Python's lock to its end."""


async def recognise(request: Request) -> Response:
    """Transcribe a recording."""
    service = service_of(request)
    if service.engines.recogniser is None:
        raise Fault("ErrServiceNotFound", "no speech recognition engine is registered here", "asr")
    if not principal_of(request).recognition:
        raise Fault("ErrPermissionDenied", "this key may not use speech recognition", "asr")
    meter = begin_operation(request, "asr")
    # The body, of up to 64 MiB, is released as soon as it is parsed.
    backend = service.engines.backend
    body = await read_body(request, service.config.asr_body_bytes, "asr")
    read = partial(_read, body, keep=backend is not None)
    del body
    try:
        wanted, data = await service.engines.threads.run(read)
    except InvalidRequestError as error:
        raise invalid(error, "asr", short=True) from None
    del read
    meter.accept(service.engines.recogniser.entry.name, input_bytes=len(data))
    if backend is not None:
        del data
        via = request.headers.get("via", "")
        return await until_gone(request, _forward(service, backend, wanted, via, meter))
    return await until_gone(request, _recognise(service, wanted, data, meter))


def _read(body: bytes, *, keep: bool) -> tuple[RecognitionRequest, bytes]:
    if body.count(b'"') + body.count(b",") > _MAX_TOKENS:
        raise InvalidRequestError(f"the body has more than {_MAX_TOKENS:,} fields and items", rule="7.1")
    wanted = RecognitionRequest.parse(read_json_object(body))
    data = decode_audio_field(wanted.audio)
    try:
        sniff(data)
    except AudioError:
        raise InvalidRequestError(UNSUPPORTED_AUDIO, parameter="audio", rule="7.1") from None
    # The encoded recording is as large as the body, and only the remote recogniser needs it.
    return wanted if keep else wanted.model_copy(update={"audio": ""}), data


async def _recognise(
    service: ServiceState, wanted: RecognitionRequest, data: bytes, meter: Meter
) -> Response:
    lane = service.engines.recogniser
    assert lane is not None
    async with Turn(lane, meter) as turn:
        samples = await service.engines.threads.run(lambda: service.decoders.decode(data, _ENGINE_RATE))
        meter.audio_s = len(samples) / _ENGINE_RATE
        heard: Recognition = await turn.call(lambda: lane.engine().recognise(samples, _options(wanted)))
    headers = {
        **lane.headers(),
        "Server-Timing": turn.server_timing(),
        "X-Speechlab-Audio-Seconds": f"{meter.audio_s:.3f}",
    }
    reply = orjson.dumps(_reply(wanted, heard, meter.audio_s))
    return Response(reply, headers=headers, media_type="application/json")


async def _forward(
    service: ServiceState, backend: Backend, wanted: RecognitionRequest, via: str, meter: Meter
) -> Response:
    lane, threads = service.engines.recogniser, service.engines.threads
    assert lane is not None
    try:
        async with Turn(lane, meter) as turn:
            await threads.run(backend.open)
            body = await threads.run(lambda: orjson.dumps(wanted.body()))
            reply = await turn.wait(backend.ask(body, via))
    except Unreachable as fault:
        meter.status = "backend_error" if fault.reached else None
        raise
    meter.model = reply.headers.get("x-speechlab-model", "")
    meter.audio_s = _seconds(reply.headers.get("x-speechlab-audio-seconds", ""))
    if reply.status != 200:
        # A refusal (4xx) leaves no row, like a refusal of this service.
        meter.status = "backend_error" if reply.status >= 500 else None
    headers = {
        **reply.headers,
        "Server-Timing": turn.server_timing(),
        "X-Speechlab-Provider": lane.entry.name,
    }
    return Response(reply.body, reply.status, headers=headers)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        return 0.0
    return seconds if 0 <= seconds < math.inf else 0.0


def _options(wanted: RecognitionRequest) -> RecognitionOptions:
    return RecognitionOptions(
        language=wanted.language.value if wanted.language else None,
        hotwords=tuple(word for word in wanted.hotwords if word.strip()),
        temperature=wanted.temperature,
        top_p=wanted.top_p,
        frequency_penalty=wanted.frequency_penalty,
        repetition_penalty=wanted.repetition_penalty,
        vad=wanted.vad.value,
        min_silence_gap=wanted.min_silence_gap,
        segment_padding=wanted.segment_padding,
        initial_segment_padding_ms=wanted.initial_segment_padding_ms,
        speech_pad_ms=wanted.speech_pad_ms,
        min_segment_duration=wanted.min_segment_duration,
    )


def _reply(wanted: RecognitionRequest, heard: Recognition, duration: float) -> dict[str, Any]:
    reply: dict[str, Any] = {
        "language": wanted.language.value if wanted.language else heard.language,
        "confidence": round(min(max(heard.confidence, 0.0), 1.0), 4),
    }
    if wanted.vad is not VadMode.SEGMENTS:
        return {"text": heard.text, **reply}
    reply["segments"] = [
        {"start": round(piece.start, 3), "end": min(round(piece.end, 3), duration), "text": piece.text}
        for piece in heard.segments
    ]
    return reply
