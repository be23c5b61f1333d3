"""Refusals of a handshake: HTTP replies whose ``name`` is the string code (section 5, item 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from speechlab.contract import HANDSHAKE_ERRORS, HandshakeCode

if TYPE_CHECKING:
    from starlette.types import Send

_RETRY_S = {429: "5", 503: "10"}
_NOT_UPGRADED = (
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


class HandshakeRefused(Exception):  # noqa: N818 - a reply, usually about a fault of the client
    """A handshake that ends with an HTTP reply."""

    def __init__(self, code: HandshakeCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.status = HANDSHAKE_ERRORS[code].status
        self._message = message

    @classmethod
    def not_upgraded(cls, what: str = _NOT_UPGRADED) -> HandshakeRefused:
        """The refusal of a request that is not a handshake."""
        return cls(HandshakeCode.INVALID_WEBSOCKET_UPGRADE, what)

    def body(self) -> bytes:
        """The error body."""
        body = HANDSHAKE_ERRORS[self.code].body(self._message, "ws", _STAGES[self.status])
        return orjson.dumps(body)

    def headers(self, request_id: str) -> dict[str, str]:
        """Headers of the reply."""
        headers = {"Content-Type": "application/json", "X-Request-Id": request_id}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if self.status in _RETRY_S:
            headers["Retry-After"] = _RETRY_S[self.status]
        return headers

    async def send(self, send: Send, request_id: str) -> None:
        """Reply to a handshake, with the body in one part, which every server can send."""
        headers = [
            (name.lower().encode(), value.encode()) for name, value in self.headers(request_id).items()
        ]
        await send({"type": "websocket.http.response.start", "status": self.status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": self.body()})
