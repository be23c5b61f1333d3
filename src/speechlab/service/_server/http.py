"""uvicorn's HTTP protocol with limits of the time and the length of a request's head.

uvicorn waits for ever for a head that comes a byte at a time, or not at all; enough such connections use up all files
that a process may open. And it buffers a head of any length before a key is asked for. (Bodies have their own limits,
where they are read.)
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from speechlab.contract import REALTIME_PATH
from speechlab.service._faults import Fault
from speechlab.service._refusals import HandshakeRefused

if TYPE_CHECKING:
    import asyncio


class HttpProtocol(HttpToolsProtocol):
    """One HTTP connection.

    Args:
        header_timeout_s: Time for the head of a request, counted from the connection or its first byte.
        header_bytes: Maximum length of its URL and headers, including the headers after a body in chunks.
    """

    def __init__(self, *args: Any, header_timeout_s: float, header_bytes: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self._header_timeout_s = header_timeout_s
        self._header_bytes = header_bytes
        self._head_bytes = 0  # complete headers and the URL
        self._partial_bytes = 0  # the incomplete head, including its last line
        self._unread_bytes = 0  # bytes since the last parser callback
        self._starts_with_next = 0  # bytes of a request that begins with this data
        self._idle = True
        self._too_long = False
        self._timer: asyncio.TimerHandle | None = None
        self._in_head = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Start the timer of the first head."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, unless the head has become too long."""
        self._unread_bytes += len(data)
        self._partial_bytes += len(data)
        self._starts_with_next = len(data) if self._idle else 0
        super().data_received(data)
        waiting = max(self._unread_bytes, self._partial_bytes if self._in_head else 0)
        if waiting > self._header_bytes and not self.transport.is_closing():
            self._refuse_head()

    def on_url(self, url: bytes) -> None:
        """Count a part of the URL."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header."""
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """Begin to count anew."""
        self._unread_bytes = 0
        super().on_body(body)

    def on_message_begin(self) -> None:
        """Begin a head at its first byte."""
        super().on_message_begin()
        self._partial_bytes, self._starts_with_next = self._starts_with_next, 0
        self._head_bytes = self._unread_bytes = 0
        self._idle = False
        self._in_head = True
        if self._timer is None:
            self._start_timer()

    def on_message_complete(self) -> None:
        """End a request."""
        self._idle = True
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        """End a head; also that of a handshake, whose protocol takes over."""
        self._in_head = False
        self._unread_bytes = 0
        self._stop_timer()
        super().on_headers_complete()

    def _should_upgrade(self) -> bool:
        # RFC 6455 asks for HTTP/1.1; an older handshake is answered like any request that is none.
        return self.parser.get_http_version() == "1.1" and super()._should_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP with the error body of all other errors."""
        if self._too_long:
            self._refuse_head()
        else:
            self._answer(Fault("ErrInvalidRequest", f"{msg} Send HTTP/1.1.", "router", "http"))

    def _count(self, size: int) -> None:
        self._unread_bytes = 0
        self._head_bytes += size
        if self._head_bytes > self._header_bytes:
            self._too_long = True
            raise ValueError("the head is too long")  # ends the parsing; uvicorn asks for a 400

    def _refuse_head(self) -> None:
        message = f"the head of the request is longer than {self._header_bytes:,} bytes"
        if self.url.partition(b"?")[0] == REALTIME_PATH.encode("ascii"):
            refused = HandshakeRefused.not_upgraded(message)
            self._write(refused.status, refused.body())
        else:
            self._answer(Fault("ErrHeadTooLarge", message, "router", "head"))

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self._header_timeout_s, self._timed_out)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _timed_out(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self._in_head:
            message = f"the head of the request did not come within {self._header_timeout_s:g} seconds"
            self._answer(Fault("ErrRequestTimeout", message, "router", "head"))
        else:
            self.transport.close()

    def _answer(self, fault: Fault) -> None:
        self._write(fault.status, orjson.dumps(fault.body()))

    def _write(self, status: int, body: bytes) -> None:
        self._stop_timer()
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()
