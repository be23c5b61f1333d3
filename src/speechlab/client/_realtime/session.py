"""Realtime speech, for ``await``: one session, one text at a time, the others in a queue.

A task works through the queue, so that a text without a reader does not delay the next one. Between two texts a lost
connection is opened again. Within a text it never is, because the part that was sent may be counted already.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import warnings
import weakref
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from speechlab.client._closable import AsyncOpenable, build_forked_error, close_soon
from speechlab.client._operations.operation import resolve_timeout, to_encodable_fields
from speechlab.client._realtime.dial import RealtimeConfig, open_session
from speechlab.client._realtime.job import AsyncSpeechEvents, Job
from speechlab.client._realtime.protocol import Phase, Synthesis
from speechlab.client._stored_calls import Memory, StoredCall, load_timing, wait_until_recorded_time
from speechlab.client._transport.websocket import Socket, SocketClosedError
from speechlab.contract import RealtimeCode, SessionInfo, Speak, check_text
from speechlab.errors import (
    ConfigurationError,
    InvalidRequestError,
    RealtimeError,
    SpeechLabError,
    StreamTruncatedError,
)

if TYPE_CHECKING:
    from speechlab.client._operations.speech import SpeechClip
    from speechlab.client._services.sender import Sender
    from speechlab.client._settings.settings import Settings
    from speechlab.notebook import Playback

    Prepare = Callable[[], Awaitable[RealtimeConfig]]

# Seconds between two messages: a service that was idle may first have to load its models.
_MESSAGE_GAP_S = 120.0
_USAGE_WAIT_S = 20.0
_RATE_LIMIT_CODES = {RealtimeCode.RATE_LIMITED, RealtimeCode.SERVICE_RATE_LIMITED}


class AsyncRealtimeSession(AsyncOpenable):
    """A realtime session: several texts, one voice, one connection.

    Use it with ``async with``. Texts are spoken one after the other; several tasks may send texts at once.
    """

    def __init__(self, sender: Sender, prepare: Prepare, identity: Callable[[], Awaitable[str]]) -> None:
        self._sender = sender
        self._prepare = prepare
        self._tape = RealtimeTape(sender.settings, identity)
        self._config: RealtimeConfig | None = None
        self._info: SessionInfo | None = None
        self._line = _Connection()
        self._watched = False
        self._jobs: deque[Job] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._closed = False
        self._pid = os.getpid()
        self._connecting = asyncio.Lock()

    @property
    def info(self) -> SessionInfo | None:
        """The service's description of the session: id, rate, model; None before it is open."""
        return self._info

    @property
    def is_open(self) -> bool:
        """Whether the connection is open, as far as is known."""
        return self._line.socket is not None and self._line.socket.is_open

    async def open(self) -> None:
        """Connect and configure, if there is no connection; a session known to the store waits for a new text.

        Raises:
            InvalidRequestError: A setting breaks a rule of the contract, or the voice does not support it.
            APIError: The service refused the connection.
            APIConnectionError: No reply came.
            RealtimeError: The service refused the settings.
        """
        if self._pid != os.getpid():
            raise build_forked_error(self._pid, "realtime session")
        self._info = await self._tape.load_session(await self._ensure_config())
        if self._info is None:
            await self._ensure_socket()

    def speak(self, text: str, *, timeout: float | None = None) -> AsyncSpeechEvents:
        """Speak a text; it is sent after the texts before it.

        Args:
            text: The whole text to speak; at most 5,000 characters.
            timeout: Seconds from this call to the usage record; None is the session's.

        Returns:
            Its events: ``AudioStart``, ``AudioDelta`` for each piece, ``AudioDone`` and ``Usage``. Dropping or
            closing it before the end closes the connection, which stops the service's work; the next text opens
            another connection.

        Raises:
            InvalidRequestError: The text breaks a rule of the contract; nothing is sent.
            ConfigurationError: The session is closed.
        """
        check_text(text)
        to_encodable_fields({"text": text})
        if self._pid != os.getpid():
            raise build_forked_error(self._pid, "realtime session")
        if self._closed:
            raise ConfigurationError("this realtime session is closed; make a new one")
        time_s = resolve_timeout(timeout, self._sender.settings.timeout)
        job = Job(text, f"say_{secrets.token_hex(8)}", self._sender, time_s)
        self._jobs.append(job)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.ensure_future(self._run_jobs())
        return AsyncSpeechEvents(job)

    def play(self, text: str = "", *, timeout: float | None = None) -> Playback:
        """Speak a text as :meth:`speak` does, and play the sound while it is made, in a player in the running cell.

        Args:
            text: The whole text to speak; at most 5,000 characters.
            timeout: Seconds from this call to the usage record; None is the session's.

        Returns:
            The player: ``wait()`` or ``await`` gives the clip at the end, ``times`` the times, ``stop()`` stops it.
            The session has to stay open until then.

        Raises:
            InvalidRequestError: There is no text, or it breaks a rule of the contract; nothing is sent.
            MissingDependencyError: The extra ``lab`` is not installed.
        """
        return self.speak(require_text(text), timeout=timeout).play()

    async def say(self, text: str, *, timeout: float | None = None) -> SpeechClip:  # noqa: ASYNC109 - of the request, retries included
        """Speak a text, and wait for the whole audio.

        Args:
            text: The whole text to speak; at most 5,000 characters.
            timeout: Seconds from this call to the usage record; None is the session's.

        Returns:
            A clip, checked for completeness.

        Raises:
            InvalidRequestError: The text breaks a rule of the contract; nothing was sent.
            RealtimeError: The service could not speak the text; ``code`` is the reason.
            StreamTruncatedError: The connection closed, or the text timed out; ``partial`` contains the audio so far.
            ContractError: The audio differs from the service's description of it.
            APIError: The service refused a new connection.
            APITimeoutError: The text timed out before its first sound.
            APIConnectionError: No reply came.
        """
        async with self.speak(text, timeout=timeout) as events:
            return await events.collect()

    async def aclose(self) -> None:
        """Close the connection, which stops the service's work."""
        self._closed = True
        self._sender.connections.sessions.discard(self)
        jobs, self._jobs = list(self._jobs), deque()
        for job in jobs:
            job.fail(ConfigurationError("this realtime session was closed before the text was spoken"))
        worker, self._worker = self._worker, None
        if worker is not None and worker is not asyncio.current_task() and self._pid == os.getpid():
            worker.cancel()
            await asyncio.wait({worker})
        await self._disconnect(wait=True)

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open" if self.is_open else "not connected"
        return f"{type(self).__name__}({state}, {len(self._jobs)} waiting)"

    async def _ensure_socket(self, job: Job | None = None) -> Socket:
        if self._closed:
            raise ConfigurationError("this realtime session is closed; make a new one")
        async with self._connecting:
            socket = self._line.socket
            if socket is None or not socket.is_open:
                await self._disconnect()
                config = await self._ensure_config()
                sender, left_s = self._sender, None if job is None else job.left_s
                if left_s is not None:
                    sender = replace(sender, settings=replace(sender.settings, timeout=left_s))
                self._line.socket, self._info = socket, info = await open_session(sender, config)
                # The connection closes with the client, and when the last reference to the session is dropped.
                self._sender.connections.sessions.add(self)
                if not self._watched:
                    self._watched = True
                    loop = asyncio.get_running_loop()
                    weakref.finalize(
                        self, _close_dropped_socket, loop, os.getpid(), self._line
                    ).atexit = False
                await self._tape.save_session_if_new(config, info)
            return socket

    async def _ensure_config(self) -> RealtimeConfig:
        if self._config is None:
            self._config = await self._prepare()
        return self._config

    async def _disconnect(self, *, wait: bool = False) -> None:
        socket, self._line.socket = self._line.socket, None
        if socket is not None and self._pid == os.getpid():
            await socket.close(wait=wait)

    async def _run_jobs(self) -> None:
        while self._jobs:
            job = self._jobs.popleft()
            if job.over:
                continue
            job.task = asyncio.ensure_future(self._run_job(job))
            try:
                await asyncio.wait({job.task})
            except asyncio.CancelledError:
                job.task.cancel()
                await asyncio.wait({job.task})
                raise

    async def _run_job(self, job: Job) -> None:
        """Speak one text; its reader gets the result or the error."""
        try:
            job.waits_for = "the settings of its session"
            job.config = await self._ensure_config()
            if await self._tape.replay(job):
                return
            job.waits_for = "its place among the calls under way"
            place = await self._sender.wait_for_place("tts", job.left_s)
        except SpeechLabError as error:
            job.fail(error)
            return
        except BaseException:
            job.fail(_build_interrupted_error(job))
            raise
        job.sent_at = place.started
        try:
            await self._speak_job(job)
        except SpeechLabError as error:
            job.stop_clock()
            job.attach_timing_and_request_id(error)
            # After a terminal error event the session continues; after other errors its state is unknown.
            try:
                if not isinstance(error, RealtimeError) or job.synthesis.phase is not Phase.OVER:
                    await self._disconnect()
            finally:  # also where the session closes meanwhile
                code = error.code if isinstance(error, RealtimeError) else None
                place.release(throttled=code in _RATE_LIMIT_CODES)
                job.fail(error)
        except BaseException as error:
            job.fail(_build_interrupted_error(job))
            await self._disconnect()
            if not isinstance(error, Exception):
                raise
        else:
            place.release(success=True)
            job.stop_clock()
            try:
                await self._tape.save(job)
            except SpeechLabError as error:  # of the store, such as a full disk
                job.fail(error)
            job.complete()
        finally:
            place.release()

    async def _speak_job(self, job: Job) -> None:
        job.waits_for = "a connection"
        socket = await self._ensure_socket(job)
        problem: SpeechLabError
        within_s = 0.0
        job.sent = True
        try:
            await socket.send(Speak(id=job.synthesis.client_id, text=job.sent_text).to_message())
            while job.synthesis.phase is not Phase.OVER:
                within_s = _USAGE_WAIT_S if job.synthesis.phase is Phase.USAGE else _MESSAGE_GAP_S
                frame = await socket.receive(within_s)
                job.check_and_record_frame(frame)
                job.feed(frame)
        except SocketClosedError as error:
            problem = job.build_and_count_closed_error(error)
        except TimeoutError:
            problem = job.build_and_count_timeout_error(f"nothing came for {within_s:g} s")
        else:
            return
        raise problem


class _Connection:
    """The connection of a session; it outlives a dropped session until it is closed."""

    socket: Socket | None = None


def _close_dropped_socket(loop: asyncio.AbstractEventLoop, pid: int, line: _Connection) -> None:
    socket, line.socket = line.socket, None
    if socket is None or pid != os.getpid():
        return
    warnings.warn(
        "a realtime session was dropped without being closed; use it in a with block, or close it",
        ResourceWarning,
        stacklevel=2,
    )
    close_soon(loop, pid, socket.close)


def _build_interrupted_error(job: Job) -> SpeechLabError:
    text = "the text was given up before it was spoken to its end"
    return StreamTruncatedError(text, partial=job.synthesis.audio)


class RealtimeTape:
    """Records and replays the texts of a session; it does nothing for a client without a store."""

    def __init__(self, settings: Settings, identity: Callable[[], Awaitable[str]]) -> None:
        self._memory = Memory.from_settings(settings)
        self._identity = identity
        self._clock = settings.clock

    async def _build_stored_call(
        self, operation: str, config: RealtimeConfig, **more: Any
    ) -> StoredCall | None:
        if self._memory is None:
            return None
        # As for texts over HTTP: arguments that were not given are left out, except temperature.
        parameters = config.settings.model_dump(mode="json", exclude_none=True)
        parameters |= {"sample_rate": config.sample_rate, "temperature": config.settings.temperature}
        return StoredCall(self._memory, operation, parameters | more, await self._identity())

    async def load_session(self, config: RealtimeConfig) -> SessionInfo | None:
        """Return the kept description of a session with these settings; None if one has to be opened."""
        call = await self._build_stored_call("realtime_session", config)
        recalled = None if call is None else await asyncio.to_thread(call.load)
        return None if recalled is None else SessionInfo.parse(recalled[0].response)

    async def save_session_if_new(self, config: RealtimeConfig, info: SessionInfo) -> None:
        """Keep the service's description of the first session with these settings."""
        call = await self._build_stored_call("realtime_session", config)
        if call is not None and await asyncio.to_thread(call.load) is None:
            await asyncio.to_thread(call.save, info.model_dump(mode="json"), {})

    async def replay(self, job: Job) -> bool:
        """Replay a text from the store; False if it has to be spoken."""
        call = (
            None
            if job.config is None
            else await self._build_stored_call("realtime", job.config, text=job.sent_text)
        )
        recalled = None if call is None else await asyncio.to_thread(call.load)
        if call is None or recalled is None:
            return False
        stored, facts = recalled
        audio = await asyncio.to_thread(stored.files["audio"].read_bytes)
        job.stop_clock()  # a kept text cannot time out
        job.recorded = load_timing(facts)
        job.synthesis = Synthesis(facts["client_id"])
        began, position = self._clock.monotonic(), 0
        for at_s, message in facts["frames"]:
            if call.memory.paced:
                await wait_until_recorded_time(self._clock, began, at_s)
            frame: str | bytes = message
            if isinstance(message, int):
                frame = audio[position : position + message]
                position += message
            job.feed(frame)
        job.complete()
        return True

    async def save(self, job: Job) -> None:
        """Keep a completely spoken text."""
        call = (
            None
            if job.config is None
            else await self._build_stored_call("realtime", job.config, text=job.sent_text)
        )
        if call is None or job.config is None:
            return
        frames = [(at_s, frame if isinstance(frame, str) else len(frame)) for at_s, frame in job.frames]
        audio = b"".join(frame for _, frame in job.frames if isinstance(frame, bytes))
        facts = {"client_id": job.synthesis.client_id, "frames": frames, "timing": asdict(job.build_timing())}
        files = {"audio": (audio, f".{job.config.settings.format}")}
        await asyncio.to_thread(call.save, {"audio_bytes": len(audio)}, facts, files)


def require_text(text: str) -> str:
    """Return the text to play; refuse a call without one."""
    if text == "":
        message = "there is no text to play; give one, as in session.play('Good morning.')"
        raise InvalidRequestError(message, parameter="text")
    return text
