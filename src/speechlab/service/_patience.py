"""uvicorn's HTTP protocol with an end to its patience: the head of a request has to come in time.

uvicorn waits for ever for a head that comes a byte at a time, or not at all; enough such connections take all files
that a process may open. (Bodies have their own limits, where they are read.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from speechlab.service._faults import Fault

if TYPE_CHECKING:
    import asyncio

__all__ = ["PatientProtocol"]


class PatientProtocol(HttpToolsProtocol):
    """One HTTP connection.

    Args:
        header_timeout_s: How long the head of a request may take, counted from the connection or its first byte.
    """

    def __init__(self, *args: Any, header_timeout_s: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._header_timeout_s = header_timeout_s
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

    def on_message_begin(self) -> None:
        """The first byte of a request came."""
        super().on_message_begin()
        self._begun = True
        if self._patience is None:
            self._wait()

    def on_headers_complete(self) -> None:
        """The head is complete; also that of a handshake, whose protocol takes over."""
        self._begun = False
        self._stop_waiting()
        super().on_headers_complete()

    def _should_upgrade(self) -> bool:
        # RFC 6455 asks for HTTP/1.1; an older handshake is answered like any request that is none.
        return self.parser.get_http_version() == "1.1" and super()._should_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, in the form of all other errors."""
        self._answer(Fault("ErrInvalidRequest", f"{msg} Send HTTP/1.1.", "router", "http"))

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
        self._stop_waiting()
        body = orjson.dumps(fault.body())
        head = (
            f"HTTP/1.1 {fault.status} {_REASONS[fault.status]}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()


_REASONS = {400: "Bad Request", 408: "Request Timeout"}
