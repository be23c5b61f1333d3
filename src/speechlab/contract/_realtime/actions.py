"""Actions that a realtime session asks of its driver: send, find, start, stop, record, close."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - part of a public dataclass, which tools read at run time
from dataclasses import dataclass
from typing import Any

from speechlab.contract._formats import AudioTransport
from speechlab.contract._speech import VoiceRules  # noqa: TC001 - as above

CANCELLED = "cancelled"
"""Status of a record whose client did not stay until the end. It is kept and never sent: the three statuses of
section 4.3 are what a client can be told."""


def _always(_format: str, _sample_rate: int) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class SessionVoice:
    """A voice that was found, as far as a session needs to know it.

    Attributes:
        id: Its canonical UUID.
        model: Model behind it.
        rules: What the voice and its provider accept.
        allowed: Whether the key may use its provider.
        temperature: Default of the provider, or None where it has none (a temperature is then ignored).
        streams: Whether a format can stream at a rate in Hz, beyond what the rules know.
    """

    id: str
    model: str
    rules: VoiceRules
    allowed: bool = True
    temperature: float | None = None
    streams: Callable[[str, int], bool] = _always


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """Settings in force, defaults filled in."""

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
    """Look a voice up, and answer ``voice_found`` or ``voice_refused`` before the next message."""

    voice_id: str


@dataclass(frozen=True, slots=True)
class AskLimiter:
    """Ask whether the key may speak this text now; answer ``admitted`` or ``rejected`` before the next message."""

    text: str


@dataclass(frozen=True, slots=True)
class StartSynthesis:
    """Choose a backend and speak, beside the reading of messages.

    Tell ``backend_started`` or ``backend_unavailable``, then ``audio`` for each piece, then ``finished`` or
    ``failed``.
    """

    request_id: str
    text: str
    config: SessionConfig


@dataclass(frozen=True, slots=True)
class CancelSynthesis:
    """Stop the backend; nothing that it still gives is wanted."""

    request_id: str


@dataclass(frozen=True, slots=True)
class RecordUsage:
    """Keep what an attempt cost, whether or not the client can still be told."""

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
"""Anything that a session asks for; a list of them is carried out in its order."""
