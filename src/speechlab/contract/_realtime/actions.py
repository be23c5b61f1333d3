"""Actions that the protocol of a realtime session requests from its driver."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - part of a public dataclass, which tools read at run time
from dataclasses import dataclass
from typing import Any

from speechlab.contract._formats import AudioTransport
from speechlab.contract._speech import VoiceRules  # noqa: TC001 - as above

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
