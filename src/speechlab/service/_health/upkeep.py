"""Periodic work: unloads idle models, ends idle workers, and measures how late the event loop is."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import sys
import time
from typing import TYPE_CHECKING

import psutil

from speechlab.service._accounts.counters import Family
from speechlab.service._logs import error_fields, log

if TYPE_CHECKING:
    from speechlab.service._accounts.database import Database
    from speechlab.service._engines.engines import Engines
    from speechlab.service._workers.decoding import Decoders

_TICK_S = 0.25
_CHECK_S = 15.0
_M_ARENA_MAX = -8
_ARENAS = 2


def spare_memory() -> None:
    """Keep glibc from giving each thread a heap of its own; for a process of our own, before its threads begin.

    Engines work in whichever thread is free, and memory freed in the heap of one is not used by another: without this
    the process grows by a hundred megabytes and more under fifty clients, and stays so (``benchmarks/soak.py``).
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library, which has no such thing
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


class Upkeep:
    """A task of the event loop, begun by the first request.

    Args:
        engines: The engines of the service.
        decoders: The processes that decode.
        database: Its database, or None.
        unload_idle_s: Large models that nobody has used for so long are unloaded; 0 keeps them.
    """

    def __init__(
        self, engines: Engines, decoders: Decoders, database: Database | None, unload_idle_s: float
    ) -> None:
        self._engines = engines
        self._decoders = decoders
        self._database = database
        self._idle_s = unload_idle_s
        self._task: asyncio.Task[None] | None = None
        self._late_s = 0.0
        self._process = psutil.Process()

    def begin(self) -> None:
        """Begin, unless it has begun."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="speechlab-upkeep")

    def gauges(self) -> list[Family]:
        """Measure the gauges of the metrics. Blocks for a moment; for worker threads."""
        waiting = Family("speechlab_engine_requests", "gauge", "Requests inside, waiting ones included.")
        loaded = Family("speechlab_engine_created", "gauge", "Whether the engine is there.")
        for lane in self._engines.lanes:
            waiting.set(lane.admitted, {"engine": lane.entry.name})
            loaded.set(lane.created, {"engine": lane.entry.name})
        late = Family(
            "speechlab_event_loop_late_seconds",
            "gauge",
            "The latest that the event loop was since the last scrape.",
        )
        late.set(self._late_s)
        self._late_s = 0.0
        processes = Family("speechlab_decoders", "gauge", "Processes that decode recordings.")
        processes.set(self._decoders.running)
        reading = Family("speechlab_readers", "gauge", "Processes that read texts for the voices.")
        reading.set(0 if self._engines.readers is None else self._engines.readers.running)
        return [waiting, loaded, processes, reading, late, *self._ledger(), *self._own()]

    def _ledger(self) -> list[Family]:
        if self._database is None:
            return []
        waiting = Family("speechlab_ledger_waiting_rows", "gauge", "Rows that are not written yet.")
        waiting.set(self._database.waiting)
        lost = Family("speechlab_ledger_lost_rows_total", "counter", "Rows that could not be kept.")
        lost.set(self._database.lost)
        return [waiting, lost]

    def _own(self) -> list[Family]:
        memory = Family("process_resident_memory_bytes", "gauge", "Memory of the service's process.")
        memory.set(self._process.memory_info().rss)
        cpu = Family("process_cpu_seconds_total", "counter", "Processor time of the service's process.")
        times = self._process.cpu_times()
        cpu.set(times.user + times.system)
        threads = Family("process_threads", "gauge", "Threads of the service's process.")
        threads.set(self._process.num_threads())
        families = [memory, cpu, threads]
        with contextlib.suppress(AttributeError, psutil.Error):  # not on every system
            files = Family("process_open_fds", "gauge", "Open files and sockets of the service's process.")
            files.set(self._process.num_fds())
            families.append(files)
        return families

    async def _run(self) -> None:
        checked = time.monotonic()
        pause = min(_CHECK_S, self._idle_s / 2) if self._idle_s else _CHECK_S
        while True:
            asked = time.monotonic()
            await asyncio.sleep(min(_TICK_S, pause))
            now = time.monotonic()
            self._late_s = max(self._late_s, now - asked - min(_TICK_S, pause))
            if self._idle_s and now - checked >= pause:
                checked = now
                await self._unload()
                await self._engines.threads.run(self._close_idle)

    def _close_idle(self) -> None:
        self._decoders.close_idle(self._idle_s)
        if self._engines.readers is not None:
            self._engines.readers.close_idle(self._idle_s)

    async def _unload(self) -> None:
        for lane in self._engines.lanes:
            # Light engines stay: they cost little, and readiness asks one of them.
            if not lane.entry.is_heavy:
                continue
            try:
                if await lane.unload(self._idle_s):
                    log("idle engine unloaded", engine=lane.entry.name, idle_s=self._idle_s)
            except Exception as error:  # noqa: BLE001 - upkeep goes on, whatever an engine does
                log(
                    "an engine cannot be unloaded",
                    level="error",
                    engine=lane.entry.name,
                    **error_fields(error),
                )
