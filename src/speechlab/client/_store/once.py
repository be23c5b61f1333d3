"""Sharing of equal concurrent calls in this process: one is sent, and the others wait for its result."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Self, TypeVar

from speechlab._platform import after_fork
from speechlab.client._events import Timing, attach_timing
from speechlab.client._operations.operation import TimeLeft, whole_s
from speechlab.errors import APIConnectionError, APITimeoutError, RateLimitError, ServerError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from speechlab.client._clock import Clock

T = TypeVar("T")
Question = tuple[str, str]
"""The place where the result is kept, and its key."""
_TURN_S = 1.0
"""Seconds without a turn of a call's event loop after which the calls that wait for it stop waiting."""
_LEAST_S = 0.001
_OF_SERVICE = (APIConnectionError, RateLimitError, ServerError)
"""Failures of the service, after which each waiting call sends its own request."""


class _Asking:
    """A call that makes the request; used as a context until the end of the block."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._loop = asyncio.get_running_loop()
        self._end: Future[bool] = Future()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.forget()
        self._end.set_result(not isinstance(error, _OF_SERVICE))

    def forget(self) -> None:
        """Let other calls make the request."""
        with _lock:
            if _asked.get(self._question) is self:
                del _asked[self._question]

    async def end(self) -> bool:
        """Wait until it has a result or has failed; False if the service is the cause of the failure.

        A loop that stands still ends the wait: it may be closed, or blocked by the waiting call itself.
        """
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def tell(_: object) -> None:
            with suppress(RuntimeError):  # that loop is closed
                loop.call_soon_threadsafe(ended.set)

        self._end.add_done_callback(tell)
        while not self._end.done():
            turned = threading.Event()
            with suppress(RuntimeError, TimeoutError):  # its loop is closed, or runs and is checked again
                self._loop.call_soon_threadsafe(turned.set)
                async with asyncio.timeout(_TURN_S):
                    await ended.wait()
            if not (turned.is_set() or self._end.done()):
                self.forget()
                return True
        return self._end.result()


_asked: dict[Question, _Asking] = {}
_lock = threading.Lock()


async def once(
    question: Question,
    look: Callable[[], Awaitable[T | None]],
    ask: Callable[[float | None], Awaitable[T]],
    *,
    clock: Clock,
    time_s: float | None,
) -> T:
    """The result of a call: the kept one, that of an equal call under way, or that of its own request.

    If the equal call fails, or its event loop stands still, the next waiting call makes the request. If the service
    caused the failure, all of them do, since each has its own patience.
    """
    began, left_s, together = clock.monotonic(), time_s, True
    while together:
        with _lock:
            mine = _Asking(question)
            asking = _asked.setdefault(question, mine)
        if asking is mine:
            with mine:
                found = await look()
                return await ask(left_s) if found is None else found
        found = await look()
        if found is not None:
            return found
        try:
            async with asyncio.timeout(left_s):
                together = await asking.end()
        except TimeoutError:
            raise _too_late(clock.monotonic() - began, time_s) from None
        if time_s is not None:
            left_s = TimeLeft(max(_LEAST_S, time_s - (clock.monotonic() - began)), whole_s(time_s))
    return await ask(left_s)


def _too_late(waited_s: float, time_s: float | None) -> APITimeoutError:
    text = f"the call's time of {whole_s(time_s or 0.0):g} s was up while it waited for another call of this process"
    error = APITimeoutError(f"{text} with the same request, which started before", attempts=0)
    error.advice = "give a longer time as timeout= of the call, or by with_options(timeout=...)"
    attach_timing(error, Timing(attempts=0, latency_s=waited_s))
    return error


@after_fork
def _forget_after_fork() -> None:
    # Another thread may have held the lock when the process was forked; its calls do not exist in the child.
    global _lock  # noqa: PLW0603 - a forked child needs its own
    _lock = threading.Lock()
    _asked.clear()
