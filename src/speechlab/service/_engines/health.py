"""Health of the engines: the check of ``GET /readyz``, and periodic work.

A running process does not prove that it works. So the weights of each engine are found, with the correct hash, and a
light engine speaks one word through its queue; the result is kept for a few seconds. Large models are not loaded for
it, unless they are to be loaded at the start. Periodic work unloads idle models, ends idle workers, and measures the
delay of the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import psutil
from prometheus_client.core import CounterMetricFamily, Metric

from speechlab.engines import TranslationJob
from speechlab.errors import EngineError, SpeechLabError
from speechlab.service._accounts.ledger import build_gauge
from speechlab.service._engines.lanes import Admission, EngineLane
from speechlab.service._faults import Fault, describe_failure
from speechlab.service._logs import build_error_fields, log

if TYPE_CHECKING:
    from speechlab.service._accounts.database import Database
    from speechlab.service._engines.engines import Engines
    from speechlab.service._held_bytes import BytesBudget

_RESULT_VALID_S = 3.0
_WEIGHTS_VALID_S = 60.0
_TIMEOUT_S = 5.0


class Readiness:
    """Checks that the service works, and keeps the result for a few seconds."""

    def __init__(self, engines: Engines, database: Database | None, draining: Callable[[], bool]) -> None:
        self._engines = engines
        self._database = database
        self._draining = draining
        self._checking = asyncio.Lock()
        self._checked_at = float("-inf")
        self._trouble: str | None = None
        self._found: dict[EngineLane, float] = {}
        self._loading: str | None = None
        self._finding: asyncio.Future[None] | None = None
        self._seconds = 0.0

    async def check_ready(self) -> dict[str, Any]:
        trouble = self._loading or ("the service is stopping" if self._draining() else None)
        if trouble is None:
            async with self._checking:
                if time.monotonic() - self._checked_at > _RESULT_VALID_S:
                    started = time.monotonic()
                    self._trouble = await self._find_readiness_problem()
                    self._checked_at = time.monotonic()
                    self._seconds = self._checked_at - started
            trouble = self._trouble
        if trouble is not None:
            raise Fault("ErrOverloaded", trouble, "router", "ready", headers={"Retry-After": "5"})
        lane = self._choose_light_lane()
        engine = None if lane is None else lane.entry.name
        status: dict[str, Any] = {"status": "ready", "engine": engine, "seconds": round(self._seconds, 3)}
        if self._engines.backend is not None:
            # The backend's last reply is shown, but does not decide: speech and translation work without it.
            status["recognizer"] = self._engines.backend.summarize_status()
        return status

    async def preload_models(self) -> None:
        """Load all models, run voices and translators once, and start a process of each required kind.

        The service is not ready before.
        """
        self._loading = "models are being loaded"
        for lane in self._engines.lanes:
            try:
                await lane.run_task(Admission(), partial(_warm_up_engine, lane))
            except Exception as error:  # noqa: BLE001 - an engine may raise anything; the service is then not ready
                log(
                    "a model cannot be loaded",
                    level="error",
                    engine=lane.entry.name,
                    **build_error_fields(error),
                )
                self._loading = f"the engine {lane.entry.name!r} cannot be loaded: {describe_failure(error)}"
                return
        try:
            await self._engines.threads.run_task(self._engines.start_workers)
        except Exception as error:  # noqa: BLE001 - as above
            log("a worker cannot be started", level="error", **build_error_fields(error))
            self._loading = "a process that decodes or reads cannot be started; the log says why"
            return
        log("models are loaded", engines=[lane.entry.name for lane in self._engines.lanes])
        self._loading = None

    async def _check_weights_within_timeout(self) -> bool:
        """Return whether the weights of all engines have been found; the search continues in the background."""
        if self._finding is None:
            self._finding = asyncio.ensure_future(self._engines.threads.run_task(self._check_weights))
        await asyncio.wait({self._finding}, timeout=_TIMEOUT_S)
        if not self._finding.done():
            return False
        finding, self._finding = self._finding, None
        finding.result()
        return True

    def _check_weights(self) -> None:
        """Find the weights of all engines. Blocks, for seconds if they are joined for the first time."""
        for lane in self._engines.lanes:
            if time.monotonic() - self._found.get(lane, float("-inf")) < _WEIGHTS_VALID_S:
                continue
            try:
                find = getattr(lane.get_or_create_engine(), "find_model", None)
                if find is not None:
                    find()
            except SpeechLabError as error:
                raise EngineError(f"the engine {lane.entry.name!r}: {describe_failure(error)}") from error
            self._found[lane] = time.monotonic()

    def _choose_light_lane(self) -> EngineLane | None:
        return next((lane for lane in self._engines.synthesizers.values() if not lane.entry.is_heavy), None)

    async def _find_readiness_problem(self) -> str | None:
        """Check the database and an engine; return the problem, or None."""
        if not self._engines.lanes:
            return "there is no engine here; see the setting engines"
        if self._database is not None and self._database.failing:
            return "usage cannot be written to the data folder; the log says why"
        lane = self._choose_light_lane()
        try:
            if not await self._check_weights_within_timeout():
                return "weights are still being looked for, or joined for the first time"
            async with asyncio.timeout(_TIMEOUT_S):
                if self._database is not None:
                    read = partial(self._database.read, "SELECT count(*) FROM keys")
                    await self._engines.threads.run_task(read)
                if lane is None:
                    await self._engines.threads.run_task(lambda: None)
                else:
                    await lane.run_task(Admission(), lambda: _check_test_word_sounds(lane))
        except TimeoutError:
            return f"no answer within {_TIMEOUT_S:.0f} s; the service is overloaded or stuck"
        except SpeechLabError as error:
            log("not ready", level="error", **build_error_fields(error))
            return f"an engine or the data folder does not work: {describe_failure(error)}"
        except Exception as error:  # noqa: BLE001 - an engine may raise anything; the service is then not ready
            log("not ready", level="error", **build_error_fields(error))
            return "an engine does not work; the log says why"
        return None


def _warm_up_engine(lane: EngineLane) -> None:
    engine = lane.get_or_create_engine()
    getattr(engine, "load", lambda: None)()
    if lane.entry.kind == "synthesizer":
        _check_test_word_sounds(lane)
    elif lane.entry.kind == "translator":
        for _ in engine.translate(TranslationJob("Hello.", "en", "ja")):
            pass


def _check_test_word_sounds(lane: EngineLane) -> None:
    engine = lane.get_or_create_engine()
    pieces = engine.synthesize("Ready.", engine.voices[0].name)
    try:
        if not any(len(piece) for piece in pieces):
            raise SpeechLabError(f"the engine {lane.entry.name!r} gave no sound")
    finally:
        getattr(pieces, "close", lambda: None)()


_TICK_S = 0.25
_CHECK_S = 15.0
# Gauges of each engine, and the attribute of its lane that they show.
_ENGINE_GAUGES = (
    ("speechlab_engine_requests", "Requests inside, waiting ones included.", "admitted"),
    ("speechlab_engine_waiting", "Requests that wait for their first turn.", "waiting"),
    ("speechlab_engine_created", "Whether the engine is there.", "has_engine"),
)
_TRIM_S = 5.0
# Bytes given back by requests after which free memory is returned to the system.
_FREED_BYTES = 8 * 1024 * 1024


def limit_glibc_heaps() -> None:
    """Limit glibc to one heap for all threads; for a separate process, before its threads start.

    Engines work in any free thread, and memory freed in the heap of one thread is not reused by another. Without this
    the process grows by a hundred megabytes and more under fifty clients, and stays so (``benchmarks/soak.py``).
    """
    _call_glibc_function("mallopt", -8, 2)  # M_ARENA_MAX


def _call_glibc_function(function: str, *arguments: int) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library without this function
            getattr(ctypes.CDLL(None), function)(*arguments)


class Upkeep:
    """A task of the event loop, started by the first request."""

    def __init__(
        self, engines: Engines, database: Database | None, budget: BytesBudget, unload_idle_s: float
    ) -> None:
        self._engines = engines
        self._database = database
        self._budget = budget
        self._idle_s = unload_idle_s
        self._task: asyncio.Task[None] | None = None
        self._late_s = 0.0
        self._process = psutil.Process()

    def start_once(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run_upkeep(), name="speechlab-upkeep")

    def measure_gauges(self) -> list[Metric]:
        """Measure the gauges of the metrics. Blocks for a moment; for worker threads."""
        late_s, self._late_s = self._late_s, 0.0
        readers, database, process = self._engines.readers, self._database, self._process
        reading = 0 if readers is None else readers.running_count
        families: list[Metric] = [
            build_gauge(
                name, text, {lane.entry.name: float(getattr(lane, what)) for lane in self._engines.lanes}
            )
            for name, text, what in _ENGINE_GAUGES
        ]
        measured = {
            "decoders": ("Processes that decode recordings.", self._engines.decoders.running_count),
            "readers": ("Processes that read texts for the voices.", reading),
            "event_loop_late_seconds": ("The latest that the event loop was since the last scrape.", late_s),
            "held_bytes": ("Bodies, recordings and replies that are held.", self._budget.held),
            "held_limit_bytes": ("Maximum of them.", self._budget.limit),
        }
        if database is not None:
            measured["ledger_waiting_rows"] = ("Rows that are not written yet.", database.pending_count)
            measured["ledger_failing"] = ("Whether rows cannot be written now.", float(database.failing))
        families += [
            build_gauge(f"speechlab_{name}", text, value) for name, (text, value) in measured.items()
        ]
        if database is not None:
            text = "Rows that could not be kept."
            families.append(CounterMetricFamily("speechlab_ledger_lost_rows", text, value=database.lost))
        times, memory = process.cpu_times(), process.memory_info().rss
        text = "Processor time of the service's process."
        families += [
            build_gauge("process_resident_memory_bytes", "Memory of the service's process.", memory),
            CounterMetricFamily("process_cpu_seconds", text, value=times.user + times.system),
            build_gauge("process_threads", "Threads of the service's process.", process.num_threads()),
        ]
        with contextlib.suppress(AttributeError, psutil.Error):  # not on every system
            text = "Open files and sockets of the service's process."
            families.append(build_gauge("process_open_fds", text, process.num_fds()))
        return families

    async def _run_upkeep(self) -> None:
        checked = trimmed = time.monotonic()
        freed = 0
        pause = min(_CHECK_S, self._idle_s / 2) if self._idle_s else _CHECK_S
        while True:
            since = time.monotonic()
            await asyncio.sleep(min(_TICK_S, pause))
            now = time.monotonic()
            self._late_s = max(self._late_s, now - since - min(_TICK_S, pause))
            freed += self._budget.pop_freed_byte_count()
            if freed >= _FREED_BYTES and now - trimmed >= _TRIM_S:
                freed, trimmed = 0, now
                # Free memory goes back to the system, which glibc keeps otherwise.
                await self._engines.threads.run_task(partial(_call_glibc_function, "malloc_trim", 0))
            if self._idle_s and now - checked >= pause:
                checked = now
                await self._unload_idle_heavy_engines()
                for workers in self._engines.workers:
                    await self._engines.threads.run_task(partial(workers.end_idle_processes, self._idle_s))

    async def _unload_idle_heavy_engines(self) -> None:
        for lane in self._engines.lanes:
            # Light engines stay loaded: they cost little, and the readiness check uses one of them.
            if not lane.entry.is_heavy:
                continue
            try:
                if await lane.unload_if_idle(self._idle_s):
                    log("idle engine unloaded", engine=lane.entry.name, idle_s=self._idle_s)
            except Exception as error:  # noqa: BLE001 - upkeep continues after any error of an engine
                fields = {"engine": lane.entry.name, **build_error_fields(error)}
                log("an engine cannot be unloaded", level="error", **fields)
