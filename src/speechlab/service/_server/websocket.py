"""A WebSocket connection: the frames of ``websockets`` on one side, the messages of ASGI on the other.

uvicorn passes handshakes to this protocol instead of its own, which answers malformed ones in plain text, resets
connections before their close frame has arrived, and changes with every release. A slow reader does not count as
disconnected here, and an endpoint can drop a connection whose reader has stopped.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from websockets.exceptions import InvalidState
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from speechlab.contract import CloseCode
from speechlab.service._faults import HandshakeRefused
from speechlab.service._logs import build_error_fields, log
from speechlab.service._server.http import build_closing_reply
from speechlab.service._state import ABORT_EXTENSION

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

# Seconds for the other side's part of a close.
_CLOSE_S = 10.0
# Bytes per second of the slowest accepted reader: a quarter of the rate of mp3.
_SLOWEST_BYTES_S = 2_000
# Maximum fragments of a message of a client.
_MAX_FRAGMENTS = 1_000
_SLICE_BYTES = 4 * 1024
# Maximum frames of a client per second: each takes time, even a short one.
_MAX_FRAMES_S = 2_000


class WebSocketProtocol(asyncio.Protocol):
    """One WebSocket connection, from its handshake on."""

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any], **_: Any
    ) -> None:
        self._app = config.loaded_app
        self._ping_s = config.ws_ping_interval
        self._server_state = server_state
        self._app_state = app_state
        self._loop = asyncio.get_running_loop()
        logger = logging.getLogger("uvicorn.error")
        self._conn = ServerProtocol(extensions=[], max_size=config.ws_max_size, logger=logger)
        self._response: Response | None = None  # to the handshake, until it is sent
        self._denial = 0
        self._received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._fragments: list[bytes] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._ended = self._failed = False  # nothing is sent any more; nothing is read either
        self._timer: asyncio.TimerHandle | None = None  # of the next ping, its pong, or the close
        self._ping = self._pong = b""
        self._sent = self._sent_at_ping = self._read_for_sure = 0
        self._second = self._frames = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection over from HTTP."""
        self._transport: Any = transport
        self.client = transport.get_extra_info("peername") or None
        self._server_state.connections.add(self)  # type: ignore[arg-type] # it has what the server uses

    def connection_lost(self, _: Exception | None) -> None:
        self._ended = self._failed = True
        self._set_timer(None)
        self._received.put_nowait({"type": "websocket.disconnect", "code": 1006})
        self._server_state.connections.discard(self)
        self._writable.set()

    def shutdown(self) -> None:
        """End with the service, which has drained before."""
        if self._response is None and not self._ended:
            self._send_close_frame(CloseCode.SERVICE_RESTART, "")
        self._transport.close()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        """Continue, with the delayed pong first."""
        if self._pong and not self._ended:
            self._transport.write(self._pong)
        self._pong = b""
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Read, unless the connection has failed; stop at too many frames before reading all of them."""
        for start in range(0, len(data), _SLICE_BYTES):
            if self._failed:
                return
            self._conn.receive_data(data[start : start + _SLICE_BYTES])
            if self._conn.parser_exc is not None:
                self._fail_connection()
                return
            for event in self._conn.events_received():
                if isinstance(event, Request):
                    self._begin_handshake(event)
                elif isinstance(event, Frame) and not self._failed:
                    self._handle_frame(event)
        if self._conn.handshake_exc is not None and not self._failed:
            message = "the request is not a valid handshake: it is too long, has a body or is not HTTP/1.1"
            self._refuse_handshake(HandshakeRefused.build_upgrade_refusal(message))

    def _begin_handshake(self, request: Request) -> None:
        self._response = self._conn.accept(request)
        if self._response.status_code != 101:
            self._refuse_handshake(HandshakeRefused.build_upgrade_refusal())
            return
        path, _, query = request.path.partition("?")
        scope = {
            "type": "websocket",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "scheme": "ws",
            "server": self._transport.get_extra_info("sockname") or None,
            "client": self.client,
            "root_path": "",
            "path": unquote(path),
            "raw_path": path.encode("ascii"),
            "query_string": query.encode("ascii"),
            "headers": [
                (name.lower().encode("ascii"), value.encode("latin-1", "surrogateescape"))
                for name, value in request.headers.raw_items()
            ],
            "subprotocols": [],
            "state": self._app_state.copy(),
            "extensions": {"websocket.http.response": {}, ABORT_EXTENSION: {"call": self._abort_connection}},
        }
        self._received.put_nowait({"type": "websocket.connect"})
        task = self._loop.create_task(self._run_app(scope))
        self._server_state.tasks.add(task)
        task.add_done_callback(self._server_state.tasks.discard)

    def _refuse_handshake(self, refused: HandshakeRefused) -> None:
        request_id = secrets.token_hex(8)
        log(
            "handshake refused",
            once_a_minute=True,
            request_id=request_id,
            status=refused.status,
            code=refused.code.value,
        )
        self._conn.data_to_send()  # discards the library's own reply
        headers = {**refused.headers, "Content-Type": "application/json", "X-Request-Id": request_id}
        self._write_last_and_end(build_closing_reply(refused.status, refused.build_body(), headers))

    async def _run_app(self, scope: dict[str, Any]) -> None:
        try:
            await self._app(scope, self._receive_message, self._send_message)
        except Exception as error:  # noqa: BLE001 - the application answers its errors itself
            log("internal error", level="error", **build_error_fields(error))
        finally:
            if not self._ended:
                self._transport.close()

    async def _receive_message(self) -> dict[str, Any]:
        message = await self._received.get()
        if self._received.empty():
            self._transport.resume_reading()
        return message

    def _handle_frame(self, frame: Frame) -> None:
        second = int(self._loop.time())
        self._second, self._frames = second, self._frames + 1 if second == self._second else 1
        if self._frames > _MAX_FRAMES_S:
            self._fail_connection(CloseCode.POLICY, "too many frames in a second")
        elif frame.opcode is Opcode.PING:
            self._send_or_hold_pong()
        elif frame.opcode is Opcode.PONG:
            self._handle_pong(bytes(frame.data))
        elif frame.opcode is Opcode.CLOSE:
            self._handle_close_frame()
        elif frame.opcode is Opcode.BINARY:
            self._fragments = None  # it is refused in any case, at its first frame
            self._deliver_message({"bytes": bytes(frame.data)})
        else:
            self._handle_text_frame(frame)

    def _handle_text_frame(self, frame: Frame) -> None:
        if frame.opcode is Opcode.TEXT:
            self._fragments = []
        if self._fragments is None:
            return  # the rest of a binary message
        self._fragments.append(bytes(frame.data))
        if len(self._fragments) > _MAX_FRAGMENTS:
            # Even an empty one takes memory.
            self._fail_connection(CloseCode.POLICY, "too many fragments of a message")
        elif frame.fin:
            text, self._fragments = b"".join(self._fragments), None
            try:
                self._deliver_message({"text": text.decode()})
            except UnicodeDecodeError:
                self._fail_connection(1007, "invalid UTF-8")

    def _deliver_message(self, message: dict[str, Any]) -> None:
        if not self._ended:  # what comes after the close is discarded
            self._received.put_nowait({"type": "websocket.receive", **message})
            self._transport.pause_reading()

    def _handle_close_frame(self) -> None:
        echo = b"".join(self._conn.data_to_send())
        if not self._ended:
            received = self._conn.close_rcvd
            code = 1005 if received is None else received.code
            self._received.put_nowait({"type": "websocket.disconnect", "code": code})
            self._transport.write(echo)
        self._ended = True
        self._transport.close()

    def _send_or_hold_pong(self) -> None:
        """Send a pong, but only for the last pings of a client that does not read pongs (RFC 6455, section 5.5.3)."""
        pong = b"".join(self._conn.data_to_send())  # the pongs for all pings that came together
        if self._ended or not pong:
            return
        if self._writable.is_set() and self._transport.get_write_buffer_size() <= 256 * 1024:
            self._transport.write(pong)
        else:
            self._pong = pong

    def _handle_pong(self, payload: bytes) -> None:
        """Note that the client has read everything up to the ping."""
        if self._ping and payload == self._ping and not self._ended:
            self._ping, self._read_for_sure = b"", self._sent_at_ping
            self._set_timer(self._ping_s, self._send_ping)

    def _send_ping(self) -> None:
        """Send a ping, and wait longer for the pong of a client that has audio to read first."""
        self._ping, self._sent_at_ping = secrets.token_bytes(4), self._sent
        self._conn.send_ping(self._ping)
        self._write_pending_bytes()
        unread_s = (self._sent - self._read_for_sure) / _SLOWEST_BYTES_S
        self._set_timer((self._ping_s or 0) + unread_s, self._on_missing_pong)

    def _on_missing_pong(self) -> None:
        self._fail_connection(1011, "keepalive ping timeout")
        self._abort_connection()

    async def _send_message(self, message: Any) -> None:
        await self._writable.wait()
        if self._ended:
            raise ConnectionResetError
        kind = message["type"]
        try:
            if kind == "websocket.accept":
                assert self._response is not None
                response, self._response = self._response, None
                for name, value in message.get("headers", []):
                    response.headers[name.decode("latin-1")] = value.decode("latin-1")
                self._conn.send_response(response)
                self._set_timer(self._ping_s, self._send_ping)
            elif kind == "websocket.send":
                data, text = message.get("bytes"), message.get("text")
                self._conn.send_binary(data) if data is not None else self._conn.send_text(text.encode())
                self._sent += len(text if data is None else data)
            elif kind == "websocket.close":
                self._send_close_frame(message.get("code", 1000), message.get("reason") or "")
            elif kind == "websocket.http.response.start":
                self._denial = message["status"]
                self._headers = {name.decode(): value.decode() for name, value in message["headers"]}
            else:
                self._write_last_and_end(build_closing_reply(self._denial, message["body"], self._headers))
        except InvalidState:
            raise ConnectionResetError from None
        self._write_pending_bytes()

    def _write_pending_bytes(self) -> None:
        if data := b"".join(self._conn.data_to_send()):  # nothing may be written after the end of a refusal
            self._transport.write(data)

    def _send_close_frame(self, code: int, reason: str) -> None:
        """Send a close frame, and wait for the client's; it may never come, nor may the buffer be read."""
        self._received.put_nowait({"type": "websocket.disconnect", "code": code})
        self._conn.send_close(code, reason)
        self._end_sending()

    def _end_sending(self) -> None:
        """Send the last bytes, and read on for a while: a close with unread data would reset the connection first."""
        self._write_pending_bytes()
        self._ended = True
        self._transport.resume_reading()
        self._set_timer(_CLOSE_S, self._transport.abort)

    def _fail_connection(self, code: int = 0, reason: str = "") -> None:
        """End after a fault of the client, whose close frame is sent here unless the library has made it."""
        if code:
            self._conn.fail(code, reason)
        sent = self._conn.close_sent
        code = 1006 if sent is None else sent.code
        self._received.put_nowait({"type": "websocket.disconnect", "code": code})
        self._write_last_and_end()

    def _write_last_and_end(self, last: bytes = b"") -> None:
        self._transport.write(last)
        self._failed = True
        self._end_sending()
        self._transport.write_eof()

    def _abort_connection(self) -> None:
        self._set_timer(None)
        self._ended = True
        self._transport.abort()

    def _set_timer(self, seconds: float | None, action: Any = None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self._loop.call_later(seconds, action)
