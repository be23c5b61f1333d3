"""Threads for blocking work, awaited from the event loop."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from speechlab.errors import EngineError

T = TypeVar("T")


def to_failure(error: BaseException) -> Exception:
    """Return what an engine raised as an error that ends its own request, not the event loop with all others."""
    if isinstance(error, Exception) and not isinstance(error, (StopIteration, StopAsyncIteration)):
        return error
    failure = EngineError(f"it raised {type(error).__name__}")
    failure.__cause__ = error
    return failure


class Threads:
    """Threads on demand, which unlike those of an executor do not keep the process alive.

    An engine may compute for a minute without a break; a stopping service does not wait for it.
    """

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self.busy = 0
        """Number of tasks that run or are about to."""

    async def run_task(self, task: Callable[[], T]) -> T:
        """Run a task in a thread and wait for it; a cancelled wait does not stop the task."""
        return await asyncio.shield(self.start_task(task))

    def start_task(self, task: Callable[[], T]) -> asyncio.Future[T]:
        """Run a task in a thread; a failure is not reported if nothing waits for the task."""
        passed: Future[T] = Future()
        with self._lock:
            self.busy += 1
            is_new = self._idle == 0
            if not is_new:
                self._idle -= 1
        self._tasks.put((passed, task))
        if is_new:
            threading.Thread(target=self._run_tasks, name="speechlab-work", daemon=True).start()
        future = asyncio.wrap_future(passed)
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        return future

    def _run_tasks(self) -> None:
        while True:
            try:
                future, task = self._tasks.get(timeout=30.0)
            except queue.Empty:
                with self._lock:
                    if self._idle:
                        self._idle -= 1
                        return
                continue  # a task was passed at the last moment
            error: BaseException | None = None
            result: Any = None
            try:
                result = task()
            except BaseException as caught:  # noqa: BLE001 - passed to the waiting caller
                error = to_failure(caught)
            with self._lock:
                self.busy -= 1
                self._idle += 1
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)
            del future, task, result, error
