"""One private event loop for all synchronous clients of the process.

A kernel already runs a loop in the main thread, and widget callbacks run on further threads with loops of their
own. So nothing of a synchronous client ever runs on the caller's loop: calls are handed to this one, and the caller
waits. Interrupting the caller cancels the call.
"""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from speechlab.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio.from_thread import BlockingPortal

__all__ = ["call_later", "run"]

T = TypeVar("T")

_lock = threading.Lock()
_portal: BlockingPortal | None = None
_running: AbstractContextManager[BlockingPortal] | None = None


def _the_portal() -> BlockingPortal:
    global _portal, _running  # noqa: PLW0603
    with _lock:
        if _portal is None:
            from anyio.from_thread import start_blocking_portal

            _running = start_blocking_portal(backend="asyncio", name="speechlab-client")
            _portal = _running.__enter__()
            atexit.register(_stop)
        return _portal


def run(function: Callable[..., Awaitable[T]], *args: Any, **kwargs: Any) -> T:
    """Run a coroutine function on the private loop, and wait for its result.

    Whatever ends the waiting, an interrupt above all, cancels the call.

    Raises:
        ConfigurationError: Called from the private loop itself, where waiting would never end.
    """
    if threading.current_thread().name == "speechlab-client":
        raise ConfigurationError("a synchronous client was used inside a hook of a client; use it outside")
    future = _the_portal().start_task_soon(partial(function, *args, **kwargs))
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def call_later(function: Callable[..., Awaitable[Any]]) -> None:
    """Run a coroutine function on the private loop without waiting, if the loop is there."""
    if _portal is not None and threading.current_thread().name != "speechlab-client":
        with suppress(RuntimeError):
            _portal.start_task_soon(function)


def _stop() -> None:
    global _portal, _running
    with _lock:
        running, _portal, _running = _running, None, None
    if running is not None:
        # With an exception, so that calls which are still running are cancelled rather than waited for.
        with suppress(BaseException):
            running.__exit__(SystemExit, SystemExit(), None)


def _forget_after_fork() -> None:
    # The thread of the loop did not come along.
    global _lock, _portal, _running  # noqa: PLW0603
    _lock = threading.Lock()
    _portal = _running = None
    atexit.unregister(_stop)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
