"""The default wire: httpx2, or a transport of it from the user."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from types import coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from speechlab.client._transport.http import (
    KEEPALIVE_S,
    environment_proxy,
    shared_ssl_context,
    unusable_proxy,
    without_trace,
)
from speechlab.client._transport.library import LibraryReply, LibraryWire, WireFault

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator

    import httpx2

    from speechlab.client._operations.call import HttpCall, Timeouts
    from speechlab.client._settings.settings import Settings
    from speechlab.client._transport.http import Reply, Sent

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


class HttpxReply(LibraryReply):
    """A reply of httpx2."""

    def __init__(self, response: httpx2.Response, wire: HttpxWire, limits: Timeouts) -> None:
        super().__init__(wire, limits)
        self._response = response
        self._body: AsyncIterator[bytes] | None = None
        self._generators: list[AsyncGenerator[Any, Any]] = []
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}

    async def _next(self) -> bytes | None:
        if self._body is not None:
            return await anext(self._body, None)
        self._body = self._response.aiter_bytes()
        return await _collecting(self._generators, partial(anext, self._body, None))

    async def _left(self) -> None:
        for generator in self._generators:
            with suppress(Exception):  # a connection that breaks while closing is closed
                await generator.aclose()

    async def close(self) -> None:
        try:
            await self._response.aclose()
        except Exception as error:  # noqa: BLE001 - a connection that breaks while closing is closed
            without_trace(error)


class HttpxWire(LibraryWire):
    """A transport of httpx2. Its client is not used: its features would be switched off, or exist here already."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        if settings.transport is None or isinstance(settings.transport, str):
            self.proxy = environment_proxy(settings.base_url)
            self._transport = _transport(settings.base_url, self.proxy)
        else:
            self._transport = settings.transport

    async def _reply(self, call: HttpCall, sent: Sent, connect_s: float, read_s: float | None) -> Reply:
        import httpx2

        waits = {"connect": connect_s, "read": read_s, "write": call.timeouts.write, "pool": None}
        request = httpx2.Request(
            call.method,
            self._url(call.path, httpx2.URL),
            headers=self._headers(call),
            content=None if call.body is None else _upload(call.body.open(), sent),
            extensions={"timeout": waits},
        )
        return HttpxReply(await self._transport.handle_async_request(request), self, call.timeouts)

    def _fault(self, error: Exception, *, sent: bool) -> tuple[WireFault, str, int | None]:  # noqa: ARG002 - aiohttp needs it
        import httpx2

        if isinstance(error, httpx2.ConnectTimeout):
            return WireFault.NO_CONNECTION, "", None
        if isinstance(error, (httpx2.TimeoutException, TimeoutError)):
            return (
                WireFault.NOT_TAKEN if isinstance(error, httpx2.WriteTimeout) else WireFault.SILENT,
                "",
                None,
            )
        text = str(error)
        if isinstance(error, httpx2.ProxyError):  # its message starts with the status
            status = text.partition(" ")[0]
            return WireFault.PROXY, text, int(status) if status.isdecimal() else 0
        return WireFault.PROXY if isinstance(error, httpx2.ConnectError) else WireFault.OTHER, text, None

    async def close(self) -> None:
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
