"""Errors as replies: an exception for all with an error body (section 2.8), and one for refused handshakes.

A refusal is an HTTP reply whose ``name`` is the string code (section 5, item 6).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import orjson
from starlette.responses import Response

from speechlab.contract import ASR_FAILED, ASR_UNAVAILABLE, ERRORS, REASON_HEADER, HandshakeCode
from speechlab.errors import ConfigurationError, InvalidRequestError, ModelError, SpeechLabError

if TYPE_CHECKING:
    from starlette.types import Send

# The work of an engine, by operation.
OPERATION_NAMES = {"tts": "speech synthesis", "asr": "speech recognition", "translate": "translation"}

_FAULT_NAMES = {
    "tts_text_too_long": "ErrTextTooLong",
    "unknown_voice_id": "ErrUnknownVoice",
    "unsupported_audio_format": "ErrUnsupportedFormat",
    "unsupported_sample_rate": "ErrUnsupportedSampleRate",
    "unsupported_streaming_format": "ErrUnsupportedStreaming",
}
_PATH = re.compile(r"(?:[A-Za-z]:)?(?:[/\\][^/\\\s'\"():,]+){2,}")


class Fault(Exception):  # noqa: N818 - a reply, usually about a fault of the client
    """A request that ends with an error body."""

    def __init__(
        self,
        kind: str,
        error: str,
        *context: str,
        headers: Mapping[str, str] | None = None,
        short: bool = False,
    ) -> None:
        super().__init__(error)
        self.kind = ERRORS[kind]
        self.error = error
        self.context = context
        self.headers = dict(headers or {})
        self.short = short

    @property
    def status(self) -> int:
        return self.kind.status

    def build_body(self) -> bytes:
        """Return the error body in its long or short form."""
        long = self.kind.body(self.error, *self.context)
        return orjson.dumps({"code": self.status, "error": self.error} if self.short else long)

    def build_response(self) -> Response:
        return Response(self.build_body(), self.status, headers=self.headers, media_type="application/json")


class ClientGone(Exception):  # noqa: N818 - not an error of the service
    """The client has disconnected."""


def build_invalid_fault(error: InvalidRequestError, *context: str, short: bool = False) -> Fault:
    """Return a 400 for a request that breaks a rule of the contract; its name depends on the rule."""
    where = context if error.parameter is None else (*context, error.parameter)
    return Fault(_FAULT_NAMES.get(error.code or "", "ErrInvalidRequest"), error.message, *where, short=short)


def describe_failure(error: BaseException) -> str:
    """Describe a failure for clients: messages of speechlab without folder names; of other errors, the type only."""
    if not isinstance(error, SpeechLabError):
        return type(error).__name__
    text = _PATH.sub(lambda match: re.split(r"[/\\]", match.group())[-1], error.message)
    return " ".join(text.split())[:400]


def build_engine_fault(error: BaseException, operation: str) -> Fault:
    """Return the reply to a failure of an engine: a 500 without private details."""
    if isinstance(error, InvalidRequestError):
        return build_invalid_fault(error, operation, short=operation == "asr")
    detail = describe_failure(error)
    unavailable = isinstance(error, (ModelError, ConfigurationError))
    # What is missing will be missing again: the client is told why, and not to try again.
    headers = {"X-Should-Retry": "false", REASON_HEADER: detail.encode("ascii", "replace").decode()}
    if operation == "asr":
        message = ASR_UNAVAILABLE if unavailable else ASR_FAILED.format(detail=detail)
    else:
        message = f"{OPERATION_NAMES[operation]} failed: {detail}"
    return Fault("ErrInternal", message, operation, "engine", headers=headers if unavailable else None)


_RETRY_S = {429: "5", 503: "10"}
_NOT_UPGRADED_MESSAGE = (
    "this address is for WebSockets: send GET with Connection, Upgrade, Sec-WebSocket-Key and -Version 13"
)
_STAGES = {
    400: "upgrade",
    401: "authentication",
    403: "origin",
    404: "path",
    429: "connections",
    503: "capacity",
}


class HandshakeRefused(Fault):
    """A handshake that ends with an HTTP reply."""

    def __init__(self, code: HandshakeCode, message: str) -> None:
        headers = {"WWW-Authenticate": "Bearer"} if code.status == 401 else {}
        if code.status in _RETRY_S:
            headers["Retry-After"] = _RETRY_S[code.status]
        super().__init__("ErrInvalidRequest", message, "ws", _STAGES[code.status], headers=headers)
        self.kind, self.code = code.kind, code

    @classmethod
    def build_upgrade_refusal(cls, what: str = _NOT_UPGRADED_MESSAGE) -> HandshakeRefused:
        """Return the refusal of a request that is not a handshake."""
        return cls(HandshakeCode.INVALID_WEBSOCKET_UPGRADE, what)

    async def send(self, send: Send) -> None:
        """Reply to a handshake, with the body in one part, which every server can send."""
        headers = [
            (name.lower().encode(), value.encode())
            for name, value in {"Content-Type": "application/json", **self.headers}.items()
        ]
        await send({"type": "websocket.http.response.start", "status": self.status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": self.build_body()})
