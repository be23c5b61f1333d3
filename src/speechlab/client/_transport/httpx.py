"""The default wire: httpx2, or a transport of it from the user."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import suppress
from functools import partial
from types import coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from speechlab.client._transport.http import (
    KEEPALIVE_S,
    LibraryReply,
    RequestAttempt,
    Wire,
    build_connect_timeout_error,
    build_reply_timeout_error,
    check_port_not_taken,
    get_ssl_context,
    strip_traceback,
)
from speechlab.client._transport.wire_errors import WireError, build_unusable_proxy_error, find_proxy

if TYPE_CHECKING:
    import httpx2

    from speechlab.client._settings.settings import Settings

T = TypeVar("T")
# What the library says of a connection that ended before the head of a reply was whole.
_NO_REPLY = "Server disconnected without sending a response."


async def _iterate_upload(
    content: bytes | AsyncIterator[bytes], attempt: RequestAttempt
) -> AsyncIterator[bytes]:
    """Give the pieces of a body, and set the flag after the last one."""
    attempt.started = True
    if isinstance(content, bytes):
        yield content
    else:
        async for piece in content:
            yield piece
    attempt.record_progress()


@coroutine
def _await_and_collect_generators(
    generators: list[AsyncGenerator[Any, Any]], begin: Callable[[], Awaitable[T]]
) -> Generator[Any, Any, T]:
    """Start and await an object, and collect the asynchronous generators that start with it, the outermost first.

    The library nests its generators. At its end an event loop closes all generators it knows at once, an inner one
    possibly before the outer one is finished with it, which fails and prints a traceback. So they are hidden from the
    loop, and the collector closes them one after the other.
    """
    steps: Any = None

    def step() -> Any:
        nonlocal steps
        # The loop knows the outermost generator as soon as its first piece is requested.
        steps = begin().__await__()
        return steps.send(None)

    while True:
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(generators.append, hooks.finalizer)
        try:
            waits_for = step()
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            sys.set_asyncgen_hooks(*hooks)
        try:
            step = partial(steps.send, (yield waits_for))
        except BaseException as error:  # noqa: BLE001 - handed on to what is awaited
            step = partial(steps.throw, error)


class HttpxReply(LibraryReply):
    """A reply of httpx2."""

    def __init__(self, response: httpx2.Response, wire: HttpxWire, attempt: RequestAttempt) -> None:
        super().__init__(wire, attempt, {name.lower(): value for name, value in response.headers.items()})
        self._response = response
        self._body: AsyncIterator[bytes] | None = None
        self._generators: list[AsyncGenerator[Any, Any]] = []
        self.status = response.status_code
        if response.is_stream_consumed:  # by a transport of the user, which has unpacked it
            self._unpacker = None

    async def _read(self) -> bytes | None:
        if self._body is not None:
            return await anext(self._body, None)
        response = self._response
        # The stream of the library ends without closing, so that the connection can be looked at before it is reused.
        self._body = response.aiter_bytes() if response.is_stream_consumed else aiter(response.stream)  # type: ignore[arg-type]  # of an asynchronous transport
        return await _await_and_collect_generators(self._generators, partial(anext, self._body, None))

    async def close(self) -> None:
        for generator in self._generators:
            with suppress(Exception):  # a connection that breaks while closing is closed
                await generator.aclose()
        try:
            if not self._response.is_closed:
                await _give_up_surplus(self._response)
            await self._response.aclose()
        except Exception as error:  # noqa: BLE001 - a connection that breaks while closing is closed
            strip_traceback(error)


async def _give_up_surplus(response: httpx2.Response) -> None:
    """Let a connection with bytes behind its reply be closed: the next call would take them for its own."""
    stream: Any = response.stream
    try:
        protocol = stream._httpcore_stream._stream._connection._h11_state  # noqa: SLF001 - the library has no other way
        if protocol.trailing_data[0]:
            protocol.send_failed()
    except AttributeError:  # a transport of another kind, or another version of the library
        if (connection := response.extensions.get("network_stream")) is not None:
            await connection.aclose()


class HttpxWire(Wire):
    """A transport of httpx2. Its client is not used: its features would be switched off, or exist here already."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._extensions = {} if settings.lease is None else {"trace": self._check_connection_peer}
        if settings.transport is None or isinstance(settings.transport, str):
            import httpx2

            from speechlab.client._transport.early_replies import EarlyReplyTransport

            self.proxy = find_proxy(settings.base_url)
            verify = get_ssl_context() if settings.base_url.startswith("https:") else False
            # The scheduler limits the calls, so the pool must not: a wait there would count as a timeout.
            limits = httpx2.Limits(
                max_connections=None, max_keepalive_connections=64, keepalive_expiry=KEEPALIVE_S
            )
            try:
                self._transport: httpx2.AsyncBaseTransport = EarlyReplyTransport(
                    verify=verify, trust_env=False, limits=limits, proxy=self.proxy
                )
            except (ImportError, ValueError) as error:
                raise build_unusable_proxy_error(error) from None
        else:
            self._transport = settings.transport

    async def _check_connection_peer(self, event: str, facts: dict[str, Any]) -> None:
        """Look at the peer of a new connection before anything is sent to it."""
        if event == "connection.connect_tcp.complete":
            try:
                check_port_not_taken(self._settings)
            except WireError:
                await facts["return_value"].aclose()
                raise

    @staticmethod
    def parse_url(url: str) -> httpx2.URL:
        import httpx2

        return httpx2.URL(url)

    async def _send_request(
        self, attempt: RequestAttempt, url: httpx2.URL, headers: dict[str, str]
    ) -> LibraryReply:
        import httpx2

        call = attempt.call
        waits = {
            "connect": attempt.connect_s,
            "read": attempt.read_s,
            "write": call.timeouts.write,
            "pool": None,
        }
        request = httpx2.Request(
            call.method,
            url,
            headers=headers,
            content=None if call.body is None else _iterate_upload(call.body.open(), attempt),
            extensions={"timeout": waits, **self._extensions},
        )
        return HttpxReply(await self._transport.handle_async_request(request), self, attempt)

    def to_wire_error(self, error: Exception, attempt: RequestAttempt, *, reading: bool = False) -> WireError:
        import httpx2

        if isinstance(error, httpx2.ConnectTimeout):
            return build_connect_timeout_error(attempt, self.proxy)
        if isinstance(error, (httpx2.TimeoutException, TimeoutError)):
            return build_reply_timeout_error(
                attempt, reading=reading, taking=isinstance(error, httpx2.WriteTimeout)
            )
        text, status = str(error), None
        if isinstance(error, httpx2.ProxyError):  # its message starts with the status
            code = text.partition(" ")[0]
            status = int(code) if code.isdecimal() and len(code) == 3 else 0
        connecting = isinstance(error, (httpx2.ProxyError, httpx2.ConnectError))
        malformed = isinstance(error, httpx2.RemoteProtocolError) and text != _NO_REPLY
        sent = reading or attempt.sent
        failure = self._build_connection_error(error, text, sent=sent, connecting=connecting, status=status)
        failure.final |= malformed and attempt.is_counted
        return failure

    async def close(self) -> None:
        await super().close()
        await self._transport.aclose()
