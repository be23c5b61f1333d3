"""Questions that calls of this process ask together: one of them asks, the others wait and look for its answer."""

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
"""Where the answer is kept, and under which key."""
_TURN_S = 1.0
"""How long the event loop of a call may stand still before those that wait for the call no longer do."""
_LEAST_S = 0.001
_OF_SERVICE = (APIConnectionError, RateLimitError, ServerError)
"""Failures that the next call would only wait for, too."""


class _Asking:
    """A call that asks a question; as a context, it does so until the end of the block."""

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
        """Leave the question to others."""
        with _lock:
            if _asked.get(self._question) is self:
                del _asked[self._question]

    async def end(self) -> bool:
        """Wait until it has its answer, or will have none; False if that is the service's fault.

        A loop that stands still is not waited for: it may be closed, or be held up by the very call that waits.
        """
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def tell(_: object) -> None:
            with suppress(RuntimeError):  # that loop is closed
                loop.call_soon_threadsafe(ended.set)

        self._end.add_done_callback(tell)
        while not self._end.done():
            turned = threading.Event()
            with suppress(RuntimeError, TimeoutError):  # its loop is closed; it goes on
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
    """The answer to a question: the one that is known, that of a call which is asking, or one's own.

    Where that call has no answer, or its event loop stands still, the next one asks; all of them do if the service
    was the reason, since each has its own patience.

    Args:
        question: The question.
        look: Gives the answer if it is known.
        ask: Asks, within some seconds or None, and sees to it that the answer is known.
        clock: Time.
        time_s: Seconds for all of it, or None.

    Raises:
        APITimeoutError: The time was up before the other call had ended.
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
    error = APITimeoutError(f"{text} that asks the same and was under way before", attempts=0)
    error.advice = "a longer time can be given as timeout= of the call, or by with_options(timeout=...)"
    attach_timing(error, Timing(attempts=0, latency_s=waited_s))
    return error


@after_fork
def _forget_after_fork() -> None:
    # Another thread may have held the lock at the moment of the fork, and its calls are not the child's.
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    _asked.clear()
