"""The messages that a session sends (section 4.3), each as the action that sends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pybase64

from speechlab.contract._errors import RealtimeCode
from speechlab.contract._formats import CONTENT_TYPES, AudioFormat
from speechlab.contract._realtime.actions import SendMessage

if TYPE_CHECKING:
    from speechlab.contract._errors import RouterCode
    from speechlab.contract._realtime.actions import SessionConfig, SynthesisRecord
    from speechlab.errors import InvalidRequestError


def session_created(session_id: str, service: str, config: SessionConfig) -> SendMessage:
    """The session is configured."""
    session = {
        "id": session_id,
        "service": service,
        "voice_id": config.voice_id,
        "format": config.format,
        "sample_rate": config.sample_rate,
        "model": config.model,
    }
    return SendMessage({"type": "session.created", "session": session})


def audio_start(request_id: str, client_id: str | None, config: SessionConfig) -> SendMessage:
    """Audio follows, with these settings."""
    settings = {
        "format": config.format,
        "content_type": CONTENT_TYPES[AudioFormat(config.format)],
        "sample_rate": config.sample_rate,
        "voice_id": config.voice_id,
        "model": config.model,
        "audio_transport": config.audio_transport.value,
    }
    return _event("tts.audio.start", request_id, client_id, settings)


def audio_delta(request_id: str, client_id: str | None, seq: int, audio: bytes) -> SendMessage:
    """A piece of audio, for sessions without binary frames."""
    piece = {"seq": seq, "audio": pybase64.b64encode_as_string(audio)}
    return _event("tts.audio.delta", request_id, client_id, piece)


def audio_done(request_id: str, client_id: str | None, audio_bytes: int, chunks: int) -> SendMessage:
    """All audio was sent."""
    return _event("tts.audio.done", request_id, client_id, {"audio_bytes": audio_bytes, "chunks": chunks})


def usage(record: SynthesisRecord) -> SendMessage:
    """The cost of an attempt."""
    return SendMessage(
        {
            "type": "tts.usage",
            "request_id": record.request_id,
            "session_id": record.session_id,
            "client_id": record.client_id,
            "model": record.model,
            "usage": {
                "input_chars": record.input_chars,
                "input_bytes": record.input_bytes,
                "audio_bytes": record.audio_bytes,
                "status": record.status,
                "final": True,
            },
        }
    )


def tts_error(code: RealtimeCode, message: str, client_id: str | None) -> SendMessage:
    """An error of section 7.2; it has an ``id`` only if the client sent one."""
    id_field = {} if client_id is None else {"id": client_id}
    return SendMessage({"type": "tts.error", **id_field, "code": code.value, "message": message})


def refusal(error: InvalidRequestError, client_id: str | None) -> SendMessage:
    """The error with the reason why a message was refused."""
    return tts_error(RealtimeCode(error.code or RealtimeCode.INVALID_MESSAGE), error.message, client_id)


def router_error(code: RouterCode, message: str) -> SendMessage:
    """The error for a message that could not be processed."""
    return SendMessage({"type": "router.error", "code": code.value, "message": message})


def _event(kind: str, request_id: str, client_id: str | None, fields: dict[str, Any]) -> SendMessage:
    return SendMessage({"type": kind, "id": client_id, "request_id": request_id, **fields})
