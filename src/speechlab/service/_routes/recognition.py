"""``POST /asr/srt/audio_llm`` (section 4.4)."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from starlette.responses import Response

from speechlab.audio import detect_format
from speechlab.contract import (
    ASR_FAILED,
    UNSUPPORTED_AUDIO,
    RecognitionRequest,
    VadMode,
    decode_audio_field,
    parse_json_object,
)
from speechlab.engines import Recognition, RecognitionOptions, list_some_codes
from speechlab.errors import AudioError, InvalidRequestError
from speechlab.service._engines.backend import Backend, BackendUnreachable
from speechlab.service._engines.turn import Turn
from speechlab.service._faults import Fault, build_invalid_fault
from speechlab.service._held_bytes import BLOCK_BYTES, HeldBytes
from speechlab.service._routes.bodies import read_body
from speechlab.service._routes.streams import HeldReply, run_while_connected
from speechlab.service._state import begin_operation, get_principal, get_service, open_held_bytes

if TYPE_CHECKING:
    from starlette.requests import Request

    from speechlab.service._accounts.metering import Meter
    from speechlab.service._engines.engines import Engines

_ENGINE_RATE = 16_000
_OPTION_NAMES = [field.name for field in fields(RecognitionOptions)]
# Maximum of quotes and commas; base64 has none. Reading JSON holds Python's lock to its end.
_MAX_TOKENS = 50_000


async def recognize(request: Request) -> Response:
    service = get_service(request)
    if service.engines.recognizer is None:
        raise Fault("ErrServiceNotFound", "no speech recognition engine is registered here", "asr")
    if not get_principal(request).recognition:
        raise Fault("ErrPermissionDenied", "this key may not use speech recognition", "asr")
    meter = begin_operation(request, "asr")
    backend = service.engines.backend
    body = await read_body(request, service.config.asr_body_bytes, "asr")
    recording = open_held_bytes(request, "asr")
    try:
        async with contextlib.nullcontext() if body.size < BLOCK_BYTES else service.parsing:
            read = partial(_parse_and_hold_request, body, recording, service.engines)
            wanted, input_bytes = await service.engines.threads.run_task(read)
    except InvalidRequestError as error:
        raise build_invalid_fault(error, "asr", short=True) from None
    body.close()
    meter.admit_by_service_limits(service.engines.recognizer.entry.name, input_bytes=input_bytes)
    if backend is not None:
        return await run_while_connected(
            request.receive, _forward_request(request, backend, recording, meter)
        )
    return await run_while_connected(request.receive, _recognize_and_reply(request, wanted, recording, meter))


def _parse_and_hold_request(
    body: HeldBytes, kept: HeldBytes, engines: Engines
) -> tuple[RecognitionRequest, int]:
    """Check a request; hold its recording, or the whole request as it is forwarded. Returns the recording's size."""
    text = body.read()
    if text.count(b'"') + text.count(b",") > _MAX_TOKENS:
        raise InvalidRequestError(f"the body has more than {_MAX_TOKENS:,} fields and items", rule="7.1")
    asked_for = RecognitionRequest.parse(parse_json_object(text))
    del text
    if asked_for.language is not None:
        _check_language(asked_for.language, engines.list_recognizer_languages())
    data = decode_audio_field(asked_for.audio)
    try:
        detect_format(data)
    except AudioError:
        raise InvalidRequestError(UNSUPPORTED_AUDIO, parameter="audio", rule="7.1") from None
    kept.write(data if engines.backend is None else orjson.dumps(asked_for.body()))
    return asked_for.model_copy(update={"audio": ""}), len(data)


def _check_language(code: str, languages: Sequence[str]) -> None:
    if languages and code not in languages:
        allowed = list_some_codes(languages)
        message = f"language {code!r} is not supported; it must be one of {allowed}, or left out"
        raise InvalidRequestError(message, parameter="language", rule="2.3")


async def _recognize_and_reply(
    request: Request, wanted: RecognitionRequest, recording: HeldBytes, meter: Meter
) -> Response:
    service, samples = get_service(request), open_held_bytes(request, "asr")
    lane = service.engines.recognizer
    assert lane is not None
    async with Turn(lane, meter) as turn:
        await service.engines.threads.run_task(
            partial(service.engines.decoders.decode_into, recording, samples, _ENGINE_RATE)
        )
        recording.close()
        sound = np.frombuffer(samples.view(), dtype=np.float32)
        meter.row.audio_s = len(sound) / _ENGINE_RATE
        recognition: Recognition = await turn.run_task(
            lambda: lane.get_or_create_engine().recognize(sound, _build_recognition_options(wanted))
        )
    headers = {
        **lane.build_headers(),
        "Server-Timing": turn.format_server_timing(),
        "X-Speechlab-Audio-Seconds": f"{meter.row.audio_s:.3f}",
    }
    reply = orjson.dumps(_build_reply(wanted, recognition, meter.row.audio_s))
    return Response(reply, headers=headers, media_type="application/json")


async def _forward_request(request: Request, backend: Backend, body: HeldBytes, meter: Meter) -> Response:
    service, held, via = get_service(request), open_held_bytes(request, "asr"), request.headers.get("via", "")
    lane, threads = service.engines.recognizer, service.engines.threads
    assert lane is not None
    try:
        async with Turn(lane, meter) as turn:
            await threads.run_task(backend.open)
            reply = await turn.wait_for_backend(backend.forward_request(body, via))
    except BackendUnreachable as fault:
        meter.status = "backend_error" if fault.reached else None
        raise
    meter.row.model = reply.headers.get("x-speechlab-model", "")
    meter.row.audio_s = _parse_seconds_or_zero(reply.headers.get("x-speechlab-audio-seconds", ""))
    if reply.status != 200:
        # A refusal (4xx) leaves no row, like a refusal of this service.
        meter.status = "backend_error" if reply.status >= 500 else None
    headers = {
        **reply.headers,
        "Server-Timing": turn.format_server_timing(),
        "X-Speechlab-Provider": lane.entry.name,
    }
    await threads.run_task(partial(held.write, reply.body))
    return HeldReply(service, held, reply.status, headers=headers)


def _parse_seconds_or_zero(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        return 0.0
    return seconds if 0 <= seconds < math.inf else 0.0


def _build_recognition_options(wanted: RecognitionRequest) -> RecognitionOptions:
    options = {name: getattr(wanted, name) for name in _OPTION_NAMES}
    options["hotwords"] = tuple(word for word in wanted.hotwords if word.strip())
    return RecognitionOptions(**options | {"vad": wanted.vad.value})


def _build_reply(wanted: RecognitionRequest, recognized: Recognition, duration: float) -> dict[str, Any]:
    reply: dict[str, Any] = {
        "language": wanted.language or recognized.language,
        "confidence": round(min(recognized.confidence, 1.0), 4)
        if recognized.confidence > 0
        else 0.0,  # also for NaN
    }
    if wanted.vad is not VadMode.SEGMENTS:
        return {"text": recognized.text, **reply}
    if not all(math.isfinite(piece.start) and math.isfinite(piece.end) for piece in recognized.segments):
        raise Fault("ErrInternal", ASR_FAILED.format(detail="a segment has no time"), "asr", "engine")
    reply["segments"] = [
        {"start": round(piece.start, 3), "end": min(round(piece.end, 3), duration), "text": piece.text}
        for piece in recognized.segments
    ]
    return reply
