"""``POST /translate/`` (section 4.5), as JSON and as server-sent events."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, Any

import orjson
from starlette.responses import Response

from speechlab.contract import (
    CHUNK_OBJECT,
    COMPLETION_OBJECT,
    STREAM_END,
    TRANSLATION_ID_PREFIX,
    TranslationRequest,
)
from speechlab.engines import TranslationDelta, TranslationJob
from speechlab.errors import InvalidRequestError
from speechlab.service._config import TEXT_BODY_BYTES
from speechlab.service._engines.turn import Turn
from speechlab.service._faults import Fault, build_invalid_fault
from speechlab.service._routes.bodies import parse_form, read_body
from speechlab.service._routes.streams import StreamReply, record_midway_failure, run_while_connected
from speechlab.service._state import ServiceState, begin_operation, get_service

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Scope

    from speechlab.service._accounts.metering import Meter
    from speechlab.service._engines.lanes import EngineLane


async def translate(request: Request) -> Response:
    service = get_service(request)
    if not service.engines.translators:
        raise Fault("ErrServiceNotFound", "no translation engine is registered here", "translate")
    meter = begin_operation(request, "translate")
    body = await read_body(request, TEXT_BODY_BYTES, "translate")
    try:
        fields = TranslationRequest.from_form(parse_form(body.read(), request.headers.get("content-type")))
        lane, job = await service.engines.threads.run_task(lambda: _choose_lane_and_job(service, fields))
    except InvalidRequestError as error:
        raise build_invalid_fault(error, "translate") from None
    meter.admit_by_service_limits(
        lane.entry.name, characters=len(fields.text), input_bytes=len(fields.text.encode("utf-8"))
    )
    turn = Turn(lane, meter)
    work = (
        _start_stream_reply(request, turn, fields, job)
        if fields.stream
        else _translate_whole_reply(turn, fields, job)
    )
    return await run_while_connected(request.receive, work)


def _choose_lane_and_job(
    service: ServiceState, wanted: TranslationRequest
) -> tuple[EngineLane, TranslationJob]:
    lane = _choose_lane(service, wanted.model)
    source = _resolve_language(lane, "source_lang", wanted.source_lang)
    target = _resolve_language(lane, "target_lang", wanted.target_lang)
    return lane, TranslationJob(wanted.text, source, target, wanted.keywords, wanted.context)


def _choose_lane(service: ServiceState, model: str | None) -> EngineLane:
    lanes = service.engines.translators
    if model is None:
        return next(iter(lanes.values()))
    for name, lane in lanes.items():
        if model in {name, str(lane.get_or_create_engine().model)}:
            return lane
    names = ", ".join(str(lane.get_or_create_engine().model) for lane in lanes.values())
    message = f"there is no model {model[:60]!r}; there are {names}"
    raise InvalidRequestError(message, parameter="model", rule="2.5")


def _resolve_language(lane: EngineLane, parameter: str, value: str) -> str:
    code = value.strip().replace("_", "-").partition("-")[0].lower()
    languages = tuple(lane.get_or_create_engine().languages)
    if code not in languages:
        message = f"{parameter} {value[:20]!r} is not supported; it must be one of {', '.join(languages)}"
        raise InvalidRequestError(message, parameter=parameter, rule="2.5")
    return code


async def _translate_whole_reply(turn: Turn, wanted: TranslationRequest, job: TranslationJob) -> Response:
    async with turn:
        deltas = [_record_token_counts(delta, turn.meter) async for delta in _iterate_deltas(turn, job)]
    reply = {
        "id": _build_reply_id(),
        "object": COMPLETION_OBJECT,
        "created": int(time.time()),
        "model": str(turn.lane.get_or_create_engine().model),
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "".join(delta.text for delta in deltas)},
                "finish_reason": "stop",
            }
        ],
        **_build_source_fields(wanted),
        "usage": _build_usage(deltas[-1] if deltas else None),
    }
    headers = {**turn.lane.build_headers(), "Server-Timing": turn.format_server_timing()}
    return Response(orjson.dumps(reply), headers=headers, media_type="application/json")


async def _start_stream_reply(
    request: Request, turn: Turn, wanted: TranslationRequest, job: TranslationJob
) -> Response:
    events = _stream_events(turn, wanted, job)
    return StreamReply(
        await anext(events),
        _stream_remaining_events(events, request.scope),
        media_type="text/event-stream",
        headers={**turn.lane.build_headers(), "Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _stream_events(
    turn: Turn, wanted: TranslationRequest, job: TranslationJob
) -> AsyncGenerator[bytes]:
    """Yield one event for each delta; the first, which also contains the source, comes with the engine's first."""
    common = {"id": _build_reply_id(), "object": CHUNK_OBJECT}
    more: dict[str, Any] = _build_source_fields(wanted)
    async with turn:
        async for delta in _iterate_deltas(turn, job):
            if _record_token_counts(delta, turn.meter).completion_tokens is not None:
                more["usage"] = _build_usage(delta)
            yield _format_event(
                {**common, "choices": [{"index": 0, "delta": {"content": delta.text}}], **more}
            )
            more = {}
    if more:  # an engine that returned nothing
        yield _format_event({**common, "choices": [{"index": 0, "delta": {"content": ""}}], **more})


async def _stream_remaining_events(events: AsyncGenerator[bytes], scope: Scope) -> AsyncGenerator[bytes]:
    """Yield the remaining events and the end mark, or an event about a failure without an end mark."""
    async with contextlib.aclosing(events):
        try:
            async for event in events:
                yield event
        except Fault as fault:  # the status was sent, so the stream has to report the failure
            record_midway_failure(scope, fault)
            yield _format_event({"error": {"message": fault.error, "name": "ErrInternal"}})
            return
    yield f"data: {STREAM_END}\n\n".encode()


def _iterate_deltas(turn: Turn, job: TranslationJob) -> AsyncIterator[TranslationDelta]:
    return turn.iterate_pieces(lambda: turn.lane.get_or_create_engine().translate(job), whole=True)


def _record_token_counts(delta: TranslationDelta, meter: Meter) -> TranslationDelta:
    """Report the engine's tokens so far to the meter."""
    meter.row.prompt_tokens = delta.prompt_tokens or meter.row.prompt_tokens
    meter.row.completion_tokens = delta.completion_tokens or meter.row.completion_tokens
    return delta


def _build_source_fields(wanted: TranslationRequest) -> dict[str, Any]:
    return {
        "transcription": wanted.text,
        "source_lang": wanted.source_lang,
        "target_lang": wanted.target_lang,
    }


def _format_event(fields: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(fields) + b"\n\n"


def _build_usage(last: TranslationDelta | None) -> dict[str, int]:
    read = (last.prompt_tokens if last else None) or 0
    written = (last.completion_tokens if last else None) or 0
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _build_reply_id() -> str:
    return TRANSLATION_ID_PREFIX + uuid.uuid4().hex
