"""The realtime endpoint as data: messages (section 4.3), states and transitions (section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from speechlab.contract._base import ReplyModel, RequestModel
from speechlab.contract._formats import AudioTransport
from speechlab.errors import ContractError


class SessionState(StrEnum):
    """State of a session (section 3)."""

    CONNECTED = "connected"
    """The upgrade is complete; the session is not configured."""
    CONFIGURED = "configured"
    """Idle; ready for the next text."""
    SYNTHESIZING = "synthesizing"
    """One text is being spoken."""
    CLOSED = "closed"
    """Closed."""


class UsageStatus(StrEnum):
    """``usage.status`` (section 4.3)."""

    COMPLETED = "completed"
    BACKEND_ERROR = "backend_error"
    PARTIAL_BACKEND_ERROR = "partial_backend_error"


@dataclass(frozen=True, slots=True)
class Transition:
    """A row of the table of section 3."""

    states: tuple[SessionState, ...]
    trigger: str
    condition: str
    next: SessionState | None
    sends: tuple[str, ...]


_C, _I, _S = SessionState.CONNECTED, SessionState.CONFIGURED, SessionState.SYNTHESIZING
_ANY = (_C, _I, _S)
_FAILED = "tts.error:backend_request_failed"

# Section 3, row by row.
TRANSITIONS: tuple[Transition, ...] = (
    Transition((_C,), "session.update", "valid", _I, ("session.created",)),
    Transition((_C,), "tts.speak", "always", None, ("tts.error:session_not_configured",)),
    Transition((_C, _I), "session.update", "invalid", None, ("tts.error",)),
    Transition((_I, _S), "session.update", "always", None, ("tts.error:session_already_configured",)),
    Transition((_I,), "tts.speak", "accepted", _S, ("tts.audio.start",)),
    Transition((_I,), "tts.speak", "rejected before a backend", None, ("tts.error",)),
    Transition((_S,), "backend finishes", "success", _I, ("tts.audio.done", "tts.usage:completed")),
    Transition((_S,), "backend fails", "no audio", _I, (_FAILED, "tts.usage:backend_error")),
    Transition((_S,), "backend fails", "some audio", _I, (_FAILED, "tts.usage:partial_backend_error")),
    Transition((_S,), "tts.speak", "always", None, ("tts.error:synthesis_in_progress",)),
    Transition(_ANY, "binary frame", "always", SessionState.CLOSED, ("close:1003",)),
    Transition(_ANY, "control frame over the read limit", "always", SessionState.CLOSED, ("close:1009",)),
)


class SessionSettings(RequestModel):
    """``session`` of ``session.update`` (section 4.3).

    Attributes:
        voice_id: UUID from the catalogue.
        format: Format that the voice supports and its provider streams.
        sample_rate: Hz, or 0 for 24,000.
        temperature: For voices of provider Q; 0.0 is sent as a real value.
        audio_transport: ``binary`` or ``base64_json``.
    """

    voice_id: str
    format: str
    sample_rate: int = 0
    temperature: float | None = None
    audio_transport: AudioTransport = Field(default=AudioTransport.BINARY, strict=False)


class SessionUpdate(RequestModel):
    """Client message that configures the session, once."""

    type: Literal["session.update"] = "session.update"
    id: str | None = None
    session: SessionSettings

    def to_message(self) -> dict[str, Any]:
        """Return the JSON message, without options that were not set."""
        fields: dict[str, Any] = {"type": self.type}
        if self.id is not None:
            fields["id"] = self.id
        fields["session"] = self.session.model_dump(mode="json", exclude_unset=True, exclude_none=True)
        return fields


class Speak(RequestModel):
    """Client message with one complete text."""

    type: Literal["tts.speak"] = "tts.speak"
    id: str | None = None
    text: str

    def to_message(self) -> dict[str, Any]:
        """Return the JSON message."""
        return self.model_dump(exclude_none=True)


class ServiceMessage(ReplyModel):
    """Base of the service's messages, which ``type`` distinguishes."""

    type: str


class SessionInfo(ReplyModel):
    """``session`` of ``session.created``; ``service`` is ``<vendor>/tts``."""

    id: str = ""
    service: str = ""
    voice_id: str = ""
    format: str = ""
    sample_rate: int | None = None
    model: str = ""


class SessionCreated(ServiceMessage):
    """The session is configured."""

    type: Literal["session.created"] = "session.created"
    session: SessionInfo


class AudioStart(ServiceMessage):
    """Audio follows."""

    type: Literal["tts.audio.start"] = "tts.audio.start"
    id: str | None = None
    request_id: str = ""
    format: str = ""
    content_type: str = ""
    sample_rate: int | None = None
    voice_id: str = ""
    model: str = ""
    audio_transport: str = ""


class AudioDeltaMessage(ServiceMessage):
    """A piece of audio in base64, with the transport ``base64_json``; ``seq`` increases by one."""

    type: Literal["tts.audio.delta"] = "tts.audio.delta"
    id: str | None = None
    request_id: str = ""
    seq: int = 0
    audio: str


class AudioDone(ServiceMessage):
    """The audio is complete: decoded bytes, and number of frames or deltas."""

    type: Literal["tts.audio.done"] = "tts.audio.done"
    id: str | None = None
    request_id: str = ""
    audio_bytes: int | None = None
    chunks: int | None = None


class SynthesisUsage(ReplyModel):
    """``usage`` of ``tts.usage``: characters (code points) and UTF-8 bytes in, bytes of audio out."""

    input_chars: int = 0
    input_bytes: int = 0
    audio_bytes: int = 0
    status: str = UsageStatus.COMPLETED
    final: bool = True


class Usage(ServiceMessage):
    """Cost of an attempt that reached a backend."""

    type: Literal["tts.usage"] = "tts.usage"
    request_id: str = ""
    session_id: str = ""
    client_id: str | None = None
    model: str = ""
    usage: SynthesisUsage


class TtsError(ServiceMessage):
    """An error; ``code`` is one of section 7.2."""

    type: Literal["tts.error"] = "tts.error"
    id: str | None = None
    code: str
    message: str = ""


class RouterError(ServiceMessage):
    """A control error found before the message's type could be handled."""

    type: Literal["router.error"] = "router.error"
    code: str
    message: str = ""


class UnknownMessage(ServiceMessage):
    """A message of an unknown type, which is kept and is no error."""


# The service's messages by ``type``.
SERVICE_MESSAGES: dict[str, type[ServiceMessage]] = {
    "session.created": SessionCreated,
    "tts.audio.start": AudioStart,
    "tts.audio.delta": AudioDeltaMessage,
    "tts.audio.done": AudioDone,
    "tts.usage": Usage,
    "tts.error": TtsError,
    "router.error": RouterError,
}


def parse_service_message(value: object) -> ServiceMessage:
    """Read a decoded JSON message of the service."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise ContractError("the service sent a message without a type", body=repr(value)[:2000])
    return SERVICE_MESSAGES.get(value["type"], UnknownMessage).parse(value)
