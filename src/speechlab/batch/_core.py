"""The steps of a batch: plan a table, run the plan, join the results.

:class:`Blocking` and :class:`Awaiting` are the two ways in which a caller waits. The caller's own thread or event
loop shows the progress, because the caller's output belongs to it.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import wait
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from speechlab.batch._arguments import sort_options
from speechlab.batch._history.run import Run
from speechlab.batch._keeping import KeepingOptions, is_there, opened
from speechlab.batch._outcome import advise
from speechlab.batch._plan.plan import check_plan, make_plan
from speechlab.batch._plan.source import open_source
from speechlab.batch._run.execution import Execution
from speechlab.batch._run.options import RunOptions, WaitingOptions
from speechlab.batch._run.progress import Display, Tally, counted
from speechlab.batch._run.window import GRACE_S, LAST_S
from speechlab.batch._table.assemble import as_asked, join_frames
from speechlab.batch._table.record import RUN_ATTRIBUTE
from speechlab.client import (
    AsyncClient,
    Client,
    ask_service,
    begin,
    fitted_to,
    grouped,
    remember_service,
    replaying_from,
    result_of,
)
from speechlab.errors import InvalidRequestError, SpeechLabError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from concurrent.futures import Future

    import pandas as pd

    from speechlab.batch._plan.plan import Plan
    from speechlab.batch._plan.rows import RowStep
    from speechlab.batch._plan.source import Table
    from speechlab.client import VoiceCatalogue

P = ParamSpec("P")
T = TypeVar("T")
_LOOK_S = 0.05
"""Interval in seconds at which a blocked thread checks the client's loop and updates the progress display."""
_SHOW_S = 0.1
_END_S = 10.0
"""Seconds that an interrupted run has to end after the wait for its calls is over."""
_READING_S = 2.0
"""Seconds of reading recordings before a bar shows it."""


class Blocking:
    """Wait by blocking the caller's thread, while calls are made on the client's loop.

    ``ask`` requests something from the service, ``compute`` does work without calls, and ``perform`` makes the calls
    of an execution and shows its progress. None of them suspends, so :func:`run_blocking` needs no loop.
    """

    def __init__(self, lab: object) -> None:
        if not isinstance(lab, Client):
            message = (
                f"lab is {_named(lab)}; give a Client, as sl.connect() does; with an AsyncClient, await the "
                "functions that begin with a, such as sl.batch.atranslate"
            )
            raise InvalidRequestError(message, parameter="lab")
        self.lab = lab

    async def ask(self, question: Callable[[AsyncClient], Coroutine[Any, Any, T]], display: Display) -> T:
        future = begin(self.lab, question)
        try:
            while wait([future], _LOOK_S).not_done:
                display.show()
            return result_of(future)
        finally:
            future.cancel()
            display.close()

    async def compute(self, function: Callable[[], T]) -> T:
        return function()

    async def perform(self, execution: Execution) -> None:
        display = _display(execution)
        future = begin(self.lab, lambda lab: _perform(execution, lab))
        try:
            while wait([future], _LOOK_S).not_done:
                display.show()
            result_of(future)
        except BaseException as error:
            # an interrupt, or an error of the user's progress function: no call may continue in the background
            interrupted = isinstance(error, KeyboardInterrupt)
            reason = "the user interrupted it" if interrupted else "the progress display failed"
            if _end(future, execution, display, reason) and interrupted:
                result_of(future)  # an error at the end of the run replaces the interrupt
            with suppress(Exception):
                display.close()
            if interrupted:
                error.args = (execution.interruption(),)
            raise
        finally:
            future.cancel()
        display.close()


class Awaiting:
    """Wait on the caller's loop without blocking it. It has the methods of :class:`Blocking`, and they suspend."""

    def __init__(self, lab: object) -> None:
        if not isinstance(lab, AsyncClient):
            message = (
                f"lab is {_named(lab)}; give an AsyncClient; "
                "with a Client, call the functions without an a before them"
            )
            raise InvalidRequestError(message, parameter="lab")
        self.lab = lab

    async def ask(self, question: Callable[[AsyncClient], Coroutine[Any, Any, T]], display: Display) -> T:
        task = asyncio.ensure_future(question(self.lab))
        try:
            while not task.done():
                await asyncio.wait([task], timeout=_SHOW_S)
                display.show()
            return await task
        finally:
            task.cancel()
            display.close()

    async def compute(self, function: Callable[[], T]) -> T:
        return await asyncio.to_thread(function)

    async def perform(self, execution: Execution) -> None:
        display = _display(execution)
        task = asyncio.create_task(_perform(execution, self.lab))
        try:
            while not task.done():
                await asyncio.wait([task], timeout=_SHOW_S)
                display.show()
            await task
        except BaseException as error:
            if isinstance(
                error, Exception
            ):  # calls in progress are paid for; a cancellation does not wait for them
                execution.stop.set("showing progress failed", "interrupted")
                await asyncio.wait([task], timeout=_END_S)
            else:
                error.add_note(execution.interruption())
            with suppress(Exception):
                display.close()
            raise
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        display.close()


def _named(lab: object) -> str:
    """The value given as a client, in one line for a message. A table is not written out."""
    shown = repr(lab)
    return shown if len(shown.splitlines()) == 1 else f"a {type(lab).__name__}"


Waiting = Blocking | Awaiting
"""How the caller of a batch waits: by blocking or by ``await``."""


def run_blocking(
    work: Callable[Concatenate[Waiting, P], Coroutine[Any, Any, T]],
    lab: Client,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Do work with a synchronous client, and block until it is done."""
    running = work(Blocking(lab), *args, **kwargs)
    try:
        running.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    running.close()
    raise RuntimeError("a blocking batch must not suspend")


async def run_awaiting(
    work: Callable[Concatenate[Waiting, P], Coroutine[Any, Any, T]],
    lab: AsyncClient,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Do work with an asynchronous client."""
    return await work(Awaiting(lab), *args, **kwargs)


async def plan_table(waiting: Waiting, kind: type[RowStep], table: Table, given: Mapping[str, Any]) -> Plan:
    """Plan an operation over a table."""
    lists = kind.parameters, KeepingOptions, WaitingOptions
    if later := sorted(set(given) & (set(RunOptions.__annotations__) - set(WaitingOptions.__annotations__))):
        names = ", ".join(map(repr, later))
        message = f"{names} is no option of a plan; give it to the run: sl.batch.run(plan, lab, …)"
        raise InvalidRequestError(message, parameter=later[0])
    parameters, keeping, patience = sort_options(f"a plan to {kind.operation}", given, *lists)
    return await _plan(waiting, kind, table, parameters, keeping, patience)


async def run_plan(waiting: Waiting, plan: Plan, given: Mapping[str, Any]) -> Run:
    """Run a plan. Its table is written to the store and not kept in memory."""
    (options,) = sort_options("a run", given, RunOptions)
    execution = Execution(check_plan(plan), options, keep=False)
    await waiting.perform(execution)
    execution.finish()
    return Run(execution.record, plan.store)


async def make_table(
    waiting: Waiting, kind: type[RowStep], table: Table, given: Mapping[str, Any]
) -> pd.DataFrame:
    """Plan an operation over a table, run the plan, and join its table."""
    lists = kind.parameters, KeepingOptions, RunOptions
    parameters, keeping, options = sort_options(kind.operation, given, *lists)
    plan = await _plan(waiting, kind, table, parameters, keeping, options)
    execution = Execution(plan, options, keep=True)
    await waiting.perform(execution)
    execution.finish()
    joined = join_frames(execution.frames, kind, plan.prefix)
    if execution.recorded:
        joined.attrs[RUN_ATTRIBUTE] = execution.record.id
    return as_asked(joined, plan)


async def _plan(
    waiting: Waiting,
    kind: type[RowStep],
    table: Table,
    parameters: Mapping[str, Any],
    keeping: KeepingOptions,
    patience: WaitingOptions,
) -> Plan:
    source = open_source(table, kind.works_on)
    if source.series and parameters[kind.works_on] == kind.works_on:
        parameters = {**parameters, kind.works_on: source.columns[0]}

    progress, tally = patience["progress"], Tally()

    async def ask(lab: AsyncClient) -> tuple[str, VoiceCatalogue | None]:
        lab, store = replaying_from(lab, keeping["store"]), keeping["store"]
        patient, group = grouped(lab, concurrency=1, give_up_after_s=patience["give_up_after_s"])
        tally.paused = group.paused
        try:
            with opened(store) if is_there(store) else nullcontext() as known:
                return await ask_service(lab, patient, known, voices=kind.wants_voices)
        except SpeechLabError as error:
            if error.service_lost:
                advise(
                    error,
                    "the batch gave the service up before it began; give_up_after_s says how long it waits",
                )
            raise
        finally:
            group.end()

    service, voices = await waiting.ask(ask, Display(tally, progress, kind.operation))

    def compute() -> Plan:
        fit = partial(fitted_to, waiting.lab)
        step = kind(parameters, source.columns, service=service, voices=voices, fit=fit)
        rows = len(source.whole) if source.whole is not None and kind.works_on == "audio" else 0
        shown = progress if progress is True else False  # only a bar shows the reading
        with counted(shown, rows, "read recordings", unit="row", delay_s=_READING_S) as tell:
            return make_plan(source, step, keeping, service=service, tell=tell)

    return await waiting.compute(compute)


async def _perform(execution: Execution, lab: AsyncClient) -> None:
    """Make the calls of an execution in this process, or in the workers of a cluster."""
    options, step = execution.options, execution.plan.step
    with opened(execution.plan.store) as store:
        if store.read_only and not execution.keep:
            message = (
                f"the store {store.path} can only be read, and a run must be recorded in its store; "
                "sl.batch.assemble(plan) makes a table of the stored results"
            )
            raise StoreError(message)
        lab = replaying_from(lab, store)
        executor, rate = options["executor"], options["rate"]
        many = max(1, len(getattr(executor, "ncores", dict)()))
        concurrency, patience_s = options["concurrency"] * many, options["give_up_after_s"]
        lab, group = grouped(lab, concurrency=concurrency, rate=rate, give_up_after_s=patience_s)
        execution.tally.paused = group.paused

        async def ready() -> None:
            await remember_service(lab, store, execution.plan.service)

        try:
            if executor is not None:
                from speechlab.batch._run.dask import workers

                async with workers(executor, step, lab, options["concurrency"]) as send:
                    await execution.run(store, send, ready, group)
                return
            await execution.run(store, lambda call: step.send(call, lab), ready, group)
        finally:
            group.end()


def _end(future: Future[None], execution: Execution, display: Display, reason: str) -> bool:
    """Wait for an interrupted run to end, and return whether it has ended.

    Calls in progress are paid for, so their results are waited for and kept. Further interrupts shorten the wait.
    Results that have arrived are never lost.
    """
    until = time.monotonic() + GRACE_S
    execution.tally.paused = lambda: ("calls under way", max(0.0, until - time.monotonic()))
    while not future.done() and time.monotonic() < until + _END_S:
        try:
            execution.stop.set(reason, "interrupted")
            wait([future], _LOOK_S)
            with suppress(Exception):
                display.show()
        except KeyboardInterrupt:
            until = min(until, time.monotonic() + LAST_S)
            execution.stop.hurry()
    return future.done()


def _display(execution: Execution) -> Display:
    return Display(execution.tally, execution.options["progress"], execution.plan.step.operation)
