"""One text over a realtime session, as a state machine without I/O: messages in, checked events out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import pybase64

from speechlab.client._events import logger
from speechlab.client._secret import redact
from speechlab.contract import (
    AudioDeltaMessage,
    AudioDone,
    AudioStart,
    RealtimeCode,
    RouterError,
    ServiceMessage,
    TtsError,
    Usage,
    UsageStatus,
    parse_lenient_json,
    parse_service_message,
)
from speechlab.errors import ContractError, RealtimeError


@dataclass(frozen=True, slots=True)
class AudioDelta:
    """A piece of audio, decoded: the same in both transports.

    Attributes:
        audio: The bytes, in the format of the session.
        seq: Number of the piece within the text, from 0.
        id: Correlation id of the text.
        request_id: The service's id of the attempt.
    """

    audio: bytes = field(repr=False)
    seq: int = 0
    id: str | None = None
    request_id: str = ""


# Events of a text, in this order: one start, pieces of audio, one end, one usage record.
RealtimeEvent = AudioStart | AudioDelta | AudioDone | Usage


class Phase(StrEnum):
    """Progress of a text."""

    SENT = "sent"
    """Waiting for the start of the audio."""
    AUDIO = "audio"
    """Audio is arriving."""
    USAGE = "usage"
    """The audio is complete, or the backend has failed: waiting for the usage record."""
    OVER = "over"
    """The next text may be sent."""


def parse_message(text: str) -> ServiceMessage:
    """Read a text message."""
    try:
        value = parse_lenient_json(text)
    except ValueError:
        value = None
    if value is None:
        raise ContractError(f"the service sent text that is not JSON: {text[:200]!r}", body=text[:2000])
    return parse_service_message(value)


def build_error_from_event(message: TtsError | RouterError, *, partial: bytes = b"") -> RealtimeError:
    """Return the exception for an error event."""
    code = redact(message.code)[:100]
    retryable = code in set(RealtimeCode) and RealtimeCode(code).retryable
    reason = redact(message.message)[:300] or "the service gave no reason"
    return RealtimeError(f"{code}: {reason}", code=code, retryable=retryable, partial=partial)


class Synthesis:
    """From ``tts.speak`` to ``tts.usage`` or the terminal error (section 3)."""

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        self.phase = Phase.SENT
        self.start: AudioStart | None = None
        self.pieces: list[bytes] = []
        self.noted: TtsError | RouterError | None = None
        """The last error event that did not end the text; it may explain why nothing follows."""
        self._size = 0
        self._seq: int | None = None
        self._failure: TtsError | None = None

    @property
    def audio(self) -> bytes:
        """The audio so far."""
        return b"".join(self.pieces)

    def feed(self, frame: str | bytes) -> RealtimeEvent | None:
        """Process a message."""
        if isinstance(frame, bytes):
            return self._add_piece(frame)
        message = parse_message(frame)
        if self._is_for_other_text(message):
            return None
        handlers: dict[type, Callable[..., RealtimeEvent | None]] = {
            AudioStart: self._on_start,
            AudioDeltaMessage: self._on_delta,
            AudioDone: self._on_done,
            Usage: self._on_usage,
            TtsError: self._on_error,
            RouterError: self._on_other_error,
        }
        handler = handlers.get(type(message))
        if handler is None:  # a type of a later version of the contract
            logger.debug("realtime: message of type %s passed over", message.type[:60])
            return None
        return handler(message)

    def _is_for_other_text(self, message: ServiceMessage) -> bool:
        """Return whether a message is about another text; errors are separated by their handlers."""
        if not isinstance(message, AudioStart | AudioDeltaMessage | AudioDone | Usage):
            return False
        client_id = message.client_id if isinstance(message, Usage) else message.id
        if client_id is not None:
            return client_id != self.client_id
        request = self.start.request_id if self.start is not None else ""
        return bool(message.request_id and request) and message.request_id != request

    def _add_piece(self, data: bytes, seq: int | None = None) -> AudioDelta:
        if self.phase is not Phase.AUDIO or self.start is None:
            text = f"the service sent {len(data):,} bytes of audio while none was due ({self.phase})"
            raise ContractError(text)
        number = len(self.pieces) if seq is None else seq
        if self._seq is not None and number != self._seq + 1:
            text = f"the service numbered a piece of audio {number} after {self._seq}: pieces are missing or mixed up"
            raise ContractError(text)
        self._seq = number
        self.pieces.append(data)
        self._size += len(data)
        return AudioDelta(data, len(self.pieces) - 1, self.client_id, self.start.request_id)

    def _on_start(self, message: AudioStart) -> AudioStart:
        if self.phase is not Phase.SENT:
            raise ContractError(f"the service sent a second tts.audio.start for one text ({self.phase})")
        self.start, self.phase = message, Phase.AUDIO
        return message

    def _on_delta(self, message: AudioDeltaMessage) -> AudioDelta:
        try:
            data = pybase64.b64decode(message.audio, validate=True)
        except ValueError:
            data = None
        if data is None:
            raise ContractError(f"the audio of tts.audio.delta {message.seq} is not base64")
        return self._add_piece(data, message.seq)

    def _on_done(self, message: AudioDone) -> AudioDone:
        if self.phase is not Phase.AUDIO:
            raise ContractError(f"the service sent tts.audio.done while no audio was coming ({self.phase})")
        for name, announced, came in (
            ("audio_bytes", message.audio_bytes, self._size),
            ("chunks", message.chunks, len(self.pieces)),
        ):
            if announced is not None and announced != came:
                text = f"the service says {name} is {announced:,}, but {came:,} came: the audio is not whole"
                raise ContractError(text)
        self.phase = Phase.USAGE
        return message

    def _on_usage(self, message: Usage) -> Usage:
        status = message.usage.status
        if self._failure is not None or status != UsageStatus.COMPLETED:
            self.phase = Phase.OVER
            failure = self._failure or TtsError(
                code=RealtimeCode.BACKEND_REQUEST_FAILED, message=f"the usage says {status}"
            )
            error = build_error_from_event(failure, partial=self.audio)
            error.status = status
            raise error
        if self.phase is not Phase.USAGE:
            raise ContractError(f"the service sent tts.usage before tts.audio.done ({self.phase})")
        self.phase = Phase.OVER
        return message

    def _on_error(self, message: TtsError) -> None:
        if message.id is not None and message.id != self.client_id:
            logger.debug("realtime: error %s of another text passed over", message.code[:60])
        elif message.code == RealtimeCode.BACKEND_REQUEST_FAILED and self.phase is not Phase.USAGE:
            self._failure, self.phase = message, Phase.USAGE  # tts.usage always follows
        else:
            self._on_other_error(message)

    def _on_other_error(self, message: TtsError | RouterError) -> None:
        if self.phase is Phase.SENT:
            self.phase = Phase.OVER
            raise build_error_from_event(message)
        # Only a failed backend ends a text under way (section 3); other errors may come in between.
        self.noted = message
        logger.debug("realtime: error %s in the middle of a text", message.code[:60])
