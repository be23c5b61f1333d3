"""Calls made by the workers of a Dask cluster, and nothing else: one machine plans, counts, writes and decides.

Each worker runs the same step over the same asynchronous client on small chunks of calls. A chunk is bound to its
worker: when that one is lost, Dask does not run the chunk again by itself; what had come back is kept, and only the
rest goes to another worker. ``distributed.Semaphore`` limits how many run and not how many begin, and reached a
quarter of its limit when it was measured; here an actor hands out the times at which calls may begin, so that the
rate is one for all workers.
"""

from __future__ import annotations

import asyncio
import pickle
import time
from collections import Counter, deque
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from speechlab._require import require
from speechlab.batch._run.pace import Pace
from speechlab.errors import APIConnectionError, InvalidRequestError, SpeechLabError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from speechlab.batch._plan.rows import CallResult, PlannedCall, RowStep
    from speechlab.batch._run.options import RunOptions
    from speechlab.batch._run.window import Send
    from speechlab.client import AsyncClient

_CHUNK = 8
"""Calls that a worker gets at once; as many are asked again at most when it is lost."""
_LOOK_S = 0.2
_TRIES = 4
_FETCH_S = 30.0
_LOST_S = 1.0


Waiting = tuple["PlannedCall", "asyncio.Future[CallResult]", int]
"""A call, who waits for it, and how often a worker was lost with it."""


@asynccontextmanager
async def workers(executor: Any, step: RowStep, lab: AsyncClient, options: RunOptions) -> AsyncIterator[Send]:
    """Give a way to send calls through a cluster's workers.

    Args:
        executor: A ``dask.distributed.Client``.
        step: The operation.
        lab: Describes the service; its key stays here, and workers take theirs from ``SPEECHLAB_API_KEY``.
        options: Of the run; ``rate`` is that of all workers together.

    Raises:
        InvalidRequestError: It is no such client.
        MissingDependencyError: ``distributed`` is not installed.
    """
    distributed = require("distributed")
    if not isinstance(executor, distributed.Client) or executor.asynchronous:
        message = f"executor is {executor!r}; give a dask.distributed.Client that is not asynchronous"
        raise InvalidRequestError(message, parameter="executor")
    crew = _Crew(executor, step, lab, options)
    task = asyncio.create_task(crew.run())
    try:
        yield crew.send
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class _Crew:
    """The workers of a cluster, as seen by the one who hands out the work."""

    def __init__(self, executor: Any, step: RowStep, lab: AsyncClient, options: RunOptions) -> None:
        self._executor, self._step, self._options = executor, step, options
        self._lab = pickle.dumps(lab)
        self._waiting: deque[Waiting] = deque()
        self._chunks: dict[Any, tuple[str, list[Waiting]]] = {}
        self._pacer: Any = None
        self._pacer_at = ""
        self._looked = 0.0
        self._turn = asyncio.Event()

    async def send(self, call: PlannedCall) -> CallResult:
        """Have a worker make a call."""
        done: asyncio.Future[CallResult] = asyncio.get_running_loop().create_future()
        self._waiting.append((call, done, 0))
        self._turn.set()
        return await done

    async def run(self) -> None:
        """Hand out chunks and look after the workers, until cancelled."""
        known = list[str]()
        try:
            while True:
                if time.monotonic() - self._looked > _LOOK_S:
                    self._looked = time.monotonic()
                    known = await asyncio.to_thread(self._alive)
                    self._requeue(set(known))
                await self._hand_out(known)
                self._turn.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._turn.wait(), _LOOK_S)
        except Exception as error:  # noqa: BLE001 - whoever waits has to hear of it
            for *_, waiting in [*self._chunks.values(), ("", list(self._waiting))]:
                for _, done, _ in waiting:
                    if not done.done():
                        done.set_exception(SpeechLabError(f"the cluster failed: {error}"))
        finally:
            await asyncio.to_thread(self._executor.cancel, list(self._chunks))

    def _alive(self) -> list[str]:
        return list(self._executor.scheduler_info(n_workers=-1)["workers"])

    def _requeue(self, alive: set[str]) -> None:
        """Take back what a lost worker had, but for what had come back from it."""
        for future, (worker, chunk) in list(self._chunks.items()):
            if worker not in alive:
                del self._chunks[future]
                future.cancel()
                self._again(chunk, f"the worker {worker} was lost")
        if self._pacer_at not in alive:
            self._pacer = None

    def _again(self, chunk: list[Waiting], why: str) -> None:
        for call, done, tries in chunk:
            if done.done():
                continue
            if tries + 1 < _TRIES:
                self._waiting.append((call, done, tries + 1))
                self._turn.set()
            else:
                text = f"no worker could finish the call, the last time because {why}"
                done.set_exception(APIConnectionError(text, attempts=_TRIES, possibly_metered=True))

    async def _hand_out(self, alive: list[str]) -> None:
        if alive and self._pacer is None and self._options["rate"] is not None and self._waiting:
            self._pacer_at = alive[0]
            self._pacer = await self._make_pacer(alive[0], self._options["rate"])
            if self._pacer is None:  # that worker was lost meanwhile: look again who is there
                self._looked = 0.0
                return
        busy = Counter(dict.fromkeys(alive, 0))
        for worker, chunk in self._chunks.values():
            busy[worker] += len(chunk)
        for worker in sorted(alive, key=busy.__getitem__):
            while self._waiting and busy[worker] < self._options["concurrency"]:
                free = min(_CHUNK, self._options["concurrency"] - busy[worker])
                chunk = [self._waiting.popleft() for _ in range(min(free, len(self._waiting)))]
                busy[worker] += len(chunk)
                self._submit(worker, chunk)

    async def _make_pacer(self, worker: str, rate: float) -> Any:
        made = self._executor.submit(Pace, rate, actor=True, workers=[worker], pure=False)
        while True:
            try:
                return await asyncio.to_thread(made.result, 1.0)
            except TimeoutError:
                if worker not in await asyncio.to_thread(self._alive):
                    made.cancel()
                    return None
            except Exception:  # noqa: BLE001 - lost with its worker
                return None

    def _submit(self, worker: str, chunk: list[Waiting]) -> None:
        loop = asyncio.get_running_loop()
        calls = [call for call, *_ in chunk]
        future = self._executor.submit(
            work,
            self._lab,
            self._step,
            calls,
            self._pacer,
            self._pacer_at,
            workers=[worker],
            allow_other_workers=False,
            retries=0,
            pure=False,
        )
        self._chunks[future] = (worker, chunk)

        def ended(future: Any) -> None:
            with suppress(RuntimeError):  # the run is over, and its loop closed
                loop.call_soon_threadsafe(self._came_back, future)

        future.add_done_callback(ended)

    def _came_back(self, future: Any) -> None:
        _, chunk = self._chunks.pop(future, ("", []))
        self._turn.set()
        if not chunk:
            return
        if future.status != "finished":
            # perhaps the actor was lost with its worker; the next ones get another
            self._pacer, self._looked = None, 0.0
            fault = asyncio.ensure_future(asyncio.to_thread(_fault, future))
            fault.add_done_callback(lambda told: self._again(chunk, told.result()))
            return
        # finished, so its result is brought without waiting for work
        fetch = asyncio.ensure_future(asyncio.to_thread(future.result, 60))
        fetch.add_done_callback(lambda fetched: self._settle(fetched, chunk))

    def _settle(self, fetched: asyncio.Future[list[Any]], chunk: list[Waiting]) -> None:
        if fetched.cancelled() or fetched.exception() is not None:
            self._again(chunk, "its results did not arrive")
            return
        for (_, done, _), result in zip(chunk, fetched.result(), strict=True):
            if done.done():
                continue
            if isinstance(result, SpeechLabError):
                done.set_exception(result)
            else:
                done.set_result(result)


def _fault(future: Any) -> str:
    """Say what became of a task that did not finish."""
    try:
        fault = future.exception(_FETCH_S) if future.status == "error" else None
    except Exception as error:  # noqa: BLE001 - the scheduler does not answer
        fault = error
    return f"its task is {future.status}" + (f": {type(fault).__name__}: {fault}" if fault else "")


_clients: dict[tuple[bytes, int], AsyncClient] = {}
"""One client for each service and event loop of a worker's process."""


async def work(
    described: bytes, step: RowStep, calls: list[PlannedCall], pacer: Any, pacer_at: str
) -> list[Any]:
    """Make some calls; runs on a worker.

    Args:
        described: A pickled client, without its key.
        step: The operation.
        calls: What to ask.
        pacer: The actor that hands out times, or None.
        pacer_at: Address of the worker that has it.

    Returns:
        For each call its result, or its error.

    Raises:
        ConnectionError: The actor was lost with its worker; no call was made.
    """
    known = described, id(asyncio.get_running_loop())
    if known not in _clients:
        _clients[known] = pickle.loads(described)  # noqa: S301 - from the run that this work belongs to
    waits = [0.0] * len(calls) if pacer is None else await _reserved(pacer, pacer_at, len(calls))

    async def one(call: PlannedCall, wait_s: float) -> Any:
        await asyncio.sleep(wait_s)
        try:
            return await step.send(call, _clients[known])
        except SpeechLabError as error:
            return error

    return await asyncio.gather(*map(one, calls, waits))


async def _reserved(pacer: Any, at: str, count: int) -> list[float]:
    """How long each of so many calls has to wait.

    An actor that is lost while it is asked never answers, so its worker is looked at now and then.
    """
    from distributed.comm.addressing import get_address_host_port

    host, port = get_address_host_port(at)

    async def ask() -> list[float]:
        return list(await pacer.reserve(count))

    asked = asyncio.ensure_future(ask())
    try:
        while not (await asyncio.wait({asked}, timeout=_LOST_S))[0]:
            with suppress(TimeoutError):
                # The bare port, which one that is merely busy has open as well.
                _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), _FETCH_S)
                writer.close()
    except OSError as error:
        asked.cancel()
        raise ConnectionError(f"the worker {at}, which keeps the pace, was lost") from error
    return asked.result()
