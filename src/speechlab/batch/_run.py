"""Running a plan: a sliding window of calls, each result on disk before the next row is counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from speechlab.errors import AuthenticationError, SpeechLabError, StoreError
from speechlab.store import Attempt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from speechlab.batch._calls import Call
    from speechlab.batch._plan import Plan
    from speechlab.store import Store, Stored

__all__ = ["DEFAULT_CONCURRENCY", "Outcome", "Progress", "run_plan"]

DEFAULT_CONCURRENCY = 4

Progress = bool | Callable[[int, int], None]
"""True for a bar, False for none, or a function that is told how many of how many calls are done."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a request ended: ``ok``, ``cached`` or ``error``."""

    status: str
    stored: Stored | None = None
    error: SpeechLabError | None = None
    attempts: int = 0
    latency_s: float | None = None


class _Bar(Protocol):
    def update(self, n: int = 1) -> Any: ...


def run_plan(
    plan: Plan, *, store: Store, concurrency: int = DEFAULT_CONCURRENCY, progress: Progress = True
) -> dict[str, Outcome]:
    """Make the calls that the store cannot answer.

    Args:
        plan: What to ask.
        store: Where results go, one by one as they come.
        concurrency: Calls under way at once, at most. The client's own limiter may allow fewer.
        progress: Whether and how to show progress.

    Returns:
        An outcome for each key of the plan.

    Raises:
        AuthenticationError: The key is refused: nothing more is sent. What had come is in the store.
        StoreError: A result could not be kept, for example because the disk is full.
        KeyboardInterrupt: Likewise; running the same again goes on where it stopped.
    """
    outcomes: dict[str, Outcome] = {}
    pending: list[Call] = []
    for key, call in plan.calls.items():
        stored = store.get(key) if key in plan.cached else None
        if stored is None:
            pending.append(call)
        else:
            outcomes[key] = Outcome("cached", stored)
    with ExitStack() as stack:
        tick = _ticker(stack, progress, len(pending), plan.step.operation)
        for key, outcome in _each(pending, plan, store, max(1, concurrency)):
            outcomes[key] = outcome
            tick()
    return outcomes


def _each(pending: list[Call], plan: Plan, store: Store, width: int) -> Iterator[tuple[str, Outcome]]:
    """Yield outcomes as they come, never more than twice the window's width submitted ahead."""
    pool = ThreadPoolExecutor(width, thread_name_prefix="speechlab-batch")
    waiting = iter(pending)
    running: dict[Future[Outcome], str] = {}
    try:
        while True:
            while len(running) < 2 * width and (call := next(waiting, None)) is not None:
                running[pool.submit(_make, call, plan, store)] = call.key
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _make(call: Call, plan: Plan, store: Store) -> Outcome:
    started, clock = time.time(), time.perf_counter()
    try:
        answer = call.send()
    except AuthenticationError:
        raise
    except SpeechLabError as error:
        latency_s = time.perf_counter() - clock
        status = getattr(error, "status", None) or None
        attempt = Attempt(call.key, started, latency_s, "error", status, type(error).__name__, str(error))
        store.add_attempt(attempt)
        if isinstance(error, StoreError):
            raise
        return Outcome("error", error=error, attempts=getattr(error, "attempts", 1), latency_s=latency_s)
    latency_s = time.perf_counter() - clock
    stored = store.put(
        call.key,
        operation=plan.step.operation,
        request=call.parameters,
        response=answer.response,
        files=answer.files,
        attempt=Attempt(call.key, started, latency_s, "ok", 200),
    )
    return Outcome("ok", stored, attempts=answer.attempts, latency_s=latency_s)


def _ticker(stack: ExitStack, progress: Progress, total: int, label: str) -> Callable[[], object]:
    if callable(progress):
        told = progress
        done = iter(range(1, total + 1))
        told(0, total)
        return lambda: told(next(done), total)
    if not progress or not total:
        return lambda: None
    from tqdm.auto import tqdm

    # disable=None: no bar where the output is not a terminal
    bar: _Bar = stack.enter_context(tqdm(total=total, desc=label, unit="call", disable=None))
    return bar.update
