"""Actions that a realtime session requests from its driver, and the messages that it sends."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - part of a public dataclass, which tools read at run time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pybase64

from speechlab.contract._errors import RealtimeCode
from speechlab.contract._formats import CONTENT_TYPES, AudioFormat, AudioTransport
from speechlab.contract._speech import VoiceRules  # noqa: TC001 - as above

if TYPE_CHECKING:
    from speechlab.contract._errors import RouterCode
    from speechlab.errors import InvalidRequestError

CANCELLED = "cancelled"
"""Status of a record whose client left before the end. It is kept and never sent: the contract has three statuses for
clients (section 4.3)."""


def _always(_format: str, _sample_rate: int) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class SessionVoice:
    """A voice, as far as a session uses it."""

    id: str
    model: str
    rules: VoiceRules
    allowed: bool = True
    temperature: float | None = None
    streams: Callable[[str, int], bool] = _always


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """Settings in force, defaults included."""

    voice_id: str
    model: str
    format: str
    sample_rate: int
    temperature: float | None
    audio_transport: AudioTransport = AudioTransport.BINARY


@dataclass(frozen=True, slots=True)
class SynthesisRecord:
    """Cost of one attempt that reached a backend; ``status`` is a ``UsageStatus`` or ``CANCELLED``."""

    request_id: str
    session_id: str
    client_id: str | None
    service: str
    voice_id: str
    model: str
    input_chars: int
    input_bytes: int
    audio_bytes: int
    status: str


@dataclass(frozen=True, slots=True)
class SendMessage:
    """Send a JSON message."""

    message: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SendAudio:
    """Send a binary frame."""

    data: bytes


@dataclass(frozen=True, slots=True)
class FindVoice:
    """Look up a voice; report ``voice_found`` or ``voice_refused`` before the next message."""

    voice_id: str


@dataclass(frozen=True, slots=True)
class AskLimiter:
    """Check the limits of the key for this text; report ``admitted`` or ``rejected`` before the next message."""

    text: str


@dataclass(frozen=True, slots=True)
class StartSynthesis:
    """Choose a backend and speak, concurrently with the reading of messages.

    Report ``backend_started`` or ``backend_unavailable``, then ``audio`` for each piece, then ``finished`` or
    ``failed``.
    """

    request_id: str
    text: str
    config: SessionConfig


@dataclass(frozen=True, slots=True)
class CancelSynthesis:
    """Stop the backend; discard its further output."""

    request_id: str


@dataclass(frozen=True, slots=True)
class RecordUsage:
    """Keep the cost of an attempt, even if the client has left."""

    record: SynthesisRecord


@dataclass(frozen=True, slots=True)
class CloseSession:
    """Close the connection."""

    code: int
    reason: str


SessionAction = (
    SendMessage
    | SendAudio
    | FindVoice
    | AskLimiter
    | StartSynthesis
    | CancelSynthesis
    | RecordUsage
    | CloseSession
)
"""Any action of a session; a list of them is performed in order."""


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
