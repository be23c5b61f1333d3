"""Waiting calls of a function that takes many at once: they are gathered, sorted by length, and given to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from speechlab.errors import EngineError, SpeechLabError

if TYPE_CHECKING:
    from speechlab.client._systems.functions import FunctionCall


@dataclass(eq=False)
class _Entry:
    """A call that waits for its batch, or for the result of its batch."""

    call: FunctionCall
    since: float
    length: float
    result: asyncio.Future[tuple[list[Any], float]]
    batch: _Batch | None = None

    def fail(self, error: BaseException) -> None:
        """End with an error of its own, since each call adds its times to it."""
        if not self.result.done():
            own = type(error).__new__(type(error), *error.args)  # its __init__ may be a user's
            own.__dict__.update(error.__dict__)
            own.__cause__ = error.__cause__
            self.result.set_exception(own)


@dataclass(eq=False)
class _Batch:
    """Calls under way together."""

    entries: Sequence[_Entry]
    task: asyncio.Task[None] | None = None

    def end_if_abandoned(self) -> None:
        """End the call of the function once nobody waits for it any more."""
        if self.task is not None and all(entry.result.done() for entry in self.entries):
            self.task.cancel()


class CallGatherer:
    """The calls of one function on one event loop; those of a batch have the same fields.

    A batch begins as soon as a worker is free and it is full, or its first call has waited for long enough.
    """

    def __init__(
        self,
        run: Callable[[FunctionCall], AsyncGenerator[Any, None]],
        *,
        batch_size: int,
        max_wait_s: float,
        workers: int,
    ) -> None:
        self._run, self._batch_size, self._max_wait_s = run, batch_size, max_wait_s
        self._free_workers = workers
        self._running: set[_Batch] = set()
        self._waiting: dict[str, dict[_Entry, None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def call(self, call: FunctionCall) -> tuple[list[Any], float]:
        """Return the pieces of a result, and its share of the time of its batch."""
        loop = asyncio.get_running_loop()
        content = call.content
        length = len(content) if isinstance(content, str) else content.duration_s
        entry = _Entry(call, loop.time(), length, loop.create_future())
        alike = self._waiting.setdefault(_format_fields(call), {})
        alike[entry] = None
        self._start_batches()
        try:
            return await entry.result
        finally:
            if entry.batch is not None:
                entry.batch.end_if_abandoned()
            elif alike.pop(entry, True) is None and not alike:
                self._waiting.pop(_format_fields(call), None)

    def _start_batches(self) -> None:
        """Start the batches that are due, as far as workers are free."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._free_workers and self._waiting:
            oldest = {key: next(iter(alike)).since for key, alike in self._waiting.items()}
            late = loop.time() - self._max_wait_s
            due = [
                key
                for key, alike in self._waiting.items()
                if len(alike) >= self._batch_size or oldest[key] <= late
            ]
            if not due:
                self._timer = loop.call_at(min(oldest.values()) + self._max_wait_s, self._start_batches)
                return
            batch = _Batch(self._take_batch(min(due, key=oldest.__getitem__)))
            self._free_workers -= 1
            for entry in batch.entries:
                entry.batch = batch
            self._running.add(batch)
            batch.task = loop.create_task(self._run_batch(batch))

    def _take_batch(self, key: str) -> list[_Entry]:
        """Take the call that has waited longest, and the calls that are most like it, the longest first."""
        alike = self._waiting[key]
        first, size = next(iter(alike)), self._batch_size
        ordered = sorted(alike, key=lambda entry: entry.length, reverse=True)
        start = min(ordered.index(first) // size * size, max(0, len(ordered) - size))
        taken = ordered[start : start + size]
        for entry in taken:
            del alike[entry]
        if not alike:
            del self._waiting[key]
        return taken

    async def _run_batch(self, batch: _Batch) -> None:
        try:
            await self._call_function(batch.entries)
        except Exception as error:  # noqa: BLE001 - raised in each call
            for entry in batch.entries:
                entry.fail(error)
        finally:
            self._running.discard(batch)
            self._free_workers += 1
            if not self._closed:
                self._start_batches()

    def close(self) -> None:
        """End the batches."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for batch in self._running:
            if batch.task is not None:
                batch.task.cancel()

    async def _call_function(self, entries: Sequence[_Entry]) -> None:
        """Give calls to the function; if it fails, each half again, so that one that spoils a batch fails alone."""
        entries = [entry for entry in entries if not entry.result.done()]
        if not entries:
            return
        call = replace(
            entries[0].call, content=[entry.call.content for entry in entries], stream=False, many=True
        )
        try:
            async with aclosing(self._run(call)) as pieces:
                *rows, seconds = [piece async for piece in pieces]
        except EngineError as error:
            if len(entries) == 1:
                entries[0].fail(error)
                return
        except SpeechLabError as error:
            # As "later", or the wrong number of results: not the fault of one call.
            for entry in entries:
                entry.fail(error)
            return
        else:
            for entry, (row, fault) in zip(entries, rows, strict=True):
                if fault is not None:
                    entry.fail(fault)
                elif not entry.result.done():
                    entry.result.set_result((row, seconds / len(entries)))
            return
        middle = (len(entries) + 1) // 2
        await self._call_function(entries[:middle])
        await self._call_function(entries[middle:])


def _format_fields(call: FunctionCall) -> str:
    return repr(sorted(call.fields.items()))
