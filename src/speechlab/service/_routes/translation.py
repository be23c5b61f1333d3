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
from speechlab.service._faults import Fault, invalid
from speechlab.service._routes.bodies import read_body, read_form
from speechlab.service._routes.streams import StreamReply, failed_midway, until_gone
from speechlab.service._state import ServiceState, begin_operation, service_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Scope

    from speechlab.service._accounts.metering import Meter
    from speechlab.service._engines.lanes import EngineLane


async def translate(request: Request) -> Response:
    service = service_of(request)
    if not service.engines.translators:
        raise Fault("ErrServiceNotFound", "no translation engine is registered here", "translate")
    meter = begin_operation(request, "translate")
    body = await read_body(request, TEXT_BODY_BYTES, "translate")
    try:
        fields = TranslationRequest.from_form(read_form(body.read(), request.headers.get("content-type")))
        lane, job = await service.engines.threads.run(lambda: _accept(service, fields))
    except InvalidRequestError as error:
        raise invalid(error, "translate") from None
    meter.accept(lane.entry.name, characters=len(fields.text), input_bytes=len(fields.text.encode("utf-8")))
    turn = Turn(lane, meter)
    work = _stream(request, turn, fields, job) if fields.stream else _whole(turn, fields, job)
    return await until_gone(request.receive, work)


def _accept(service: ServiceState, wanted: TranslationRequest) -> tuple[EngineLane, TranslationJob]:
    lane = _chosen(service, wanted.model)
    source = _language(lane, "source_lang", wanted.source_lang)
    target = _language(lane, "target_lang", wanted.target_lang)
    return lane, TranslationJob(wanted.text, source, target, wanted.keywords, wanted.context)


def _chosen(service: ServiceState, model: str | None) -> EngineLane:
    lanes = service.engines.translators
    if model is None:
        return next(iter(lanes.values()))
    for name, lane in lanes.items():
        if model in {name, str(lane.engine().model)}:
            return lane
    names = ", ".join(str(lane.engine().model) for lane in lanes.values())
    message = f"there is no model {model[:60]!r}; there are {names}"
    raise InvalidRequestError(message, parameter="model", rule="2.5")


def _language(lane: EngineLane, parameter: str, value: str) -> str:
    code = value.strip().replace("_", "-").partition("-")[0].lower()
    languages = tuple(lane.engine().languages)
    if code not in languages:
        message = f"{parameter} {value[:20]!r} is not supported; it must be one of {', '.join(languages)}"
        raise InvalidRequestError(message, parameter=parameter, rule="2.5")
    return code


async def _whole(turn: Turn, wanted: TranslationRequest, job: TranslationJob) -> Response:
    async with turn:
        deltas = [_counted(delta, turn.meter) async for delta in _deltas(turn, job)]
    reply = {
        "id": _new_id(),
        "object": COMPLETION_OBJECT,
        "created": int(time.time()),
        "model": str(turn.lane.engine().model),
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "".join(delta.text for delta in deltas)},
                "finish_reason": "stop",
            }
        ],
        **_source(wanted),
        "usage": _usage(deltas[-1] if deltas else None),
    }
    headers = {**turn.lane.headers(), "Server-Timing": turn.server_timing()}
    return Response(orjson.dumps(reply), headers=headers, media_type="application/json")


async def _stream(request: Request, turn: Turn, wanted: TranslationRequest, job: TranslationJob) -> Response:
    events = _events(turn, wanted, job)
    return StreamReply(
        await anext(events),
        _to_the_end(events, request.scope),
        media_type="text/event-stream",
        headers={**turn.lane.headers(), "Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _events(turn: Turn, wanted: TranslationRequest, job: TranslationJob) -> AsyncGenerator[bytes]:
    """One event for each delta; the first, which also contains the source, comes with the engine's first."""
    common = {"id": _new_id(), "object": CHUNK_OBJECT}
    more: dict[str, Any] = _source(wanted)
    async with turn:
        async for delta in _deltas(turn, job):
            if _counted(delta, turn.meter).completion_tokens is not None:
                more["usage"] = _usage(delta)
            yield _event({**common, "choices": [{"index": 0, "delta": {"content": delta.text}}], **more})
            more = {}
    if more:  # an engine that returned nothing
        yield _event({**common, "choices": [{"index": 0, "delta": {"content": ""}}], **more})


async def _to_the_end(events: AsyncGenerator[bytes], scope: Scope) -> AsyncGenerator[bytes]:
    """The remaining events and the end mark, or an event about a failure without an end mark."""
    async with contextlib.aclosing(events):
        try:
            async for event in events:
                yield event
        except Fault as fault:  # the status was sent, so the stream has to report the failure
            failed_midway(scope, fault)
            yield _event({"error": {"message": fault.error, "name": "ErrInternal"}})
            return
    yield f"data: {STREAM_END}\n\n".encode()


def _deltas(turn: Turn, job: TranslationJob) -> AsyncIterator[TranslationDelta]:
    return turn.iterate(lambda: turn.lane.engine().translate(job), whole=True)


def _counted(delta: TranslationDelta, meter: Meter) -> TranslationDelta:
    """Report the engine's tokens so far to the meter."""
    meter.row.prompt_tokens = delta.prompt_tokens or meter.row.prompt_tokens
    meter.row.completion_tokens = delta.completion_tokens or meter.row.completion_tokens
    return delta


def _source(wanted: TranslationRequest) -> dict[str, Any]:
    return {
        "transcription": wanted.text,
        "source_lang": wanted.source_lang,
        "target_lang": wanted.target_lang,
    }


def _event(fields: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(fields) + b"\n\n"


def _usage(last: TranslationDelta | None) -> dict[str, int]:
    read = (last.prompt_tokens if last else None) or 0
    written = (last.completion_tokens if last else None) or 0
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _new_id() -> str:
    return TRANSLATION_ID_PREFIX + uuid.uuid4().hex
