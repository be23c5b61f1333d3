"""Attempts made by the workers of a Dask cluster. One process plans, schedules, counts and writes.

Each worker has an asynchronous actor that makes attempts: one request and its reply. Each call goes to the worker
with the fewest calls. The client's scheduler in this process decides when an attempt is made and whether it is
repeated, as without a cluster. Rate, concurrency and pauses therefore apply to all workers together.

An actor that is lost during an attempt may never answer, because ``distributed`` drops the error in a callback. The
list of workers is therefore checked, and the calls of a worker that left it go to others.
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
"""Interval in seconds at which the list of workers is checked."""
_MAX_LOST = 4
"""Workers that may be lost during a call before the call fails, because the call may be the cause."""
_ALONE_S = 300.0
"""Seconds that calls wait while the cluster has no worker."""
_END_S = 2.0


class Attempts:
    """The actor of a worker.

    Args:
        described: A pickled client without its API key, which the worker reads from ``SPEECHLAB_API_KEY``.
        step: The operation.
    """

    def __init__(self, described: bytes, step: RowStep) -> None:
        self._lab = without_scheduler(pickle.loads(described))  # noqa: S301 - from the run that this belongs to
        self._step = step

    async def make(self, call: PlannedCall) -> CallResult | SpeechLabError:
        """Make an attempt at a call; an error is returned, not raised."""
        try:
            return await self._step.send(call, self._lab)
        except SpeechLabError as error:
            return error

    async def end(self) -> None:
        """Close the connections."""
        await self._lab.aclose()


class _Attempts:
    """The arguments of an actor, which unpickle to the actor."""

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
        made: The future of its actor, needed to release the actor.
        actor: Its actor, once it is made.
        fault: Why the worker has no actor.
        calls: Number of calls of the worker.
    """

    address: str
    lost: asyncio.Future[None]
    made: Any = None
    actor: Any = None
    fault: str = ""
    calls: int = 0


@asynccontextmanager
async def workers(executor: Any, step: RowStep, lab: AsyncClient, concurrency: int) -> AsyncIterator[Send]:
    """Yield a function that has calls made by the workers of a cluster.

    Args:
        executor: A ``dask.distributed.Client``.
        step: The operation.
        lab: The client whose scheduler decides; its API key stays in this process.
        concurrency: Maximum number of concurrent calls of a worker.

    Raises:
        InvalidRequestError: The executor is not a synchronous ``dask.distributed.Client``.
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
    """The workers of a cluster, with the assignment of calls to them."""

    def __init__(self, executor: Any, step: RowStep, lab: AsyncClient, concurrency: int) -> None:
        self._executor, self._step, self._lab, self._most = executor, step, lab, concurrency
        # as bytes: a worker without the library would crash on a class that it cannot import
        self._actor = pickle.dumps(_Attempts(pickle.dumps(lab), step))
        self._workers: dict[str, _Worker] = {}
        self._starts: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._trouble = ""

    async def send(self, call: PlannedCall) -> CallResult:
        """Have a worker make a call.

        Raises:
            SpeechLabError: The call failed.
        """
        began = time.perf_counter()
        result, attempts = await by_attempts(self._lab, self._step.operation, lambda: self._attempt(call))
        latency_s = time.perf_counter() - began
        return replace(result, timing=replace(result.timing, attempts=attempts, latency_s=latency_s))

    async def _attempt(self, call: PlannedCall) -> CallResult:
        """Have a worker make one attempt; if the worker is lost, another worker makes it."""
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
        text = f"no worker could finish the call; the last failure: {why}"
        lost = APIConnectionError(text, attempts=_MAX_LOST, possibly_metered=True)
        lost.retryable = False
        raise lost

    async def _free_worker(self) -> _Worker:
        """Wait until a worker has room, and return the one with the fewest calls."""
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
            # the worker cannot be reached; it gets a new actor if it is still on the list
            if self._workers.get(worker.address) is worker:
                del self._workers[worker.address]
            self._lose(worker)
            raise _LostError(f"the worker {worker.address} did not answer: {error}") from error
        return result

    async def _there(self, ask: Callable[[], Awaitable[Any]], worker: _Worker) -> Any:
        """Send a request on the loop of the cluster's client, and wait for the answer or the loss of the worker."""
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
        """Watch the list of workers until cancelled."""
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
        except Exception as error:  # noqa: BLE001 - the waiting calls must fail with it
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
        """Have the workers close their connections, and release their actors."""
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
