"""The check of ``GET /readyz``: models are found and an engine replies, which a running process does not prove.

The weights of each engine are found, with the correct hash, and a light engine speaks one word through its queue; the
result is kept for a few seconds. Large models are not loaded for it, unless they are to be loaded at the start.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from speechlab.engines import TranslationJob
from speechlab.errors import EngineError, SpeechLabError
from speechlab.service._engines.lanes import Admission
from speechlab.service._faults import Fault, detail
from speechlab.service._logs import error_fields, log

if TYPE_CHECKING:
    from collections.abc import Callable

    from speechlab.service._accounts.database import Database
    from speechlab.service._engines.engines import Engines
    from speechlab.service._engines.lanes import EngineLane
    from speechlab.service._workers.pool import Decoders

_FRESH_S = 3.0
_FOUND_S = 60.0
_TIMEOUT_S = 5.0
_WORD = "Ready."
_RETRY_AFTER = {"Retry-After": "5"}


class Readiness:
    """Checks that the service works, and keeps the result for a few seconds."""

    def __init__(
        self, engines: Engines, decoders: Decoders, database: Database | None, draining: Callable[[], bool]
    ) -> None:
        self._engines = engines
        self._decoders = decoders
        self._database = database
        self._draining = draining
        self._checking = asyncio.Lock()
        self._checked_at = float("-inf")
        self._trouble: str | None = None
        self._found: dict[EngineLane, float] = {}
        self._loading: str | None = None
        self._finding: asyncio.Future[None] | None = None
        self._seconds = 0.0

    async def check(self) -> dict[str, Any]:
        if self._loading is not None:
            raise Fault("ErrOverloaded", self._loading, "router", "ready", headers=_RETRY_AFTER)
        if self._draining():
            raise Fault("ErrOverloaded", "the service is stopping", "router", "ready", headers=_RETRY_AFTER)
        async with self._checking:
            if time.monotonic() - self._checked_at > _FRESH_S:
                started = time.monotonic()
                self._trouble = await self._find_trouble()
                self._checked_at = time.monotonic()
                self._seconds = self._checked_at - started
        if self._trouble is not None:
            raise Fault("ErrOverloaded", self._trouble, "router", "ready", headers=_RETRY_AFTER)
        lane = self._lane()
        status: dict[str, Any] = {
            "status": "ready",
            "engine": None if lane is None else lane.entry.name,
            "seconds": round(self._seconds, 3),
        }
        if self._engines.backend is not None:
            # The backend's last reply is shown, but does not decide: speech and translation work without it.
            status["recognizer"] = self._engines.backend.status()
        return status

    async def preload(self) -> None:
        """Load all models, run voices and translators once, and start a process of each required kind.

        The service is not ready before.
        """
        self._loading = "models are being loaded"
        for lane in self._engines.lanes:
            try:
                await lane.call(Admission(), partial(_warm, lane))
            except Exception as error:  # noqa: BLE001 - an engine may raise anything; the service is then not ready
                log("a model cannot be loaded", level="error", engine=lane.entry.name, **error_fields(error))
                self._loading = f"the engine {lane.entry.name!r} cannot be loaded: {detail(error)}"
                return
        try:
            await self._engines.threads.run(self._start_workers)
        except Exception as error:  # noqa: BLE001 - as above
            log("a worker cannot be started", level="error", **error_fields(error))
            self._loading = "a process that decodes or reads cannot be started; the log says why"
            return
        log("models are loaded", engines=[lane.entry.name for lane in self._engines.lanes])
        self._loading = None

    def _start_workers(self) -> None:
        if self._engines.recognizer is not None and self._engines.backend is None:
            self._decoders.start()
        self._engines.start_readers()

    async def _found_models(self) -> bool:
        """Whether the weights of all engines have been found; the search continues in the background."""
        if self._finding is None:
            self._finding = asyncio.ensure_future(self._engines.threads.run(self._find_models))
        await asyncio.wait({self._finding}, timeout=_TIMEOUT_S)
        if not self._finding.done():
            return False
        finding, self._finding = self._finding, None
        finding.result()
        return True

    def _find_models(self) -> None:
        """Find the weights of all engines. Blocks, for seconds if they are joined for the first time."""
        for lane in self._engines.lanes:
            if time.monotonic() - self._found.get(lane, float("-inf")) < _FOUND_S:
                continue
            try:
                find = getattr(lane.engine(), "find", None)
                if find is not None:
                    find()
            except SpeechLabError as error:
                message = f"the engine {lane.entry.name!r}: {detail(error)}"
                raise EngineError(message) from error
            self._found[lane] = time.monotonic()

    def _lane(self) -> EngineLane | None:
        lanes = self._engines.synthesizers.values()
        return next((lane for lane in lanes if not lane.entry.is_heavy), None)

    async def _find_trouble(self) -> str | None:
        """Check the database and an engine; return the problem, or None."""
        if not self._engines.lanes:
            return "there is no engine here; see the setting engines"
        if self._database is not None and self._database.failing:
            return "usage cannot be written to the data folder; the log says why"
        lane = self._lane()
        try:
            if not await self._found_models():
                return "weights are still being looked for, or joined for the first time"
            async with asyncio.timeout(_TIMEOUT_S):
                if self._database is not None:
                    database = self._database
                    await self._engines.threads.run(lambda: database.read("SELECT count(*) FROM keys"))
                if lane is None:
                    await self._engines.threads.run(lambda: None)
                else:
                    await lane.call(Admission(), lambda: _speak(lane))
        except TimeoutError:
            return f"no answer within {_TIMEOUT_S:.0f} s; the service is overloaded or stuck"
        except SpeechLabError as error:
            log("not ready", level="error", **error_fields(error))
            return f"an engine or the data folder does not work: {detail(error)}"
        except Exception as error:  # noqa: BLE001 - an engine may raise anything; the service is then not ready
            log("not ready", level="error", **error_fields(error))
            return "an engine does not work; the log says why"
        return None


def _warm(lane: EngineLane) -> None:
    engine = lane.engine()
    getattr(engine, "load", lambda: None)()
    if lane.entry.kind == "synthesizer":
        _speak(lane)
    elif lane.entry.kind == "translator":
        for _ in engine.translate(TranslationJob("Hello.", "en", "ja")):
            pass


def _speak(lane: EngineLane) -> None:
    engine = lane.engine()
    pieces = engine.synthesize(_WORD, engine.voices[0].name)
    try:
        if not any(len(piece) for piece in pieces):
            message = f"the engine {lane.entry.name!r} gave no sound"
            raise SpeechLabError(message)
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()
