"""Writes ``docs/openapi.json`` (HTTP) and ``docs/asyncapi.json`` (the realtime endpoint) from ``contract``.

Run by ``poe describe``. A test fails when the files no longer say what the code says.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic.json_schema import models_json_schema

from speechlab import contract as c

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import BaseModel

_DOCS = Path(__file__).parents[1] / "docs"
_CHANNEL = "#/channels/realtime"
_REF = "#/components/schemas/{model}"
_ATTRIBUTES = re.compile(r"\n\s*Attributes:\n(.*)", re.DOTALL)
_ATTRIBUTE = re.compile(r"^\s{4,}(\w+): (.*?)(?=^\s{4,}\w+: |\Z)", re.DOTALL | re.MULTILINE)
_EXAMPLE = re.compile(r"\n\s*Example:\n.*", re.DOTALL)
_LIMITS = c.LIMITS
_STRING = {"type": "string"}
_CAUSES: tuple[tuple[int, tuple[str, ...], str], ...] = (
    (400, ("tts",), "missing or invalid parameters (voice_id, text, format)"),
    (400, ("tts",), "format not in the voice's formats"),
    (400, ("tts",), "provider/format combination cannot stream while stream=true"),
    (400, ("tts",), "unsupported sample rate"),
    (400, ("tts",), "text exceeds the configured maximum (default 5,000 characters)"),
    (400, ("asr",), "No audio data provided"),
    (400, ("asr",), "Invalid base64 audio data"),
    (400, ("asr",), "Unsupported audio format"),
    (400, ("asr",), "invalid JSON, language, VAD settings or session id"),
    (401, ("tts", "asr", "translate"), "invalid or missing API key"),
    (403, ("tts",), "the key cannot use the provider behind the voice"),
    (403, ("asr",), "valid key without batch-ASR access"),
    (404, ("tts", "asr"), "the TTS or ASR service/provider is not registered"),
    (429, ("tts", "asr"), "rate limit exceeded; retry with exponential backoff"),
    (500, ("tts", "asr", "translate"), "internal server error"),
    (502, ("asr",), "the router cannot reach the selected backend"),
)
"""The table of section 7.1: status, services and cause. Backend errors keep the backend's status and body."""


_GENERATED = "by `poe describe` from the contract: change that, not this file"


def main() -> None:
    """Write both documents."""
    for name, document in (("openapi", openapi()), ("asyncapi", asyncapi())):
        text = json.dumps(document, indent=2, ensure_ascii=False, default=str) + "\n"
        (_DOCS / f"{name}.json").write_text(text, encoding="utf-8")


def openapi() -> dict[str, Any]:
    """Describe the HTTP endpoints."""
    requests: list[type[BaseModel]] = [c.SpeechRequest, c.RecognitionRequest, c.TranslationRequest]
    replies: list[type[BaseModel]] = [
        c.VoiceList,
        c.RecognitionReply,
        c.TranslationReply,
        c.TranslationChunkReply,
        c.ErrorBody,
    ]
    schemas = {**_schemas(requests, "validation"), **_schemas(replies, "serialization")}
    _narrow(schemas)
    return {
        "x-generated": _GENERATED,
        "openapi": "3.1.0",
        "info": {
            "title": "Speech services",
            "version": c.CONTRACT_VERSION,
            "description": "Speech, recognition and translation, as the embedded service of speechlab answers them. "
            "Paths carry no version.",
        },
        "servers": [{"url": "http://127.0.0.1:8100", "description": "speechlab serve"}],
        "security": [{"bearer": []}],
        "paths": {
            c.VOICES_PATH: {"get": _voices()},
            c.SPEECH_PATH: {"post": _speech()},
            c.RECOGNITION_PATH: {"post": _recognition()},
            c.TRANSLATION_PATH: {"post": _translation()},
            "/healthz": {
                "get": _operation("healthz", "Alive", {"200": _json({"type": "object"})}, security=[])
            },
            "/readyz": {
                "get": _operation(
                    "readyz",
                    "Ready: an engine answers; operators get details",
                    {"200": _json({"type": "object"}), "503": _error("Not ready.")},
                    security=[],
                )
            },
            "/metrics": {
                "get": _operation(
                    "metrics",
                    "Counters in Prometheus' text form",
                    {"200": {"description": "Metrics.", "content": {"text/plain": {"schema": _STRING}}}}
                    | {"403": _error("The key is no operator's.")},
                )
            },
        },
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "<prefix>:<body>"}
            },
        },
        "x-error-names": {
            name: {"code": kind.code, "status": kind.status} for name, kind in c.ERRORS.items()
        },
    }


def asyncapi() -> dict[str, Any]:
    """Describe the realtime endpoint."""
    client: dict[str, type[BaseModel]] = {"session.update": c.SessionUpdate, "tts.speak": c.Speak}
    service: dict[str, type[BaseModel]] = {**c.SERVICE_MESSAGES}
    messages = _messages(client | service)
    return {
        "x-generated": _GENERATED,
        "asyncapi": "3.0.0",
        "info": {
            "title": "Realtime speech",
            "version": c.CONTRACT_VERSION,
            "description": "The client sends a complete text; the service streams its audio back.",
        },
        "servers": {
            "embedded": {
                "host": "127.0.0.1:8100",
                "protocol": "ws",
                "security": [{"$ref": "#/components/securitySchemes/bearer"}],
            }
        },
        "channels": {
            "realtime": {
                "address": c.REALTIME_PATH,
                "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
            }
        },
        "operations": {
            "take": _channel_operation("receive", list(client)),
            "give": _channel_operation("send", [*service, "audio"]),
        },
        "components": {
            "messages": messages,
            "schemas": _message_schemas(list(client.values()), list(service.values())),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        **_realtime_rules(),
    }


def _messages(models: dict[str, type[BaseModel]]) -> dict[str, Any]:
    messages: dict[str, Any] = {
        name: {
            "name": name,
            "contentType": "application/json",
            "payload": {"$ref": _REF.format(model=model.__name__)},
        }
        for name, model in models.items()
    }
    messages["audio"] = {
        "name": "audio",
        "summary": "A binary frame with the next piece of the audio.",
        "contentType": "application/octet-stream",
        "payload": {"type": "string", "format": "binary"},
    }
    return messages


def _message_schemas(client: list[type[BaseModel]], service: list[type[BaseModel]]) -> dict[str, Any]:
    schemas = {**_schemas(client, "validation"), **_schemas(service, "serialization")}
    schemas["SessionSettings"]["properties"]["format"]["enum"] = list(c.AudioFormat)
    schemas["TtsError"]["properties"]["code"]["enum"] = list(c.RealtimeCode)
    schemas["RouterError"]["properties"]["code"]["enum"] = list(c.RouterCode)
    schemas["SynthesisUsage"]["properties"]["status"]["enum"] = list(c.UsageStatus)
    return schemas


def _channel_operation(action: str, names: Sequence[str]) -> dict[str, Any]:
    messages = [{"$ref": f"{_CHANNEL}/messages/{name}"} for name in names]
    return {"action": action, "channel": {"$ref": _CHANNEL}, "messages": messages}


def _realtime_rules() -> dict[str, Any]:
    """Refusals, close codes, limits and transitions, which AsyncAPI has no words for."""
    return {
        "x-handshake-refusals": {code: code.status for code in c.HandshakeCode},
        "x-close-codes": {code.name.lower(): int(code) for code in c.CloseCode},
        "x-message-bytes": {"refused-above": c.WS_MESSAGE_MAX_BYTES, "closed-above": c.WS_READ_MAX_BYTES},
        "x-transitions": [
            {
                "states": list(row.states),
                "trigger": row.trigger,
                "condition": row.condition,
                "next": row.next,
                "sends": list(row.sends),
            }
            for row in c.TRANSITIONS
        ],
    }


def _schemas(
    models: Sequence[type[BaseModel]], mode: Literal["validation", "serialization"]
) -> dict[str, Any]:
    _, document = models_json_schema([(model, mode) for model in models], ref_template=_REF)
    schemas: dict[str, Any] = document["$defs"]
    for schema in schemas.values():
        _move_attributes(schema)
    return schemas


def _move_attributes(schema: dict[str, Any]) -> None:
    """Move what a docstring says about each field to that field; its example is for Python alone."""
    text = _EXAMPLE.sub("", schema.get("description", ""))
    found = _ATTRIBUTES.search(text)
    if found is None:
        if text:
            schema["description"] = text
        return
    schema["description"] = " ".join(text[: found.start()].split())
    for name, said in _ATTRIBUTE.findall(found[1]):
        if name in schema.get("properties", {}):
            schema["properties"][name]["description"] = " ".join(said.split()).replace("``", "`")


def _narrow(schemas: dict[str, Any]) -> None:
    """Say what the models check by hand, and how a form differs from JSON."""
    schemas["SpeechRequest"]["properties"]["voice_id"]["format"] = "uuid"
    schemas["SpeechRequest"]["properties"]["text"] |= {"minLength": 1, "maxLength": _LIMITS.tts_text_chars}
    recognition = schemas["RecognitionRequest"]["properties"]
    recognition["audio"]["contentEncoding"] = "base64"
    recognition["vad"] = {
        "enum": [0, 1, "0", "1", *c.VadMode],
        "default": "off",
        "description": recognition["vad"]["description"],
    }
    form = schemas["TranslationRequest"]["properties"]
    form["text"] |= {"minLength": 1, "maxLength": _LIMITS.translation_text_chars}
    form["stream"] = {
        "enum": ["false", "true"],
        "default": "false",
        "description": form["stream"]["description"],
    }
    form["keywords"]["maxItems"] = _LIMITS.translation_keywords
    # The limit is one of bytes; a term of more code points surely has more bytes.
    form["keywords"]["items"] |= {"minLength": 1, "maxLength": _LIMITS.translation_keyword_bytes}
    for name in ("source_lang", "target_lang"):
        form[name]["minLength"] = 1
    form["context"]["maxLength"] = _LIMITS.translation_context_chars
    schemas["ErrorBody"]["properties"]["name"]["examples"] = list(c.ERRORS)


def _operation(
    name: str, summary: str, responses: dict[str, Any], *, body: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    operation: dict[str, Any] = {"operationId": name, "summary": summary, **more}
    if body is not None:
        operation["requestBody"] = {"required": True, "content": body}
    if more.get("security") != []:
        responses = {**responses, "401": _error("Invalid or missing API key; `code` is 104.")}
    return {**operation, "responses": dict(sorted(responses.items()))}


def _voices() -> dict[str, Any]:
    return _operation(
        "listVoices", "List the voices", {"200": _json(_ref(c.VoiceList)), **_errors("tts", 404, 500, 503)}
    )


def _speech() -> dict[str, Any]:
    content = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in c.CONTENT_TYPES.values()}
    done = {"description": "The audio; chunked with `stream`.", "content": content}
    body = {"application/json": {"schema": _ref(c.SpeechRequest)}}
    replies = {"200": done, **_errors("tts", 400, 403, 404, 408, 413, 429, 431, 500, 503)}
    return _operation("speak", "Speak a text", replies, body=body)


def _recognition() -> dict[str, Any]:
    body = {"application/json": {"schema": _ref(c.RecognitionRequest)}}
    replies = {
        "200": _json(_ref(c.RecognitionReply)),
        **_errors("asr", 400, 403, 404, 408, 413, 429, 431, 500, 502, 503),
    }
    legacy = "A body with OpenAI-style `messages` is taken too (section 4.4); `vad` is then 1 by default."
    return _operation("transcribe", "Transcribe a recording", replies, body=body, description=legacy)


def _translation() -> dict[str, Any]:
    body = {"multipart/form-data": {"schema": _ref(c.TranslationRequest)}}
    done = _json(_ref(c.TranslationReply))
    # Without a schema: before OpenAPI 3.2 tools do not agree whether it would be that of the body or of an event.
    done["content"]["text/event-stream"] = {
        "x-event-data": _ref(c.TranslationChunkReply),
        "x-last-event-data": c.STREAM_END,
    }
    replies = {"200": done, **_errors("translate", 400, 404, 408, 413, 429, 431, 500, 503)}
    return _operation("translate", "Translate a text", replies, body=body)


def _errors(service: str, *statuses: int) -> dict[str, Any]:
    """The error replies of a service, with the causes that the contract names."""
    own = {
        400: "The form is damaged, or a field is missing, repeated or invalid.",
        404: "Not registered here.",
        408: "The request came too slowly.",
        413: "Larger than the settings allow.",
        431: "The head of the request is larger than the settings allow.",
        429: "Rate limit exceeded, or the engine's queue is full; see Retry-After.",
        503: "The rate limits cannot be checked, or the service is stopping; see Retry-After.",
    }
    said = {}
    for status in statuses:
        causes = [cause for code, services, cause in _CAUSES if code == status and service in services]
        said[str(status)] = _error("; ".join(causes) or own[status])
        if status in {429, 503}:
            said[str(status)]["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    return said


def _error(text: str) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": _ref(c.ErrorBody)}}}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": "Done.", "content": {"application/json": {"schema": schema}}}


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REF.format(model=model.__name__)}


if __name__ == "__main__":
    main()
