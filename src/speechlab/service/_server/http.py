"""uvicorn's HTTP protocol with limits for connections, and for the time and the size of a request's head.

uvicorn waits without limit for a head that comes slowly or not at all, and for the rest of a refused body; enough
such connections use up all files that a process may open. It also buffers a head of any size before the key is
checked. Bodies have their own limits, where they are read.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable, Mapping
from email.utils import formatdate
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from speechlab.contract import REALTIME_PATH
from speechlab.service._faults import Fault, HandshakeRefused
from speechlab.service._logs import log
from speechlab.service._state import ABORT_EXTENSION, INTERIM_EXTENSION

if TYPE_CHECKING:
    import asyncio
# Seconds for which the rest of a refused request is read and discarded, ...
_LINGER_S = 30.0
# ... and maximum pause within it.
_LINGER_PAUSE_S = 5.0
# Maximum size of the head of a request.
_HEAD_BYTES = 64 * 1024
# Maximum of headers of a request: each takes time, even a short one.
_MOST_HEADERS = 200


class HttpProtocol(HttpToolsProtocol):
    """One HTTP connection."""

    def __init__(
        self, *args: Any, header_timeout_s: float, max_connections: int, max_per_address: int, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._max_connections = max_connections
        self._max_per_address = max_per_address
        self._since = 0.0  # end of the last reply, or start of the connection
        self._linger_until: float | None = None
        self._header_timeout_s = header_timeout_s
        self._head_bytes = 0  # complete headers and the URL
        self._headers = 0
        self._unread_bytes = 0  # bytes of the head so far, or since the last ones of a body
        self._begins_with = 0  # bytes of a head that begins with this data
        self._idle = True
        self._timer: asyncio.TimerHandle | None = None
        self._in_head = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Start the timer of the first head, if there is room for one more connection."""
        super().connection_made(cast("asyncio.Transport", _LingeringTransport(transport, self)))
        # Limits what the kernel takes for a client that does not read; so the pace of reading is seen, too.
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 128 * 1024)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._since = self.loop.time()
        self._start_head_timer()
        mine = [
            other
            for other in self.connections
            if self.client and _get_client_address(other) == _get_client_address(self)
        ]
        if len(mine) > self._max_per_address:
            self._close_longest_idle_or_self(mine)
        elif len(self.connections) > self._max_connections:
            self._close_longest_idle_or_self(self.connections)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def eof_received(self) -> bool | None:  # type: ignore[override] # as asyncio allows
        """Keep the connection of a client that has only ended its sending, and waits for its reply or the rest of it.

        A client that has left does the same at first. It resets the connection when something is sent to it: the next
        piece of a reply that has begun, or else an interim reply, which changes nothing for a client that waits.
        """
        cycle: Any = self.cycle
        is_begun = cycle is not None and cycle.response_started and not cycle.response_complete
        if not self._idle or self.transport.is_closing() or not (is_begun or self._send_interim_if_waiting()):
            return None
        cycle.keep_alive = False
        self._watch_for_reset(cycle)
        return True

    def _send_interim_if_waiting(self) -> bool:
        """Tell the client of the current request, if it waits for its reply, that it does so for a reason."""
        cycle: Any = self.cycle
        waits = cycle is not None and not (cycle.response_started or self.transport.is_closing())
        if not waits or cycle.scope["http_version"] != "1.1":
            return False
        self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    def _watch_for_reset(self, cycle: Any) -> None:
        """End the connection once its client has reset it, which nobody else sees, as nothing is read any more."""
        if self.transport.is_closing() or cycle.response_complete:
            return
        if self.transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.transport.abort()
        else:
            self.loop.call_later(0.25, self._watch_for_reset, cycle)

    def data_received(self, data: bytes) -> None:
        """Parse, unless the head is too large or the request was refused already."""
        if self._linger_until is not None:
            self._restart_linger_timer()
            return
        self._unread_bytes += len(data)
        self._begins_with = len(data) if self._idle else 0
        super().data_received(data)
        if self.transport.get_protocol() != self or not self._is_reading:
            return  # a WebSocket has begun, or the connection ends
        if self._unread_bytes > _HEAD_BYTES:
            self._refuse_head()
        elif self._idle and self._timer is None and self.is_idle:
            self._start_head_timer()  # the data started no request, such as an empty line; uvicorn waits no longer

    @property
    def _is_reading(self) -> bool:
        return self._linger_until is None and not self.transport.is_closing()

    def on_url(self, url: bytes) -> None:
        self._count_and_limit_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers += 1
        self._count_and_limit_head(len(name) + len(value))
        super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._unread_bytes = 0
        super().on_body(body)

    def on_message_begin(self) -> None:
        """Start a head at its first byte."""
        super().on_message_begin()
        self.scope["extensions"] = {
            ABORT_EXTENSION: {"call": self.transport.abort},
            INTERIM_EXTENSION: {"call": self._send_interim_if_waiting},
        }
        self._head_bytes = self._headers = 0
        self._unread_bytes, self._begins_with = self._begins_with, 0
        self._idle = False
        self._in_head = True
        if self._timer is None:
            self._start_head_timer()

    def on_message_complete(self) -> None:
        self._idle = True
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        """End a head, also that of a handshake, whose protocol takes over."""
        self._in_head = False
        self._unread_bytes = 0
        self._stop_timer()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Note the start of the idle time."""
        self._since = self.loop.time()
        super().on_response_complete()

    def can_close_else_linger(self) -> bool:
        """Whether to close; if not, the rest of a body is read first, as a reset would arrive before the reply."""
        if not self._idle and self._linger_until is None:
            self._linger_until = self.loop.time() + _LINGER_S
            self._restart_linger_timer()
            self.transport.resume_reading()
            with contextlib.suppress(OSError):  # of a client that has reset the connection, as reading shows
                self.transport.write_eof()
        return self._linger_until is None

    def _restart_linger_timer(self) -> None:
        assert self._linger_until is not None
        self._stop_timer()
        left_s = max(0.0, self._linger_until - self.loop.time())
        self._timer = self.loop.call_later(min(_LINGER_PAUSE_S, left_s), self.transport.abort)

    @property
    def is_idle(self) -> bool:
        cycle: Any = self.cycle
        between = self._idle or self._in_head or self._linger_until is not None
        return between and (cycle is None or cycle.response_complete)

    def _close_longest_idle_or_self(self, among: Iterable[Any]) -> None:
        """Close the connection among these that has been idle for longest, or else this one."""
        log("too many connections", level="warning", once_a_minute=True, connections=len(self.connections))
        http = [other for other in among if isinstance(other, HttpProtocol)]
        idle = [other for other in http if other.is_idle and other is not self]
        if idle:
            oldest = min(idle, key=lambda other: other._since)  # noqa: SLF001 - an object of this class
            self.connections.discard(oldest)
            oldest.transport.abort()
        else:
            self._idle = True
            message = "too many connections; try again later"
            self._send_fault_and_close(Fault("ErrOverloaded", message, "router", "connections"))

    def _should_upgrade(self) -> bool:
        # RFC 6455 requires HTTP/1.1; an older handshake is answered like any request that is not a handshake.
        return self.parser.get_http_version() == "1.1" and super()._should_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Answer invalid HTTP with the error body of all other errors."""
        if self._is_too_long:
            self._refuse_head()
        else:
            self._send_fault_and_close(Fault("ErrInvalidRequest", f"{msg} Send HTTP/1.1.", "router", "http"))

    @property
    def _is_too_long(self) -> bool:
        return self._head_bytes > _HEAD_BYTES or self._headers > _MOST_HEADERS

    def _count_and_limit_head(self, size: int) -> None:
        self._head_bytes += size
        if self._is_too_long:
            raise ValueError("the head is too long")  # ends the parsing; uvicorn then sends a 400

    def _refuse_head(self) -> None:
        most = f"{_MOST_HEADERS} headers" if self._headers > _MOST_HEADERS else f"{_HEAD_BYTES:,} bytes"
        message = f"the head of the request is longer than {most}"
        if self.url.partition(b"?")[0] == REALTIME_PATH.encode("ascii"):
            self._send_fault_and_close(HandshakeRefused.build_upgrade_refusal(message))
        else:
            self._send_fault_and_close(Fault("ErrHeadTooLarge", message, "router", "head"))

    def _start_head_timer(self) -> None:
        self._timer = self.loop.call_later(self._header_timeout_s, self._on_head_timeout)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_head_timeout(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self._in_head:
            message = f"the head of the request did not come within {self._header_timeout_s:g} seconds"
            self._send_fault_and_close(Fault("ErrRequestTimeout", message, "router", "head"))
        else:
            self.transport.close()

    def _send_fault_and_close(self, reply: Fault) -> None:
        self._stop_timer()
        self.transport.write(
            build_closing_reply(reply.status, reply.build_body(), {"Content-Type": "application/json"})
        )
        self.transport.close()


def build_closing_reply(status: int, body: bytes, headers: Mapping[str, str]) -> bytes:
    """Return a reply that ends its connection, as it is sent."""
    fields = {**headers, "Date": formatdate(usegmt=True), "Content-Length": len(body), "Connection": "close"}
    lines = [f"{name}: {value}\r\n" for name, value in fields.items()]
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{''.join(lines)}\r\n"
    return head.encode("ascii") + body


def _get_client_address(protocol: Any) -> str | None:
    return protocol.client[0] if protocol.client else None


class _LingeringTransport:
    """A connection's transport, which closes when its protocol lets it."""

    def __init__(self, transport: asyncio.Transport, protocol: HttpProtocol) -> None:
        self._transport = transport
        self._protocol = protocol

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def close(self) -> None:
        if self._protocol.can_close_else_linger():
            self._transport.close()
