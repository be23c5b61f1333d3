"""``POST /asr/srt/audio_llm`` (section 4.4)."""

from __future__ import annotations

import contextlib
import math
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
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
from speechlab.engines import Recognition, RecognitionOptions
from speechlab.errors import AudioError, InvalidRequestError
from speechlab.service._engines.backend import Backend, Unreachable
from speechlab.service._engines.turn import Turn
from speechlab.service._faults import Fault, invalid
from speechlab.service._held_bytes import BLOCK_BYTES, Held
from speechlab.service._routes.bodies import read_body
from speechlab.service._routes.streams import HeldReply, until_gone
from speechlab.service._state import begin_operation, hold, principal_of, service_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from speechlab.service._accounts.metering import Meter

_ENGINE_RATE = 16_000
_OPTIONS = [field.name for field in fields(RecognitionOptions)]
_MAX_TOKENS = 50_000
"""Maximum of quotes and commas; base64 has none. Reading JSON holds Python's lock to its end."""


async def recognize(request: Request) -> Response:
    service = service_of(request)
    if service.engines.recognizer is None:
        raise Fault("ErrServiceNotFound", "no speech recognition engine is registered here", "asr")
    if not principal_of(request).recognition:
        raise Fault("ErrPermissionDenied", "this key may not use speech recognition", "asr")
    meter = begin_operation(request, "asr")
    backend = service.engines.backend
    body = await read_body(request, service.config.asr_body_bytes, "asr")
    recording = hold(request, "asr")
    try:
        async with contextlib.nullcontext() if body.size < BLOCK_BYTES else service.parsing:
            read = partial(_read, body, recording, encoded=backend is not None)
            wanted, input_bytes = await service.engines.threads.run(read)
    except InvalidRequestError as error:
        raise invalid(error, "asr", short=True) from None
    body.close()
    meter.accept(service.engines.recognizer.entry.name, input_bytes=input_bytes)
    if backend is not None:
        return await until_gone(request.receive, _forward(request, backend, recording, meter))
    return await until_gone(request.receive, _recognize(request, wanted, recording, meter))


def _read(body: Held, kept: Held, *, encoded: bool) -> tuple[RecognitionRequest, int]:
    """Check a request; hold its recording, or the whole request as it is forwarded. Returns the recording's size."""
    text = body.read()
    if text.count(b'"') + text.count(b",") > _MAX_TOKENS:
        raise InvalidRequestError(f"the body has more than {_MAX_TOKENS:,} fields and items", rule="7.1")
    asked_for = RecognitionRequest.parse(read_json_object(text))
    del text
    data = decode_audio_field(asked_for.audio)
    try:
        sniff(data)
    except AudioError:
        raise InvalidRequestError(UNSUPPORTED_AUDIO, parameter="audio", rule="7.1") from None
    kept.write(orjson.dumps(asked_for.body()) if encoded else data)
    return asked_for.model_copy(update={"audio": ""}), len(data)


async def _recognize(request: Request, wanted: RecognitionRequest, recording: Held, meter: Meter) -> Response:
    service, samples = service_of(request), hold(request, "asr")
    lane = service.engines.recognizer
    assert lane is not None
    async with Turn(lane, meter) as turn:
        await service.engines.threads.run(
            partial(service.engines.decoders.decode, recording, samples, _ENGINE_RATE)
        )
        recording.close()
        sound = np.frombuffer(samples.view(), dtype=np.float32)
        meter.row.audio_s = len(sound) / _ENGINE_RATE
        recognition: Recognition = await turn.call(lambda: lane.engine().recognize(sound, _options(wanted)))
    headers = {
        **lane.headers(),
        "Server-Timing": turn.server_timing(),
        "X-Speechlab-Audio-Seconds": f"{meter.row.audio_s:.3f}",
    }
    reply = orjson.dumps(_reply(wanted, recognition, meter.row.audio_s))
    return Response(reply, headers=headers, media_type="application/json")


async def _forward(request: Request, backend: Backend, body: Held, meter: Meter) -> Response:
    service, held, via = service_of(request), hold(request, "asr"), request.headers.get("via", "")
    lane, threads = service.engines.recognizer, service.engines.threads
    assert lane is not None
    try:
        async with Turn(lane, meter) as turn:
            await threads.run(backend.open)
            reply = await turn.wait(backend.ask(body, via))
    except Unreachable as fault:
        meter.status = "backend_error" if fault.reached else None
        raise
    meter.row.model = reply.headers.get("x-speechlab-model", "")
    meter.row.audio_s = _seconds(reply.headers.get("x-speechlab-audio-seconds", ""))
    if reply.status != 200:
        # A refusal (4xx) leaves no row, like a refusal of this service.
        meter.status = "backend_error" if reply.status >= 500 else None
    headers = {
        **reply.headers,
        "Server-Timing": turn.server_timing(),
        "X-Speechlab-Provider": lane.entry.name,
    }
    await threads.run(partial(held.write, reply.body))
    return HeldReply(service, held, reply.status, headers=headers)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        return 0.0
    return seconds if 0 <= seconds < math.inf else 0.0


def _options(wanted: RecognitionRequest) -> RecognitionOptions:
    options = {name: getattr(wanted, name) for name in _OPTIONS}
    options["language"] = wanted.language.value if wanted.language else None
    options["hotwords"] = tuple(word for word in wanted.hotwords if word.strip())
    return RecognitionOptions(**options | {"vad": wanted.vad.value})


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
