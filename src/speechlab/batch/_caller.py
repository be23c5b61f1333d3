"""The caller of a batch: its thread plans a table, waits while the client makes the calls, and joins the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from speechlab.batch._history import Run
from speechlab.batch._options import CallingOptions, WaitingOptions, check_and_sort_options
from speechlab.batch._outcome import add_advice
from speechlab.batch._plan.plan import Plan, build_plan, check_plan
from speechlab.batch._plan.source import Partitions, Table, open_source
from speechlab.batch._plan.steps import RowStep, SynthesisStep, TranscriptionStep, TranslationStep
from speechlab.batch._run.execution import Execution
from speechlab.batch._run.progress import ProgressDisplay, Tally, choose_progress, show_progress
from speechlab.batch._run.turns import BatchTurns, CallTurns, LeaseTurns
from speechlab.batch._run.window import GRACE_S, SECOND_GRACE_S, CallWindow, ResultWriter
from speechlab.batch._store_options import KeepingOptions, is_existing_store, use_store
from speechlab.batch._table.assemble import RUN_ATTRIBUTE, join_frames, to_requested_form
from speechlab.client import (
    AsyncClient,
    CallGroup,
    Client,
    VoiceCatalogue,
    check_and_save_service,
    copy_with_group,
    get_service,
    identify_service_and_voices,
    replace_store_if_replaying,
    start_work,
    wait_for_result,
)
from speechlab.errors import InvalidRequestError, SpeechLabError, StoreError

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.store import Store

T = TypeVar("T")
# Interval in seconds at which a blocked thread checks the client's loop and updates the progress display.
_POLL_S = 0.05
# Seconds that an interrupted run has to end after the wait for its calls is over.
_MAX_END_S = 10.0
# Seconds of reading recordings before a bar shows it.
_BAR_DELAY_S = 2.0
_STEPS: dict[str, type[RowStep]] = {
    step.operation: step for step in (SynthesisStep, TranscriptionStep, TranslationStep)
}


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
    from speechlab.batch._run.cluster import LeaseWindow, open_workers

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
            make_calls([BatchPart(caller, execution, store)])
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
        make_calls([BatchPart(caller, execution, store)])
    execution.warn_or_raise_failures()
    if of_dask:
        frame: pd.DataFrame = Run(execution.record, store.path).dask(columns=keeping["columns"])
        return frame
    return _join_table(execution)


def _join_table(execution: Execution) -> pd.DataFrame:
    """Join the pieces of a batch to a table in the user's form."""
    plan = execution.plan
    joined = join_frames(execution.frames, type(plan.step), plan.prefix)
    if execution.recorded:
        joined.attrs[RUN_ATTRIBUTE] = execution.record.id
    return to_requested_form(joined, plan.source, plan.prefix, plan.columns)


class TableRequest(NamedTuple):
    """What an operation of a batch gets for one of several tables."""

    operation: str  # synthesize, transcribe or translate
    lab: Client
    frame: pd.DataFrame
    options: Mapping[str, Any]


def process_in_turns(
    requests: Mapping[str, TableRequest], lost: tuple[type[SpeechLabError], ...]
) -> tuple[dict[str, pd.DataFrame], dict[str, SpeechLabError]]:
    """Process tables in memory at the same time, the calls of their first rows first.

    So a service that changes meanwhile changes for all of them. The workers of a cluster get leases in turns.

    Returns:
        The tables, and the errors that end a batch alone; a client that has one is asked for no further table.
    """
    tables: dict[str, pd.DataFrame] = {}
    errors: dict[str, SpeechLabError] = {}
    of_clients: dict[int, SpeechLabError] = {}
    parts: dict[str, BatchPart] = {}
    tally, turns = Tally(), None
    leases: list[LeaseTurns] = []
    with ExitStack() as stack:
        for name, (operation, lab, frame, given) in requests.items():
            kind = _STEPS[operation]
            lists = kind.parameters, KeepingOptions, CallingOptions
            parameters, keeping, options = check_and_sort_options(kind.operation, given, *lists)
            try:
                if (known := of_clients.get(id(lab))) is not None:
                    raise known
                if options["executor"] is not None:  # each worker makes the calls of all
                    options["concurrency"] = max(1, options["concurrency"] // len(requests))
                opening = _open_plan_and_store(lab, kind, frame, parameters, keeping, options)
                caller, plan, store = stack.enter_context(opening)
            except lost as error:
                errors[name] = of_clients[id(lab)] = error
                continue
            execution, places = Execution(plan, options, tally=tally), get_service(lab).places or 0
            if options["executor"] is None:
                turns = turns or CallTurns(options["concurrency"])
                parts[name] = BatchPart(caller, execution, store, turns.add_batch(plan, places))
            else:
                parts[name] = BatchPart(caller, execution, store, LeaseTurns.of_plan(leases, plan))
        ends = make_calls(list(parts.values()), lost) if parts else []
        errors |= {name: error for name, error in zip(parts, ends, strict=True) if error is not None}
    for name in parts.keys() - errors.keys():
        parts[name].execution.warn_or_raise_failures()
    tables |= {name: _join_table(part.execution) for name, part in parts.items() if name not in errors}
    return {name: tables[name] for name in requests if name in tables}, errors


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
        step = kind(parameters, source.columns, service, voices, get_service(caller.lab))
        store = store or stack.enter_context(use_store(keeping["store"]))
        rows = len(source.whole) if source.whole is not None and kind.works_on == "audio" else 0
        # a function and a watcher are for calls
        with show_progress(
            progress is True, rows, "read recordings", unit="row", delay_s=_BAR_DELAY_S
        ) as advance:
            plan = build_plan(source, step, keeping, store, service, advance)
        yield caller, plan, store


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
