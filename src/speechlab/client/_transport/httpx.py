"""The default wire: httpx2, or a transport of it from the user."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from types import coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from speechlab.client._secret import redact
from speechlab.client._transport.http import (
    KEEPALIVE_S,
    Reply,
    Wire,
    WireError,
    broken_proxy,
    environment_proxy,
    is_untrusted,
    no_connection,
    nothing_came,
    shared_ssl_context,
    unusable_proxy,
    without_trace,
)
from speechlab.errors import SpeechLabError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator

    import httpx2

    from speechlab.client._operations.call import HttpCall, Timeouts
    from speechlab.client._settings.settings import Settings
    from speechlab.client._transport.http import Sent

T = TypeVar("T")


async def _upload(content: bytes | AsyncIterator[bytes], sent: Sent) -> AsyncIterator[bytes]:
    """Give the pieces of a body, and set the flag after the last one."""
    if isinstance(content, bytes):
        yield content
    else:
        async for piece in content:
            yield piece
    sent.progressed()


@coroutine
def _collecting(
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


class HttpxReply(Reply):
    """A reply of httpx2."""

    def __init__(self, response: httpx2.Response, wire: HttpxWire, limits: Timeouts) -> None:
        self._response = response
        self._limits = limits
        self._wire = wire
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it arrives."""
        body = self._response.aiter_bytes()
        generators: list[AsyncGenerator[Any, Any]] = []
        first = True
        failure: WireError | None = None
        while failure is None:
            try:
                coming = partial(anext, body, None)
                piece = await (_collecting(generators, coming) if first else coming())
                first = False
            except Exception as error:  # noqa: BLE001 - translated outside the block, to leave no context
                failure = self._wire.translated(error, self._limits, sent=True, cut=True)
            except BaseException as error:  # noqa: BLE001 - a cancellation, raised again without its frames
                raise without_trace(error)  # noqa: B904 - the cause was removed on purpose
            else:
                if piece is None:
                    self.ended = True
                    return
                try:
                    yield piece
                except GeneratorExit:
                    for generator in generators:
                        with suppress(Exception):  # a connection that breaks while closing is closed
                            await generator.aclose()
                    raise
        raise failure

    async def close(self) -> None:
        """Close the connection, or return it to the pool if the body was read completely."""
        try:
            await self._response.aclose()
        except Exception as error:  # noqa: BLE001 - a connection that breaks while closing is closed
            without_trace(error)


class HttpxWire(Wire):
    """A transport of httpx2. Its client is not used: its features would be switched off, or exist here already."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._proxy: str | None = None
        if settings.transport is None or isinstance(settings.transport, str):
            self._proxy = environment_proxy(settings.base_url)
            self._transport = _transport(settings.base_url, self._proxy)
        else:
            self._transport = settings.transport

    async def open(self, call: HttpCall, sent: Sent, connect_s: float, read_s: float | None) -> Reply:
        """Send a request, and wait for the headers of the reply."""
        request = self._request(call, sent, connect_s, read_s)
        failure: Exception
        try:
            response = await self._transport.handle_async_request(request)
        except SpeechLabError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - translated outside the block, to leave no context
            failure = self.translated(error, call.timeouts, sent=sent.done, connect_s=connect_s)
        except BaseException as error:  # noqa: BLE001 - a cancellation, raised again without its frames
            raise without_trace(error)  # noqa: B904 - the cause was removed on purpose
        else:
            reply = HttpxReply(response, self, call.timeouts)
            self.replies.add(reply)
            if reply.status != 407 or self._proxy is None:
                return reply
            await reply.close()
            failure = broken_proxy(self._proxy, "407", 407)
        raise without_trace(failure)

    def _request(self, call: HttpCall, sent: Sent, connect_s: float, read_s: float | None) -> httpx2.Request:
        import httpx2

        limits = call.timeouts
        waits = {"connect": connect_s, "read": read_s, "write": limits.write, "pool": None}
        return httpx2.Request(
            call.method,
            self._url(call.path, httpx2.URL),
            headers=self._headers(call),
            content=None if call.body is None else _upload(call.body.open(), sent),
            extensions={"timeout": waits},
        )

    def translated(
        self, error: Exception, limits: Timeouts, *, sent: bool, cut: bool = False, connect_s: float = 0.0
    ) -> WireError:
        """The failure for an exception of the library."""
        import httpx2

        if isinstance(error, httpx2.ConnectTimeout):
            return no_connection(connect_s, proxy=self._proxy)
        if isinstance(error, (httpx2.TimeoutException, TimeoutError)):
            taking = isinstance(error, httpx2.WriteTimeout)
            within_s = limits.write if taking else limits.read
            return nothing_came(within_s, sent=sent, cut=cut, taking=taking)
        text = redact(str(error)).strip() or type(error).__name__
        if self._proxy is not None and not is_untrusted(text):
            if isinstance(error, httpx2.ConnectError):
                return broken_proxy(self._proxy, text)
            if isinstance(error, httpx2.ProxyError):  # its message starts with the status
                status = text.partition(" ")[0]
                return broken_proxy(self._proxy, text, int(status) if status.isdecimal() else 0)
        return WireError(text, sent=sent, timed_out=False, cut=cut)

    async def close(self) -> None:
        """Close all connections."""
        await super().close()
        await self._transport.aclose()


def _transport(base_url: str, proxy: str | None) -> httpx2.AsyncBaseTransport:
    import httpx2

    verify = shared_ssl_context() if base_url.startswith("https:") else False
    # The scheduler limits the calls, so the pool must not: a wait there would count as a timeout.
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=KEEPALIVE_S)
    try:
        return httpx2.AsyncHTTPTransport(verify=verify, trust_env=False, limits=limits, proxy=proxy)
    except (ImportError, ValueError) as error:
        raise unusable_proxy(error) from None
