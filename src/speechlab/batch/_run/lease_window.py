"""Calls of a piece of the table given out in leases to the workers of a cluster, and what came back of them."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import reduce
from itertools import islice
from typing import TYPE_CHECKING

from speechlab.batch._outcome import Outcome, PlannedCall
from speechlab.batch._plan.plan import Amounts
from speechlab.batch._run.cluster import LOSSES_BEFORE_ISOLATION, SHARES_PER_WORKER, ClusterWorkers
from speechlab.batch._run.lease import (
    CallLease,
    LeaseResult,
    parse_part,
)
from speechlab.batch._run.window import GRACE_S, SECOND_GRACE_S, CallsUnderWay, ResultWriter, build_outcome
from speechlab.errors import APIConnectionError

if TYPE_CHECKING:
    from speechlab.batch._run.progress import Tally
    from speechlab.batch._run.rules import RunRules
    from speechlab.batch._run.turns import LeaseTurns
    from speechlab.store import Store

_POLL_S = 1.0  # between two looks at the workers
# Workers that may be lost with a call before it fails, because it may be the cause.
_MAX_LOST = 4


class LeaseWindow(CallsUnderWay):
    """Calls of a piece of the table, given out in leases: what :class:`CallWindow` is in one process."""

    def __init__(
        self,
        crew: ClusterWorkers,
        store: Store,
        operation: str,
        tally: Tally,
        rules: RunRules,
        turns: LeaseTurns | None = None,
    ) -> None:
        super().__init__(tally, rules)
        self._turns = turns
        self._crew, self._store, self._operation = crew, store, operation
        self._writer = ResultWriter(store, operation)
        self._feed: Iterator[PlannedCall] = iter(())
        self._waiting: deque[PlannedCall] = deque()
        self._lost: Counter[str] = Counter()
        self._given_up: set[asyncio.Task[None]] = set()

    async def run(self, calls: Iterable[PlannedCall]) -> None:
        """Make the calls, until all are made or the run stops; outcomes are in ``outcomes``."""
        self._feed = iter(calls)
        crew, stop, loop = self._crew, self._rules.stop, asyncio.get_running_loop()
        crew.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stopped_at = None
        async with self._watch_stop_requests(crew.changed.set):
            while True:
                crew.changed.clear()
                self._start_leases()
                if not self._tasks and (stop.reason or not self._waiting):
                    break
                if stop.reason and not stop.gently:
                    stopped_at = stopped_at or loop.time()
                    await self._forward_stop(loop.time() - stopped_at)
                with suppress(TimeoutError):
                    await asyncio.wait_for(crew.changed.wait(), _POLL_S)

    async def _forward_stop(self, since_s: float) -> None:
        """Pass a stop on, and give up the leases that do not come back in time after an interrupt."""
        stop = self._rules.stop
        await self._crew.notify_workers(
            stops={"reason": stop.reason, "status": stop.status}, hurry=stop.hurried
        )
        if (
            stop.status == "interrupted"
            and since_s > (SECOND_GRACE_S if stop.hurried else GRACE_S) + SECOND_GRACE_S
        ):
            given_up, self._given_up = self._tasks - self._given_up, set(self._tasks)
            for task in given_up:
                task.cancel()

    def _start_leases(self) -> None:
        crew, rules = self._crew, self._rules
        if crew.trouble:
            rules.stop.set(crew.trouble)
        while not rules.stop.reason and (self._turns is None or self._turns.is_next()):
            ahead = SHARES_PER_WORKER * max(1, len(crew.leases)) * crew.size
            self._waiting.extend(islice(self._feed, max(0, ahead - len(self._waiting))))
            most = crew.choose_lease_size(len(self._waiting))
            address = crew.find_free_worker(most) if self._waiting else None
            if address is None or not (calls := self._admit_next_calls(most)):
                return
            crew.count_lease(address, len(calls))
            if self._turns is not None:
                self._turns.count_lease(call.key for call, _ in calls)
            self._start_task(self._run_lease(address, calls))

    def _admit_next_calls(self, most: int) -> list[tuple[PlannedCall, Amounts]]:
        """Return the next calls that the budget has room for; those that were lost with several workers alone."""
        lease: list[tuple[PlannedCall, Amounts]] = []
        while self._waiting and len(lease) < most:
            call = self._waiting[0]
            suspect = self._lost[call.key] >= LOSSES_BEFORE_ISOLATION
            if lease and suspect:
                break
            reserved = self._rules.reserve_or_stop(call)
            if reserved is None:
                break
            lease.append((self._waiting.popleft(), reserved))
            if suspect:
                break
        return lease

    async def _run_lease(self, address: str, calls: list[tuple[PlannedCall, Amounts]]) -> None:
        crew = self._crew
        name = f"{self._operation}-{next(crew.numbers)}"
        share = self._rules.spending.copy_with_limits(
            reduce(Amounts.compute_sum, (amounts for _, amounts in calls))
        )
        lease = CallLease(
            crew.run, name, crew.folder, crew.means, [call for call, _ in calls], crew.rate, share
        )
        try:
            returned = await crew.send_lease(address, lease)
        except asyncio.CancelledError:  # what was paid is kept
            returned = LeaseResult(await crew.read_parts(name))
        try:
            self._keep_results_and_requeue(calls, returned)
        except Exception as error:  # noqa: BLE001 - raised by run, once the other leases have ended
            self._stop_on_error(error)
        for file in crew.folder.glob(f"{name}-*.jsonl"):
            file.unlink(missing_ok=True)

    def _keep_results_and_requeue(
        self, calls: list[tuple[PlannedCall, Amounts]], returned: LeaseResult
    ) -> None:
        """Keep what a lease gave, and take back the calls that were not made."""
        for file, data in returned.files.items():
            self._store.blobs.add_bytes(data, file[file.index(".") :])
        entries = parse_part(returned.part)
        with self._store.transaction():
            stored = dict(zip([key for key, *_ in entries], self._writer.write_results(entries), strict=True))
            for attempt in returned.failures:
                self._writer.record_failure(attempt)
        results = {key: result for key, result, _ in entries}
        for call, reserved in calls:
            outcome = returned.outcomes.get(call.key)
            if call.key in results:
                outcome = build_outcome(call, results[call.key], stored[call.key])
            elif returned.lost:
                self._lost[call.key] += returned.lost
                if self._lost[call.key] >= _MAX_LOST:
                    text = f"no worker could finish the call: {_MAX_LOST} were lost with it"
                    error = APIConnectionError(text, attempts=_MAX_LOST, possibly_metered=True)
                    error.retryable = False
                    outcome = Outcome("error", error=error, attempts=_MAX_LOST)
            self._rules.count_outcome(
                call, None if outcome is None or outcome.status == "cancelled" else outcome, reserved
            )
            if outcome is None:
                self._waiting.append(call)
            else:
                self.outcomes[call.key] = outcome
                self._tally.add_outcome(outcome)
        if returned.fault is not None:
            self._stop_on_error(returned.fault)
        elif returned.reason is not None:
            self._rules.stop.set(returned.reason)
