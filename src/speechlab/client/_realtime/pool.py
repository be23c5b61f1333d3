"""Several realtime sessions for concurrent work, for ``await``: a session can speak one text at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from speechlab.client._closable import AsyncClosable
from speechlab.client._operations.operation import takes
from speechlab.client._realtime.dial import RealtimeOptions
from speechlab.client._settings.settings import check_number
from speechlab.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from speechlab.client._operations.speech import SpeechClip
    from speechlab.client._realtime.session import AsyncRealtimeSession


@dataclass(frozen=True, eq=False)
class RealtimeText(RealtimeOptions):
    """A text, with the options of the session that is to speak it.

    Args:
        text: What to say, whole; at most 5,000 characters.
    """

    text: str = field(kw_only=False)

    @property
    def options(self) -> RealtimeOptions:
        """The options of a session, which are not those of its texts."""
        given = {option.name: getattr(self, option.name) for option in fields(RealtimeOptions)}
        return RealtimeOptions(**{**given, "timeout": None})


class AsyncRealtimePool(AsyncClosable):
    """Realtime sessions that are opened as they are needed and used again for texts of the same settings.

    Use it as ``async with``, and call :meth:`say` from as many tasks as there are texts.
    """

    def __init__(self, make: Callable[[RealtimeOptions], AsyncRealtimeSession], size: int) -> None:
        check_number("size", size, least=1, whole=True)
        self._make = make
        self._size = size
        self._places = asyncio.Semaphore(size)
        self._idle: deque[tuple[tuple[Any, ...], AsyncRealtimeSession]] = deque()
        self._sessions: set[AsyncRealtimeSession] = set()
        self._closed = False

    @property
    def sessions(self) -> int:
        """Sessions that there are now."""
        return len(self._sessions)

    @takes(RealtimeText)
    async def say(self, request: RealtimeText) -> SpeechClip:
        """Speak a text on a session of these settings, and wait for all of it.

        Returns:
            A clip, checked to be whole.

        Raises:
            InvalidRequestError: The request breaks a rule of the contract; nothing was sent.
            RealtimeError: The service could not speak it; ``code`` says why.
            StreamTruncatedError: The connection ended first; ``partial`` holds the audio that had come.
            ContractError: The audio is not what the service says it is.
            APIError: The service refused the connection.
            APIConnectionError: No answer came.
        """
        options = request.options
        voice, audio_format, *others = (getattr(options, one.name) for one in fields(options))
        key = (getattr(voice, "id", voice), str(audio_format), *others)
        async with self._places:
            if self._closed:
                raise ConfigurationError("this pool is closed; ask for a new one")
            session = await self._free(key, options)
            try:
                clip = await session.say(request.text, timeout=request.timeout)
            except BaseException:
                # Where a text failed it is not certain what the session can still do; sessions are cheap.
                await self._discard(session)
                raise
            self._idle.append((key, session))
            return clip

    async def _free(self, key: tuple[Any, ...], options: RealtimeOptions) -> AsyncRealtimeSession:
        for item in self._idle:
            if item[0] == key:
                self._idle.remove(item)
                return item[1]
        if len(self._sessions) >= self._size:
            _, other = self._idle.popleft()
            await self._discard(other)
        session = self._make(options)
        self._sessions.add(session)
        return session

    async def _discard(self, session: AsyncRealtimeSession) -> None:
        self._sessions.discard(session)
        await session.aclose()

    async def aclose(self) -> None:
        """Close all sessions; the service stops working for them."""
        self._closed = True
        self._idle.clear()
        for session in tuple(self._sessions):
            await self._discard(session)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._sessions)} of {self._size} sessions)"
