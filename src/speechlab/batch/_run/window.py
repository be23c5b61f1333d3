"""A sliding window of calls, and the writer that puts each result on disk before it counts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from speechlab.batch._outcome import CallResult, Outcome, PlannedCall
from speechlab.errors import AuthenticationError, RunStoppedError, SpeechLabError, StoreError
from speechlab.store import Attempt, Blob, Store, StoredResult

if TYPE_CHECKING:
    from speechlab.batch._run.progress import Tally
    from speechlab.batch._run.rules import RunRules
    from speechlab.batch._run.turns import BatchTurns
    from speechlab.client import CallGroup

SendCall = Callable[["PlannedCall"], Awaitable["CallResult"]]
# A key, its result, and the attempt that succeeded.
ResultEntry = tuple[str, "CallResult", Attempt]
_LARGE_BYTES = 200_000
# Maximum of calls begun per concurrent attempt; the calls beyond the width wait for a retry.
_MAX_CALLS_PER_ATTEMPT = 4
# Seconds that calls in progress, which are paid for, may continue after an interrupt.
GRACE_S = 5.0
# Seconds that calls in progress may continue after a second interrupt.
SECOND_GRACE_S = 1.0


def build_outcome(call: PlannedCall, result: CallResult, stored: StoredResult | None) -> Outcome:
    """Return the outcome of a call with a result."""
    timing = result.timing
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


class ResultWriter:
    """The writer of results: all of one turn of the event loop are one commit, and calls count as done after it."""

    def __init__(self, store: Store, operation: str) -> None:
        self._store, self._operation = store, operation
        self._blobs = store.blobs
        self._waiting: list[tuple[ResultEntry, asyncio.Future[StoredResult | None]]] = []

    async def keep_result(
        self, call: PlannedCall, result: CallResult, attempt: Attempt
    ) -> StoredResult | None:
        """Write a result."""
        for file in result.files.values():
            if not isinstance(file, Blob) and len(file[0]) > _LARGE_BYTES:
                await asyncio.to_thread(self._blobs.add_bytes, *file)  # the writer then finds it in the store
        loop = asyncio.get_running_loop()
        written: asyncio.Future[StoredResult | None] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._write_waiting_results)
        self._waiting.append(((call.key, result, attempt), written))
        return await written

    def record_failure(self, attempt: Attempt) -> None:
        """Record a failed attempt."""
        if not self._store.read_only:
            self._store.add_attempt(attempt)

    def write_results(self, made: Sequence[ResultEntry]) -> Sequence[StoredResult | None]:
        """Write results; a result that exists is replaced."""
        with self._store.transaction():
            return [
                self._store.put(
                    key,
                    operation=self._operation,
                    request=result.request,
                    response=result.response,
                    files=result.files,
                    attempt=attempt,
                )
                for key, result, attempt in made
            ]

    def _write_waiting_results(self) -> None:
        batch, self._waiting = self._waiting, []
        try:
            results = self.write_results([entry for entry, _ in batch])
        except Exception as error:  # noqa: BLE001 - raised in each waiting task
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), stored in zip(batch, results, strict=True):
            if not future.done():
                future.set_result(stored)


class CallsUnderWay:
    """Calls of a piece of the table while they are made: their tasks and outcomes, and the error that ends them."""

    def __init__(self, tally: Tally, rules: RunRules) -> None:
        self._tally, self._rules = tally, rules
        self.outcomes: dict[str, Outcome] = {}
        self._fault: BaseException | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _stop_on_error(self, error: Exception) -> None:
        """Stop the run because of an error that no row caused."""
        if self._fault is None:
            self._fault = error
            self._rules.stop.set(f"{type(error).__name__}: {error}", "failed")

    @asynccontextmanager
    async def _watch_stop_requests(self, stopped: Callable[[], object]) -> AsyncIterator[None]:
        """Have the loop call a function at each request to stop; at the end, end the tasks and raise the error."""
        loop = asyncio.get_running_loop()

        def notify_loop() -> None:
            with suppress(RuntimeError):  # the loop is closed: the run is over
                loop.call_soon_threadsafe(stopped)

        try:
            with self._rules.stop.register_listener_during(notify_loop):
                yield
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._fault is not None:
            raise self._fault


class CallWindow(CallsUnderWay):
    """A sliding window of calls: as soon as one ends, the next begins; attempts and retries are the scheduler's."""

    def __init__(
        self,
        send: SendCall,
        writer: ResultWriter,
        tally: Tally,
        group: CallGroup,
        rules: RunRules,
        turns: BatchTurns | None = None,
    ) -> None:
        super().__init__(tally, rules)
        self._turns = turns
        self._send, self._writer = send, writer
        self._group, self._width = group, group.concurrency
        self._feed: Iterator[PlannedCall] = iter(())
        self._dry = False
        self._an_end = asyncio.Event()

    async def run(self, calls: Iterable[PlannedCall]) -> None:
        """Make the calls, until all are made or the run stops, and wait for those in progress."""
        self._feed, self._dry, stopped = iter(calls), False, asyncio.Event()

        def stop_calls() -> None:
            self._group.stop()
            stopped.set()

        async with self._watch_stop_requests(stop_calls):
            self._group.on_repeat.add(self._start_call_tasks)
            watch = asyncio.create_task(self._cancel_tasks_after_interrupt(stopped))
            try:
                self._start_call_tasks()
                while self._tasks:
                    await asyncio.wait([*self._tasks], return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._group.on_repeat.discard(self._start_call_tasks)
                watch.cancel()

    def _count_free_places(self) -> int:
        """Number of further calls that may begin: the free width, and one for each call that waits for a retry."""
        most = min(self._width + self._group.repeating, _MAX_CALLS_PER_ATTEMPT * self._width)
        return most - len(self._tasks)

    def _start_call_tasks(self) -> None:
        while self._count_free_places() > 0 and not self._dry and not self._rules.stop.reason:
            self._start_task(self._make_calls_in_turn())

    async def _cancel_tasks_after_interrupt(self, stopped: asyncio.Event) -> None:
        stop = self._rules.stop
        await stopped.wait()
        if stop.status != "interrupted":
            return
        stopped.clear()
        if not stop.hurried:
            with suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), GRACE_S)
        if stop.hurried:
            await asyncio.sleep(SECOND_GRACE_S)
        for task in self._tasks:
            task.cancel()

    async def _make_calls_in_turn(self) -> None:
        stop = self._rules.stop
        while not stop.reason:
            if self._count_free_places() < 0:
                # Before the task is done: of several calls that end together, only the surplus may go.
                self._tasks.difference_update({asyncio.current_task()})
                return
            call = next(self._feed, None)
            if call is None:
                self._dry = True
                return
            async with nullcontext() if self._turns is None else self._turns.take_turn(call.key):
                if self._rules.stop.reason or not await self._try_call(call):
                    return

    async def _try_call(self, call: PlannedCall) -> bool:
        """Make a call once the rules admit it. Return whether more calls may follow."""
        stop = self._rules.stop
        while (reserved := self._rules.reserve_or_stop(call)) is None:
            if stop.reason:
                return False
            await self._an_end.wait()
        outcome = None
        try:
            outcome = await self._make_call(call)
        except RunStoppedError as error:
            if error.timing is not None and error.timing.attempts:  # which will not be made again
                text = f"not asked again after {error.timing.attempts} attempts that failed: {stop.reason}"
                self.outcomes[call.key] = Outcome(
                    "cancelled", error_text=text, attempts=error.timing.attempts
                )
            return False
        except asyncio.CancelledError:
            return False
        except Exception as error:  # noqa: BLE001 - raised by run, once the other calls have ended
            outcome = self._handle_fatal_error(error)
        finally:
            self._rules.count_outcome(call, outcome, reserved)
            self._an_end.set()  # wakes the tasks that wait now
            self._an_end.clear()
        self.outcomes[call.key] = outcome
        self._tally.add_outcome(outcome)
        return True

    def _handle_fatal_error(self, error: Exception) -> Outcome:
        """Stop the run, and return the outcome of the call at which that became clear."""
        self._stop_on_error(error)
        ours = error if isinstance(error, SpeechLabError) else None
        timing = getattr(error, "timing", None)
        attempts = 0 if timing is None else timing.attempts
        return Outcome("error", error=ours, error_text=str(error), attempts=attempts)

    async def _make_call(self, call: PlannedCall) -> Outcome:
        started, clock = time.time(), time.perf_counter()
        try:
            result = await self._send(call)
        except (AuthenticationError, RunStoppedError, StoreError):
            raise
        except SpeechLabError as error:
            if error.service_lost and not getattr(error, "attempts", 1):
                self._rules.stop_for_lost_service(error)
                raise RunStoppedError(str(error)) from None
            latency_s = time.perf_counter() - clock
            status = getattr(error, "status", None) or None
            where = getattr(error, "traceback", "")
            text = f"{error}\n\n{where}" if where else str(error)
            self._writer.record_failure(
                Attempt(call.key, started, latency_s, "error", status, type(error).__name__, text)
            )
            timing = error.timing
            return Outcome(
                "error",
                error=error,
                attempts=timing.attempts if timing is not None else getattr(error, "attempts", 0),
                latency_s=latency_s,
                failed_at=started + latency_s,
                first_byte_s=timing.first_byte_s if timing is not None else None,
            )
        attempt = Attempt(call.key, started, result.timing.latency_s, "ok", 200)
        return build_outcome(call, result, await self._writer.keep_result(call, result, attempt))
