"""Periodic work: unloads idle models, ends idle workers, and measures the delay of the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import sys
import time
from typing import TYPE_CHECKING

import psutil
from prometheus_client.core import CounterMetricFamily

from speechlab.service._accounts.counters import gauge
from speechlab.service._logs import error_fields, log

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from speechlab.service._accounts.database import Database
    from speechlab.service._engines.engines import Engines
    from speechlab.service._held_bytes import BytesBudget
    from speechlab.service._workers.pool import Decoders

_TICK_S = 0.25
_CHECK_S = 15.0
_OF_ENGINES = (
    ("speechlab_engine_requests", "Requests inside, waiting ones included.", "admitted"),
    ("speechlab_engine_waiting", "Requests that wait for their first turn.", "waiting"),
    ("speechlab_engine_created", "Whether the engine is there.", "created"),
)
"""Gauges of each engine, and the attribute of its lane that they show."""
_TRIM_S = 5.0
_FREED_BYTES = 8 * 1024 * 1024
"""Bytes given back by requests after which free memory is returned to the system."""
_M_ARENA_MAX = -8
_ARENAS = 2


def spare_memory() -> None:
    """Limit glibc to one heap for all threads; for a separate process, before its threads start.

    Engines work in any free thread, and memory freed in the heap of one thread is not reused by another. Without this
    the process grows by a hundred megabytes and more under fifty clients, and stays so (``benchmarks/soak.py``).
    """
    _ask_glibc("mallopt", _M_ARENA_MAX, _ARENAS)


def _give_memory_back() -> None:
    """Return free memory to the system, which glibc keeps otherwise."""
    _ask_glibc("malloc_trim", 0)


def _ask_glibc(function: str, *arguments: int) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library without this function
            getattr(ctypes.CDLL(None), function)(*arguments)


class Upkeep:
    """A task of the event loop, started by the first request."""

    def __init__(
        self,
        engines: Engines,
        decoders: Decoders,
        database: Database | None,
        budget: BytesBudget,
        unload_idle_s: float,
    ) -> None:
        self._engines = engines
        self._decoders = decoders
        self._database = database
        self._budget = budget
        self._idle_s = unload_idle_s
        self._task: asyncio.Task[None] | None = None
        self._late_s = 0.0
        self._process = psutil.Process()

    def begin(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="speechlab-upkeep")

    def gauges(self) -> list[Metric]:
        """Measure the gauges of the metrics. Blocks for a moment; for worker threads."""
        late_s, self._late_s = self._late_s, 0.0
        readers, lanes = self._engines.readers, self._engines.lanes
        measured = {
            "decoders": ("Processes that decode recordings.", self._decoders.running),
            "readers": (
                "Processes that read texts for the voices.",
                0 if readers is None else readers.running,
            ),
            "event_loop_late_seconds": ("The latest that the event loop was since the last scrape.", late_s),
            "held_bytes": ("Bodies, recordings and replies that are held.", self._budget.held),
            "held_limit_bytes": ("Maximum of them.", self._budget.limit),
        }
        return [
            *(
                gauge(name, text, {lane.entry.name: float(getattr(lane, what)) for lane in lanes})
                for name, text, what in _OF_ENGINES
            ),
            *(gauge(f"speechlab_{name}", text, value) for name, (text, value) in measured.items()),
            *self._ledger(),
            *self._own(),
        ]

    def _ledger(self) -> list[Metric]:
        if self._database is None:
            return []
        waiting, failing = self._database.waiting, float(self._database.failing)
        text = "Rows that could not be kept."
        return [
            gauge("speechlab_ledger_waiting_rows", "Rows that are not written yet.", waiting),
            gauge("speechlab_ledger_failing", "Whether rows cannot be written now.", failing),
            CounterMetricFamily("speechlab_ledger_lost_rows", text, value=self._database.lost),
        ]

    def _own(self) -> list[Metric]:
        times, memory = self._process.cpu_times(), self._process.memory_info().rss
        text = "Processor time of the service's process."
        families: list[Metric] = [
            gauge("process_resident_memory_bytes", "Memory of the service's process.", memory),
            CounterMetricFamily("process_cpu_seconds", text, value=times.user + times.system),
            gauge("process_threads", "Threads of the service's process.", self._process.num_threads()),
        ]
        with contextlib.suppress(AttributeError, psutil.Error):  # not on every system
            text = "Open files and sockets of the service's process."
            families.append(gauge("process_open_fds", text, self._process.num_fds()))
        return families

    async def _run(self) -> None:
        checked = trimmed = time.monotonic()
        freed = 0
        pause = min(_CHECK_S, self._idle_s / 2) if self._idle_s else _CHECK_S
        while True:
            since = time.monotonic()
            await asyncio.sleep(min(_TICK_S, pause))
            now = time.monotonic()
            self._late_s = max(self._late_s, now - since - min(_TICK_S, pause))
            freed += self._budget.given_back()
            if freed >= _FREED_BYTES and now - trimmed >= _TRIM_S:
                freed, trimmed = 0, now
                await self._engines.threads.run(_give_memory_back)
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
            # Light engines stay loaded: they cost little, and the readiness check uses one of them.
            if not lane.entry.is_heavy:
                continue
            try:
                if await lane.unload(self._idle_s):
                    log("idle engine unloaded", engine=lane.entry.name, idle_s=self._idle_s)
            except Exception as error:  # noqa: BLE001 - upkeep continues after any error of an engine
                log(
                    "an engine cannot be unloaded",
                    level="error",
                    engine=lane.entry.name,
                    **error_fields(error),
                )
