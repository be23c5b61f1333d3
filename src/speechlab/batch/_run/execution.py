"""Execution of a plan, piece by piece: each result is on disk before its row counts, and the run is recorded."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from speechlab.batch._outcome import Outcome
from speechlab.batch._run.progress import Tally
from speechlab.batch._run.rules import Budget, Rules, Stop
from speechlab.batch._run.window import Window
from speechlab.batch._table.assemble import assemble_chunk
from speechlab.batch._table.record import RUN_ATTRIBUTE, environment, table_bytes
from speechlab.errors import SpeechLabError
from speechlab.store import RunRecord

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.batch._plan.plan import Chunk, Plan
    from speechlab.batch._run.options import RunOptions
    from speechlab.batch._run.window import Send
    from speechlab.store import Store


@dataclass
class Execution:
    """One execution of a plan.

    Attributes:
        plan: The plan.
        options: How it is run, complete.
        keep: Whether the assembled table stays in memory, in ``frames``.
        tally: Progress.
        stop: The request to stop, if there is one.
        frames: The assembled pieces.
        record: The record of the run.
        errors: Errors of rows, at most some of them, for ``on_error="raise"``.
    """

    plan: Plan
    options: RunOptions
    keep: bool = True
    tally: Tally = field(default_factory=Tally)
    stop: Stop = field(default_factory=Stop)
    frames: list[pd.DataFrame] = field(default_factory=list)
    errors: list[SpeechLabError] = field(default_factory=list)
    _statuses: Counter[str] = field(default_factory=Counter)
    _usage: dict[str, float] = field(default_factory=dict)
    _input: Any = field(default_factory=hashlib.sha256)
    _output: Any = field(default_factory=hashlib.sha256)

    def __post_init__(self) -> None:
        now = datetime.now(UTC)
        name = f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"
        step = self.plan.step
        manifest = {
            **environment(),
            "service": self.plan.service,
            "parameters": _plain(dict(step.settings)),
            "prefix": self.plan.prefix,
        }
        self.record = RunRecord(name, step.operation, "running", now.timestamp(), None, manifest)

    async def run(self, store: Store, send: Send) -> None:
        """Make the calls, and record their outcomes.

        Raises:
            AuthenticationError: The key is refused. What had come is in the store.
            StoreError: A result could not be kept.
        """
        store.save_run(self.record)
        rules = Rules(self.options["budget"] or Budget(), self.options["max_error_share"], self.stop)
        try:
            chunks = self.plan.chunks(store)
            while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
                await self._chunk(chunk, store, send, rules)
                if self.stop.status == "interrupted":
                    break
        except BaseException as error:
            # a full disk must not hide the reason
            with suppress(SpeechLabError):
                cancelled = isinstance(error, asyncio.CancelledError)
                self._end(store, "interrupted" if cancelled else "failed", f"{type(error).__name__}: {error}")
            raise
        if self.stop:
            self._end(store, self.stop.status, self.stop.reason)
        else:
            self._end(store, "finished", None)

    async def _chunk(self, chunk: Chunk, store: Store, send: Send, rules: Rules) -> None:
        outcomes = {key: Outcome("cached", stored) for key, stored in chunk.found.items()}
        pending = chunk.pending
        if not self.options["retry_failed"]:
            failed = store.failures([call.key for call in pending])
            outcomes |= {key: Outcome.failed_before(attempt, "skipped") for key, attempt in failed.items()}
            pending = [call for call in pending if call.key not in failed]
        invalid = sum(isinstance(row, SpeechLabError) for row in chunk.rows)
        self.tally.planned(len(pending), len(chunk.found), invalid)
        step = self.plan.step
        window = Window(send, step.operation, store, rules, self.tally, self._width())
        try:
            if pending:
                await window.run(pending)
        except BaseException:
            # what came is written down if it can be; a full disk must not hide the reason
            with suppress(SpeechLabError):
                self._add(chunk, outcomes | window.outcomes, store)
            raise
        self._add(chunk, outcomes | window.outcomes, store)

    def _width(self) -> int:
        executor = self.options["executor"]
        return self.options["concurrency"] * (max(1, len(executor.ncores())) if executor is not None else 1)

    def _add(self, chunk: Chunk, outcomes: dict[str, Outcome], store: Store) -> None:
        reason = self.stop.reason or "the run ended before its turn came"
        unasked = Outcome("cancelled", error_text=f"not asked: {reason}")
        outcomes = {key: outcomes.get(key, unasked) for key in chunk.calls}
        frame = assemble_chunk(chunk, self.plan.step, outcomes, prefix=self.plan.prefix)
        prefix = self.plan.prefix
        frame.attrs[RUN_ATTRIBUTE] = self.record.id
        self._statuses.update(str(status) for status in frame[prefix + "status"])
        for name in ("usage_characters", "usage_audio_s", "usage_tokens"):
            total = self._usage.get(name.removeprefix("usage_"), 0.0)
            self._usage[name.removeprefix("usage_")] = total + float(frame[prefix + name].sum())
        for row in chunk.rows:
            key = row if isinstance(row, str) else f"error: {row}"
            self._input.update(orjson.dumps(key))
            stored = outcomes[row].stored if isinstance(row, str) else None
            evidence = None if stored is None else self.plan.step.evidence(stored)
            self._output.update(orjson.dumps([key, evidence]))
        self.errors += [row for row in chunk.rows if isinstance(row, SpeechLabError)]
        self.errors += [outcome.error for outcome in outcomes.values() if outcome.error is not None]
        store.add_part(self.record.id, table_bytes(frame), len(frame))
        if self.keep:
            self.frames.append(frame)

    def _end(self, store: Store, status: str, reason: str | None) -> None:
        manifest = {
            **self.record.manifest,
            "reason": reason,
            "rows": sum(self._statuses.values()),
            "statuses": dict(self._statuses),
            "usage": {"calls": self.tally.done, **{name: round(n, 3) for name, n in self._usage.items()}},
            "input_sha256": self._input.hexdigest(),
            "output_sha256": self._output.hexdigest(),
        }
        store.save_run(replace(self.record, status=status, ended=time.time(), manifest=manifest))
        self.record = store.run(self.record.id)

    def finish(self) -> None:
        """Tell the user how it ended, where the table does not say it.

        Raises:
            ExceptionGroup: Rows failed, and ``on_error="raise"``.
        """
        if self.stop and self.stop.reason:
            warnings.warn(f"the batch stopped: {self.stop.reason}", stacklevel=5)  # the line that called
        if self.options["on_error"] == "raise" and self.errors:
            text = f"{len(self.errors)} requests failed; what came is kept as run {self.record.id}"
            raise ExceptionGroup(text, self.errors)


def _plain(value: Any) -> Any:
    """Return parameters as JSON values."""
    return orjson.loads(orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS))
