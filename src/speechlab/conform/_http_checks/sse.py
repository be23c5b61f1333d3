"""Checks of translation as server-sent events (section 2.7)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from speechlab.conform._http_checks.translation import get_first_choice, is_valid_usage, require_echo
from speechlab.conform._model import build_decorators
from speechlab.conform._probe.target import Target
from speechlab.contract import CHUNK_OBJECT, STREAM_END

if TYPE_CHECKING:
    from speechlab.conform._probe.http import Exchange

check, advice = build_decorators(__name__, Target.skip_without_translation)
_TEXT = "Good morning. How are you today?"


def _request_streamed_translation_once(t: Target) -> Exchange:
    return t.get_or_make("sse", lambda: t.translate(text=_TEXT, stream="true"))


def _request_event_data(t: Target) -> list[str]:
    """Return the data of each event, which must be one line."""
    reply = t.insist_success(_request_streamed_translation_once(t))
    t.insist_that(reply.media_type == "text/event-stream", "text/event-stream", reply)
    try:
        text = reply.body.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
        t.insist_that(False, "the stream is UTF-8", reply)
    events = []
    for block in filter(None, re.split(r"(?:\r\n|\n|\r){2}", text)):
        lines = [line for line in re.split(r"\r\n|\n|\r", block) if line and not line.startswith(":")]
        if lines:
            t.insist_that(
                len(lines) == 1 and lines[0].startswith("data:"), "an event is one data: line", reply
            )
            events.append(lines[0].removeprefix("data:").removeprefix(" "))
    return events


def _request_chunks(t: Target) -> list[dict[str, Any]]:
    chunks = []
    for data in _request_event_data(t):
        if data != STREAM_END:
            try:
                chunk = json.loads(data)
            except ValueError:
                chunk = None
            t.insist_that(
                isinstance(chunk, dict),
                "an event contains a JSON object",
                _request_streamed_translation_once(t),
            )
            chunks.append(chunk)
    t.insist_that(chunks, "at least one chunk", _request_streamed_translation_once(t))
    return chunks


@check("103-events", "text/event-stream; each event is one data: line of JSON", metered=1)
def _check_event_format(t: Target) -> None:
    _request_chunks(t)


@check("104-chunks", "one id, object and index, and a string in each delta", metered=1)
def _check_chunk_fields(t: Target) -> None:
    reply, chunks = _request_streamed_translation_once(t), _request_chunks(t)
    t.require_that(isinstance(chunks[0].get("id"), str), "id is a string", reply)
    t.require_that(len({str(chunk.get("id")) for chunk in chunks}) == 1, "one id in all chunks", reply)
    t.require_that(
        all(chunk.get("object") == CHUNK_OBJECT for chunk in chunks), f"object is {CHUNK_OBJECT}", reply
    )
    for chunk in chunks:
        choice, delta = get_first_choice(chunk, "delta")
        content = delta.get("content")
        has_content = isinstance(content, str) or (content is None and "usage" in chunk)
        right = type(choice.get("index")) is int and has_content
        t.require_that(right, "choices[0] has an index and delta.content, a string", reply)


@check("105-first", "the first chunk has transcription, source_lang and target_lang", metered=1)
def _check_source_echo(t: Target) -> None:
    require_echo(t, _request_chunks(t)[0], _TEXT, _request_streamed_translation_once(t))


@check("106-usage", "usage, if a chunk has it, is three integers that add up", metered=1)
def _check_usage(t: Target) -> None:
    for chunk in _request_chunks(t):
        if chunk.get("usage") is not None:
            expected = "usage has three integers, and total is their sum"
            t.require_that(is_valid_usage(chunk["usage"]), expected, _request_streamed_translation_once(t))


@check("107-done", "the stream ends with exactly one data: [DONE], and nothing after", metered=1)
def _check_end_mark(t: Target) -> None:
    reply, events = _request_streamed_translation_once(t), _request_event_data(t)
    t.require_that(events.count(STREAM_END) == 1, "exactly one data: [DONE]", reply)
    t.require_that(events and events[-1] == STREAM_END, "nothing comes after data: [DONE]", reply)
    t.require_that(reply.complete and not reply.trailing, "the body ends there", reply)


@advice("107-no-finish", "chunks have no finish_reason", metered=1)
def _check_no_finish_reason(t: Target) -> None:
    for chunk in _request_chunks(t):
        for choice in chunk.get("choices") or [{}]:
            t.require_that(
                choice.get("finish_reason") is None, "no finish_reason", _request_streamed_translation_once(t)
            )


@advice("110-joined", "joined deltas are the text of a reply without stream", metered=2, quick=False)
def _check_joined_deltas(t: Target) -> None:
    unstreamed = t.insist_success(t.translate(text=_TEXT))
    joined = "".join(
        str(get_first_choice(chunk, "delta")[1].get("content") or "") for chunk in _request_chunks(t)
    )
    content = unstreamed.parse_json()["choices"][0]["message"]["content"]
    expected = f"the same text, if the engine always returns the same: {joined!r}"
    t.require_that(joined == content, expected, unstreamed)


@check("112-refused-first", "with stream=true, refusals are JSON with their status")
def _check_refusal_before_stream(t: Target) -> None:
    for reply in (t.translate(text=None, stream="true"), t.translate(source_lang=None, stream="true")):
        t.require_status(reply, 400)
        t.require_that(reply.media_type == "application/json", "application/json instead of a stream", reply)
