"""``POST /asr/srt/audio_llm`` (section 4.4)."""

from __future__ import annotations

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
from speechlab.service._bodies import Gone, read_body
from speechlab.service._faults import Fault, from_engine, invalid
from speechlab.service._logs import facts_of, log
from speechlab.service._state import begin_use, principal_of, service_of
from speechlab.service._streams import until_gone

if TYPE_CHECKING:
    from starlette.requests import Request

    from speechlab.engines import Recognition
    from speechlab.service._metering import Use
    from speechlab.service._state import Service

__all__ = ["recognise"]

_ENGINE_RATE = 16_000


async def recognise(request: Request) -> Response:
    """Transcribe a recording."""
    service = service_of(request)
    if service.engines.recogniser is None:
        raise Fault("ErrServiceNotFound", "no speech recognition engine is registered here", "asr")
    if not principal_of(request).recognition:
        raise Fault("ErrPermissionDenied", "this key may not use speech recognition", "asr")
    use = begin_use(request, "asr")
    # Not kept in a variable: at 64 MiB nobody wants it twice.
    read = partial(_read, await read_body(request, service.config.asr_body_bytes, "asr"))
    try:
        wanted, data = await service.engines.threads.run(read)
    except InvalidRequestError as error:
        raise invalid(error, "asr", short=True) from None
    del read
    use.accept(service.engines.recogniser.entry.name, input_bytes=len(data))
    return await until_gone(request, _recognise(service, wanted, data, use))


def _read(body: bytes) -> tuple[RecognitionRequest, bytes]:
    wanted = RecognitionRequest.parse(read_json_object(body))
    data = decode_audio_field(wanted.audio)
    try:
        sniff(data)
    except AudioError:
        raise InvalidRequestError(UNSUPPORTED_AUDIO, parameter="audio", rule="7.1") from None
    # The text of the recording is as long as the body, and nobody needs it any more.
    return wanted.model_copy(update={"audio": ""}), data


async def _recognise(service: Service, wanted: RecognitionRequest, data: bytes, use: Use) -> Response:
    lane = service.engines.recogniser
    assert lane is not None
    try:
        async with lane.job("asr") as job:
            samples = await service.engines.threads.run(lambda: service.decoders.decode(data, _ENGINE_RATE))
            use.audio_s = len(samples) / _ENGINE_RATE
            with use.backend():
                heard: Recognition = await lane.call(
                    job, lambda: lane.engine().recognise(samples, _options(wanted))
                )
    except (Fault, Gone):
        raise
    except Exception as error:
        log("recognition failed", level="error", engine=lane.entry.name, **facts_of(error))
        raise from_engine(error, "asr", "transcription") from error
    finally:
        use.model = lane.model
    duration = len(samples) / _ENGINE_RATE
    headers = {
        "Server-Timing": job.server_timing(),
        "X-Speechlab-Audio-Seconds": f"{duration:.3f}",
        "X-Speechlab-Model": str(lane.engine().model),
        "X-Speechlab-Provider": lane.entry.name,
    }
    reply = orjson.dumps(_reply(wanted, heard, duration))
    return Response(reply, headers=headers, media_type="application/json")


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
