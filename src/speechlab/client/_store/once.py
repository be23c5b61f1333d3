"""Sharing of equal concurrent calls on one event loop: one is sent, and the others wait for its result."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from speechlab.client._events import Timing, attach_timing
from speechlab.client._operations.operation import TimeLeft, whole_s
from speechlab.errors import APIConnectionError, APITimeoutError, RateLimitError, ServerError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from speechlab.client._clock import Clock

T = TypeVar("T")
Question = tuple[str, str]
"""The place where the result is kept, and its key."""
_LEAST_S = 0.001
_OF_SERVICE = (APIConnectionError, RateLimitError, ServerError)
"""Failures of the service, after which each waiting call sends its own request."""
_asked: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Question, asyncio.Future[bool]]] = (
    WeakKeyDictionary()
)
"""The questions that are being asked on each loop; True once there is a result or a failure of the call alone."""


async def once(
    question: Question,
    look: Callable[[], Awaitable[T | None]],
    ask: Callable[[float | None], Awaitable[T]],
    *,
    clock: Clock,
    time_s: float | None,
) -> T:
    """The result of a call: the kept one, that of an equal call under way, or that of its own request.

    If the equal call fails, the next waiting call makes the request. If the service caused the failure, all of them
    do, since each has its own patience.
    """
    began, left_s, together = clock.monotonic(), time_s, True
    loop = asyncio.get_running_loop()
    asked = _asked.setdefault(loop, {})
    while together:
        asking = asked.get(question)
        if asking is None:
            asked[question] = end = loop.create_future()
            try:
                found = await look()
                return await ask(left_s) if found is None else found
            except _OF_SERVICE:
                end.set_result(False)
                raise
            finally:
                del asked[question]
                if not end.done():
                    end.set_result(True)
        found = await look()
        if found is not None:
            return found
        try:
            async with asyncio.timeout(left_s):
                together = await asyncio.shield(asking)
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
