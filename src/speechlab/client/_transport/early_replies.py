"""A transport of httpx2 for services that answer early, or more than once.

A service that refuses the length of a body closes the connection, whose writing then fails, and its answer would be
lost: httpx2 reads only once all is written. So it is read while large pieces are written. And what has come before a
request is sent is no reply to it, so that such a connection is not used. This module is imported on demand.
"""

from __future__ import annotations

import asyncio
import re
from asyncio.trsock import TransportSocket
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import httpcore2
import httpx2

from speechlab.client._transport.http import CLOSED_IN_HEAD, HEAD_END

if TYPE_CHECKING:
    import socket
    import ssl

_LARGE = 1 << 16
"""Bytes that networks accept at once in most cases."""
_READ = 1 << 16
_MOST_EARLY = 1 << 20
_GRACE_S = 0.1
"""Seconds for an answer that has arrived to be read."""
_TURNS = 4
"""Turns of the event loop after which what lies in buffers has been read."""
_INTERIM = re.compile(rb"HTTP/1\.\d 1\d\d.*?\r\n\r\n", re.DOTALL)
_INTERIM_START = re.compile(rb"HTTP/1\.\d 1")


class EarlyReplyTransport(httpx2.AsyncHTTPTransport):
    """The transport, whose connections read while they write."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        pool = self._pool
        pool._network_backend = _Backend(pool._network_backend)  # noqa: SLF001 - the library passes none on


class _Backend(httpcore2.AsyncNetworkBackend):
    def __init__(self, backend: httpcore2.AsyncNetworkBackend) -> None:
        self._backend = backend

    async def connect_tcp(self, *args: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        return _EarlyReadStream(await self._backend.connect_tcp(*args, **options))

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's interface
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        return _EarlyReadStream(await self._backend.connect_unix_socket(path, timeout, socket_options))

    async def sleep(self, seconds: float) -> None:
        await self._backend.sleep(seconds)


class _EarlyReadStream(httpcore2.AsyncNetworkStream):
    """A connection that reads while it writes a large piece, and stops writing once a final reply comes."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._early = b""
        self._in_head = False
        """Whether a reply is expected, and its head not whole."""
        self._answered = False
        """Whether something was read since the last request, so that the next writing begins another one."""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - as above
        if self._early:
            data, self._early = self._early[:max_bytes], self._early[max_bytes:]
        else:
            data = await self._stream.read(max_bytes, timeout)
        while data and not self._answered and not (data := data.lstrip(b"\r\n")):  # sent late, behind a reply
            data = await self._stream.read(max_bytes, timeout)
        if self._in_head:
            if not data and self._answered:
                raise httpcore2.RemoteProtocolError(CLOSED_IN_HEAD)  # the library says that there is no reply
            self._in_head = HEAD_END.search(data) is None
        self._answered = True
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as above
        if self._answered:
            if await self._has_surplus():
                raise httpcore2.ConnectionNotAvailable  # the pool takes another connection
            self._answered = False
        self._in_head = True
        connection = self._get_plain_socket()
        if connection is None or (unread := _duplicate_socket(connection)) is None:
            await self._write_piece(buffer, timeout)
            return
        with unread:
            failure = httpcore2.WriteError("the connection was closed while the request was sent")
            try:
                await self._write_piece(buffer, timeout)
            except httpcore2.WriteError as error:
                failure = error
            else:
                if connection.fileno() != -1:
                    return
                # The library reports that with the next piece.
            if connection.fileno() == -1:
                await self._read_unread(unread)
            raise failure

    def _get_plain_socket(self) -> TransportSocket | None:
        """Return the socket of an open connection without TLS, on a loop of asyncio."""
        connection = self._stream.get_extra_info("socket")
        if self._stream.get_extra_info("ssl_object") or not isinstance(connection, TransportSocket):
            return None
        return None if connection.fileno() == -1 else connection

    async def _write_piece(self, buffer: bytes, timeout: float | None) -> None:  # noqa: ASYNC109 - as above
        """Write, and stop once a final reply comes."""
        if len(buffer) < _LARGE:
            await self._stream.write(buffer, timeout)
            return
        reading = asyncio.ensure_future(self._read_early())
        writing: asyncio.Future[None] | None = None
        try:
            if self._stream.get_extra_info("is_readable"):
                await asyncio.wait({reading}, timeout=_GRACE_S)
            while True:
                if reading.done():
                    if reading.exception() is not None or not reading.result() or self._has_final_reply():
                        raise httpcore2.WriteError("the service answered before it had the whole request")
                    reading = asyncio.ensure_future(self._read_early())  # behind an interim reply
                writing = writing or asyncio.ensure_future(self._stream.write(buffer, timeout))
                await asyncio.wait(
                    cast("set[asyncio.Future[Any]]", {reading, writing}), return_when=asyncio.FIRST_COMPLETED
                )
                if writing.done():
                    if writing.exception() is not None:
                        await asyncio.wait({reading}, timeout=_GRACE_S)
                    writing.result()
                    return
        finally:
            await _end_tasks(reading, writing)

    async def _read_unread(self, unread: socket.socket) -> None:
        """Keep what came before writing failed, such as a refusal: the loop closed the connection unread."""
        with suppress(httpcore2.ReadError):
            while await self._read_early():
                pass
        with suppress(OSError):
            while len(self._early) < _MOST_EARLY and (data := unread.recv(_READ)):
                self._early += data

    async def _has_surplus(self) -> bool:
        """Return whether something came that nobody asked for, such as a second reply, or an end."""
        if self._early:
            return True
        # Not all of it can be seen at the socket: layers below have buffers, TLS one of its own.
        reading = asyncio.ensure_future(self._stream.read(1))
        try:
            for _ in range(_TURNS):
                await asyncio.sleep(0)
                if reading.done():
                    return True
            return False
        finally:
            await _end_tasks(reading)

    async def _read_early(self) -> bytes:
        """Read, and keep what comes for the next reader."""
        data = await self._stream.read(_READ)
        self._early += data
        if len(self._early) > _MOST_EARLY:
            raise httpcore2.WriteError("the service sends interim replies without end")
        return data

    def _has_final_reply(self) -> bool:
        """Return whether what came is more than interim replies."""
        rest = self._early
        while interim := _INTERIM.match(rest):
            rest = rest[interim.end() :]
        return bool(rest) and _INTERIM_START.match(rest) is None

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> httpcore2.AsyncNetworkStream:
        return _EarlyReadStream(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _duplicate_socket(connection: TransportSocket) -> socket.socket | None:
    """Return another handle of a connection, which outlives it; None if the process has none left."""
    with suppress(OSError):
        return connection.dup()
    return None


async def _end_tasks(*tasks: asyncio.Future[Any] | None) -> None:
    """Cancel what still runs, and look at the rest, so that the loop does not report their errors."""
    running = {task for task in tasks if task is not None}
    for task in running:
        task.cancel()
    await asyncio.wait(running)
    for task in running:
        if not task.cancelled():
            task.exception()
