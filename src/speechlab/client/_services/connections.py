"""The connections of a client, bound to an event loop and a process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakSet

from speechlab.errors import ConfigurationError

if TYPE_CHECKING:
    from speechlab.client._closable import AsyncClosable


class Closable(Protocol):
    """What performs calls on one event loop: connections, or threads and processes."""

    async def close(self) -> None:
        """End it."""


C = TypeVar("C", bound=Closable)
T = TypeVar("T")

# Pools that have been used.
_bound: WeakSet[ConnectionPool] = WeakSet()


class ConnectionPool:
    """The connections or workers of a service, made on first use and bound to the event loop of that use."""

    def __init__(self) -> None:
        self._open: dict[str, Any] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0
        self.closed = False
        self.sessions: WeakSet[AsyncClosable] = WeakSet()
        """Open realtime sessions and streams, which end with their client; unreferenced ones are not kept alive."""
        self._waits: set[asyncio.Timeout] = set()

    def get(self, name: str, build: Callable[[], C]) -> C:
        """Return the connections of a name for the running loop, which are built on first use."""
        self.bind_to_loop()
        if name not in self._open:
            self._open[name] = build()
        found: C = self._open[name]
        return found

    def bind_to_loop(self) -> None:
        """Bind to the running loop, or check that it is the bound one."""
        loop = asyncio.get_running_loop()
        if self.closed:
            raise _build_closed_error()
        if self._loop is None or self._pid != os.getpid() or self._loop.is_closed():
            # Sockets of a closed loop, or of the parent process after a fork, cannot be used here.
            self._open, self._loop, self._pid = {}, loop, os.getpid()
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
        opened, self._open = self._open, {}
        for each in opened.values() if self.is_on_own_loop else ():
            await each.close()


def _build_closed_error() -> ConfigurationError:
    return ConfigurationError("this client is closed; make a new one")


async def close_pools_of_running_loop() -> None:
    """Close all that is still open on the running loop, which is about to end."""
    for pool in tuple(_bound):
        if pool.is_on_own_loop and not pool.closed:
            await pool.close()
