"""Several realtime sessions for concurrent work, for ``await``; each speaks one text at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from speechlab.client._closable import AsyncClosable
from speechlab.client._operations.operation import TimeLeft, takes, time_of
from speechlab.client._realtime.dial import RealtimeOptions
from speechlab.client._settings.settings import check_number
from speechlab.errors import APITimeoutError, ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from speechlab.client._operations.speech import SpeechClip
    from speechlab.client._realtime.session import AsyncRealtimeSession


@dataclass(frozen=True, eq=False)
class RealtimeText(RealtimeOptions):
    """A text, with the options of its session.

    Args:
        text: The whole text to speak; at most 5,000 characters.
    """

    text: str = field(kw_only=False)

    @property
    def options(self) -> RealtimeOptions:
        """The options of the session, without the text."""
        given = {option.name: getattr(self, option.name) for option in fields(RealtimeOptions)}
        return RealtimeOptions(**{**given, "timeout": None})


class AsyncRealtimePool(AsyncClosable):
    """Realtime sessions, opened on demand and used again for texts with the same settings.

    Use it with ``async with``, and call :meth:`say` from as many tasks as there are texts.
    """

    def __init__(
        self, make: Callable[[RealtimeOptions], AsyncRealtimeSession], size: int, time_s: float | None = None
    ) -> None:
        check_number("size", size, least=1, whole=True)
        self._make = make
        self._size = size
        self._time_s = time_s
        self._places = asyncio.Semaphore(size)
        self._idle: deque[tuple[tuple[Any, ...], AsyncRealtimeSession]] = deque()
        self._sessions: set[AsyncRealtimeSession] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def sessions(self) -> int:
        """Current number of sessions."""
        return len(self._sessions)

    @takes(RealtimeText)
    async def say(self, request: RealtimeText) -> SpeechClip:
        """Speak a text on a session with these settings, and wait for the whole audio.

        Returns:
            A clip, checked for completeness.

        Raises:
            InvalidRequestError: The request breaks a rule of the contract; nothing was sent.
            RealtimeError: The service could not speak the text; ``code`` is the reason.
            StreamTruncatedError: The connection closed, or the text timed out; ``partial`` contains the audio so far.
            ContractError: The audio differs from the service's description of it.
            APIError: The service refused the connection.
            APITimeoutError: The text timed out before its first sound; the message names the reason for its wait.
            APIConnectionError: No reply came.
        """
        options = request.options
        voice, audio_format, *others = (getattr(options, one.name) for one in fields(options))
        key = (getattr(voice, "id", voice), str(audio_format), *others)
        time_s, clock = time_of(request.timeout, self._time_s), asyncio.get_running_loop().time
        began = clock()

        def left_s() -> float | None:
            return None if time_s is None else TimeLeft(max(0.0, time_s - (clock() - began)), time_s)

        await self._place(time_s)
        try:
            if self._closed:
                raise ConfigurationError("this pool is closed; make a new one")
            session, replaced = self._free(key, options)
            try:
                if replaced is not None:
                    await self._discard(replaced, left_s())
                clip = await session.say(request.text, timeout=left_s())
            except BaseException:
                # After a failed text the state of the session is uncertain, and a new session is cheap.
                await self._discard(session, left_s())
                raise
            self._idle.append((key, session))
            return clip
        finally:
            self._places.release()

    async def _place(self, time_s: float | None) -> None:
        try:
            async with asyncio.timeout(time_s):
                await self._places.acquire()
                return
        except TimeoutError:
            pass
        text = "while the text waited for a session of the pool; it was not sent"
        raise APITimeoutError(f"the time of {time_s:g} s was up {text}", attempts=0)

    def _free(
        self, key: tuple[Any, ...], options: RealtimeOptions
    ) -> tuple[AsyncRealtimeSession, AsyncRealtimeSession | None]:
        """A session for a text, and the session to close for it, if any."""
        for item in self._idle:
            if item[0] == key:
                self._idle.remove(item)
                return item[1], None
        replaced = None
        if len(self._sessions) >= self._size:
            _, replaced = self._idle.popleft()
            self._sessions.discard(replaced)
        session = self._make(options)
        self._sessions.add(session)
        return session, replaced

    async def _discard(self, session: AsyncRealtimeSession, within_s: float | None = None) -> None:
        """Close a session, and wait for it within the time left."""
        self._sessions.discard(session)
        closing = asyncio.ensure_future(session.aclose())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        await asyncio.wait({closing}, timeout=within_s)

    async def aclose(self) -> None:
        """Close all sessions, which stops the service's work for them."""
        self._closed = True
        self._idle.clear()
        await asyncio.gather(*map(self._discard, tuple(self._sessions)))
        if self._closing:
            await asyncio.wait(self._closing)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._sessions)} of {self._size} sessions)"
