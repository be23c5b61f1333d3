"""The wire on aiohttp, for ``transport="aiohttp"``: a third of the default wire's CPU; imported on demand.

It follows the rules of the default wire: no cookies, redirections or retries, and as many connections as there are
calls. Clients, streams, loops and forks that are left unclosed cause no warnings.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
import weakref
from asyncio.trsock import TransportSocket
from contextlib import aclosing, suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.payload import Payload
from yarl import URL

from speechlab.client._closable import close_soon
from speechlab.client._transport.http import (
    CLOSED_IN_HEAD,
    HEAD_END,
    KEEPALIVE_S,
    LibraryReply,
    RequestAttempt,
    Wire,
    build_connect_timeout_error,
    build_reply_timeout_error,
    check_port_not_taken,
    get_ssl_context,
)
from speechlab.client._transport.wire_errors import (
    WireError,
    build_unusable_proxy_error,
    find_proxy,
    format_proxy,
)
from speechlab.errors import ConfigurationError, SpeechLabError

if TYPE_CHECKING:
    import socket

    from aiohttp.abc import AbstractStreamWriter

    from speechlab.client._operations.call import Body
    from speechlab.client._settings.settings import Settings

# Bytes passed to the network at once, and the maximum buffered for an unread reply.
_SLICE = 1 << 18
# Bytes that the library accepts without waiting for the network.
_AT_ONCE = 1 << 15
# Bytes of a header's line, which the other wire accepts, too; the library's limit of 8 KiB is too low for gateways.
_HEADER_LINE = 1 << 16
# Interim replies in one packet, more than any service sends.
_HEADS = 16


class _Upload(Payload):
    """A body sent in pieces, with a timeout for each."""

    _autoclose = True

    def __init__(self, body: Body, attempt: RequestAttempt) -> None:
        super().__init__(body, content_type=body.content_type)
        self._body = body
        self._size = body.length
        self._attempt = attempt
        self.failure: SpeechLabError | None = None
        """The reason why the body could not be made, if any."""

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:  # noqa: ARG002 - aiohttp's signature
        """Return an empty text: the body is never shown."""
        return ""

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Send the whole body."""
        content = self._body.open()
        self._attempt.started = True
        try:
            if isinstance(content, bytes) and len(content) <= _AT_ONCE:
                await writer.write(content)
            elif isinstance(content, bytes):
                view = memoryview(content)
                for start in range(0, len(content), _SLICE):
                    await self._write_piece(writer, view[start : start + _SLICE])
            else:
                async with aclosing(content) as pieces:  # type: ignore[type-var]  # what is not bytes is an async generator
                    async for piece in pieces:
                        await self._write_piece(writer, piece)
        except SpeechLabError as error:
            self.failure = error
            raise
        self._attempt.record_progress()

    async def _write_piece(self, writer: AbstractStreamWriter, piece: bytes | memoryview) -> None:
        async with asyncio.timeout(self._attempt.call.timeouts.write):
            await writer.write(piece)


class AiohttpReply(LibraryReply):
    """A reply of aiohttp."""

    def __init__(self, response: aiohttp.ClientResponse, wire: AiohttpWire, attempt: RequestAttempt) -> None:
        headers: dict[str, str] = {}
        for name, value in response.headers.items():
            earlier = headers.get(name := name.lower())
            headers[name] = value if earlier is None else f"{earlier}, {value}"
        super().__init__(wire, attempt, headers)
        self._response = response
        self.status = response.status

    async def _read(self) -> bytes | None:
        content = self._response.content
        try:
            return await content.readany() or None
        except aiohttp.ClientError:
            # The library hides what came just before the connection broke; the next read raises again.
            if came := content._read_nowait(-1):  # noqa: SLF001 - its public reads raise
                return came
            raise

    async def close(self) -> None:
        self._response.close()


class AiohttpWire(Wire):
    """A session of aiohttp."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.proxy = find_proxy(settings.base_url)
        self._proxy_headers, self._proxy_options = _build_proxy_options(self.proxy, settings.base_url)
        self._loop = asyncio.get_running_loop()
        self._session = _open_session(settings)
        self._let_go = weakref.finalize(self, _release_session, self._session, self._loop, os.getpid())

    @staticmethod
    def parse_url(url: str) -> URL:
        return URL(url, encoded=True)

    async def _send_request(self, attempt: RequestAttempt, url: URL, headers: dict[str, str]) -> LibraryReply:
        call = attempt.call
        upload = None if call.body is None else _Upload(call.body, attempt)
        try:
            response = await self._session.request(
                call.method,
                url,
                data=upload,
                headers=headers | self._proxy_headers,
                timeout=_build_timeout(attempt.connect_s, attempt.read_s),
                allow_redirects=False,
                **self._proxy_options,
            )
        except Exception:
            if upload is not None and upload.failure is not None:
                raise upload.failure from None
            raise
        return AiohttpReply(response, self, attempt)

    def to_wire_error(self, error: Exception, attempt: RequestAttempt, *, reading: bool = False) -> WireError:
        sent = reading or attempt.sent
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return build_connect_timeout_error(attempt, self.proxy)
        if isinstance(error, TimeoutError):
            waits = sent or isinstance(error, aiohttp.ServerTimeoutError)
            return build_reply_timeout_error(attempt, reading=reading, taking=not waits)
        text, status = _describe_error(error), None
        if isinstance(error, aiohttp.ClientHttpProxyError):
            text, status = f"{error.status} {text}", error.status
        connecting = isinstance(error, (aiohttp.ClientHttpProxyError, aiohttp.ClientConnectorError))
        malformed = not connecting and isinstance(error, aiohttp.ClientResponseError)
        failure = self._build_connection_error(error, text, sent=sent, connecting=connecting, status=status)
        failure.final |= malformed and attempt.is_counted
        return failure

    async def close(self) -> None:
        await super().close()
        self._let_go.detach()
        await self._session.close()


def _describe_error(error: Exception) -> str:
    """Return the message of an exception, without the addresses and objects that the library adds."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection was closed without a reply"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the connection was closed before the reply was whole"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        error = error.certificate_error
    elif isinstance(error, aiohttp.ClientConnectorError):
        error = error.os_error
    text = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    return text.strip() or type(error).__name__


@lru_cache(maxsize=64)
def _build_timeout(connect_s: float, read_s: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(connect=connect_s, sock_read=read_s, ceil_threshold=float("inf"))


class _ReplyConnection(ResponseHandler):
    """A connection whose replies go to the calls that they belong to, whatever the service sends behind them."""

    _in_head = False
    """Whether the head of a reply has begun, and is not whole."""

    def data_received(self, data: bytes) -> None:
        # A packet with bytes behind the end of a reply fails as a whole: the reply's head has to be there before.
        for _ in range(_HEADS):
            if not data or (self._payload is not None and not self._payload.is_eof()):
                break
            head = HEAD_END.search(data)
            self._in_head = head is None
            if head is None or head.end() == len(data) or self.exception() is not None:
                break
            super().data_received(data[: head.end()])
            data = data[head.end() :]
        super().data_received(data)

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        if isinstance(exc, OSError):
            self._read_unread()
        super().set_exception(exc, *cause)

    def connection_lost(self, exc: BaseException | None) -> None:
        if exc is not None:
            self._read_unread()
        if self._in_head:  # the library says that there is no reply
            self.set_exception(HttpProcessingError(message=CLOSED_IN_HEAD))
        super().connection_lost(exc)

    def _read_unread(self) -> None:
        """Read what arrived before writing failed, such as a refusal: the loop closes the connection unread."""
        transport = self.transport
        if (
            transport is None
            or not transport.is_closing()
            or transport.get_extra_info("sslcontext") is not None
        ):
            return
        connection = transport.get_extra_info("socket")
        if not isinstance(
            connection, TransportSocket
        ):  # a number of other loops may be another file's by now
            return
        with suppress(OSError), connection.dup() as unread:
            while not self._reading_paused and (data := unread.recv(_SLICE)):
                self.data_received(data)

    def is_connected(self) -> bool:
        """Return whether a request can be sent: what came before it is no reply to it, but a surplus, or an end."""
        transport = self.transport
        if transport is None or transport.is_closing() or self.should_close or self._in_head:
            return False
        # The loop may not have read it yet: it stands still between the cells of a notebook.
        connection = transport.get_extra_info("socket")
        return connection is None or not _is_readable(connection)


def _is_readable(connection: socket.socket) -> bool:
    """Return whether a socket has something to read, or an end."""
    if sys.platform == "win32":
        return bool(select.select([connection], [], [], 0)[0])
    poll = select.poll()  # select knows the first 1,024 files alone
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


class _Connector(aiohttp.TCPConnector):
    """A connector that looks at the peer of a new connection, and does not warn of unclosed ones."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(**options)
        self._settings = settings
        self._factory = partial(_ReplyConnection, loop=self._loop)  # type: ignore[assignment]  # partial is invariant

    async def _create_connection(self, *arguments: Any) -> ResponseHandler:
        connection = await super()._create_connection(*arguments)
        try:
            check_port_not_taken(self._settings)
        except WireError:
            connection.close()
            raise
        return connection

    def __del__(self) -> None:  # type: ignore[override]  # aiohttp's stubs add an argument
        pass


class _Response(aiohttp.ClientResponse):
    """A response that does not use a closed loop, or the loop of the parent process after a fork."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._pid = os.getpid()

    def __del__(self) -> None:  # type: ignore[override]  # aiohttp's stubs add an argument
        if self._pid == os.getpid() and not self._loop.is_closed():
            super().__del__()


def _open_session(settings: Settings) -> aiohttp.ClientSession:
    connector = _Connector(
        settings,
        limit=0,  # the scheduler limits the calls
        keepalive_timeout=KEEPALIVE_S,
        ssl=get_ssl_context() if settings.base_url.startswith("https:") else True,
        resolver=aiohttp.ThreadedResolver(),
    )
    session = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        read_bufsize=_SLICE,
        max_line_size=_HEADER_LINE,
        max_field_size=_HEADER_LINE,
        response_class=_Response,
    )
    session._retry_connection = False  # noqa: SLF001 - otherwise it retries a GET by itself
    return session


def _build_proxy_options(proxy: str | None, base_url: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Headers and options of requests through a proxy, whose user and password become a header."""
    if proxy is None:
        return {}, {}
    url = urlsplit(proxy)
    if url.scheme not in {"http", "https"} or not url.hostname:
        raise ConfigurationError(
            f'the proxy of the environment, {format_proxy(proxy)}, cannot be used by transport="aiohttp", which '
            "supports HTTP proxies alone; leave transport out, or list the service in NO_PROXY"
        )
    try:
        options: dict[str, Any] = {"proxy": URL(format_proxy(proxy))}
    except ValueError as error:
        raise build_unusable_proxy_error(error) from None
    if url.username is None:
        return {}, options
    user, password = unquote(url.username), unquote(url.password or "")
    credentials = {"Proxy-Authorization": aiohttp.encode_basic_auth(user, password)}
    if base_url.startswith("https:"):  # the proxy sees only the request for a tunnel
        return {}, {**options, "proxy_headers": credentials}
    return credentials, options


def _release_session(session: aiohttp.ClientSession, loop: asyncio.AbstractEventLoop, pid: int) -> None:
    """Release an unclosed session."""
    if pid == os.getpid() and loop.is_running() and loop is not _get_running_loop():
        # At the end of a program another thread may be in a call with this session: its loop closes it.
        close_soon(loop, pid, session.close)
        return
    connector = session.connector
    session.detach()  # no warnings from now on
    # A closed loop, or the parent's loop after a fork, must not be used.
    if connector is not None and loop.is_running():
        close_soon(loop, pid, connector.close)


def _get_running_loop() -> asyncio.AbstractEventLoop | None:
    with suppress(RuntimeError):
        return asyncio.get_running_loop()
    return None
