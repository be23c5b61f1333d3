"""Errors on the wire: HTTP bodies (section 2.8), handshake refusals (5) and socket codes (7.2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, Self

from speechlab.contract._base import ReplyModel

# Message of every 401, for any fault of the token.
AUTHENTICATION_MESSAGE = "Authentication error: Invalid token"
# Message of recognition without a usable recognizer.
ASR_UNAVAILABLE = "Transcription service not available"
# Message of a failed recognition, with the recognizer's error.
ASR_FAILED = "Transcription failed: {detail}"

# These say nothing about the request: the service was not reached, or not in time, or has too much to do. Gateways
# use those from 520 on.
UNREACHED_STATUS = frozenset({408, 425, 502, 503, 504, 520, 521, 522, 523, 524, 527, 529, 530})
# The same request may succeed later.
RETRYABLE_STATUS = UNREACHED_STATUS | {429, 500}


class ErrorBody(ReplyModel):
    """Body of an HTTP error (section 2.8); some validation errors have only ``code`` and ``error``."""

    context: tuple[str, ...] = ()
    code: int | None = None
    name: str | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """A kind of HTTP error: its name, its number and its status."""

    name: str
    code: int
    status: int

    def body(self, message: str, *context: str) -> dict[str, Any]:
        """Return the body of section 2.8."""
        return {"context": list(context), "code": self.code, "name": self.name, "error": message}


_KINDS = (
    ("ErrInvalidRequest", 100, 400),
    ("ErrUnsupportedFormat", 101, 400),
    ("ErrUnsupportedSampleRate", 102, 400),
    ("ErrTextTooLong", 103, 400),
    ("ErrAuthenticationFailed", 104, 401),
    ("ErrPermissionDenied", 105, 403),
    ("ErrServiceNotFound", 106, 404),
    ("ErrRateLimited", 107, 429),
    ("ErrInternal", 108, 500),
    ("ErrBackendUnreachable", 109, 502),
    ("ErrUnsupportedStreaming", 110, 400),
    ("ErrUnknownVoice", 111, 400),
    ("ErrNotFound", 112, 404),
    ("ErrMethodNotAllowed", 113, 405),
    ("ErrTooLarge", 114, 413),
    ("ErrOverloaded", 115, 503),
    ("ErrRequestTimeout", 116, 408),
    ("ErrHeadTooLarge", 117, 431),
    ("ErrNotImplemented", 118, 501),
)
ERRORS: dict[str, ErrorKind] = {name: ErrorKind(name, code, status) for name, code, status in _KINDS}
"""The embedded service's errors. The contract defines only 104; the other numbers are the service's own, and
stable."""


_STATUS_NUMBERS = {400: 100, 401: 104, 403: 105, 404: 106, 429: 107, 503: 115}


class HandshakeCode(StrEnum):
    """Refusals before the WebSocket upgrade (section 5, item 6), in the order in which they are checked.

    The contract names the codes and leaves the HTTP statuses open.
    """

    _value_: str
    status: int

    def __new__(cls, value: str, status: int) -> Self:
        code = str.__new__(cls, value)
        code._value_, code.status = value, status
        return code

    INVALID_WEBSOCKET_UPGRADE = "invalid_websocket_upgrade", 400
    AUTH_TOKEN_REQUIRED = "auth_token_required", 401
    INVALID_TOKEN_FORMAT = "invalid_token_format", 401
    INVALID_TOKEN = "invalid_token", 401
    LEGACY_API_KEY_REJECTED = "legacy_api_key_rejected", 401
    WS_ORIGIN_DENIED = "ws_origin_denied", 403
    UNKNOWN_SERVICE = "unknown_service", 404
    WS_CONNECTION_LIMIT_EXCEEDED = "ws_connection_limit_exceeded", 429
    WS_CONNECTION_QUOTA_UNAVAILABLE = "ws_connection_quota_unavailable", 503
    WEBSOCKET_DRAINING = "websocket_draining", 503

    @property
    def kind(self) -> ErrorKind:
        """The refusal as an error: its ``name`` is the code, its ``code`` the number of the closest HTTP error."""
        return ErrorKind(self.value, _STATUS_NUMBERS[self.status], self.status)


class RealtimeCode(StrEnum):
    """Codes of ``tts.error`` (section 7.2)."""

    INVALID_MESSAGE = "invalid_message"
    INVALID_ID = "invalid_id"
    ID_TOO_LONG = "id_too_long"
    INVALID_SESSION = "invalid_session"
    SESSION_ALREADY_CONFIGURED = "session_already_configured"
    MISSING_VOICE_ID = "missing_voice_id"
    UNKNOWN_VOICE_ID = "unknown_voice_id"
    TTS_SERVICE_UNAVAILABLE = "tts_service_unavailable"
    SERVICE_ACCESS_DENIED = "service_access_denied"
    UNSUPPORTED_AUDIO_FORMAT = "unsupported_audio_format"
    UNSUPPORTED_SAMPLE_RATE = "unsupported_sample_rate"
    UNSUPPORTED_AUDIO_TRANSPORT = "unsupported_audio_transport"
    UNSUPPORTED_STREAMING_FORMAT = "unsupported_streaming_format"
    SESSION_NOT_CONFIGURED = "session_not_configured"
    EMPTY_TEXT = "empty_text"
    TTS_TEXT_TOO_LONG = "tts_text_too_long"
    SYNTHESIS_IN_PROGRESS = "synthesis_in_progress"
    RATE_LIMITED = "rate_limited"
    SERVICE_RATE_LIMITED = "service_rate_limited"
    RATE_LIMITER_UNAVAILABLE = "rate_limiter_unavailable"
    SERVICE_RATE_LIMITER_UNAVAILABLE = "service_rate_limiter_unavailable"
    BACKEND_UNAVAILABLE = "backend_unavailable"
    BACKEND_REQUEST_FAILED = "backend_request_failed"
    TTS_CONTROL_FRAME_TOO_LARGE = "tts_control_frame_too_large"

    @property
    def retryable(self) -> bool:
        """Whether the same message may succeed later."""
        return self in {
            RealtimeCode.RATE_LIMITED,
            RealtimeCode.SERVICE_RATE_LIMITED,
            RealtimeCode.RATE_LIMITER_UNAVAILABLE,
            RealtimeCode.SERVICE_RATE_LIMITER_UNAVAILABLE,
            RealtimeCode.BACKEND_UNAVAILABLE,
            RealtimeCode.BACKEND_REQUEST_FAILED,
            RealtimeCode.TTS_SERVICE_UNAVAILABLE,
        }


class RouterCode(StrEnum):
    """Codes of ``router.error`` (section 7.2)."""

    INVALID_JSON = "invalid_json"
    MISSING_MESSAGE_TYPE = "missing_message_type"
    UNKNOWN_MESSAGE_TYPE = "unknown_message_type"


class CloseCode(IntEnum):
    """WebSocket close codes: 1003 and 1009 by section 7.2.

    The embedded service adds three: 1001 after the maximum duration of a session; 1008 for a client that does not
    configure or read in time, or whose key is not valid any more; 1012 before the service stops.
    """

    GOING_AWAY = 1001
    BINARY_FRAME = 1003
    POLICY = 1008
    FRAME_TOO_LARGE = 1009
    SERVICE_RESTART = 1012
