"""What streams have in common.

A stream opens its connection when it is entered, or at the first piece. Leaving it early closes the connection, which
stops the service's work.
"""

from __future__ import annotations

import asyncio
import weakref
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Self

from speechlab.client._events import Timing
from speechlab.client._wire import WireError
from speechlab.errors import ConfigurationError

if TYPE_CHECKING:
    from types import TracebackType

    from speechlab.client._call import Call
    from speechlab.client._core import Core, ReplyStream

__all__ = ["Stream", "first_text"]


class Stream:
    """Opening and closing, the same for both kinds."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._source: ReplyStream | None = None
        self._closed = False
        self._timing = Timing()

    @property
    def timing(self) -> Timing:
        """How long it has taken so far, and how many attempts."""
        return self._source.timing if self._source is not None and not self._closed else self._timing

    async def _open_call(self, call: Call) -> ReplyStream:
        source = await self._core.open(call)
        self._source = source
        # A stream that is dropped unfinished must not keep its place under the rate limit.
        weakref.finalize(self, _close_abandoned, asyncio.get_running_loop(), source).atexit = False
        return source

    async def aclose(self) -> None:
        """Close the connection; the service stops working for it."""
        if not self._closed:
            self._timing = self.timing
            self._closed = True
            if self._source is not None:
                await self._source.close()

    async def open(self) -> None:
        """Send the request, and wait until the service begins to answer."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _check_open(self) -> None:
        if self._closed:
            raise ConfigurationError("this stream is closed; ask for a new one")


def _close_abandoned(loop: asyncio.AbstractEventLoop, source: ReplyStream) -> None:
    with suppress(RuntimeError):  # the loop is closed, and its connections with it
        loop.call_soon_threadsafe(partial(_spawn, source))


def _spawn(source: ReplyStream) -> None:
    task = asyncio.ensure_future(source.close())
    _closing.add(task)
    task.add_done_callback(_closing.discard)


_closing: set[asyncio.Future[None]] = set()


async def first_text(source: ReplyStream) -> str:
    """The start of a body that is not what it should be, for an error's text."""
    with suppress(WireError):
        return ((await source.piece()) or b"")[:2000].decode("utf-8", "replace")
    return ""
