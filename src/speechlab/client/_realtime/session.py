"""Realtime speech, for ``await``: one session, one text at a time, the others in a queue.

A task works through the queue, so that a text that nobody reads to its end does not hold up the next one. Between
two texts a lost connection is made anew; within one it never is, because what was sent may be counted already.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from typing import TYPE_CHECKING

from speechlab.client._closable import AsyncOpenable
from speechlab.client._events import attach_timing
from speechlab.client._operations.operation import sendable
from speechlab.client._realtime.dial import RealtimeConfig, configured_socket
from speechlab.client._realtime.events import AsyncSpeechEvents, Job
from speechlab.client._realtime.synthesis import Phase, Synthesis
from speechlab.client._realtime.tape import RealtimeTape
from speechlab.client._transport.websocket import Socket, SocketClosedError
from speechlab.contract import RealtimeCode, SessionInfo, Speak, check_text
from speechlab.errors import (
    APITimeoutError,
    ConfigurationError,
    InvalidRequestError,
    RealtimeError,
    SpeechLabError,
    StreamTruncatedError,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from speechlab.client._operations.speech import SpeechClip
    from speechlab.client._transport.limiter import Slot
    from speechlab.client._transport.sender import Sender

    Prepare = Callable[[], Awaitable[RealtimeConfig]]

_GAP_S = 120.0
"""Seconds between two messages: a service that has been idle may first have to load its models."""
_USAGE_S = 20.0
_THROTTLED = {RealtimeCode.RATE_LIMITED, RealtimeCode.SERVICE_RATE_LIMITED}


class AsyncRealtimeSession(AsyncOpenable):
    """A realtime session: several texts, one voice, one connection.

    Use it as ``async with``. Texts are spoken one after the other; several may be given at once.
    """

    def __init__(self, sender: Sender, prepare: Prepare, identity: Callable[[], Awaitable[str]]) -> None:
        self._sender = sender
        self._prepare = prepare
        self._tape = RealtimeTape(sender.settings, identity)
        self._config: RealtimeConfig | None = None
        self._info: SessionInfo | None = None
        self._socket: Socket | None = None
        self._jobs: deque[Job] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._closed = False
        self._connecting = asyncio.Lock()

    @property
    def info(self) -> SessionInfo | None:
        """The service's description of the session: id, rate, model; None before it is open."""
        return self._info

    @property
    def is_open(self) -> bool:
        """True while there is a connection, as far as is known."""
        return self._socket is not None and self._socket.is_open

    async def open(self) -> None:
        """Connect and configure, if there is no connection; a session that the store knows waits for a new text.

        Raises:
            InvalidRequestError: A setting breaks a rule of the contract, or the voice cannot do it.
            APIError: The service refused the connection.
            APIConnectionError: No answer came.
            RealtimeError: The service refused the settings.
        """
        self._info = await self._tape.session(await self._prepared())
        if self._info is None:
            await self._connected()

    def speak(self, text: str) -> AsyncSpeechEvents:
        """Speak a text; it is sent when those before it are done.

        Args:
            text: What to say, whole; at most 5,000 characters.

        Returns:
            Its events: ``AudioStart``, ``AudioDelta`` for each piece, ``AudioDone`` and ``Usage``. Dropping or
            closing it before the end stops the service's work, by closing the connection; the next text opens
            another.

        Raises:
            InvalidRequestError: The text breaks a rule of the contract; nothing is sent.
            ConfigurationError: The session is closed.
        """
        given: object = text
        if not isinstance(given, str):
            message = f"text is a {type(text).__name__}; give the text to speak, as a str"
            raise InvalidRequestError(message, parameter="text", rule="4.3", code="invalid_message")
        text = sendable({"text": text})["text"]
        check_text(text)
        if self._closed:
            raise ConfigurationError("this realtime session is closed; ask for a new one")
        job = Job(text, f"say_{secrets.token_hex(8)}", self._sender)
        self._jobs.append(job)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.ensure_future(self._work())
        return AsyncSpeechEvents(job)

    async def say(self, text: str) -> SpeechClip:
        """Speak a text, and wait for all of it.

        Args:
            text: What to say, whole; at most 5,000 characters.

        Returns:
            A clip, checked to be whole.

        Raises:
            InvalidRequestError: The text breaks a rule of the contract; nothing was sent.
            RealtimeError: The service could not speak it; ``code`` says why.
            StreamTruncatedError: The connection ended first; ``partial`` holds the audio that had come.
            ContractError: The audio is not what the service says it is.
            APIError: The service refused to be connected to again.
            APIConnectionError: No answer came.
        """
        async with self.speak(text) as events:
            return await events.collect()

    async def aclose(self) -> None:
        """Close the connection; the service stops working for it."""
        self._closed = True
        self._sender.connections.sessions.discard(self)
        jobs, self._jobs = list(self._jobs), deque()
        for job in jobs:
            job.fail(ConfigurationError("this realtime session was closed before the text was spoken"))
        worker, self._worker = self._worker, None
        if worker is not None and worker is not asyncio.current_task():
            worker.cancel()
            await asyncio.wait({worker})
        await self._hang_up()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open" if self.is_open else "not connected"
        return f"{type(self).__name__}({state}, {len(self._jobs)} waiting)"

    async def _connected(self) -> Socket:
        if self._closed:
            raise ConfigurationError("this realtime session is closed; ask for a new one")
        async with self._connecting:
            if self._socket is None or not self._socket.is_open:
                await self._hang_up()
                config = await self._prepared()
                self._socket, self._info = await configured_socket(self._sender, config)
                self._sender.connections.sessions.add(self)
                await self._tape.keep_session(config, self._info)
            return self._socket

    async def _prepared(self) -> RealtimeConfig:
        if self._config is None:
            self._config = await self._prepare()
        return self._config

    async def _hang_up(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()

    async def _work(self) -> None:
        while self._jobs:
            job = self._jobs.popleft()
            if job.over:
                continue
            job.task = asyncio.ensure_future(self._one(job))
            try:
                await asyncio.wait({job.task})
            except asyncio.CancelledError:
                job.task.cancel()
                await asyncio.wait({job.task})
                raise

    async def _one(self, job: Job) -> None:
        """Speak one text; whatever happens ends up with its reader."""
        try:
            job.config = await self._prepared()
            if await self._tape.played(job):
                return
        except SpeechLabError as error:
            job.fail(error)
            return
        except BaseException:
            job.fail(_interrupted(job))
            raise
        limit = self._sender.call_limit("tts")
        slot = await limit.acquire(self._sender.settings.max_concurrency, self._sender.settings.clock)
        job.begin(slot)
        try:
            await self._perform(job)
        except SpeechLabError as error:
            attach_timing(error, job.timing())
            # After a terminal error event the session goes on; after anything else nobody knows where it is.
            if not isinstance(error, RealtimeError) or job.synthesis.phase is not Phase.OVER:
                await self._hang_up()
            _released(slot, error)
            job.fail(error)
        except BaseException as error:
            await self._hang_up()
            job.fail(_interrupted(job))
            if not isinstance(error, Exception):
                raise
        else:
            slot.release(success=True)
            job.stop_clock()
            try:
                await self._tape.keep(job)
            except SpeechLabError as error:  # a full disk, say
                job.fail(error)
            job.end()
        finally:
            slot.release()

    async def _perform(self, job: Job) -> None:
        socket = await self._connected()
        problem: SpeechLabError
        try:
            await socket.send(Speak(id=job.synthesis.client_id, text=job.text).message())
            while job.synthesis.phase is not Phase.OVER:
                frame = await socket.receive(self._patience(job.synthesis))
                job.came(frame)
                event = job.synthesis.feed(frame)
                if event is not None:
                    job.put(event)
        except SocketClosedError as error:
            problem = _closed_early(job, error)
        except TimeoutError:
            problem = _silent(job, self._patience(job.synthesis))
        else:
            return
        raise problem

    def _patience(self, synthesis: Synthesis) -> float:
        usual = _USAGE_S if synthesis.phase is Phase.USAGE else _GAP_S
        return min(usual, self._sender.settings.timeout or usual)


def _released(slot: Slot, error: SpeechLabError) -> None:
    code = error.code if isinstance(error, RealtimeError) else None
    slot.release(throttled=code in _THROTTLED)


def _noted(synthesis: Synthesis) -> str:
    noted = synthesis.noted
    return f"; the service had said: {noted.code}: {noted.message}" if noted is not None else ""


def _closed_early(job: Job, error: SocketClosedError) -> SpeechLabError:
    came = job.synthesis.audio
    noted = _noted(job.synthesis)
    text = f"the session ended after {len(came):,} bytes of audio: {error}{noted}; the text is not sent again"
    job.may_be_counted()
    return StreamTruncatedError(text, partial=came, close_code=error.code)


def _silent(job: Job, waited_s: float) -> SpeechLabError:
    phase, came = job.synthesis.phase, job.synthesis.audio
    job.may_be_counted()
    if phase is Phase.SENT:
        text = f"no audio began within {waited_s:g} s{_noted(job.synthesis)}; the text may have been counted"
        return APITimeoutError(text, possibly_metered=True)
    what = "no tts.usage came" if phase is Phase.USAGE else "nothing more came"
    text = f"{what} within {waited_s:g} s after {len(came):,} bytes of audio{_noted(job.synthesis)}"
    return StreamTruncatedError(text, partial=came)


def _interrupted(job: Job) -> SpeechLabError:
    text = "the text was given up before it was spoken to its end"
    return StreamTruncatedError(text, partial=job.synthesis.audio)
