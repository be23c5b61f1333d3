"""A sliding window of calls, and the one writer that puts each result on disk before it counts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from speechlab.batch._outcome import Outcome
from speechlab.errors import AuthenticationError, SpeechLabError, StoreError
from speechlab.store import Attempt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from speechlab.batch._plan.rows import CallResult, PlannedCall
    from speechlab.batch._run.progress import Tally
    from speechlab.batch._run.rules import Rules
    from speechlab.client import CallEvent
    from speechlab.store import Store, Stored

Send = Callable[["PlannedCall"], Awaitable["CallResult"]]
_LARGE = 200_000
_MAX_WAITING = 4
"""Calls begun for each that may be under way; those beyond wait to be sent again."""
_GRACE_S = 1.0
"""How long calls under way, which are paid for, may go on after an interrupt."""


class Writer:
    """The writer of results: all that came in one turn of the loop are one commit.

    A row of its own for each commit would cost more than the rest of the bookkeeping; nothing counts as done before
    its commit, so a killed process loses only what was under way.
    """

    def __init__(self, store: Store, operation: str) -> None:
        self._store, self._operation = store, operation
        self._waiting: list[tuple[PlannedCall, CallResult, Attempt, asyncio.Future[Stored]]] = []

    async def keep(self, call: PlannedCall, result: CallResult, attempt: Attempt) -> Stored:
        """Write a result.

        Raises:
            StoreError: It cannot be written.
        """
        for data, suffix in result.files.values():
            if len(data) > _LARGE:  # in a thread; the writer then finds it there
                await asyncio.to_thread(self._store.blobs.add, data, suffix)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Stored] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._flush)
        self._waiting.append((call, result, attempt, done))
        return await done

    def _flush(self) -> None:
        batch, self._waiting = self._waiting, []
        try:
            with self._store.transaction():
                kept = [
                    self._store.put(
                        call.key,
                        operation=self._operation,
                        request=result.request,
                        response=result.response,
                        files=result.files,
                        attempt=attempt,
                    )
                    for call, result, attempt, _ in batch
                ]
        except Exception as error:  # noqa: BLE001 - each of those that wait has to hear of it
            for *_, done in batch:
                if not done.done():
                    done.set_exception(error)
            return
        for (*_, done), stored in zip(batch, kept, strict=True):
            if not done.done():
                done.set_result(stored)


@dataclass(eq=False, slots=True)
class _WindowPlace:
    """A place in the window; lent to another call while its own waits to be sent again."""

    window: Window
    lent: bool = False


_place: ContextVar[_WindowPlace | None] = ContextVar("place", default=None)


def lend_places(event: CallEvent) -> None:
    """Lend the place of a call that waits to be sent again; listens to a client's events."""
    place = _place.get()
    if place is not None and event.kind in {"retry", "request"}:
        place.window.lend(place, lent=event.kind == "retry")


class Window:
    """A sliding window of calls: as soon as one ends, the next begins.

    Args:
        send: Makes a call.
        operation: Name of the operation.
        store: Where results go.
        rules: When to stop.
        tally: Progress.
        width: Maximum of calls under way at once.
    """

    def __init__(
        self, send: Send, operation: str, store: Store, rules: Rules, tally: Tally, width: int
    ) -> None:
        self._send, self._store, self._rules, self._tally = send, store, rules, tally
        self._writer = Writer(store, operation)
        self._width = width
        self.outcomes: dict[str, Outcome] = {}
        self._feed: Iterator[PlannedCall] = iter(())
        self._context = copy_context()
        self._tasks: set[asyncio.Task[None]] = set()
        self._active = 0
        self._lent = 0

    async def run(self, calls: Iterable[PlannedCall]) -> None:
        """Make the calls, until all are made or the run stops; outcomes are in ``outcomes``.

        Raises:
            AuthenticationError: The key is refused; nothing more is sent.
            StoreError: A result cannot be kept.
        """
        self._feed, self._context = iter(calls), copy_context()
        self._fill()
        watch = asyncio.create_task(self._interrupted())
        try:
            # the first that fails ends the run; those that only run out of calls do not
            while self._tasks:
                done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
                self._tasks -= done  # others may have begun meanwhile
                for task in done:
                    task.result()
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self._rules.stop.status != "interrupted" or (current is not None and current.cancelling()):
                raise
        finally:
            left = [watch, *self._tasks]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    def lend(self, place: _WindowPlace, *, lent: bool) -> None:
        """Lend a place to another call, or take it back."""
        if place.lent != lent:
            place.lent = lent
            self._lent += 1 if lent else -1
            self._fill()

    def _fill(self) -> None:
        while (
            self._active - self._lent < self._width
            and self._active < _MAX_WAITING * self._width
            and not self._rules.stop
            and (call := next(self._feed, None)) is not None
        ):
            self._active += 1
            self._tasks.add(asyncio.create_task(self._work(call), context=self._context.copy()))

    async def _interrupted(self) -> None:
        # any thread may request it, so it is polled
        while self._rules.stop.status != "interrupted":  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        await asyncio.sleep(_GRACE_S)
        for worker in self._tasks:
            worker.cancel()

    async def _work(self, call: PlannedCall | None) -> None:
        place = _WindowPlace(self)
        _place.set(place)
        try:
            while call is not None and not self._rules.stop:
                reserved_s = self._rules.admit(call)
                if reserved_s is None:
                    return
                outcome = await self._make(call)
                self.lend(place, lent=False)
                self._rules.ended(call, outcome, reserved_s)
                self.outcomes[call.key] = outcome
                self._tally.ended(outcome)
                crowded = self._active - self._lent > self._width
                call = None if crowded else next(self._feed, None)
        finally:
            self.lend(place, lent=False)
            self._active -= 1

    async def _make(self, call: PlannedCall) -> Outcome:
        started, clock = time.time(), time.perf_counter()
        try:
            result = await self._send(call)
        except (AuthenticationError, StoreError):
            raise
        except SpeechLabError as error:
            return self._failed(call, error, started, time.perf_counter() - clock)
        timing = result.timing
        attempt = Attempt(call.key, started, timing.latency_s, "ok", 200)
        stored = await self._writer.keep(call, result, attempt)
        return Outcome(
            "ok",
            stored,
            attempts=timing.attempts,
            latency_s=timing.latency_s,
            first_byte_s=timing.first_byte_s,
            characters=call.characters,
            audio_s=result.audio_s,
            tokens=result.tokens,
        )

    def _failed(self, call: PlannedCall, error: SpeechLabError, started: float, latency_s: float) -> Outcome:
        status = getattr(error, "status", None) or None
        facts: tuple[Any, ...] = (status, type(error).__name__, str(error))
        self._store.add_attempt(Attempt(call.key, started, latency_s, "error", *facts))
        timing = vars(error).get("timing")
        return Outcome(
            "error",
            error=error,
            attempts=timing.attempts if timing is not None else getattr(error, "attempts", 0),
            latency_s=latency_s,
            first_byte_s=timing.first_byte_s if timing is not None else None,
        )
