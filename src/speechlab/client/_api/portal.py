"""One private event loop for all synchronous clients of the process, and the bases of the classes that use it.

A kernel already runs a loop in the main thread, and widget callbacks run on further threads with loops of their
own. So a synchronous client never uses the caller's loop: this loop runs the calls, and the caller waits.
Interrupting the caller cancels the call.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, ParamSpec, Self, TypeVar

from speechlab._platform import register_after_fork
from speechlab.client._closable import AsyncOpenable, shorten_method_tracebacks
from speechlab.client._services.connections import close_pools_of_running_loop
from speechlab.errors import ConfigurationError

A_co = TypeVar("A_co", covariant=True)
P = ParamSpec("P")
T = TypeVar("T")
_STOP_S = 5.0
# Seconds that an interrupt waits for the cancelled call, and the end of the program for open calls.
_UNWIND_S = 2.0
# Seconds of one wait. An interrupt does not end a wait without a limit where a library's handler of signals
# restarts it, as that of polars does, nor on Windows.
_WAIT_S = 0.1


class _LoopThread:
    """A thread that runs an event loop until it is stopped."""

    def __init__(self) -> None:
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self.thread = threading.Thread(target=self._run_loop, name="speechlab-client", daemon=True)
        self.thread.start()
        self.loop, self.stop = self._started.result()

    def _run_loop(self) -> None:
        # When the event is set, the runner cancels the remaining tasks and closes what is open.
        try:
            with asyncio.Runner() as runner:
                loop = runner.get_loop()
                waiting = loop.create_task(self._wait_for_stop_and_close())
                while not waiting.done():
                    # sys.exit() in a user's function ends the call that contains it, not all other calls
                    with suppress(SystemExit, KeyboardInterrupt):
                        loop.run_until_complete(waiting)
        except RuntimeError:
            # Python 3.12 lets no thread start at the end of a program, such as one that ends others
            if not _over:
                raise

    async def _wait_for_stop_and_close(self) -> None:
        stop = asyncio.Event()
        self._started.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()
        with suppress(Exception):
            async with asyncio.timeout(_UNWIND_S):
                await close_pools_of_running_loop()


_lock = threading.Lock()
_portal: _LoopThread | None = None
# Loops of the parent processes before a fork. They are kept, because their finalizers would touch them.
_parents: list[_LoopThread | None] = []
# Whether the program has ended and only daemon threads still run.
_over = False


def _ensure_loop() -> asyncio.AbstractEventLoop:
    global _portal  # noqa: PLW0603 - one for the process
    _exit_thread_if_program_over()
    with _lock:
        if _portal is None:
            _portal = _LoopThread()
        portal = _portal
    if threading.current_thread() is portal.thread:
        raise ConfigurationError(
            "a synchronous client was used inside a hook of a client; use it outside the hook"
        )
    return portal.loop


def start(function: Callable[..., Coroutine[Any, Any, T]], *args: Any, **kwargs: Any) -> Future[T]:
    """Start a coroutine function on the private loop; the caller is responsible for its end."""
    loop = _ensure_loop()
    return asyncio.run_coroutine_threadsafe(function(*args, **kwargs), loop)


def wait_for_result(future: Future[T]) -> T:
    """Wait for the result of a call that :func:`begin` started; at the end of the program, end a daemon thread."""
    try:
        while not future.done():
            with suppress(TimeoutError):
                future.exception(_WAIT_S)
        return future.result()
    except BaseException:
        _exit_thread_if_program_over()
        raise
    finally:
        del future  # its error has a traceback that refers to this frame: a cycle


def _exit_thread_if_program_over() -> None:
    """End a daemon thread after the end of the program, when there is no loop any more."""
    if _over and threading.current_thread() is not threading.main_thread():
        raise SystemExit from None


class _Call:
    """A call that one thread waits for: cheaper than a future of two kinds, which nobody else needs here."""

    __slots__ = ("_canceled", "_coroutine", "_loop", "ended", "task")

    def __init__(self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._loop, self._coroutine = loop, coroutine
        self._canceled = False
        self.task: asyncio.Task[Any] | None = None
        self.ended = threading.Lock()  # released at the end
        self.ended.acquire()

    def begin(self) -> None:
        """Hand the call to the loop, where an interrupt from now on cancels it."""
        self._loop.call_soon_threadsafe(self._start)

    def _start(self) -> None:
        self.task = self._loop.create_task(self._coroutine)
        self.task.add_done_callback(self._end)
        if self._canceled:
            self.task.cancel()

    def _end(self, _task: asyncio.Task[Any]) -> None:
        self.ended.release()

    def check_loop(self) -> None:
        """Refuse to wait for a loop that ended with the program before the call began."""
        if self._loop.is_closed() and self.task is None:
            raise ConfigurationError("the call was not made, because the program was ending")

    def cancel(self) -> None:
        """Cancel the call, and wait a while for its end."""
        self._canceled = True
        if self.task is None or not self.task.done():
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(lambda: self.task and self.task.cancel())
                self.ended.acquire(timeout=_UNWIND_S)


def run(function: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a coroutine function on the private loop, and wait for its result; an end of the wait cancels the call."""
    return run_and_show(None, function, *args, **kwargs)


def run_and_show(
    show: Callable[[], object] | None,
    function: Callable[P, Coroutine[Any, Any, T]],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Do the same, and call ``show`` several times a second."""
    call = _Call(_ensure_loop(), function(*args, **kwargs))
    try:
        call.begin()  # the loop may send the request before this thread runs again
        while not call.ended.acquire(timeout=_WAIT_S):
            call.check_loop()
            if show is not None:
                show()
        assert call.task is not None
        result: T = call.task.result()
    except BaseException:
        call.cancel()
        _exit_thread_if_program_over()
        raise
    else:
        return result
    finally:
        del call  # its error has a traceback that refers to this frame: a cycle would keep the arguments


@atexit.register
def _stop_loop() -> None:
    global _over, _portal  # noqa: PLW0603 - one for the process
    _over = True
    with _lock:
        portal, _portal = _portal, None
    if portal is not None and portal.thread.is_alive():
        portal.loop.call_soon_threadsafe(portal.stop.set)
        portal.thread.join(_STOP_S)


@register_after_fork
def _reset_loop_after_fork() -> None:
    # A fork does not copy the thread of the loop.
    global _lock, _over, _portal  # noqa: PLW0603 - a forked child needs its own
    _over = False
    _lock = threading.Lock()
    _parents.append(_portal)
    _portal = None


class SyncWrapper(Generic[A_co]):
    """Base of the synchronous classes: calls run on the private loop while the caller waits."""

    def __init__(self, behind: A_co) -> None:
        self._async = behind

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        shorten_method_tracebacks(cls)

    def __enter__(self) -> Self:
        if isinstance(self._async, AsyncOpenable):
            run(self._async.open)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        behind: Any = self._async
        run(behind.aclose)

    def __repr__(self) -> str:
        return repr(self._async).replace("Async", "")


class SyncIterator(SyncWrapper[A_co]):
    """A synchronous class with iteration."""

    def __iter__(self) -> Self:
        return self


def iterate(items: AsyncIterator[T]) -> Iterator[T]:
    """Iterate without ``await``."""

    async def fetch_item() -> tuple[T] | None:
        async for item in items:
            return (item,)
        return None

    while (item := run(fetch_item)) is not None:
        yield item[0]


def run_next(method: Callable[..., Any]) -> Any:
    """Return the next piece, as ``__next__`` does."""
    try:
        return run(method)
    except StopAsyncIteration:
        raise StopIteration from None


def run_on_loop(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that is not async on the loop, to which the tasks that it starts belong."""

    async def call() -> T:
        return function(*args, **kwargs)

    return run(call)
