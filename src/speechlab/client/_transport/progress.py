"""A running call: its measurements, its reply while it arrives, and interrupts that reach it at once."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sys
import threading
from logging import DEBUG
from typing import TYPE_CHECKING, TypeVar

from speechlab.client._events import CallEvent, Timing, emit, logger
from speechlab.client._operations.operation import whole_s
from speechlab.client._scheduling.pressure import End, Ended
from speechlab.client._secret import FreshSecret
from speechlab.errors import APITimeoutError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator

    from speechlab.client._operations.call import HttpCall
    from speechlab.client._scheduling.waiting import CallPlace
    from speechlab.client._settings.settings import Settings
    from speechlab.client._transport.http import Reply

T = TypeVar("T")
_TURN_S = 0.2
_NOTHING = contextlib.nullcontext()


class Progress:
    """Measurements of a running call."""

    def __init__(self, settings: Settings, call: HttpCall) -> None:
        self.clock = settings.clock
        self.call = call
        self.address = ""
        """Where the call goes, if not to the address of the settings."""
        self._hook = settings.on_event
        self.call_id = ""
        self.began = self.clock.monotonic()
        self.attempts = 0
        self.queued_s = 0.0
        self.first_byte_s: float | None = None
        self.processing_s: float | None = None
        self.service_queued_s: float | None = None
        self.deadline: float | None = None
        self.possibly_metered = False
        """Whether an attempt failed after it was sent in full, so that it may have been billed."""
        self._key = settings.api_key
        self.key_number = 0
        """Number of the key used by the last attempt."""
        self.key_renewed = False

    @property
    def elapsed_s(self) -> float:
        return self.clock.monotonic() - self.began

    def timing(self) -> Timing:
        reported = (self.processing_s, self.service_queued_s)
        return Timing(self.attempts, self.elapsed_s, self.first_byte_s, self.queued_s, *reported)

    async def key_ready(self) -> None:
        """Wait until the key can be sent."""
        if isinstance(self._key, FreshSecret):
            await self.key_given(self._key.ready())

    async def key_given(self, waiting: Awaitable[T]) -> T:
        """Wait for the function that returns the key, within the call's timeout."""
        left_s = None if self.deadline is None else max(0.0, self.deadline - self.clock.monotonic())
        try:
            async with asyncio.timeout(left_s):
                return await waiting
        except TimeoutError:
            pass
        where = f"{self.call.method} {self.call.path}"
        time_s = whole_s(self.call.timeouts.total or 0.0)
        text = f"the call's time of {time_s:g} s was up while it waited for the function of api_key"
        raise APITimeoutError(f"{where}: {text}")

    def tell(self, kind: str, **facts: object) -> None:
        """Log a step of the call, and pass it to the hook."""
        if kind == "request" and self._key is not None:
            self.key_number = self._key.number
        if self._hook is None and not logger.isEnabledFor(DEBUG):
            return
        if not self.call_id:
            self.call_id = secrets.token_hex(8)
        event = CallEvent(
            kind,  # type: ignore[arg-type]  # the kinds are those of CallEvent
            self.call.operation,
            self.attempts,
            elapsed_s=self.elapsed_s,
            call_id=self.call_id,
            **facts,  # type: ignore[arg-type]  # fields of CallEvent
        )
        emit(self._hook, event)


class ReplyStream:
    """A successful reply whose body is arriving; it has its place until it is closed or has no reader."""

    def __init__(self, reply: Reply, place: CallPlace, progress: Progress) -> None:
        self._reply = reply
        self._place = place
        self._progress = progress
        self.status = reply.status
        self.headers = reply.headers

    @property
    def timing(self) -> Timing:
        """Timing so far."""
        return self._progress.timing()

    @property
    def ended(self) -> bool:
        """Whether the body is complete."""
        return self._reply.ended

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it arrives; WireError if it is incomplete."""
        place = self._place
        place.reads(reading=True)
        try:
            async for piece in self._reply.pieces():
                place.reads(reading=False)
                yield piece
                place.reads(reading=True)
        finally:
            place.reads(reading=False)

    async def close(self) -> None:
        """Close the connection unless the body was read completely."""
        try:
            await self._reply.close()
        finally:
            self._place.end(Ended(End.OK if self.ended else End.UNKNOWN))


def hearing_interrupts() -> contextlib.AbstractContextManager[None]:
    """A context in which interrupts reach the running loop; needed in a kernel's main thread only.

    IPython cancels the cell from its signal handler, which does not wake the loop: waiting for a reply, it would
    notice only when the reply arrives. So during such a wait it wakes a few times a second.
    """
    if "ipykernel" not in sys.modules or threading.current_thread() is not threading.main_thread():
        return _NOTHING
    return _turning(asyncio.get_running_loop())


@contextlib.contextmanager
def _turning(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    next_turn: asyncio.TimerHandle | None = None

    def turn() -> None:
        nonlocal next_turn
        next_turn = loop.call_later(_TURN_S, turn)

    turn()
    try:
        yield
    finally:
        if next_turn is not None:
            next_turn.cancel()
