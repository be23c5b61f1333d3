"""Actions that a realtime session requests from its driver, and the messages that it sends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from speechlab._formats import CONTENT_TYPES, AudioFormat
from speechlab.contract._errors import RealtimeCode
from speechlab.contract._formats import CORRELATION_ID_MAX_CHARS, AudioTransport
from speechlab.contract._realtime.messages import (
    AudioStart,
    ServiceMessage,
    SessionCreated,
    SessionInfo,
    SynthesisUsage,
    TtsError,
    Usage,
)
from speechlab.contract._speech import VoiceRules  # noqa: TC001 - as above
from speechlab.errors import InvalidRequestError

# Status of a record whose client left before the end. It is kept and never sent: the contract has three
# statuses for clients (section 4.3).
CANCELLED = "cancelled"


def _accept_any_format(_format: str, _sample_rate: int) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class SessionVoice:
    """A voice, as far as a session uses it."""

    id: str
    model: str
    rules: VoiceRules
    allowed: bool = True
    temperature: float | None = None
    streams: Callable[[str, int], bool] = _accept_any_format


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """Settings in force, defaults included."""

    voice_id: str
    model: str
    format: str
    sample_rate: int
    temperature: float | None
    audio_transport: AudioTransport = AudioTransport.BINARY

    @property
    def sound(self) -> dict[str, Any]:
        """The settings of the sound in messages."""
        return {name: getattr(self, name) for name in ("format", "sample_rate", "voice_id", "model")}


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
    """Look up a voice; report ``on_voice_found`` or ``on_voice_refused`` before the next message."""

    voice_id: str


@dataclass(frozen=True, slots=True)
class AskLimiter:
    """Check the limits of the key for this text; report ``admitted`` or ``rejected`` before the next message."""

    text: str


@dataclass(frozen=True, slots=True)
class StartSynthesis:
    """Choose a backend and speak, concurrently with the reading of messages.

    Report ``on_backend_started`` or ``backend_unavailable``, then ``audio`` for each piece, then ``finished`` or
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


# Any action of a session; a list of them is performed in order.
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


def build_session_created(session_id: str, service: str, config: SessionConfig) -> SendMessage:
    """The session is configured."""
    return to_send_message(
        SessionCreated(session=SessionInfo(id=session_id, service=service, **config.sound))
    )


def build_audio_start(request_id: str, client_id: str | None, config: SessionConfig) -> SendMessage:
    """Audio follows, with these settings."""
    kind, transport = CONTENT_TYPES[AudioFormat(config.format)], config.audio_transport.value
    head: dict[str, Any] = {"id": client_id, "request_id": request_id, "content_type": kind}
    return to_send_message(AudioStart(**head, **config.sound, audio_transport=transport))


def build_usage_message(record: SynthesisRecord) -> SendMessage:
    """Return the cost of an attempt."""
    names = ("request_id", "session_id", "client_id", "model")
    amounts = SynthesisUsage.model_validate(record, from_attributes=True)
    return to_send_message(Usage(**{name: getattr(record, name) for name in names}, usage=amounts))


def to_send_message(message: ServiceMessage) -> SendMessage:
    """Return a message of the service, with all of its fields."""
    return SendMessage(message.model_dump())


def build_tts_error(code: RealtimeCode, message: str, client_id: str | None) -> SendMessage:
    """Return an error of section 7.2; it has an ``id`` only if the client sent one."""
    return SendMessage(TtsError(id=client_id, code=code.value, message=message).model_dump(exclude_none=True))


def build_refusal_message(error: InvalidRequestError, client_id: str | None) -> SendMessage:
    """The error with the reason why a message was refused."""
    return build_tts_error(RealtimeCode(error.code or RealtimeCode.INVALID_MESSAGE), error.message, client_id)


def build_session_config(session: dict[str, Any], voice: SessionVoice | None) -> SessionConfig:
    """Check settings in the order voice, access, format, streaming, rate, transport, temperature."""
    if voice is None:
        message = f"there is no voice {format_value(session['voice_id'])}; take one from GET /tts/voices"
        raise build_protocol_error(RealtimeCode.UNKNOWN_VOICE_ID, message)
    if not voice.allowed:
        message = "this key may not use the provider behind this voice"
        raise build_protocol_error(RealtimeCode.SERVICE_ACCESS_DENIED, message)
    name = session.get("format")
    if not isinstance(name, str) or name not in set(AudioFormat):
        message = f"session.format is {format_value(name)}; the formats are {', '.join(AudioFormat)}"
        raise build_protocol_error(RealtimeCode.UNSUPPORTED_AUDIO_FORMAT, message)
    voice.rules.check(format=name, stream=True)
    rate = session.get("sample_rate")
    if rate is not None and type(rate) is not int:
        message = f"session.sample_rate is {format_value(rate)}, and must be an integer, in Hz"
        raise build_protocol_error(RealtimeCode.UNSUPPORTED_SAMPLE_RATE, message)
    effective = voice.rules.check(format=name, sample_rate=rate or 0, stream=True)
    if not voice.streams(name, effective):
        message = f"format {name!r} cannot stream at {effective:,} Hz"
        raise build_protocol_error(RealtimeCode.UNSUPPORTED_STREAMING_FORMAT, message)
    transport = session.get("audio_transport")
    if transport is not None and (not isinstance(transport, str) or transport not in set(AudioTransport)):
        message = (
            f"session.audio_transport is {format_value(transport)}; there are {', '.join(AudioTransport)}"
        )
        raise build_protocol_error(RealtimeCode.UNSUPPORTED_AUDIO_TRANSPORT, message)
    temperature = _resolve_temperature(session.get("temperature"), voice.temperature)
    transport = AudioTransport(transport or AudioTransport.BINARY)
    return SessionConfig(voice.id, voice.model, name, effective, temperature, transport)


def _resolve_temperature(value: object, default: float | None) -> float | None:
    """Return the temperature in force: None on a voice without a default, which has no variation."""
    if value is None:
        return default
    if type(value) not in {int, float} or not 0 <= cast("float", value) < math.inf:
        message = f"session.temperature is {format_value(value)}, and must be a number of at least 0"
        raise build_protocol_error(RealtimeCode.INVALID_MESSAGE, message)
    return None if default is None else float(cast("float", value))


def check_correlation_id(value: object) -> str | None:
    """Return a client's id; null counts as absent."""
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        message = f"id is {format_value(value)}, and must be a string that is not empty"
        raise build_protocol_error(RealtimeCode.INVALID_ID, message)
    if len(value) > CORRELATION_ID_MAX_CHARS:
        message = f"id has {len(value):,} characters, and may have {CORRELATION_ID_MAX_CHARS}"
        raise build_protocol_error(RealtimeCode.ID_TOO_LONG, message)
    return value


def format_value(value: object) -> str:
    """Return a value, shortened for an error message."""
    return "missing" if value is None else repr(value)[:60]


def build_protocol_error(code: RealtimeCode, message: str) -> InvalidRequestError:
    """Return an error with a code of section 7.2."""
    return InvalidRequestError(message, code=code.value)
