"""Recording and replay of realtime texts: their messages, each with its time."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from speechlab.client._memory import Memory, StoredCall, timing_from, wait_until
from speechlab.client._realtime.synthesis import Synthesis
from speechlab.contract import SessionInfo

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from speechlab.client._realtime.dial import RealtimeConfig
    from speechlab.client._realtime.events import Job
    from speechlab.client._settings.settings import Settings


class RealtimeTape:
    """Records and replays the texts of a session; it does nothing for a client without a store."""

    def __init__(self, settings: Settings, identity: Callable[[], Awaitable[str]]) -> None:
        self._memory = Memory.from_settings(settings)
        self._identity = identity
        self._clock = settings.clock

    async def _call(self, operation: str, config: RealtimeConfig, **more: Any) -> StoredCall | None:
        if self._memory is None:
            return None
        # As for texts over HTTP: arguments that were not given are left out, except temperature.
        parameters = config.settings.model_dump(mode="json", exclude_none=True)
        parameters |= {"sample_rate": config.sample_rate, "temperature": config.settings.temperature}
        return StoredCall(self._memory, operation, parameters | more, await self._identity())

    async def session(self, config: RealtimeConfig) -> SessionInfo | None:
        """The kept description of a session with these settings; None if one has to be opened."""
        call = await self._call("realtime_session", config)
        recalled = None if call is None else await asyncio.to_thread(call.recall)
        return None if recalled is None else SessionInfo.parse(recalled[0].response)

    async def keep_session(self, config: RealtimeConfig, info: SessionInfo) -> None:
        """Keep the service's description of the first session with these settings."""
        call = await self._call("realtime_session", config)
        if call is not None and await asyncio.to_thread(call.recall) is None:
            await asyncio.to_thread(call.keep, info.model_dump(mode="json"), {})

    async def played(self, job: Job) -> bool:
        """Replay a text from the store; False if it has to be spoken."""
        call = None if job.config is None else await self._call("realtime", job.config, text=job.text)
        recalled = None if call is None else await asyncio.to_thread(call.recall)
        if call is None or recalled is None:
            return False
        stored, facts = recalled
        audio = await asyncio.to_thread(stored.files["audio"].read_bytes)
        job.stop_clock()  # a kept text cannot time out
        job.recorded = timing_from(facts)
        job.synthesis = Synthesis(facts["client_id"])
        began, position = self._clock.monotonic(), 0
        for at_s, message in facts["frames"]:
            if call.memory.paced:
                await wait_until(self._clock, began, at_s)
            frame: str | bytes = message
            if isinstance(message, int):
                frame = audio[position : position + message]
                position += message
            event = job.synthesis.feed(frame)
            if event is not None:
                job.put(event)
        job.end()
        return True

    async def keep(self, job: Job) -> None:
        """Keep a completely spoken text."""
        call = None if job.config is None else await self._call("realtime", job.config, text=job.text)
        if call is None or job.config is None:
            return
        frames = [(at_s, frame if isinstance(frame, str) else len(frame)) for at_s, frame in job.frames]
        audio = b"".join(frame for _, frame in job.frames if isinstance(frame, bytes))
        facts = {"client_id": job.synthesis.client_id, "frames": frames, "timing": asdict(job.timing())}
        files = {"audio": (audio, f".{job.config.settings.format}")}
        await asyncio.to_thread(call.keep, {"audio_bytes": len(audio)}, facts, files)
