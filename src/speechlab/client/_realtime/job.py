"""Events of one text of a realtime session, for ``await``."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING

from speechlab.client._closable import AsyncClosable
from speechlab.client._events import Timing, attach_timing
from speechlab.client._operations.operation import TimeLeft, get_original_timeout
from speechlab.client._operations.samples import SampleReader
from speechlab.client._operations.speech import (
    ExpectedSpeech,
    SpeechClip,
    compute_max_speech_bytes,
    count_speech_usage,
)
from speechlab.client._realtime.protocol import AudioDelta, Phase, RealtimeEvent, Synthesis
from speechlab.client._streams.base import Playable
from speechlab.contract import AudioFormat
from speechlab.errors import (
    APITimeoutError,
    ConfigurationError,
    ContractError,
    SpeechLabError,
    StreamTruncatedError,
)

if TYPE_CHECKING:
    from speechlab.audio import AudioClip
    from speechlab.client._realtime.dial import RealtimeConfig
    from speechlab.client._services.sender import Sender
    from speechlab.client._transport.websocket import SocketClosedError


# Bytes that each message counts besides its own: many small ones are large in memory.
_FRAME_BYTES = 2_000


class Job:
    """One text and its state, shared by the session's task and the reader."""

    def __init__(self, text: str, client_id: str, sender: Sender, time_s: float | None) -> None:
        self.text = text
        self.waits_for = "the texts before it"
        """The reason for which it is not sent yet, as in its error."""
        self.sent = False
        """Whether the service may have received it."""
        self.synthesis = Synthesis(client_id)
        self.task: asyncio.Task[None] | None = None
        self.over = False
        self.config: RealtimeConfig | None = None
        self.frames: list[tuple[float, str | bytes]] = []
        """The messages, each with its time in seconds after the text was sent."""
        self.recorded: Timing | None = None
        self.events: asyncio.Queue[RealtimeEvent | SpeechLabError | None] = asyncio.Queue()
        self._sender = sender
        self._clock = sender.settings.clock
        self._began = self._clock.monotonic()
        self.sent_at: float | None = None
        """When it got its place, as the next text to be sent."""
        self._received = 0
        self._first: float | None = None
        self._ended: float | None = None
        self._time_s = time_s
        loop = asyncio.get_running_loop()
        self._timer = None if time_s is None else loop.call_later(time_s, self._fail_after_timeout)

    @property
    def sent_text(self) -> str:
        """The text as it is sent."""
        return self.text if self.config is None else self.config.respell_text(self.text)

    @property
    def left_s(self) -> float | None:
        """The rest of its timeout in seconds; None without a timeout."""
        if self._timer is None or self._time_s is None:
            return None
        left_s = self._timer.when() - asyncio.get_running_loop().time()
        return TimeLeft(left_s, get_original_timeout(self._time_s))

    def check_and_record_frame(self, frame: str | bytes) -> None:
        """Record a message, with its time."""
        now = self._clock.monotonic()
        self._received += len(frame) + _FRAME_BYTES
        assert self.config is not None
        if self._received > 1.5 * compute_max_speech_bytes(
            len(self.text), self.config.sample_rate
        ):  # as base64
            raise ContractError(
                f"the service sent {self._received:,} bytes for a text of {len(self.text):,} characters"
            )
        self.frames.append((round(now - (self.sent_at or now), 6), frame))

    def feed(self, frame: str | bytes) -> None:
        """Process a message, and pass its event to the reader."""
        event = self.synthesis.feed(frame)
        if self._first is None and isinstance(event, AudioDelta):
            self._first = self._clock.monotonic()
        if event is not None:
            self.events.put_nowait(event)

    def complete(self) -> None:
        """Report to the reader that the text is complete."""
        if self._mark_over_once():
            if self.recorded is None:
                self._sender.totals.add(**count_speech_usage(self.sent_text, len(self.synthesis.audio)))
            self.events.put_nowait(None)

    def fail(self, error: SpeechLabError) -> None:
        """Report a failure to the reader."""
        if self._mark_over_once():
            self.events.put_nowait(error)

    def attach_timing_and_request_id(self, error: SpeechLabError) -> SpeechLabError:
        """Attach the facts of the text to an error; an error of the connection has its own timing."""
        if error.timing is None:
            attach_timing(error, self.build_timing())
        if self.synthesis.start is not None:
            error.request_id = self.synthesis.start.request_id or None
        return error

    def build_and_count_timeout_error(self, why: str) -> SpeechLabError:
        """Return the error of a text whose wait ended without a result."""
        why = f"{why} while the text waited for"
        if not self.sent:
            return APITimeoutError(f"{why} {self.waits_for}; it was not sent", attempts=0)
        phase, came = self.synthesis.phase, self.synthesis.audio
        if phase is Phase.SENT:
            text = f"{why} its first sound{self._describe_noted_error()}; it may have been counted"
            return self.count_possibly_metered(APITimeoutError(text))
        awaited = "its tts.usage" if phase is Phase.USAGE else "the rest of its audio"
        text = f"{why} {awaited}, after {len(came):,} bytes{self._describe_noted_error()}; it may have been counted"
        return self.count_possibly_metered(StreamTruncatedError(text, partial=came))

    def build_and_count_closed_error(self, error: SocketClosedError) -> SpeechLabError:
        """Return the error of a text whose connection closed."""
        came = self.synthesis.audio
        text = f"the session ended after {len(came):,} bytes of audio: {error}{self._describe_noted_error()}"
        text += "; the text is not sent again"
        return self.count_possibly_metered(StreamTruncatedError(text, partial=came, close_code=error.code))

    def _describe_noted_error(self) -> str:
        noted = self.synthesis.noted
        return f"; the service had said: {noted.code}: {noted.message}" if noted is not None else ""

    def count_possibly_metered(self, error: SpeechLabError) -> SpeechLabError:
        """Count a text that was sent and whose outcome is unknown as possibly metered, and mark its error so."""
        self._sender.totals.add(possibly_metered=1)
        error.possibly_metered = True
        return error

    def stop_clock(self) -> None:
        """Stop the timeout of the text."""
        if self._timer is not None:
            self._timer.cancel()
        self._ended = self._clock.monotonic() if self._ended is None else self._ended

    def _mark_over_once(self) -> bool:
        was, self.over = self.over, True
        self.stop_clock()
        return not was

    def build_timing(self) -> Timing:
        """Duration so far, or as recorded."""
        if self.recorded is not None:
            return self.recorded
        now = self._clock.monotonic() if self._ended is None else self._ended
        sent = self._began if self.sent_at is None else self.sent_at
        first = None if self._first is None else self._first - sent
        return Timing(int(self.sent), now - self._began, first, sent - self._began, None)

    def cancel(self) -> None:
        """Cancel the text, which has no reader any more."""
        if not self.over:
            self._fail_and_cancel_task(ConfigurationError("the events of this text were closed"))

    def _fail_after_timeout(self) -> None:
        """End the text after its timeout."""
        why = f"the time of {get_original_timeout(self._time_s or 0.0):g} s was up"
        self._fail_and_cancel_task(self.attach_timing_and_request_id(self.build_and_count_timeout_error(why)))

    def _fail_and_cancel_task(self, error: SpeechLabError) -> None:
        self.fail(error)
        if self.task is not None:
            self.task.cancel()


class AsyncSpeechEvents(Playable, AsyncClosable):
    """Events of one text: iterate for them in order, or :meth:`collect` a clip."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._error: SpeechLabError | None = None
        self._ended = False
        # If the events are garbage-collected, cancel the synthesis.
        weakref.finalize(self, _cancel_dropped_job, asyncio.get_running_loop(), job).atexit = False

    @property
    def partial(self) -> bytes:
        """The audio received so far."""
        return self._job.synthesis.audio

    @property
    def text(self) -> str:
        """The text that is spoken."""
        return self._job.text

    @property
    def timing(self) -> Timing:
        """Duration so far; ``first_byte_s`` is the time to the first piece of audio."""
        return self._job.build_timing()

    def __aiter__(self) -> AsyncIterator[RealtimeEvent]:
        return self

    async def __anext__(self) -> RealtimeEvent:
        """Return the next event as it arrives; the last one is the record of usage.

        Raises:
            RealtimeError: The service could not speak the text; ``code`` is the reason.
            StreamTruncatedError: The connection closed, or the text timed out; ``partial`` contains the audio so far.
            ContractError: The audio differs from the service's description of it.
            APITimeoutError: The text timed out before its first sound.
            APIConnectionError: No reply came.
        """
        if self._error is not None:
            raise self._error
        if self._ended:
            raise StopAsyncIteration
        try:
            event = await self._job.events.get()
        except asyncio.CancelledError:
            self._job.cancel()
            raise
        if isinstance(event, SpeechLabError):
            self._error = event
            raise event
        if event is None:
            self._ended = True
            raise StopAsyncIteration
        return event

    async def clips(self) -> AsyncIterator[AudioClip]:
        """Yield the sound in short clips as it arrives, for the formats pcm and wav.

        It begins with the sound that came with the events read so far.

        Raises:
            InvalidRequestError: The session has another format, which cannot be decoded in pieces.
            SpeechLabError: The service could not speak the text, or the connection ended.
        """
        reader, position = None, 0
        async for _ in self:
            if reader is None:
                reader = SampleReader(*self._build_expected_speech_and_type())
            came = self._job.synthesis.audio
            if len(came) > position and (clip := reader.feed(came[position:])) is not None:
                yield clip
            position = len(came)
        if reader is not None and (clip := reader.close()) is not None:
            yield clip

    async def collect(self) -> SpeechClip:
        """Wait for the rest, and return all of it as one clip.

        Raises:
            RealtimeError: The service could not speak the text; ``code`` is the reason.
            StreamTruncatedError: The connection closed, or the text timed out; ``partial`` contains the audio so far.
            ContractError: The audio differs from the service's description of it.
        """
        async for _ in self:
            pass
        expected, kind = self._build_expected_speech_and_type()
        return await asyncio.to_thread(expected.decode, self.partial, kind, self.timing)

    def _build_expected_speech_and_type(self) -> tuple[ExpectedSpeech, str]:
        job, start = self._job, self._job.synthesis.start
        assert job.config is not None  # it is set before the first event
        settings = job.config.settings
        rate = (start.sample_rate if start else None) or job.config.sample_rate
        expected = ExpectedSpeech(job.text, settings.voice_id, AudioFormat(settings.format), rate)
        return expected, start.content_type if start else ""

    async def aclose(self) -> None:
        """Stop the text if it is not complete; the service then stops its synthesis."""
        self._job.cancel()

    def __repr__(self) -> str:
        state = "over" if self._job.over else "running"
        return f"{type(self).__name__}({state}, {len(self.partial):,} bytes)"


def _cancel_dropped_job(loop: asyncio.AbstractEventLoop, job: Job) -> None:
    if not job.over:
        with suppress(RuntimeError):  # the loop is closed, and the session with it
            loop.call_soon_threadsafe(job.cancel)
