"""The two ways to wait for a batch: by blocking the caller's thread, and by ``await``.

Progress is shown where the caller's output is: by its thread, or on its loop.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from speechlab.batch._keeping import opened
from speechlab.batch._run.pace import paced
from speechlab.batch._run.progress import Display
from speechlab.batch._run.window import lend_places
from speechlab.client import AsyncClient, Client, begin, remember_service, replaying_from, telling
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from speechlab.batch._run.execution import Execution

P = ParamSpec("P")
T = TypeVar("T")
_LOOK_S = 0.05
"""How often a blocked thread looks at the client's loop, and shows progress."""
_SHOW_S = 0.1
_END_S = 10.0
"""How long an interrupted run may take to end."""


class Blocking:
    """Waiting by blocking the caller's thread; calls are made on the client's loop.

    ``ask`` puts a question to the service, ``compute`` does work that makes no calls, and ``perform`` makes the
    calls of an execution and shows its progress. None of them suspends, so that :func:`waited` needs no loop.
    """

    def __init__(self, lab: object) -> None:
        if not isinstance(lab, Client):
            message = (
                f"lab is {lab!r}; give a Client, as sl.connect() does; with an AsyncClient, await the functions "
                "that begin with a, such as sl.batch.atranslate"
            )
            raise InvalidRequestError(message, parameter="lab")
        self._lab = lab

    async def ask(self, question: Callable[[AsyncClient], Coroutine[Any, Any, T]]) -> T:
        future = begin(self._lab, question)
        try:
            return future.result()
        finally:
            future.cancel()

    async def compute(self, function: Callable[[], T]) -> T:
        return function()

    async def perform(self, execution: Execution) -> None:
        display = _display(execution)
        future = begin(self._lab, lambda lab: _perform(execution, lab))
        try:
            while wait([future], _LOOK_S).not_done:
                display.show()
            future.result()
        except BaseException as error:
            # an interrupt, or the user's function of progress failed: let nothing go on unseen
            interrupted = isinstance(error, KeyboardInterrupt)
            reason = "someone interrupted it" if interrupted else "showing progress failed"
            execution.stop.set(reason, "interrupted")
            if wait([future], _END_S).done and interrupted:
                future.result()  # what kept the run from ending well is told in place of the interrupt
            raise
        finally:
            future.cancel()
            with suppress(Exception):
                display.close()


class Awaiting:
    """Waiting on the caller's loop, which goes on meanwhile; the same methods, and they suspend."""

    def __init__(self, lab: object) -> None:
        if not isinstance(lab, AsyncClient):
            message = (
                f"lab is {lab!r}; give an AsyncClient; "
                "with a Client, call the functions without an a before them"
            )
            raise InvalidRequestError(message, parameter="lab")
        self._lab = lab

    async def ask(self, question: Callable[[AsyncClient], Coroutine[Any, Any, T]]) -> T:
        return await question(self._lab)

    async def compute(self, function: Callable[[], T]) -> T:
        return await asyncio.to_thread(function)

    async def perform(self, execution: Execution) -> None:
        display = _display(execution)
        task = asyncio.create_task(_perform(execution, self._lab))
        try:
            while not task.done():
                await asyncio.wait([task], timeout=_SHOW_S)
                display.show()
            await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            with suppress(Exception):
                display.close()


Waiting = Blocking | Awaiting
"""The way in which the caller of a batch waits."""


def waited(
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
    raise RuntimeError("work that blocks must not wait for a loop")


async def awaited(
    work: Callable[Concatenate[Waiting, P], Coroutine[Any, Any, T]],
    lab: AsyncClient,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Do work with an asynchronous client."""
    return await work(Awaiting(lab), *args, **kwargs)


async def _perform(execution: Execution, lab: AsyncClient) -> None:
    """Make the calls of an execution here, or by workers elsewhere."""
    options, step = execution.options, execution.plan.step
    with opened(execution.plan.store) as store:
        await remember_service(lab, store)
        lab = replaying_from(lab, store)
        if options["executor"] is not None:
            from speechlab.batch._run.dask import workers

            async with workers(options["executor"], step, lab, options) as send:
                await execution.run(store, send)
            return
        told = telling(lab, lend_places)
        await execution.run(store, paced(lambda call: step.send(call, told), options["rate"]))


def _display(execution: Execution) -> Display:
    return Display(execution.tally, execution.options["progress"], execution.plan.step.operation)
