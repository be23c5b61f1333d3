"""The caller of a batch: its thread waits while the client's loop makes the calls, and passes interrupts on."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from speechlab.batch._run.progress import ProgressDisplay, Tally, choose_progress
from speechlab.batch._run.window import GRACE_S, SECOND_GRACE_S, CallWindow, ResultWriter
from speechlab.client import (
    AsyncClient,
    CallGroup,
    Client,
    check_and_save_service,
    copy_with_group,
    replace_store_if_replaying,
    start_work,
    wait_for_result,
)
from speechlab.errors import InvalidRequestError, SpeechLabError, StoreError

if TYPE_CHECKING:
    from speechlab.batch._run.execution import Execution
    from speechlab.batch._run.turns import BatchTurns, LeaseTurns
    from speechlab.store import Store

T = TypeVar("T")
# Interval in seconds at which a blocked thread checks the client's loop and updates the progress display.
_POLL_S = 0.05
# Seconds that an interrupted run has to end after the wait for its calls is over.
_MAX_END_S = 10.0


class BlockingCaller:
    """The caller's thread, which blocks while the client's loop makes calls, shows progress and gets interrupts."""

    def __init__(self, lab: object, options: Mapping[str, Any]) -> None:
        if not isinstance(lab, Client):
            text = repr(lab)
            name = text if len(text.splitlines()) == 1 else f"a {type(lab).__name__}"
            message = f"lab is {name}; give a Client, as sl.connect() does, or sl.system of a function"
            if isinstance(lab, AsyncClient):
                message += ", and in a coroutine: await asyncio.to_thread(sl.batch.translate, table, lab)"
            raise InvalidRequestError(message, parameter="lab")
        self.lab = lab
        self._options: Mapping[str, Any] = {"concurrency": 1, "rate": None, **options}
        self._grouped: tuple[AsyncClient, CallGroup] | None = None
        self._admitted: Future[None] = Future()
        # made when there is something to show
        self.progress = cache(partial(choose_progress, options["progress"]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._grouped is not None:
            self._grouped[1].end()

    def open_client_and_group(self, lab: AsyncClient, tally: Tally) -> tuple[AsyncClient, CallGroup]:
        """The one copy of the client whose calls are those of the batch, and their group; for the client's loop."""
        if self._grouped is None:
            options = {name: self._options[name] for name in ("concurrency", "rate", "give_up_after_s")}
            self._grouped = copy_with_group(lab, **options)
        if self._grouped[1].find_pause not in tally.pauses:
            tally.pauses.append(self._grouped[1].find_pause)
        return self._grouped

    def ask_with_progress(
        self, question: Callable[[AsyncClient, Tally], Coroutine[Any, Any, T]], label: str
    ) -> T:
        """Request something from the service, and show the wait for it."""
        tally = Tally()
        display = ProgressDisplay(tally, self.progress, label)
        try:
            return self._run_in_loop(lambda lab: question(lab, tally), display)
        finally:
            if not self.cancel_unbegun():
                self.future.cancel()
            display.close()

    def _run_in_loop(
        self, question: Callable[[AsyncClient], Coroutine[Any, Any, T]], display: ProgressDisplay
    ) -> T:
        """Have the client's loop answer a question, which begins once it is admitted, and show the wait."""
        self.start(question)
        self.admit()
        while wait([self.future], _POLL_S).not_done:
            display.show()
        answer: T = wait_for_result(self.future)
        return answer

    def start(self, question: Callable[[AsyncClient], Coroutine[Any, Any, Any]]) -> None:
        """Give the client's loop a question, which begins once it is admitted."""
        self._admitted = Future()
        self.future: Future[Any] = start_work(self.lab, question, self._admitted)

    def admit(self) -> None:
        """Let the question begin."""
        self._admitted.set_result(None)

    def cancel_unbegun(self) -> bool:
        """Cancel a question that has not begun. Return False if it has."""
        return self._admitted.cancel()

    async def make_calls(
        self, execution: Execution, store: Store, turns: BatchTurns | LeaseTurns | None, lab: AsyncClient
    ) -> None:
        """Make the calls of an execution in this process, or in the workers of a cluster."""
        try:
            if store.read_only and not execution.keep:
                message = (
                    f"the store {store.path} can only be read, and a run must be recorded in its store; "
                    "sl.batch.assemble(plan) makes a table of the stored results"
                )
                raise StoreError(message)
            mine, group = self.open_client_and_group(replace_store_if_replaying(lab, store), execution.tally)
            ready = partial(check_and_save_service, mine, store, execution.plan.service)
            if execution.options["executor"] is None:
                await _make_calls_here(execution, store, mine, group, ready, turns)
                return
            execution.tally.pauses.remove(group.find_pause)
            lent = replace_store_if_replaying(self.lab, store)
            await _make_calls_in_cluster(execution, store, lent, ready, turns)
        finally:
            if turns is not None:
                turns.end()


async def _make_calls_here(
    execution: Execution,
    store: Store,
    lab: AsyncClient,
    group: CallGroup,
    ready: Callable[[], Coroutine[Any, Any, None]],
    turns: Any,
) -> None:
    """Make the calls in this process, in turns with other batches if there are some."""
    step = execution.plan.step
    writer = ResultWriter(store, step.operation)
    window = partial(CallWindow, partial(step.send, lab=lab), writer, execution.tally, group, turns=turns)

    async def prepare() -> None:
        await ready()
        if turns is not None:
            turns.begin(group)

    await execution.run(store, window, prepare)


async def _make_calls_in_cluster(
    execution: Execution,
    store: Store,
    lab: Client,
    ready: Callable[[], Coroutine[Any, Any, None]],
    turns: Any,
) -> None:
    """Have the workers of a cluster make the calls, whose leases are in turns with those of other batches."""
    from speechlab.batch._run.cluster import open_workers
    from speechlab.batch._run.lease_window import LeaseWindow

    step, options, run = execution.plan.step, execution.options, execution.record.id
    async with open_workers(options["executor"], step, lab, store, run, options) as workers:
        execution.tally.pauses.append(workers.find_pause)
        if turns is not None:
            turns.notify = workers.changed.set
        window = partial(LeaseWindow, workers, store, step.operation, execution.tally, turns=turns)
        await execution.run(store, window, ready)


class BatchPart(NamedTuple):
    """A batch whose calls are made at the same time as those of others."""

    caller: BlockingCaller
    execution: Execution
    store: Store
    turns: BatchTurns | LeaseTurns | None = None

    def start(self) -> None:
        """Start the calls, which begin once they are admitted."""
        self.caller.start(partial(self.caller.make_calls, self.execution, self.store, self.turns))


def make_calls(
    parts: Sequence[BatchPart], lost: tuple[type[SpeechLabError], ...] = ()
) -> list[SpeechLabError | None]:
    """Make the calls of batches. Return the error of each, if it is one of those that end a batch alone."""
    execution = parts[0].execution
    display = ProgressDisplay(execution.tally, parts[0].caller.progress, execution.plan.step.operation)
    admitted: list[BlockingCaller] = []
    try:
        for part in parts:
            part.start()
        for part in parts:
            admitted.append(part.caller)
            part.caller.admit()
        errors = _await_ends(parts, display, lost)
    except BaseException as error:
        # an interrupt, or an error of the user's progress function: no call may continue in the background
        interrupted = isinstance(error, KeyboardInterrupt)
        begun = [
            part for part in parts if not part.caller.cancel_unbegun() and part.caller in admitted
        ]  # each is canceled that has not begun, also one whose start was interrupted
        if not begun:
            if interrupted:
                text = "the batch was interrupted before its first call; the same call again makes it"
                error.args = (text,)
            raise
        reason = "the user interrupted it" if interrupted else "the progress display failed"
        try:
            if _await_interrupted_runs(begun, display, reason) and interrupted:
                _await_ends(begun, display, lost)  # an error at the end of the run replaces the interrupt
        finally:
            for part in begun:
                part.caller.future.cancel()
        with suppress(Exception):
            display.close()
        if interrupted:
            error.args = (execution.describe_interruption(),)
        raise
    display.close()
    return errors


def _await_ends(
    parts: Sequence[BatchPart], display: ProgressDisplay, lost: tuple[type[SpeechLabError], ...]
) -> list[SpeechLabError | None]:
    """Show the wait until all batches have ended, or until one has an error that ends them all, and raise it."""
    errors: dict[int, SpeechLabError] = {}
    left = {part.caller.future: number for number, part in enumerate(parts)}
    while left:
        ended, under_way = wait(left, _POLL_S)
        if under_way:
            display.show()
        for future in ended:
            number = left.pop(future)
            try:
                wait_for_result(future)
            except lost as error:
                errors[number] = error
    return [errors.get(number) for number in range(len(parts))]


def _await_interrupted_runs(parts: Sequence[BatchPart], display: ProgressDisplay, reason: str) -> bool:
    """Wait for interrupted runs to end, for calls in progress are paid for; another interrupt shortens it."""
    until = time.monotonic() + GRACE_S
    parts[0].execution.tally.pauses[:] = [lambda: ("calls under way", max(0.0, until - time.monotonic()))]
    futures = [part.caller.future for part in parts]
    while True:
        try:
            while not all(future.done() for future in futures) and time.monotonic() < until + _MAX_END_S:
                for part in parts:
                    part.execution.stop.set(reason, "interrupted")
                wait(futures, _POLL_S)
                with suppress(Exception):
                    display.show()
            return all(future.done() for future in futures)
        except KeyboardInterrupt:
            until = min(until, time.monotonic() + SECOND_GRACE_S)
            for part in parts:
                part.execution.stop.hurry()
