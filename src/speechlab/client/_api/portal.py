"""One private event loop for all synchronous clients of the process.

A kernel already runs a loop in the main thread, and widget callbacks run on further threads with loops of their
own. So nothing of a synchronous client ever runs on the caller's loop: calls are handed to this one, and the caller
waits. Interrupting the caller cancels the call.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from speechlab._platform import after_fork
from speechlab.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")
_STOP_S = 5.0


class _Portal:
    """A thread that runs an event loop until it is told to stop."""

    def __init__(self) -> None:
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=self._serve, name="speechlab-client", daemon=True)
        self._thread.start()
        self.loop, self._stop = self._started.result()

    def _serve(self) -> None:
        # The runner cancels whatever still runs when the event is set, and closes what is left open.
        with asyncio.Runner() as runner:
            runner.run(self._wait())

    async def _wait(self) -> None:
        stop = asyncio.Event()
        self._started.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()

    @property
    def is_here(self) -> bool:
        """True on the loop's own thread."""
        return threading.get_ident() == self._thread.ident

    def stop(self) -> None:
        """End the loop."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(_STOP_S)


_lock = threading.Lock()
_portal: _Portal | None = None
_parents: list[_Portal | None] = []
"""Loops of the processes that this one was forked from; kept, because letting go of them would touch them."""


def _the_portal() -> _Portal:
    global _portal  # noqa: PLW0603
    with _lock:
        if _portal is None:
            _portal = _Portal()
        return _portal


def begin(function: Callable[..., Coroutine[Any, Any, T]], *args: Any, **kwargs: Any) -> Future[T]:
    """Start a coroutine function on the private loop; the caller is responsible for its end.

    Raises:
        ConfigurationError: Called from the private loop itself, where waiting would never end.
    """
    portal = _the_portal()
    if portal.is_here:
        raise ConfigurationError("a synchronous client was used inside a hook of a client; use it outside")
    return asyncio.run_coroutine_threadsafe(function(*args, **kwargs), portal.loop)


def run(function: Callable[..., Coroutine[Any, Any, T]], *args: Any, **kwargs: Any) -> T:
    """Run a coroutine function on the private loop, and wait for its result.

    Whatever ends the waiting, an interrupt above all, cancels the call.

    Raises:
        ConfigurationError: Called from the private loop itself, where waiting would never end.
    """
    future = begin(function, *args, **kwargs)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


@atexit.register
def _stop() -> None:
    global _portal
    with _lock:
        portal, _portal = _portal, None
    if portal is not None:
        portal.stop()


@after_fork
def _forget_after_fork() -> None:
    # The thread of the loop did not come along.
    global _lock, _portal  # noqa: PLW0603
    _lock = threading.Lock()
    _parents.append(_portal)
    _portal = None
