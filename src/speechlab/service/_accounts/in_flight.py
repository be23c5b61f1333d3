"""Connections and requests under way: realtime connections by key, HTTP requests, and their end with the service."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from typing import TYPE_CHECKING, Protocol

from speechlab.contract import HandshakeCode
from speechlab.service._faults import HandshakeRefused
from speechlab.service._logs import log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from speechlab.service._keys import Principal

_POLL_S = 0.05
_FAREWELL_S = 1.0


class Draining(Protocol):
    """A conversation that can be ended."""

    async def drain(self) -> None:
        """Close now if no text is under way, and otherwise after it."""

    async def give_up(self) -> None:
        """Stop the text under way, report it to the client, and close."""


class InFlight:
    """Conversations and HTTP requests under way; used from the event loop only."""

    def __init__(self, max_per_key: int) -> None:
        self._max_per_key = max_per_key
        self._connections: Counter[str] = Counter()
        self.draining = False
        self._conversations: set[Draining] = set()
        self.running = 0
        self._idle = asyncio.Event()

    @property
    def talking(self) -> int:
        """Number of conversations."""
        return len(self._conversations)

    def admit_connection(self, principal: Principal) -> Callable[[], None]:
        """Count a connection of a key; returns what is called at its end."""
        key_id = principal.key_id
        if self._connections[key_id] >= self._max_per_key:
            message = "this key has reached its limit of connections; close one of them first"
            raise HandshakeRefused(HandshakeCode.WS_CONNECTION_LIMIT_EXCEEDED, message)
        if self.draining:
            message = "the service is stopping and takes no new connections; try again later"
            raise HandshakeRefused(HandshakeCode.WEBSOCKET_DRAINING, message)
        self._connections[key_id] += 1
        return lambda: self._connections.subtract([key_id])

    @contextlib.contextmanager
    def conversation(self, conversation: Draining) -> Iterator[None]:
        """Register a conversation for the duration of the block."""
        self._conversations.add(conversation)
        self._idle.clear()
        try:
            yield
        finally:
            self._conversations.discard(conversation)
            self._check_idle()

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """Register an HTTP request for the duration of the block."""
        self.running += 1
        self._idle.clear()
        try:
            yield
        finally:
            self.running -= 1
            self._check_idle()

    async def drain(self, within_s: float, hurry: Callable[[], bool]) -> None:
        """Refuse new work, let work under way finish, and close all conversations.

        The server cancels requests that take longer.
        """
        self.draining = True
        if not (self._conversations or self.running):
            return
        log("draining", connections=len(self._conversations), requests=self.running)
        until = time.monotonic() + within_s
        closing = [asyncio.create_task(conversation.drain()) for conversation in self._conversations]
        while not hurry() and (remaining_s := until - time.monotonic()) > 0:
            # A signal handler wakes no task, so hurry() has to be polled.
            if await self._wait_idle(min(remaining_s, _POLL_S)):
                break
        late = list(self._conversations)
        closing += [asyncio.create_task(conversation.give_up()) for conversation in late]
        if late:
            await self._wait_idle(_FAREWELL_S)
        for task in closing:
            task.cancel()
        log("drained", broken_off=len(late) + self.running)

    def _check_idle(self) -> None:
        if not (self._conversations or self.running):
            self._idle.set()

    async def _wait_idle(self, within_s: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._idle.wait()
        return self._idle.is_set()
