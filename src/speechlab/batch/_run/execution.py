"""Execution of a plan, piece by piece: each result is on disk before it counts, and the run is recorded."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import orjson

from speechlab._traces import warn_user
from speechlab.batch._outcome import Outcome, PlannedCall, add_advice, find_user_stacklevel
from speechlab.batch._plan.plan import Amounts, Chunk, Plan
from speechlab.batch._run.lease import adopt_results_of_lost_runs
from speechlab.batch._run.progress import Tally
from speechlab.batch._run.rules import Budget, RunRules, Spending, StopSignal
from speechlab.batch._store_options import is_existing_store
from speechlab.batch._table.assemble import (
    RUN_ATTRIBUTE,
    ResultDigest,
    assemble_chunk,
    collect_environment,
    format_row_key,
)
from speechlab.batch._table.failures import FailureCounter
from speechlab.errors import SpeechLabError
from speechlab.store import RunRecord, Store
from speechlab.tables import to_parquet_bytes

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.batch._run.lease_window import LeaseWindow
    from speechlab.batch._run.window import CallWindow

# Number of calls that are claimed and looked up in the store at a time, and the maximum that waits.
_CLAIMS_AT_ONCE = 8
# Interval in seconds at which the store is checked for results of other processes, after all other work.
_POLL_S = 0.25


class ClaimedCalls:
    """The calls of a piece of the table, each claimed before it is made, so that processes share equal rows."""

    def __init__(self, calls: Sequence[PlannedCall], store: Store, tally: Tally) -> None:
        self.left: list[PlannedCall] = list(calls)
        """Calls not yet given out; after :meth:`claim_calls`, the calls that other processes are making."""
        self.found: dict[str, Outcome] = {}
        """The outcomes of calls that other processes made."""
        self._store, self._tally = store, tally
        self._claims = store.claims()

    def claim_calls(self, ended: dict[str, Outcome]) -> Iterator[PlannedCall]:
        """Yield the calls that no other process is making."""
        calls, self.left = iter(self.left), []
        while some := list(islice(calls, _CLAIMS_AT_ONCE)):
            self._claims.release_keys(self._claims.keys & ended.keys())
            claimed = [call for call in some if self._claims.claim_key(call.key)]
            self.left += [call for call in some if call.key not in self._claims.keys]
            self._take_stored_results(claimed)
            yield from (call for call in claimed if call.key not in self.found)

    async def wait_for_other_processes(self, stop: StopSignal) -> None:
        """Wait a moment, and take new results of other processes, if calls are left and the run continues."""
        if self.left and not stop.reason:
            await asyncio.sleep(_POLL_S)
            await asyncio.to_thread(self._take_stored_results, self.left)
            self.left = [call for call in self.left if call.key not in self.found]

    def release_claims(self) -> None:
        """Release all claims."""
        self._claims.release_keys(self._claims.keys)

    def _take_stored_results(self, calls: Sequence[PlannedCall]) -> None:
        """Take results that are in the store."""
        if results := self._store.get_many([call.key for call in calls]):
            self.found.update((key, Outcome("cached", stored)) for key, stored in results.items())
            self._claims.release_keys(results)
            size = sum(call.size for call in calls if call.key in results)
            self._tally.add_planned(-len(results), len(results), size=-size)


BuildWindow = Callable[[RunRules], "CallWindow | LeaseWindow"]
WaitForService = Callable[[], Awaitable[None]]


def build_run_id() -> str:
    """Return the id of a new run: its time in UTC, and a random part."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"


@dataclass
class Execution:
    """The run of a plan: its calls are claimed, made and stored, and its results joined."""

    plan: Plan
    options: Mapping[str, Any]
    keep: bool = True
    tally: Tally = field(default_factory=Tally)
    stop: StopSignal = field(default_factory=StopSignal)
    frames: list[pd.DataFrame] = field(default_factory=list)
    errors: list[SpeechLabError] = field(default_factory=list)
    recorded: bool = True
    _usage: dict[str, float] = field(default_factory=dict)
    _input: Any = field(default_factory=hashlib.sha256)

    def __post_init__(self) -> None:
        step = self.plan.step
        manifest = {
            **collect_environment(),
            "service": self.plan.service,
            "parameters": orjson.loads(
                orjson.dumps(step.settings, default=str, option=orjson.OPT_NON_STR_KEYS)
            ),
            "prefix": self.plan.prefix,
        }
        self.failures = FailureCounter(self.plan.prefix)
        self._output = ResultDigest(type(step))
        self._began = time.monotonic()
        self.record = RunRecord(build_run_id(), step.operation, "running", time.time(), None, manifest)

    async def run(self, store: Store, begin: BuildWindow, ready: WaitForService) -> None:
        """Make the calls and record their outcomes. A read-only store gets no records."""
        self.recorded = not store.read_only
        self._update_record(self.record, store)
        spending = Spending(self.options["budget"] or Budget())
        rules = RunRules(spending, self.options["max_error_share"], self.stop)
        try:
            await asyncio.to_thread(adopt_results_of_lost_runs, store)
            chunks = self.plan.iter_chunks(store)
            while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
                await self._run_chunk(chunk, store, begin(rules), rules, ready)
                if self.stop.status == "interrupted":
                    break
        except BaseException as error:
            # a full disk must not hide the reason
            with suppress(SpeechLabError):
                cancelled = isinstance(error, asyncio.CancelledError)
                self._end_run(
                    store, "interrupted" if cancelled else "failed", f"{type(error).__name__}: {error}"
                )
            statuses = self.failures.statuses
            finished = statuses["ok"] + statuses["cached"]
            if finished and isinstance(error, SpeechLabError) and is_existing_store(store.path):
                rows = f"{finished:,} of {statuses.total():,} rows are kept"
                add_advice(
                    error, f"{rows} in run {self.record.id}, and the same call again resumes from there"
                )
            raise
        if self.stop.reason:
            self._end_run(store, self.stop.status, self.stop.reason)
        else:
            self._end_run(store, "finished", None)

    async def _run_chunk(
        self,
        chunk: Chunk,
        store: Store,
        window: CallWindow | LeaseWindow,
        rules: RunRules,
        ready: WaitForService,
    ) -> None:
        outcomes = {key: Outcome("cached", stored) for key, stored in chunk.found.items()}
        pending = chunk.pending
        if not self.options["retry_failed"]:
            failed = store.failures([call.key for call in pending])
            outcomes |= {
                key: Outcome.from_earlier_failure(attempt, "skipped") for key, attempt in failed.items()
            }
            pending = [call for call in pending if call.key not in failed]
        invalid = sum(isinstance(row, SpeechLabError) for row in chunk.rows)
        size = sum(call.size for call in pending)
        self.tally.add_planned(len(pending), len(chunk.found), invalid, size)
        claimed = ClaimedCalls(pending, store, self.tally)
        try:
            if pending and not self.stop.reason:
                await self._make_calls(claimed, window, rules, ready)
        except BaseException:
            # results received are written if possible; a full disk must not hide the reason
            with suppress(SpeechLabError):
                self._add_chunk_results(chunk, outcomes | claimed.found | window.outcomes, store)
            raise
        self._add_chunk_results(chunk, outcomes | claimed.found | window.outcomes, store)

    async def _make_calls(
        self, claimed: ClaimedCalls, window: CallWindow | LeaseWindow, rules: RunRules, ready: WaitForService
    ) -> None:
        """Wait for the service, and make the calls, until all are made or the run stops."""
        try:
            await ready()
        except SpeechLabError as error:
            if not error.service_lost:
                raise
            rules.stop_for_lost_service(error)
        try:
            while claimed.left and not self.stop.reason:
                await window.run(claimed.claim_calls(window.outcomes))
                await claimed.wait_for_other_processes(self.stop)
        finally:
            claimed.release_claims()

    def _add_chunk_results(self, chunk: Chunk, outcomes: dict[str, Outcome], store: Store) -> None:
        reason = self.stop.reason or "the run ended before its turn came"
        unasked = Outcome("cancelled", error_text=f"not asked: {reason}")
        outcomes = {key: outcomes.get(key, unasked) for key in chunk.calls}
        frame = assemble_chunk(chunk, self.plan.step, outcomes, self.plan.prefix)
        prefix = self.plan.prefix
        if self.recorded:
            frame.attrs[RUN_ATTRIBUTE] = self.record.id
        self.failures.count_failures(frame)
        for name in ("usage_characters", "usage_audio_s", "usage_tokens"):
            total = self._usage.get(name.removeprefix("usage_"), 0.0)
            self._usage[name.removeprefix("usage_")] = total + float(frame[prefix + name].sum())
        for row in chunk.rows:
            key, stored = (
                (row, outcomes[row].stored) if isinstance(row, str) else (format_row_key(None, row), None)
            )
            self._input.update(orjson.dumps(key))
            self._output.add(key, stored)
        self.errors += [row for row in chunk.rows if isinstance(row, SpeechLabError)]
        self.errors += [outcome.error for outcome in outcomes.values() if outcome.error is not None]
        if self.recorded:
            store.add_part(self.record.id, to_parquet_bytes(frame), len(frame))
        if self.keep:
            self.frames.append(frame)

    def _end_run(self, store: Store, status: str, reason: str | None) -> None:
        usage = {"calls": self.tally.done, **{name: round(n, 3) for name, n in self._usage.items()}}
        if (prices := (self.options["budget"] or Budget()).prices) is not None:
            usage["cost"] = round(Amounts(**usage).compute_cost(prices), 6)
        manifest = {
            **self.record.manifest,
            "reason": reason,
            "rows": self.failures.statuses.total(),
            "statuses": dict(self.failures.statuses),
            "usage": usage,
            "input_sha256": self._input.hexdigest(),
            "output_sha256": self._output.hexdigest(),
        }
        # a monotonic clock, which is never set back
        ended = self.record.started + time.monotonic() - self._began
        self._update_record(replace(self.record, status=status, ended=ended, manifest=manifest), store)

    def _update_record(self, record: RunRecord, store: Store) -> None:
        self.record = record
        if self.recorded:
            store.save_run(record)
            self.record = store.run(record.id)

    def describe_interruption(self) -> str:
        """Message of an interrupted run: what is kept, and how to continue."""
        run, tally = self.record.id, self.tally
        ended = f"{tally.done:,} of {tally.total:,} calls had ended, and what they gave is kept"
        if not self.recorded:
            return f"the batch was interrupted: {ended}"
        where = f"{self._format_load_expression()} has the finished rows"
        return f"run {run} was interrupted: {ended}. The same call again resumes from there; {where}"

    def _format_load_expression(self) -> str:
        """Return the expression that loads the run."""
        store = self.plan.store
        where = "" if store is None else f", {str(store.path if isinstance(store, Store) else store)!r}"
        return f"sl.batch.load({self.record.id!r}{where})"

    def warn_or_raise_failures(self) -> None:
        """Warn about failed rows and an early stop, and raise errors on request."""
        sentences = [f"the batch stopped: {self.stop.reason}"] if self.stop.reason else []
        if self.options["on_error"] != "raise":
            prefix = self.plan.prefix
            table, rows = f"table, prefix={prefix!r}" if prefix else "table", ""
            if not self.keep:
                table = "run"
            elif self.plan.columns != "all":
                table = self._format_load_expression()
            else:
                rows = f"table[table[{prefix + 'status'!r}] == 'error']"
            if failures := self.failures.describe_failures(table, rows):
                sentences.append(failures)
        if sentences:
            warn_user(". ".join(sentences), stacklevel=find_user_stacklevel())
        if self.options["on_error"] == "raise" and self.errors:
            text = f"{len(self.errors)} requests failed; what came is kept as run {self.record.id}"
            raise ExceptionGroup(text, self.errors)
