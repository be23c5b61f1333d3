"""The connections of a client, bound to an event loop and a process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet

from speechlab._require import require
from speechlab.client._settings.settings import AIOHTTP, Settings
from speechlab.client._systems.functions import FunctionSystem
from speechlab.client._transport.adapted import AdaptedWire, FunctionWire
from speechlab.client._transport.http import Wire, find_proxy
from speechlab.client._transport.httpx import HttpxWire
from speechlab.errors import ConfigurationError

if TYPE_CHECKING:
    from speechlab.client._closable import AsyncClosable

T = TypeVar("T")

# Pools that have been used.
_bound: WeakSet[ConnectionPool] = WeakSet()


class ConnectionPool:
    """The HTTP connections of a client, made on first use and bound to the event loop of that use."""

    def __init__(self) -> None:
        self._wires: dict[bool, Wire] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0
        self.closed = False
        self.concurrency = ""
        """The numbers of calls that the service works on at once, as it last said."""
        self.sessions: WeakSet[AsyncClosable] = WeakSet()
        """Open realtime sessions and streams, which end with their client; unreferenced ones are not kept alive."""
        self._waits: set[asyncio.Timeout] = set()

    def get_wire(self, settings: Settings, *, many: bool = False) -> Wire:
        """Return the wire for the running loop."""
        self.bind_to_loop()
        if many not in self._wires:
            self._wires[many] = _build_wire(settings, many=many)
        return self._wires[many]

    def bind_to_loop(self) -> None:
        """Bind to the running loop, or check that it is the bound one."""
        loop = asyncio.get_running_loop()
        if self.closed:
            raise _build_closed_error()
        if self._loop is None or self._pid != os.getpid() or self._loop.is_closed():
            # Sockets of a closed loop, or of the parent process after a fork, cannot be used here.
            self._wires, self._loop, self._pid = {}, loop, os.getpid()
            self.sessions.clear()
            self._waits.clear()
            _bound.add(self)
        elif self._loop is not loop:
            raise ConfigurationError(
                "this AsyncClient belongs to another event loop, the one of its first call (a widget callback or "
                "asyncio.run has a loop of its own); make one AsyncClient for each loop, or use Client, which "
                "works from every thread and inside a running loop"
            )

    async def wait_while_open(self, wait: Callable[[], Awaitable[T]]) -> T:
        """Wait for a result until the client is closed."""
        self.bind_to_loop()
        try:
            async with asyncio.timeout(None) as until:
                self._waits.add(until)
                try:
                    return await wait()
                finally:
                    self._waits.discard(until)
        except TimeoutError:
            if not self.closed:
                raise
        raise _build_closed_error()

    @property
    def is_on_own_loop(self) -> bool:
        """Whether the running loop is the bound one."""
        return self._pid == os.getpid() and self._loop is asyncio.get_running_loop()

    async def close(self) -> None:
        """Close the pool permanently."""
        self.closed = True
        if self.is_on_own_loop:
            waits, self._waits = self._waits, set()
            for until in waits:
                until.reschedule(0.0)
            for session in tuple(self.sessions):
                await session.aclose()
        wires, self._wires = self._wires, {}
        for wire in wires.values() if self.is_on_own_loop else ():
            await wire.close()


def _build_closed_error() -> ConfigurationError:
    return ConfigurationError("this client is closed; make a new one")


async def close_pools_of_running_loop() -> None:
    """Close all that is still open on the running loop, which is about to end."""
    for pool in tuple(_bound):
        if pool.is_on_own_loop and not pool.closed:
            await pool.close()


def _build_wire(settings: Settings, *, many: bool) -> Wire:
    if isinstance(settings.adapter, FunctionSystem):
        return FunctionWire(settings, settings.adapter)
    fast = settings.transport == AIOHTTP
    if many and settings.transport is None and find_spec("aiohttp") is not None:
        proxy = find_proxy(settings.base_url)
        fast = proxy is None or proxy.startswith(("http:", "https:"))  # SOCKS is not known to it
    wire: Wire
    if fast:
        require("aiohttp")
        from speechlab.client._transport.aiohttp import AiohttpWire

        wire = AiohttpWire(settings)
    else:
        wire = HttpxWire(settings)
    return wire if settings.adapter is None else AdaptedWire(settings, wire, settings.adapter)
