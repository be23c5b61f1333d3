"""uvicorn's WebSocket protocol, extended for slow and malformed clients.

Malformed handshakes get a reply in the contract's form. A failed connection stays readable for a moment, so that no
reset arrives before the close frame. A slow reader does not count as disconnected, and an endpoint can drop a
connection whose reader has stopped.
"""

from __future__ import annotations

import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from speechlab.contract import CloseCode
from speechlab.service._logs import log
from speechlab.service._refusals import HandshakeRefused
from speechlab.service._server.http import whole_reply
from speechlab.service._state import ABORT

if TYPE_CHECKING:
    from websockets.frames import Frame
    from websockets.http11 import Request

_SEND_BUFFER_BYTES = 256 * 1024
_SLOWEST_BYTES_S = 2_000
"""Bytes per second of the slowest accepted reader: a quarter of the rate of mp3."""
_FRAGMENTS = 1_000
"""Maximum fragments of a message of a client."""
_SLICE_BYTES = 4 * 1024
_FRAMES_S = 2_000
"""Maximum frames of a client per second: each takes time, even a short one."""


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """One WebSocket connection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._failed = False
        self._pong = b""
        self._sent = 0
        self._sent_at_ping = 0
        self._read_for_sure = 0
        self._second = 0
        self._frames_of_second = 0

    def data_received(self, data: bytes) -> None:
        """Read, unless the connection has failed; stop at too many frames before reading all of them."""
        for start in range(0, len(data), _SLICE_BYTES):
            if self._failed:
                return
            super().data_received(data[start : start + _SLICE_BYTES])
            if self._frames_of_second > _FRAMES_S and not self._failed:
                self.conn.fail(CloseCode.POLICY, "too many frames in a second")
                self.handle_parser_exception()
        if not self.handshake_initiated and self.conn.handshake_exc is not None:
            self._refuse(
                "the request is not a valid handshake: it is too long, has a body or is not HTTP/1.1"
            )

    def handle_connect(self, event: Request) -> None:
        """Answer an invalid handshake, and pass on a valid one."""
        if self.conn.accept(event).status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            self.request = event
            self._refuse(None)
            return
        super().handle_connect(event)
        cast("dict[str, Any]", self.scope["extensions"])[ABORT] = {"call": self.abort}

    def handle_events(self) -> None:
        """Count the frames, and handle them."""
        second = int(self.loop.time())
        if second != self._second:
            self._second, self._frames_of_second = second, 0
        self._frames_of_second += len(self.conn.events)
        super().handle_events()

    def handle_cont(self, event: Frame) -> None:
        """Take a fragment, unless the message has too many of them: even an empty one takes memory."""
        if len(self.frames) >= _FRAGMENTS:
            self.conn.fail(CloseCode.POLICY, "too many fragments of a message")
            self.handle_parser_exception()
        else:
            super().handle_cont(event)

    def handle_bytes(self, event: Frame) -> None:
        """Report a binary message at its first frame, since it is refused in any case."""
        self.curr_msg_data_type = "bytes"
        self.frames = [bytes(event.data)]
        self.send_receive_event_to_app()

    def handle_ping(self) -> None:
        """Send a pong, but only for the last pings of a client that does not read pongs (RFC 6455, section 5.5.3)."""
        pong = b"".join(self.conn.data_to_send())  # the pongs for all pings that came together
        if not pong:
            return
        if self.writable.is_set() and self.transport.get_write_buffer_size() <= _SEND_BUFFER_BYTES:
            self.transport.write(pong)
        else:
            self._pong = pong

    def resume_writing(self) -> None:
        """Continue, with the delayed pong first."""
        if self._pong and not self.close_sent:
            self.transport.write(self._pong)
        self._pong = b""
        super().resume_writing()

    def handle_pong(self, event: Frame) -> None:
        """Note that the client has read everything up to the ping."""
        if self.pending_ping_payload is not None and bytes(event.data) == self.pending_ping_payload:
            self._read_for_sure = self._sent_at_ping
        super().handle_pong(event)

    def send_keepalive_ping(self) -> None:
        """Send a ping, and wait longer for the pong of a client that has audio to read first."""
        self._sent_at_ping = self._sent
        super().send_keepalive_ping()
        if self.pong_timer is not None and self.ping_timeout is not None:
            self.pong_timer.cancel()
            timeout_s = self.ping_timeout + (self._sent - self._read_for_sure) / _SLOWEST_BYTES_S
            self.pong_timer = self.loop.call_later(timeout_s, self.keepalive_timeout)

    def keepalive_timeout(self) -> None:
        """End the connection of a client that has disconnected, without waiting for unread data."""
        super().keepalive_timeout()
        self.transport.abort()

    def handle_parser_exception(self) -> None:
        """Send the close frame, and continue to read for a while.

        An immediate close with unread data would reset the connection, and the reset arrives before the sent data.
        """
        close = self.conn.close_sent
        code = close.code if close is not None else 1006
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": ""})
        self._finish(b"".join(self.conn.data_to_send()))

    async def send(self, message: Any) -> None:
        """Send an ASGI message."""
        if self.close_sent and self.handshake_complete:
            raise ClientDisconnected
        await super().send(message)
        self._sent += len(message.get("bytes") or message.get("text") or b"")
        if message["type"] == "websocket.close" and self.close_timer is not None:
            # The client may never send its close frame, nor read the buffer.
            self.close_timer.cancel()
            self.close_timer = self.loop.call_later(self.close_timeout, self.transport.abort)

    def abort(self) -> None:
        """Drop the connection."""
        self.stop_keepalive()
        self.transport.abort()

    def _refuse(self, message: str | None) -> None:
        refused = (
            HandshakeRefused.not_upgraded() if message is None else HandshakeRefused.not_upgraded(message)
        )
        request_id = secrets.token_hex(8)
        log("handshake refused", request_id=request_id, status=refused.status, code=refused.code.value)
        self.conn.data_to_send()  # discards the library's own reply
        self.handshake_initiated = self.handshake_complete = True
        self._finish(whole_reply(refused.status, refused.body(), refused.headers(request_id)))

    def _finish(self, last: bytes) -> None:
        self._failed = self.close_sent = True
        self.stop_keepalive()
        self.transport.write(last)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(self.close_timeout, self.transport.abort)
