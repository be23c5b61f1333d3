"""The base of streams.

A stream opens its connection when it is entered, or at the first piece. Leaving it early closes the connection, which
stops the service's work.
"""

from __future__ import annotations

import asyncio
import weakref
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from speechlab.client._closable import AsyncOpenable
from speechlab.client._events import Timing
from speechlab.client._store.tape import Tape, TapedBody
from speechlab.client._transport.http import WireError
from speechlab.client._transport.interrupts import hearing_interrupts
from speechlab.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from speechlab.client._operations.operation import Operation
    from speechlab.client._store.memory import StoredCall
    from speechlab.client._store.tape import StreamBody
    from speechlab.client._transport.sender import ReplyStream, Sender

    StoredCallOf = Callable[[Operation[Any]], Awaitable[StoredCall | None]]
    """Tells how the store knows an operation; None for clients without a store."""


class Stream(AsyncOpenable):
    """Opening, reading and closing, the same for both kinds."""

    def __init__(self, sender: Sender, stored_call_of: StoredCallOf) -> None:
        self._body: StreamBody | None = None
        self._copy_to: Callable[[bytes], None] | None = None
        """Called with each piece of the body, where the reply is wanted as it came."""
        self._sender = sender
        self._stored_call_of = stored_call_of
        self._pieces: AsyncIterator[bytes]
        self._tape: Tape | None = None
        self._reading = False
        self._closed = False
        self._timing = Timing()

    @property
    def timing(self) -> Timing:
        """Durations so far, and the number of attempts."""
        return self._body.timing if self._body is not None and not self._closed else self._timing

    async def _open(self, operation: Operation[Any]) -> StreamBody:
        self._body = body = await self._played(operation) or await self._sent(operation)
        self._pieces = body.pieces()
        return body

    async def _played(self, operation: Operation[Any]) -> StreamBody | None:
        """The body from the store; None if it is to be requested, and then it is recorded if there is a store."""
        call = await self._stored_call_of(operation)
        if call is None:
            return None
        clock, found = self._sender.settings.clock, await asyncio.to_thread(call.recall)
        if found is None:
            self._tape = Tape(clock, call)
            return None
        stored, facts = found
        return TapedBody(stored.files["body"], facts, clock, at_pace=call.memory.paced)

    async def _sent(self, operation: Operation[Any]) -> StreamBody:
        body = await self._sender.open(operation.call(self._sender.settings.timeout))
        # A stream that is dropped unfinished must not keep its place under the rate limit.
        weakref.finalize(self, _close_abandoned, asyncio.get_running_loop(), body).atexit = False
        return body

    async def _next_bytes(self) -> bytes | None:
        """The next bytes of the body, or None at the end; WireError if it is cut short."""
        assert self._body is not None
        if self._reading:
            raise WireError("another thread or task is reading it", sent=True, timed_out=False, cut=True)
        self._reading = True
        try:
            with hearing_interrupts():
                piece = await anext(self._pieces, None)
        finally:
            self._reading = False
        if piece is None:
            if not self._body.ended:
                raise WireError("reading it was interrupted", sent=True, timed_out=False, cut=True)
            return None
        if self._tape is not None:
            self._tape.add(piece)
        if self._copy_to is not None:
            self._copy_to(piece)
        return piece

    async def _settle(self, spent: dict[str, float]) -> None:
        """Keep and count a stream that has proved to be whole; one from the store is not counted."""
        assert self._body is not None
        if self._tape is not None:
            await asyncio.to_thread(self._tape.keep, self._body.headers.get("content-type", ""), self.timing)
        if not isinstance(self._body, TapedBody):
            self._sender.totals.add(**spent)

    async def aclose(self) -> None:
        """Close the connection; the service stops working for it."""
        if not self._closed:
            self._timing = self.timing
            self._closed = True
            if self._body is not None:
                await self._body.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ConfigurationError("this stream is closed; ask for a new one")


def _close_abandoned(loop: asyncio.AbstractEventLoop, body: ReplyStream) -> None:
    with suppress(RuntimeError):  # the loop is closed, and its connections with it
        loop.call_soon_threadsafe(partial(_close_soon, body))


def _close_soon(body: ReplyStream) -> None:
    task = asyncio.ensure_future(body.close())
    _closing.add(task)
    task.add_done_callback(_closing.discard)


_closing: set[asyncio.Future[None]] = set()


async def first_text(body: StreamBody) -> str:
    """The start of an unexpected body, for an error's text."""
    with suppress(WireError):
        return (await anext(body.pieces(), b""))[:2000].decode("utf-8", "replace")
    return ""
