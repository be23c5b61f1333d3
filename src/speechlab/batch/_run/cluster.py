"""Calls of a run that the workers of a Dask cluster make, in leases of some hundred rows.

This process plans, gives out leases, keeps what comes back and counts. A lease is one task of the scheduler. A worker
has two leases at a time or more, so that it never waits for the next. A lease whose worker was lost comes back with
what is in its parts; the rest is given out again.
"""

from __future__ import annotations

import asyncio
import pickle
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from speechlab.batch._run.connection import ANSWER_S, ClusterConnection, await_result_or_error
from speechlab.batch._run.lease import (
    PARTS_FOLDER,
    CallLease,
    LeaseResult,
    LeaseTask,
    notify_worker,
    wait_for_and_read_parts,
)
from speechlab.client import get_service

if TYPE_CHECKING:
    from speechlab.batch._plan.steps import RowStep
    from speechlab.client import Client
    from speechlab.store import Store

_POLL_S = 1.0  # between two looks at the list of workers
# Leases of a worker at a time, and calls in small ones for each call that it makes at once.
_LEASES_PER_WORKER = 2
_CALLS_PER_PLACE = 4
# Parts of the last calls for each worker, of which a lease is one: each costs this process and the scheduler some
# milliseconds, so that there are fewer while many calls are left.
SHARES_PER_WORKER, _EARLY_SHARES_PER_WORKER = 4, 2
# Maximum of calls in a lease. Each is claimed, and the time of a claim grows with their number.
_MAX_LEASE_CALLS = 250
# Seconds of a lease below which leases grow, and above which they shrink.
_SHORT_S, _LONG_S = 4.0, 12.0
# Losses from which a call has a lease of its own, so that it takes no others along.
LOSSES_BEFORE_ISOLATION = 2
# Seconds that a run waits for a cluster without a scheduler or a worker.
_MAX_AWAY_S = 300.0


class ClusterWorkers:
    """The workers of a cluster during a run."""

    def __init__(self, executor: Any, means: bytes, folder: Any, options: Mapping[str, Any]) -> None:
        self.means, self.folder, self.options = means, folder, options
        self.run = folder.name
        self._connection = ClusterConnection(executor, self.run, self._note_worker_pause)
        self.leases: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.changed = asyncio.Event()
        self.trouble = ""
        self.size: int = options["concurrency"]
        self.numbers = count()
        self._faults: dict[str, str] = {}
        self._paused: dict[str, tuple[str, float]] = {}
        self._scheduler = ""
        self._end = asyncio.get_running_loop().create_future()
        """Done when the leases are over with their scheduler; the client may have lost the message that says so."""
        self._away_since: float | None = time.monotonic()
        self._is_alone = False  # without a scheduler
        self._away_s = _MAX_AWAY_S if options["give_up_after_s"] is None else options["give_up_after_s"]

    @property
    def rate(self) -> float | None:
        """The share of the rate of each worker."""
        total: float | None = self.options["rate"]
        return None if total is None else total / max(1, len(self.leases))

    def find_pause(self) -> tuple[str, float] | None:
        """Return the reason for which all workers wait, and the remaining seconds; None if they do not wait."""
        now = time.monotonic()
        if self._away_since is not None:
            what = (
                f"the scheduler at {self._connection.address}"
                if self._is_alone
                else "a worker of the cluster"
            )
            return what, max(0.0, self._away_since + self._away_s - now)
        busy = [address for address, leases in self.leases.items() if leases]
        waits = [self._paused[address] for address in busy if address in self._paused]
        if not waits or len(waits) < len(busy):
            return None
        what, until = max(waits, key=lambda one: one[1])
        return what, max(0.0, until - now)

    def choose_lease_size(self, waiting: int) -> int:
        """Return the calls of the next lease, of so many that wait: the last leases are small, and end together."""
        together, concurrency = self.options["together"], self.options["concurrency"]
        workers = max(1, len(self.leases))
        is_late = waiting <= _CALLS_PER_PLACE * concurrency * workers
        shares = workers * (SHARES_PER_WORKER if is_late else _EARLY_SHARES_PER_WORKER)
        size = min(self.size, max(1, concurrency // 4, waiting // shares))
        return int(max(1, size // together) * together)

    def find_free_worker(self, count: int) -> str | None:
        """Return the worker with the fewest calls, if it may have another lease, of so many calls."""
        address = min(self.leases, key=lambda one: (self.calls[one], self.leases[one]), default=None)
        if address is None:
            return None
        # Of small leases it may have more: each is held by its slowest call, while the others of it are done.
        small = self.calls[address] + count <= _CALLS_PER_PLACE * self.options["concurrency"]
        return address if small or self.leases[address] < _LEASES_PER_WORKER else None

    def count_lease(self, address: str, count: int) -> None:
        """Count a lease of a worker, of so many calls."""
        self.leases[address] += 1
        self.calls[address] += count

    async def send_lease(self, address: str, lease: CallLease) -> LeaseResult:
        """Have a worker make the calls of a lease; what comes back may lack some, or all."""
        executor = self._connection.executor
        where = {"workers": [address], "allow_other_workers": True}
        task = pickle.dumps(LeaseTask(lease))
        began = time.monotonic()
        try:
            if not self._connection.is_open:  # the task would go to the next scheduler, for nobody
                raise ConnectionError
            future = executor.submit(pickle.loads, task, key=f"{lease.run}-{lease.name}", pure=False, **where)
            remote = asyncio.run_coroutine_threadsafe(
                await_result_or_error(future), executor.loop.asyncio_loop
            )
        # The scheduler, or our client of it, is gone.
        except (OSError, RuntimeError, ValueError, AttributeError):
            self.leases.clear()
            self.calls[address] -= len(lease.calls)
            return LeaseResult(b"")
        local = asyncio.wrap_future(remote)
        try:
            await asyncio.wait({local, self._end}, return_when=asyncio.FIRST_COMPLETED)
            returned = local.result() if local.done() else TimeoutError()
        finally:
            remote.cancel()
            future.release()  # which also ends it, if it is under way
            self.calls[address] -= len(lease.calls)
            if address in self.leases:
                self.leases[address] -= 1
            self.changed.set()
        if isinstance(returned, LeaseResult):
            took_s = time.monotonic() - began
            if took_s < _SHORT_S and len(lease.calls) >= self.size:
                self.size = min(2 * self.size, _MAX_LEASE_CALLS)
            elif took_s > _LONG_S:
                self.size = max(self.size // 2, self.options["concurrency"])
            return returned
        killed = type(returned).__name__ == "KilledWorker"  # by the third of its workers
        # what is lost with its scheduler or workers is no fault of theirs; that speechlab is not installed there is
        if not killed and not isinstance(returned, asyncio.CancelledError | CancelledError | OSError):
            self._faults[address] = f"{address}: {type(returned).__name__}: {returned}"
            self.leases.pop(address, None)
        return LeaseResult(await self.read_parts(lease.name), lost=LOSSES_BEFORE_ISOLATION if killed else 0)

    async def read_parts(self, name: str) -> bytes:
        """Return the parts of a lease that is over."""
        return await asyncio.to_thread(wait_for_and_read_parts, self.folder, name)

    async def notify_workers(self, **what: Any) -> None:
        """Send a message to all workers; a worker that does not listen is left to the end of its lease."""
        run = partial(self._connection.executor.run, notify_worker, self.run, on_error="ignore", **what)
        with suppress(Exception):
            await asyncio.wait_for(asyncio.to_thread(run), ANSWER_S)

    async def watch_workers(self) -> None:
        """Watch the workers and the scheduler until cancelled."""
        try:
            await self._watch_workers()
        except Exception as error:  # noqa: BLE001 - nobody else would say it, and the run would wait for ever
            self.trouble = f"the cluster cannot be watched: {type(error).__name__}: {error}"
        self.changed.set()

    async def _watch_workers(self) -> None:
        while not self.trouble:
            scheduler, listed = await asyncio.to_thread(self._connection.find_scheduler_and_workers)
            self._is_alone = not scheduler
            if listed and listed <= self._faults.keys():
                self.trouble = f"no worker of the cluster can make calls: {self._faults[min(listed)]}"
            listed -= self._faults.keys()
            if scheduler and scheduler != self._scheduler:
                self._scheduler = scheduler
                self._connection.subscribe()
                self._end.set_result(None)
                self._end = asyncio.get_running_loop().create_future()
            if listed != self.leases.keys():
                before = self.rate
                self.leases = Counter({address: self.leases[address] for address in listed})
                if self.rate not in (before, None):
                    await self.notify_workers(rate=self.rate)
                self.changed.set()
            now = time.monotonic()
            if listed:
                self._away_since = None
            elif self._away_since is None:
                self._away_since = now
            elif now - self._away_since > self._away_s:
                self.trouble = self._describe_absence()
            await asyncio.sleep(_POLL_S)

    def _describe_absence(self) -> str:
        """Return why nothing goes on, and what to do."""
        if not self._is_alone:
            reason = f"the cluster has had no worker for {self._away_s:g} s"
            return f"{reason}; start some at its scheduler, and the same call resumes"
        reason = f"the scheduler at {self._connection.address} did not come back within {self._away_s:g} s"
        return f"{reason}; start it and its workers, and the same call with a new dask.distributed.Client resumes"

    def close(self) -> None:
        """Leave the cluster."""
        self._connection.close()

    def _note_worker_pause(self, event: tuple[float, Any]) -> None:
        address, paused = event[1]
        if paused is None:
            self._paused.pop(address, None)
        else:
            self._paused[address] = paused[0], time.monotonic() + paused[1]


@asynccontextmanager
async def open_workers(
    executor: Any, step: RowStep, lab: Client, store: Store, run: str, options: Mapping[str, Any]
) -> AsyncIterator[ClusterWorkers]:
    """The workers of a cluster, for a run."""
    limits = {name: options[name] for name in ("concurrency", "give_up_after_s", "max_error_share")}
    means, service = pickle.dumps((lab, step, limits)), get_service(lab)
    options = {**options, "together": service.together}
    if service.together > 1:  # of which a worker has some that wait for others
        options["concurrency"] = max(options["concurrency"], service.places or 0)
    workers = ClusterWorkers(executor, means, store.path / PARTS_FOLDER / run, options)
    mine = store.claims()
    mine.claim_key(run)  # as long as it is claimed, nobody adopts the parts
    watch = asyncio.create_task(workers.watch_workers())
    try:
        yield workers
    finally:
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
        await asyncio.to_thread(workers.close)
        await asyncio.to_thread(shutil.rmtree, workers.folder, ignore_errors=True)
        mine.release_keys([run])
