"""One private event loop for all synchronous clients of the process, and the faces ("wrappers") that use it.

A kernel already runs a loop in the main thread, and widget callbacks run on further threads with loops of their
own. So a synchronous client never uses the caller's loop: this loop runs the calls, and the caller waits.
Interrupting the caller cancels the call.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from speechlab._platform import register_after_fork
from speechlab.client._closable import shorten_method_tracebacks
from speechlab.client._services.connections import close_pools_of_running_loop
from speechlab.errors import ConfigurationError

T = TypeVar("T")
_STOP_S = 5.0
# Seconds that an interrupt waits for the cancelled call, and the end of the program for open calls.
_UNWIND_S = 2.0
_LOOK_S = 0.002
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


def wait_for_result(future: Future[T], show: Callable[[], object] | None = None) -> T:
    """Wait for the result of a call that :func:`begin` started; at the end of the program, end a daemon thread."""
    try:
        while not future.done():
            with suppress(TimeoutError):
                future.exception(_WAIT_S)
            if show is not None:
                show()
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


def run(function: Callable[..., Coroutine[Any, Any, T]], *args: Any, **kwargs: Any) -> T:
    """Run a coroutine function on the private loop, and wait for its result; an end of the wait cancels the call."""
    return _run_and_show(None, function, *args, **kwargs)


def _run_and_show(
    show: Callable[[], object] | None,
    function: Callable[..., Coroutine[Any, Any, T]],
    /,
    *args: Any,
    **kwargs: Any,
) -> T:
    loop = _ensure_loop()
    call = function(*args, **kwargs)
    future = asyncio.run_coroutine_threadsafe(call, loop)
    try:
        return wait_for_result(future, show)
    except BaseException:
        if future.cancel():
            # A cancelled future counts as done at once, although its coroutine may still run.
            until = time.monotonic() + _UNWIND_S
            while inspect.getcoroutinestate(call) != inspect.CORO_CLOSED and time.monotonic() < until:
                time.sleep(_LOOK_S)
        raise
    finally:
        del future  # its error has a traceback that refers to this frame: a cycle would keep the arguments


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


A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
B = TypeVar("B")
F = TypeVar("F", bound="Callable[..., Any]")
P = ParamSpec("P")


class SyncWrapper(Generic[A_co]):
    """Base of the synchronous classes: calls run on the private loop while the caller waits."""

    def __init__(self, behind: A_co) -> None:
        self._async = behind

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        shorten_method_tracebacks(cls)

    def __enter__(self) -> Self:
        behind: Any = self._async
        run(behind.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        behind: Any = self._async
        run(behind.__aexit__, kind, error, trace)

    def __repr__(self) -> str:
        return repr(self._async).replace("Async", "")


class SyncIterator(SyncWrapper[A_co]):
    """A face with iteration; its class defines ``__next__`` by :func:`following`."""

    def __iter__(self) -> Self:
        return self


def to_sync(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
    show_wait: Callable[..., AbstractContextManager[Callable[[], object]]] | None = None,
) -> Callable[Concatenate[SyncWrapper[A], P], T]:
    """Return the same method without ``await``.

    ``show_wait`` takes the object and the arguments, and gives a function that is called several times a second.
    """

    @wraps(method)
    def call(self: SyncWrapper[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if show_wait is None:
            return run(method, self._async, *args, **kwargs)
        with show_wait(self, *args, **kwargs) as show:
            return _run_and_show(show, method, self._async, *args, **kwargs)

    return call


def to_sync_next(method: Callable[[A], Coroutine[Any, Any, T]]) -> Callable[[SyncWrapper[A]], T]:
    """``__next__``, from ``__anext__``."""

    @wraps(method)
    def call(self: SyncWrapper[A], /) -> T:
        try:
            return run(method, self._async)
        except StopAsyncIteration:
            raise StopIteration from None

    return call


def iterate_sync(items: AsyncIterator[T]) -> Iterator[T]:
    """Iterate without ``await``."""

    async def fetch_item() -> tuple[T] | None:
        async for item in items:
            return (item,)
        return None

    while (item := run(fetch_item)) is not None:
        yield item[0]


def to_sync_wrapping_result(
    method: Callable[Concatenate[A, P], B], face: Callable[[B], T]
) -> Callable[Concatenate[SyncWrapper[A], P], T]:
    """Return the same method, returning a face of its result without waiting."""

    @wraps(method)
    def call(self: SyncWrapper[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return face(method(self._async, *args, **kwargs))

    described: Any = call
    gives = face.__name__ if isinstance(face, type) else inspect.signature(face).return_annotation
    described.__signature__ = inspect.signature(method).replace(return_annotation=gives)
    return call


class sync_property(property, Generic[T]):  # noqa: N801 - used as ``property`` is
    """The same property of the object behind the face."""

    def __init__(self, original: Callable[[Any], T]) -> None:
        of_class: Any = original
        super().__init__(lambda face: of_class.fget(face._async))  # noqa: SLF001 - a face's own
        self.__doc__ = of_class.__doc__

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type | None = None) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: type | None = None) -> T: ...
        def __get__(self, instance: object, owner: type | None = None) -> Any: ...


def copy_docstring(original: Callable[..., Any] | property) -> Callable[[F], F]:
    """Take over the description of another function."""

    def set_docstring(function: F) -> F:
        function.__doc__ = original.__doc__
        return function

    return set_docstring
