"""What streams have in common.

A stream opens its connection when it is entered, or at the first piece. Leaving it early closes the connection, which
stops the service's work.
"""

from __future__ import annotations

import asyncio
import weakref
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from speechlab.client._events import Timing
from speechlab.client._memory.memory import Memory
from speechlab.client._memory.tape import Recorded, Recording
from speechlab.client._transport.http import WireError
from speechlab.errors import ConfigurationError

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from speechlab.client._memory.memory import Question
    from speechlab.client._memory.tape import Source
    from speechlab.client._operations.operation import Operation
    from speechlab.client._transport.sender import ReplyStream, Sender

    Asked = Callable[[Operation[Any]], Awaitable[Question | None]]
    """Tells how the store knows an operation; None for clients without a store."""


class Stream:
    """Opening and closing, the same for both kinds."""

    def __init__(self, sender: Sender, asked: Asked) -> None:
        self._sender = sender
        self._asked = asked
        self._source: Source | None = None
        self._closed = False
        self._timing = Timing()
        self._tapped: deque[bytes] | None = None
        """Copies of the pieces, for who wants the reply as it came."""

    @property
    def timing(self) -> Timing:
        """How long it has taken so far, and how many attempts."""
        return self._source.timing if self._source is not None and not self._closed else self._timing

    async def _open(self, operation: Operation[Any]) -> Source:
        question = await self._asked(operation)
        clock, memory = self._sender.settings.clock, Memory.from_settings(self._sender.settings)
        found = None
        if question is not None and memory is not None:
            found = await asyncio.to_thread(memory.recall, question)
        if found is not None and memory is not None:
            stored, facts = found
            self._source = Recorded(stored.files["body"], facts, clock, at_pace=memory.paced)
            return self._source
        source = await self._sender.open(operation.call(self._sender.settings.timeout))
        opened: Source = source
        if question is not None and memory is not None:
            opened = Recording(source, clock, memory, question)
        self._source = opened
        # A stream that is dropped unfinished must not keep its place under the rate limit.
        weakref.finalize(self, _close_abandoned, asyncio.get_running_loop(), source).atexit = False
        return opened

    async def _piece(self) -> bytes | None:
        """The next bytes of the body, or None at the end; WireError if it is cut short."""
        assert self._source is not None
        piece = await self._source.piece()
        if piece is not None and self._tapped is not None:
            self._tapped.append(piece)
        return piece

    async def _advance(self) -> object | None:
        """Go on by one step, whatever a step is; None at the end."""
        raise NotImplementedError

    async def _settle(self, spent: dict[str, float]) -> None:
        """The stream has proved to be whole: it is kept, and counted if the service made it."""
        source = self._source
        if isinstance(source, Recording):
            await asyncio.to_thread(source.keep, self.timing)
        if not isinstance(source, Recorded):
            self._sender.totals.add(**spent)

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


async def first_text(source: Source) -> str:
    """The start of a body that is not what it should be, for an error's text."""
    with suppress(WireError):
        return ((await source.piece()) or b"")[:2000].decode("utf-8", "replace")
    return ""
