"""All realtime connections of a service: how many each key has, and how they end when the service stops.

HTTP requests under way are counted here as well, since the service stops when all have been answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from typing import TYPE_CHECKING, Protocol

from speechlab.contract import HandshakeCode
from speechlab.service._logs import error_fields, log
from speechlab.service._refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from speechlab.service._keys import Principal

_LOOK_S = 0.05
_LAST_WORDS_S = 1.0


class Connections(Protocol):
    """What counts connections; a real one, or one that a test makes fail."""

    def enter(self, key_id: str) -> bool:
        """Take a place for a connection of a key; False if it has none left. May raise if it cannot tell."""
        ...

    def leave(self, key_id: str) -> None:
        """Give a place back."""
        ...


class KeyConnections:
    """Counts in this process; used from the event loop only.

    Args:
        most: Connections of one key at the same moment.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    def enter(self, key_id: str) -> bool:
        """Take a place; see the protocol."""
        if self._open[key_id] >= self._most:
            return False
        self._open[key_id] += 1
        return True

    def leave(self, key_id: str) -> None:
        """Give a place back."""
        self._open[key_id] -= 1
        if not self._open[key_id]:
            del self._open[key_id]


class Draining(Protocol):
    """A conversation, as far as the end of the service concerns it."""

    async def drain(self) -> None:
        """Close now if nothing runs, and otherwise as soon as it is done."""
        ...

    async def give_up(self) -> None:
        """Break off what runs, say so, and close."""
        ...


class RealtimeHub:
    """Where conversations are known, and how many requests are under way.

    Attributes:
        connections: What counts them.
        draining: Whether the service is stopping.

    Args:
        most: Connections of one key at the same moment.
    """

    def __init__(self, most: int) -> None:
        self.connections: Connections = KeyConnections(most)
        self.draining = False
        self._open: set[Draining] = set()
        self._requests = 0
        self._none = asyncio.Event()

    @property
    def open(self) -> int:
        """How many conversations there are."""
        return len(self._open)

    def take_place(self, principal: Principal) -> Callable[[], None]:
        """Count a connection in.

        Returns:
            What counts it out; any further call does nothing.

        Raises:
            Refused: The key has too many, or it cannot be told how many it has, or the service is stopping.
        """
        key_id = principal.key_id
        try:
            entered = self.connections.enter(key_id)
        except Exception as error:
            log("connections cannot be counted", level="error", **error_fields(error))
            message = "connections cannot be counted now; try again later"
            raise Refused(HandshakeCode.WS_CONNECTION_QUOTA_UNAVAILABLE, message) from error
        if not entered:
            message = "this key has as many connections as it may have; close one of them first"
            raise Refused(HandshakeCode.WS_CONNECTION_LIMIT_EXCEEDED, message)
        place = contextlib.ExitStack()
        place.callback(self.connections.leave, key_id)
        if self.draining:
            place.close()
            message = "the service is stopping and takes no new connections; try again later"
            raise Refused(HandshakeCode.WEBSOCKET_DRAINING, message)
        return place.close

    @contextlib.contextmanager
    def known(self, conversation: Draining) -> Iterator[None]:
        """Know a conversation for as long as the block lasts."""
        self._open.add(conversation)
        self._none.clear()
        try:
            yield
        finally:
            self._open.discard(conversation)
            self._tell()

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """Know that an HTTP request is under way for as long as the block lasts."""
        self._requests += 1
        self._none.clear()
        try:
            yield
        finally:
            self._requests -= 1
            self._tell()

    async def drain(self, within_s: float, hurry: Callable[[], bool]) -> None:
        """Refuse what is new, let what runs finish, and close all conversations.

        Requests that take longer are left to be cancelled by the server.

        Args:
            within_s: How long running syntheses and requests have.
            hurry: Tells whether somebody wants the end at once.
        """
        self.draining = True
        if not (self._open or self._requests):
            return
        log("draining", connections=len(self._open), requests=self._requests)
        until = time.monotonic() + within_s
        telling = [asyncio.create_task(conversation.drain()) for conversation in self._open]
        while not hurry() and (left := until - time.monotonic()) > 0:
            # A signal handler, which wakes nobody, may have set what hurry() looks at.
            if await self._all_gone(min(left, _LOOK_S)):
                break
        late = list(self._open)
        telling += [asyncio.create_task(conversation.give_up()) for conversation in late]
        if late:
            await self._all_gone(_LAST_WORDS_S)
        for task in telling:
            task.cancel()
        log("drained", broken_off=len(late) + self._requests)

    def _tell(self) -> None:
        if not (self._open or self._requests):
            self._none.set()

    async def _all_gone(self, within_s: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._none.wait()
        return self._none.is_set()
