"""Events of one text of a realtime session, for ``await``."""

from __future__ import annotations

import asyncio
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

from speechlab.client._closable import AsyncClosable
from speechlab.client._events import Timing
from speechlab.client._operations.speech import ExpectedSpeech, spent_on_speech
from speechlab.client._realtime.synthesis import AudioDelta, Synthesis
from speechlab.contract import AudioFormat
from speechlab.errors import ConfigurationError, SpeechLabError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from speechlab.client._operations.speech import SpeechClip
    from speechlab.client._realtime.dial import RealtimeConfig
    from speechlab.client._realtime.synthesis import RealtimeEvent
    from speechlab.client._scheduling.waiting import CallPlace
    from speechlab.client._transport.sender import Sender


class Job:
    """One text on its way; what the session's task and the reader share."""

    def __init__(self, text: str, client_id: str, sender: Sender, time_s: float | None) -> None:
        self.text = text
        self.time_s = time_s
        """Seconds from its sending to its record of usage, or None."""
        self.synthesis = Synthesis(client_id)
        self.task: asyncio.Task[None] | None = None
        self.over = False
        self.config: RealtimeConfig | None = None
        self.frames: list[tuple[float, str | bytes]] = []
        """What came, and when: seconds since the text was sent."""
        self.recorded: Timing | None = None
        self.events: asyncio.Queue[RealtimeEvent | SpeechLabError | None] = asyncio.Queue()
        self._sender = sender
        self._clock = sender.settings.clock
        self._began = self._clock.monotonic()
        self._sent: float | None = None
        self._first: float | None = None
        self._ended: float | None = None

    def begin(self, place: CallPlace) -> None:
        """Start counting the time: its turn has come."""
        self._sent = place.started

    def came(self, frame: str | bytes) -> None:
        """Record a message, with its time."""
        now = self._clock.monotonic()
        self.frames.append((round(now - (self._sent or now), 6), frame))

    def put(self, event: RealtimeEvent) -> None:
        """Hand an event to the reader."""
        if self._first is None and isinstance(event, AudioDelta):
            self._first = self._clock.monotonic()
        self.events.put_nowait(event)

    def end(self) -> None:
        """Tell the reader that the text is complete."""
        if self._finish():
            if self.recorded is None:
                self._sender.totals.add(**spent_on_speech(self.text, len(self.synthesis.audio)))
            self.events.put_nowait(None)

    def fail(self, error: SpeechLabError) -> None:
        """Tell the reader of the failure."""
        if self._finish():
            self.events.put_nowait(error)

    def may_be_counted(self, error: SpeechLabError) -> SpeechLabError:
        """Count the text as possibly metered, as it was sent and its outcome is unknown; its error tells so."""
        self._sender.totals.add(possibly_metered=1)
        error.possibly_metered = True
        return error

    def stop_clock(self) -> None:
        """Stop counting the time."""
        self._ended = self._clock.monotonic() if self._ended is None else self._ended

    def _finish(self) -> bool:
        was, self.over = self.over, True
        self.stop_clock()
        return not was

    def timing(self) -> Timing:
        """How long it has taken so far, or took when it was recorded."""
        if self.recorded is not None:
            return self.recorded
        now = self._clock.monotonic() if self._ended is None else self._ended
        sent = self._began if self._sent is None else self._sent
        first = None if self._first is None else self._first - sent
        return Timing(1, now - self._began, first, sent - self._began, None)

    def give_up(self) -> None:
        """Cancel it: nobody reads it any more."""
        if not self.over:
            self.fail(ConfigurationError("the events of this text were closed"))
            if self.task is not None:
                self.task.cancel()


class AsyncSpeechEvents(AsyncClosable):
    """Events of one text: iterate for them in order, or :meth:`collect` a clip."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._error: SpeechLabError | None = None
        self._ended = False
        # If the events are garbage-collected, cancel the synthesis.
        weakref.finalize(self, _drop, asyncio.get_running_loop(), job).atexit = False

    @property
    def partial(self) -> bytes:
        """The audio that has come so far."""
        return self._job.synthesis.audio

    @property
    def timing(self) -> Timing:
        """How long it has taken so far; ``first_byte_s`` is the time to the first piece of audio."""
        return self._job.timing()

    def __aiter__(self) -> AsyncIterator[RealtimeEvent]:
        return self

    async def __anext__(self) -> RealtimeEvent:
        event = await self.next_event()
        if event is None:
            raise StopAsyncIteration
        return event

    async def next_event(self) -> RealtimeEvent | None:
        """The next event as it arrives, or None after the record of usage.

        Raises:
            RealtimeError: The service could not speak the text; ``code`` says why.
            StreamTruncatedError: The connection ended first; ``partial`` holds the audio that had come.
            ContractError: The audio is not what the service says it is.
            APIConnectionError: No answer came.
        """
        if self._error is not None:
            raise self._error
        if self._ended:
            return None
        try:
            event = await self._job.events.get()
        except asyncio.CancelledError:
            self._job.give_up()
            raise
        if isinstance(event, SpeechLabError):
            self._error = event
            raise event
        self._ended = event is None
        return event

    async def collect(self) -> SpeechClip:
        """Wait for the rest, and return all of it as one clip.

        Raises:
            RealtimeError: The service could not speak the text; ``code`` says why.
            StreamTruncatedError: The connection ended first; ``partial`` holds the audio that had come.
            ContractError: The audio is not what the service says it is.
        """
        while await self.next_event() is not None:
            pass
        job, start = self._job, self._job.synthesis.start
        assert job.config is not None  # it is set before the first event
        settings = job.config.settings
        rate = (start.sample_rate if start else None) or job.config.sample_rate
        expected = ExpectedSpeech(job.text, settings.voice_id, AudioFormat(settings.format), rate)
        kind = start.content_type if start else ""
        return await asyncio.to_thread(expected.decode, self.partial, kind, self.timing)

    async def aclose(self) -> None:
        """Stop it if it is not over; the service stops working for it."""
        self._job.give_up()

    def __repr__(self) -> str:
        state = "over" if self._job.over else "running"
        return f"{type(self).__name__}({state}, {len(self.partial):,} bytes)"


def _drop(loop: asyncio.AbstractEventLoop, job: Job) -> None:
    if not job.over:
        with suppress(RuntimeError):  # the loop is closed, and the session with it
            loop.call_soon_threadsafe(job.give_up)
