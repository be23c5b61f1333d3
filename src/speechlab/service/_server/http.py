"""uvicorn's HTTP protocol with an end to its patience: the head of a request has to come in time, and to be short.

uvicorn waits for ever for a head that comes a byte at a time, or not at all; enough such connections take all files
that a process may open. And it keeps a head however long it is, before anybody asked for a key. (Bodies have their
own limits, where they are read.)
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from speechlab.contract import REALTIME_PATH
from speechlab.service._faults import Fault
from speechlab.service._refusals import Refused

if TYPE_CHECKING:
    import asyncio


class PatientProtocol(HttpToolsProtocol):
    """One HTTP connection.

    Args:
        header_timeout_s: How long the head of a request may take, counted from the connection or its first byte.
        header_bytes: How long it may be: its URL and headers, and the headers after a body in chunks.
    """

    def __init__(self, *args: Any, header_timeout_s: float, header_bytes: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self._header_timeout_s = header_timeout_s
        self._header_bytes = header_bytes
        self._head_bytes = 0  # of the URL and the headers that are complete
        self._partial_bytes = 0  # of a head that is not complete, its last line included
        self._unread_bytes = 0  # since the parser told of something, such as of a header after a body
        self._starts_with_next = 0  # what came of a request that begins where this data begins
        self._idle = True
        self._too_long = False
        self._patience: asyncio.TimerHandle | None = None
        self._begun = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read, unless it is more of a head than there may be."""
        self._unread_bytes += len(data)
        self._partial_bytes += len(data)
        self._starts_with_next = len(data) if self._idle else 0
        super().data_received(data)
        waiting = max(self._unread_bytes, self._partial_bytes if self._begun else 0)
        if waiting > self._header_bytes and not self.transport.is_closing():
            self._refuse_head()

    def on_url(self, url: bytes) -> None:
        """A part of the URL came."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header came."""
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """A part of a body came."""
        self._unread_bytes = 0
        super().on_body(body)

    def on_message_begin(self) -> None:
        """The first byte of a request came."""
        super().on_message_begin()
        self._partial_bytes, self._starts_with_next = self._starts_with_next, 0
        self._head_bytes = self._unread_bytes = 0
        self._idle = False
        self._begun = True
        if self._patience is None:
            self._wait()

    def on_message_complete(self) -> None:
        """The request is complete."""
        self._idle = True
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        """The head is complete; also that of a handshake, whose protocol takes over."""
        self._begun = False
        self._unread_bytes = 0
        self._stop_waiting()
        super().on_headers_complete()

    def _should_upgrade(self) -> bool:
        # RFC 6455 asks for HTTP/1.1; an older handshake is answered like any request that is none.
        return self.parser.get_http_version() == "1.1" and super()._should_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, in the form of all other errors."""
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
            refused = Refused.not_upgraded(message)
            self._write(refused.status, refused.body())
        else:
            self._answer(Fault("ErrHeadTooLarge", message, "router", "head"))

    def _wait(self) -> None:
        self._patience = self.loop.call_later(self._header_timeout_s, self._out_of_patience)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _out_of_patience(self) -> None:
        self._patience = None
        if self.transport.is_closing():
            return
        if self._begun:
            message = f"the head of the request did not come within {self._header_timeout_s:g} seconds"
            self._answer(Fault("ErrRequestTimeout", message, "router", "head"))
        else:
            self.transport.close()

    def _answer(self, fault: Fault) -> None:
        self._write(fault.status, orjson.dumps(fault.body()))

    def _write(self, status: int, body: bytes) -> None:
        self._stop_waiting()
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()
