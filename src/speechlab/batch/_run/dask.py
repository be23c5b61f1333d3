"""Attempts made by the workers of a Dask cluster, and nothing else: one process plans, schedules, counts and writes.

Each worker has an asynchronous actor that makes attempts: one request and its reply. Calls are handed out one by one,
each to the worker that has the fewest. When an attempt is made, and whether it is made again, the client's scheduler
decides here, as it does without a cluster, so that rate, width and pauses are one for all workers.

An actor that is lost while it is asked may never answer: ``distributed`` drops the error in a callback. So the list
of workers is looked at, and the calls of one that is no longer on it go to others.
"""

from __future__ import annotations

import asyncio
import pickle
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from speechlab._require import require
from speechlab.client import by_attempts, without_scheduler
from speechlab.errors import APIConnectionError, InvalidRequestError, SpeechLabError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from speechlab.batch._plan.rows import CallResult, PlannedCall, RowStep
    from speechlab.batch._run.window import Send
    from speechlab.client import AsyncClient

_LOOK_S = 0.25
"""How often the list of workers is looked at."""
_MAX_LOST = 4
"""Workers that may be lost with a call before it fails: it may be the call that they are lost by."""
_ALONE_S = 300.0
"""How long calls wait for a worker while there is none."""
_END_S = 2.0


class Attempts:
    """The actor of a worker.

    Args:
        described: A pickled client, without its key, which comes from ``SPEECHLAB_API_KEY`` where this runs.
        step: The operation.
    """

    def __init__(self, described: bytes, step: RowStep) -> None:
        self._lab = without_scheduler(pickle.loads(described))  # noqa: S301 - from the run that this belongs to
        self._step = step

    async def make(self, call: PlannedCall) -> CallResult | SpeechLabError:
        """Make an attempt at a call; its error is returned."""
        try:
            return await self._step.send(call, self._lab)
        except SpeechLabError as error:
            return error

    async def end(self) -> None:
        """Close the connections."""
        await self._lab.aclose()


class _Attempts:
    """The actor before it is made: unpickled, it is one."""

    def __init__(self, *parts: Any) -> None:
        self._parts = parts

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return Attempts, self._parts


class _LostError(Exception):
    """A worker was lost with a call."""


@dataclass(eq=False, slots=True)
class _Worker:
    """A worker.

    Attributes:
        address: Its address.
        lost: Done once it is lost.
        made: The future of its actor, by which that is forgotten.
        actor: Its actor, once there is one.
        fault: Why it has none.
        calls: How many calls it has.
    """

    address: str
    lost: asyncio.Future[None]
    made: Any = None
    actor: Any = None
    fault: str = ""
    calls: int = 0


@asynccontextmanager
async def workers(executor: Any, step: RowStep, lab: AsyncClient, concurrency: int) -> AsyncIterator[Send]:
    """Give a way to have calls made by a cluster's workers.

    Args:
        executor: A ``dask.distributed.Client``.
        step: The operation.
        lab: Its scheduler decides; its key stays here.
        concurrency: Most calls that a worker has at once.

    Raises:
        InvalidRequestError: It is no such client.
        MissingDependencyError: ``distributed`` is not installed.
    """
    distributed = require("distributed")
    if not isinstance(executor, distributed.Client) or executor.asynchronous:
        message = f"executor is {executor!r}; give a dask.distributed.Client that is not asynchronous"
        raise InvalidRequestError(message, parameter="executor")
    crew = _Crew(executor, step, lab, concurrency)
    watch = asyncio.create_task(crew.watch())
    try:
        yield crew.send
    finally:
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
        await crew.end()


class _Crew:
    """The workers of a cluster, as seen by the one who hands out the calls."""

    def __init__(self, executor: Any, step: RowStep, lab: AsyncClient, concurrency: int) -> None:
        self._executor, self._step, self._lab, self._most = executor, step, lab, concurrency
        # as bytes: a worker that lacks the library dies of a class that it cannot import
        self._actor = pickle.dumps(_Attempts(pickle.dumps(lab), step))
        self._workers: dict[str, _Worker] = {}
        self._starts: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._trouble = ""

    async def send(self, call: PlannedCall) -> CallResult:
        """Have a call made.

        Raises:
            SpeechLabError: It failed.
        """
        began = time.perf_counter()
        result, attempts = await by_attempts(self._lab, self._step.operation, lambda: self._attempt(call))
        latency_s = time.perf_counter() - began
        return replace(result, timing=replace(result.timing, attempts=attempts, latency_s=latency_s))

    async def _attempt(self, call: PlannedCall) -> CallResult:
        """Have a worker make one attempt; if that is lost, another one."""
        why = ""
        for _ in range(_MAX_LOST):
            worker = await self._free_worker()
            worker.calls += 1
            try:
                result = await self._ask(worker, call)
            except _LostError as error:
                why = str(error)
                continue
            finally:
                worker.calls -= 1
                self._changed.set()
            if isinstance(result, SpeechLabError):
                raise result
            return result
        text = f"no worker could finish the call, the last time because {why}"
        lost = APIConnectionError(text, attempts=_MAX_LOST, possibly_metered=True)
        lost.retryable = False
        raise lost

    async def _free_worker(self) -> _Worker:
        """The worker with the fewest calls, once one has room."""
        while True:
            if self._trouble:
                raise SpeechLabError(self._trouble)
            ready = [
                one for one in self._workers.values() if one.actor is not None and one.calls < self._most
            ]
            if ready:
                return min(ready, key=lambda one: one.calls)
            self._changed.clear()
            await self._changed.wait()

    async def _ask(self, worker: _Worker, call: PlannedCall) -> CallResult | SpeechLabError:
        try:
            result: CallResult | SpeechLabError = await self._there(lambda: worker.actor.make(call), worker)
        except _LostError:
            raise
        except Exception as error:
            # it cannot be reached; one that is still on the list gets a new actor
            if self._workers.get(worker.address) is worker:
                del self._workers[worker.address]
            self._lose(worker)
            raise _LostError(f"the worker {worker.address} did not answer: {error}") from error
        return result

    async def _there(self, ask: Callable[[], Awaitable[Any]], worker: _Worker) -> Any:
        """Ask on the loop of the cluster's client, and wait for the answer until the worker is lost."""
        there = asyncio.run_coroutine_threadsafe(_asked(ask), self._executor.loop.asyncio_loop)
        here = asyncio.wrap_future(there)
        try:
            await asyncio.wait({here, worker.lost}, return_when=asyncio.FIRST_COMPLETED)
            if here.done():
                return here.result()
            raise _LostError(f"the worker {worker.address} was lost")
        finally:
            here.cancel()

    async def watch(self) -> None:
        """Look after the workers, until cancelled."""
        loop = asyncio.get_running_loop()
        last_there = loop.time()
        try:
            while True:
                listed = await asyncio.to_thread(self._listed)
                for address in self._workers.keys() - listed:
                    self._lose(self._workers.pop(address))
                for address in listed - self._workers.keys():
                    self._add(_Worker(address, loop.create_future()))
                if any(worker.actor is not None for worker in self._workers.values()):
                    last_there = loop.time()
                self._look_for_trouble(loop.time() - last_there)
                await asyncio.sleep(_LOOK_S)
        except Exception as error:  # noqa: BLE001 - whoever waits has to hear of it
            self._fail(f"the cluster failed: {type(error).__name__}: {error}")

    def _listed(self) -> set[str]:
        return set(self._executor.scheduler_info(n_workers=-1)["workers"])

    def _look_for_trouble(self, alone_s: float) -> None:
        faults = [worker.fault for worker in self._workers.values()]
        if faults and all(faults):
            self._fail(f"no worker of the cluster can make calls: {faults[0]}")
        elif alone_s > _ALONE_S:
            self._fail(f"the cluster has had no worker for {_ALONE_S:g} s")

    def _fail(self, why: str) -> None:
        self._trouble = why
        for worker in self._workers.values():
            self._lose(worker)
        self._changed.set()

    def _lose(self, worker: _Worker) -> None:
        worker.actor = None
        if not worker.lost.done():
            worker.lost.set_result(None)

    def _add(self, worker: _Worker) -> None:
        self._workers[worker.address] = worker
        start = asyncio.create_task(self._start(worker))
        self._starts.add(start)
        start.add_done_callback(self._starts.discard)

    async def _start(self, worker: _Worker) -> None:
        """Make the actor of a worker."""
        where = {"workers": [worker.address], "allow_other_workers": False}
        worker.made = self._executor.submit(pickle.loads, self._actor, actor=True, pure=False, **where)
        try:
            actor = await self._there(lambda: worker.made, worker)
            worker.actor = None if worker.lost.done() else actor
        except _LostError:
            return
        except Exception as error:  # noqa: BLE001 - speechlab is not installed there, for example
            worker.fault = f"{worker.address}: {type(error).__name__}: {error}"
        self._changed.set()

    async def end(self) -> None:
        """Let the workers close their connections, and forget their actors."""
        for start in self._starts:
            start.cancel()
        there = [one for one in self._workers.values() if one.actor is not None]
        ends = [asyncio.create_task(self._there(partial(_end, one.actor), one)) for one in there]
        if ends:
            await asyncio.wait(ends, timeout=_END_S)
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
        made = [worker.made for worker in self._workers.values() if worker.made is not None]
        with suppress(Exception):
            await asyncio.to_thread(self._executor.cancel, made)


async def _end(actor: Any) -> None:
    await actor.end()


async def _asked(ask: Callable[[], Awaitable[Any]]) -> Any:
    return await ask()
