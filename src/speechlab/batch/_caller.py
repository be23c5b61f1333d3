"""The caller of a batch: its thread plans a table, waits while the client makes the calls, and joins the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from speechlab.batch._history import Run
from speechlab.batch._options import CallingOptions, WaitingOptions, check_and_sort_options
from speechlab.batch._outcome import add_advice
from speechlab.batch._plan.plan import Plan, build_plan, check_plan
from speechlab.batch._plan.source import Partitions, Table, open_source
from speechlab.batch._run.execution import Execution
from speechlab.batch._run.progress import BAR, ProgressDisplay, Tally, choose_progress, show_progress
from speechlab.batch._run.window import GRACE_S, SECOND_GRACE_S, CallWindow, ResultWriter
from speechlab.batch._store_options import KeepingOptions, is_existing_store, use_store
from speechlab.batch._table.assemble import RUN_ATTRIBUTE, join_frames, to_requested_form
from speechlab.client import (
    AsyncClient,
    CallGroup,
    Client,
    VoiceCatalogue,
    adapt_for_client,
    check_and_save_service,
    copy_with_group,
    identify_service_and_voices,
    replace_store_if_replaying,
    start_work,
    wait_for_result,
)
from speechlab.errors import InvalidRequestError, SpeechLabError, StoreError

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.batch._plan.steps import RowStep
    from speechlab.store import Store

T = TypeVar("T")
# Interval in seconds at which a blocked thread checks the client's loop and updates the progress display.
_POLL_S = 0.05
# Seconds that an interrupted run has to end after the wait for its calls is over.
_MAX_END_S = 10.0
# Seconds of reading recordings before a bar shows it.
_BAR_DELAY_S = 2.0


class BlockingCaller:
    """The caller's thread, which blocks while the client's loop makes calls, shows progress and gets interrupts."""

    def __init__(self, lab: object, options: WaitingOptions | CallingOptions) -> None:
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
        self._progress = cache(
            partial(choose_progress, options["progress"])
        )  # made when there is something to show

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
        tally.paused = self._grouped[1].find_pause
        return self._grouped

    def ask_with_progress(
        self, question: Callable[[AsyncClient, Tally], Coroutine[Any, Any, T]], label: str
    ) -> T:
        """Request something from the service, and show the wait for it."""
        tally = Tally()
        display = ProgressDisplay(tally, self._progress, label)
        try:
            return self._run_in_loop(lambda lab: question(lab, tally), display)
        finally:
            if not self._admitted.cancel():
                self._future.cancel()
            display.close()

    def _run_in_loop(
        self, question: Callable[[AsyncClient], Coroutine[Any, Any, T]], display: ProgressDisplay
    ) -> T:
        """Have the client's loop answer a question, which begins once it is admitted, and show the wait."""
        self._admitted: Future[None] = Future()
        self._future: Future[Any] = start_work(self.lab, question, self._admitted)
        self._admitted.set_result(None)
        while wait([self._future], _POLL_S).not_done:
            display.show()
        answer: T = wait_for_result(self._future)
        return answer

    def make_calls(self, execution: Execution, store: Store) -> None:
        """Make the calls of an execution."""
        display = ProgressDisplay(execution.tally, self._progress, execution.plan.step.operation)
        try:
            self._run_in_loop(lambda lab: self._make_calls(execution, store, lab), display)
        except BaseException as error:
            # an interrupt, or an error of the user's progress function: no call may continue in the background
            interrupted = isinstance(error, KeyboardInterrupt)
            if self._admitted.cancel():
                if interrupted:
                    error.args = (
                        "the batch was interrupted before its first call; the same call again makes it",
                    )
                raise
            reason = "the user interrupted it" if interrupted else "the progress display failed"
            try:
                if _await_interrupted_run(self._future, execution, display, reason) and interrupted:
                    wait_for_result(self._future)  # an error at the end of the run replaces the interrupt
            finally:
                self._future.cancel()
            with suppress(Exception):
                display.close()
            if interrupted:
                error.args = (execution.describe_interruption(),)
            raise
        display.close()

    async def _make_calls(self, execution: Execution, store: Store, lab: AsyncClient) -> None:
        """Make the calls of an execution in this process, or in the workers of a cluster."""
        options, step = execution.options, execution.plan.step
        if store.read_only and not execution.keep:
            message = (
                f"the store {store.path} can only be read, and a run must be recorded in its store; "
                "sl.batch.assemble(plan) makes a table of the stored results"
            )
            raise StoreError(message)
        mine, group = self.open_client_and_group(replace_store_if_replaying(lab, store), execution.tally)

        tally, ready = execution.tally, partial(check_and_save_service, mine, store, execution.plan.service)
        if options["executor"] is None:
            send = partial(step.send, lab=mine)
            await execution.run(
                store, partial(CallWindow, send, ResultWriter(store, step.operation), tally, group), ready
            )
            return
        from speechlab.batch._run.cluster import LeaseWindow, open_workers

        replaying = replace_store_if_replaying(self.lab, store)
        async with open_workers(
            options["executor"], step, replaying, store, execution.record.id, options
        ) as workers:
            tally.paused = workers.find_pause
            await execution.run(store, partial(LeaseWindow, workers, store, step.operation, tally), ready)


def plan_table(lab: Client, kind: type[RowStep], table: Table, given: Mapping[str, Any]) -> Plan:
    """Plan an operation over a table."""
    lists = kind.parameters, KeepingOptions, WaitingOptions
    if later := sorted(
        set(given) & (set(CallingOptions.__annotations__) - set(WaitingOptions.__annotations__))
    ):
        names = ", ".join(map(repr, later))
        message = f"{names} is no option of a plan; give it to the run: sl.batch.run(plan, lab, …)"
        raise InvalidRequestError(message, parameter=later[0])
    parameters, keeping, patience = check_and_sort_options(f"a plan to {kind.operation}", given, *lists)
    with _open_plan_and_store(lab, kind, table, parameters, keeping, patience) as (_, plan, _):
        return plan


def run_plan(lab: Client, plan: Plan, given: Mapping[str, Any]) -> Run:
    """Run a plan. Its table is written to the store and not kept in memory."""
    (options,) = check_and_sort_options("a run", given, CallingOptions)
    with BlockingCaller(lab, options) as caller:
        execution = Execution(check_plan(plan), options, keep=False)
        with use_store(plan.store) as store:
            caller.make_calls(execution, store)
    execution.warn_or_raise_failures()
    return Run(execution.record, plan.store)


def process_table(lab: Client, kind: type[RowStep], table: Table, given: Mapping[str, Any]) -> pd.DataFrame:
    """Plan an operation over a table, run the plan, and join its table."""
    lists = kind.parameters, KeepingOptions, CallingOptions
    parameters, keeping, options = check_and_sort_options(kind.operation, given, *lists)
    with _open_plan_and_store(
        lab, kind, table, parameters, keeping, options, in_pieces=options["executor"] is None
    ) as (caller, plan, store):
        of_dask = isinstance(plan.source.frames, Partitions)
        execution = Execution(plan, options, keep=not of_dask)
        caller.make_calls(execution, store)
    execution.warn_or_raise_failures()
    if of_dask:
        frame: pd.DataFrame = Run(execution.record, store.path).dask(columns=keeping["columns"])
        return frame
    joined = join_frames(execution.frames, kind, plan.prefix)
    if execution.recorded:
        joined.attrs[RUN_ATTRIBUTE] = execution.record.id
    return to_requested_form(joined, plan)


@contextmanager
def _open_plan_and_store(
    lab: Client,
    kind: type[RowStep],
    table: Table,
    parameters: Mapping[str, Any],
    keeping: KeepingOptions,
    patience: WaitingOptions | CallingOptions,
    *,
    in_pieces: bool = False,
) -> Iterator[tuple[BlockingCaller, Plan, Store]]:
    """A caller, a plan, and its store, open for the block; ``in_pieces`` is for a run that follows at once."""
    progress = patience["progress"]
    with ExitStack() as stack:
        caller = stack.enter_context(BlockingCaller(lab, patience))
        source = open_source(table, kind.works_on)
        if source.series and parameters[kind.works_on] == kind.works_on:
            parameters = {**parameters, kind.works_on: source.columns[0]}
        if kind.works_on == "audio":
            source = source.with_recordings(getattr(column := parameters["audio"], "name", column))
            source = source.in_pieces() if in_pieces else source
        store = (
            stack.enter_context(use_store(keeping["store"])) if is_existing_store(keeping["store"]) else None
        )

        async def identify_with_advice(lab: AsyncClient, tally: Tally) -> tuple[str, VoiceCatalogue | None]:
            lab = replace_store_if_replaying(lab, keeping["store"])
            mine, _ = caller.open_client_and_group(lab, tally)
            try:
                return await identify_service_and_voices(lab, mine, store, voices=kind.wants_voices)
            except SpeechLabError as error:
                if error.service_lost:
                    advice = "the batch gave the service up before it began; give_up_after_s says how long it waits"
                    add_advice(error, advice)
                raise

        service, voices = caller.ask_with_progress(identify_with_advice, kind.operation)
        fit = partial(adapt_for_client, caller.lab)
        step = kind(parameters, source.columns, service, voices, fit)
        store = store or stack.enter_context(use_store(keeping["store"]))
        rows = len(source.whole) if source.whole is not None and kind.works_on == "audio" else 0
        with_bar = progress is True or progress == BAR  # only a bar shows the reading
        with show_progress(with_bar, rows, "read recordings", unit="row", delay_s=_BAR_DELAY_S) as advance:
            plan = build_plan(source, step, keeping, store, service, advance)
        yield caller, plan, store


def _await_interrupted_run(
    future: Future[None], execution: Execution, display: ProgressDisplay, reason: str
) -> bool:
    """Wait for an interrupted run to end, for calls in progress are paid for; another interrupt shortens it."""
    until = time.monotonic() + GRACE_S
    execution.tally.paused = lambda: ("calls under way", max(0.0, until - time.monotonic()))
    while True:
        try:
            while not future.done() and time.monotonic() < until + _MAX_END_S:
                execution.stop.set(reason, "interrupted")
                wait([future], _POLL_S)
                with suppress(Exception):
                    display.show()
            return future.done()
        except KeyboardInterrupt:
            until = min(until, time.monotonic() + SECOND_GRACE_S)
            execution.stop.hurry()
