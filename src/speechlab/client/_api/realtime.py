"""Realtime speech for code that does not await: faces of the asynchronous session, events and pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from speechlab.client._api import portal as _portal
from speechlab.client._api.face import like
from speechlab.client._realtime.events import AsyncSpeechEvents
from speechlab.client._realtime.pool import AsyncRealtimePool
from speechlab.client._realtime.session import AsyncRealtimeSession

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from speechlab.client._events import Timing
    from speechlab.client._operations.speech import SpeechClip
    from speechlab.client._realtime.synthesis import RealtimeEvent
    from speechlab.contract import AudioFormat, SessionInfo, Voice


class SpeechEvents:
    """What speaking one text gives: iterate for its events in order, or :meth:`collect` for a clip."""

    def __init__(self, events: AsyncSpeechEvents) -> None:
        self._events = events

    @property
    @like(AsyncSpeechEvents.partial)
    def partial(self) -> bytes:
        return self._events.partial

    @property
    @like(AsyncSpeechEvents.timing)
    def timing(self) -> Timing:
        return self._events.timing

    def __iter__(self) -> Iterator[RealtimeEvent]:
        return self

    def __next__(self) -> RealtimeEvent:
        event = self.next_event()
        if event is None:
            raise StopIteration
        return event

    @like(AsyncSpeechEvents.next_event)
    def next_event(self) -> RealtimeEvent | None:
        return _portal.run(self._events.next_event)

    @like(AsyncSpeechEvents.collect)
    def collect(self) -> SpeechClip:
        return _portal.run(self._events.collect)

    def close(self) -> None:
        """Stop it if it is not over; the service stops working for it."""
        _portal.run(self._events.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._events).removeprefix("Async")


class RealtimeSession:
    """A realtime session: several texts, one voice, one connection.

    Use it as ``with``. Texts are spoken one after the other; several may be given at once.
    """

    def __init__(self, session: AsyncRealtimeSession) -> None:
        self._session = session

    @property
    @like(AsyncRealtimeSession.info)
    def info(self) -> SessionInfo | None:
        return self._session.info

    @property
    @like(AsyncRealtimeSession.is_open)
    def is_open(self) -> bool:
        return self._session.is_open

    @like(AsyncRealtimeSession.open)
    def open(self) -> None:
        _portal.run(self._session.open)

    @like(AsyncRealtimeSession.speak)
    def speak(self, text: str) -> SpeechEvents:
        async def begin() -> AsyncSpeechEvents:
            return self._session.speak(text)

        return SpeechEvents(_portal.run(begin))

    @like(AsyncRealtimeSession.say)
    def say(self, text: str) -> SpeechClip:
        return _portal.run(self._session.say, text)

    def close(self) -> None:
        """Close the connection; the service stops working for it."""
        _portal.run(self._session.aclose)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._session).removeprefix("Async")


class RealtimePool:
    """Realtime sessions that are opened as they are needed and used again for texts of the same settings.

    Use it as ``with``, and call :meth:`say` from as many threads as there are texts.
    """

    def __init__(self, pool: AsyncRealtimePool) -> None:
        self._pool = pool

    @property
    @like(AsyncRealtimePool.sessions)
    def sessions(self) -> int:
        return self._pool.sessions

    @like(AsyncRealtimePool.say)
    def say(
        self,
        text: str,
        *,
        voice: Voice | str,
        format: AudioFormat | str = "wav",  # noqa: A002
        sample_rate: int | None = None,
        temperature: float | None = None,
        audio_transport: str = "binary",
    ) -> SpeechClip:
        return _portal.run(
            self._pool.say,
            text,
            voice=voice,
            format=format,
            sample_rate=sample_rate,
            temperature=temperature,
            audio_transport=audio_transport,
        )

    def close(self) -> None:
        """Close all sessions; the service stops working for them."""
        _portal.run(self._pool.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._pool).removeprefix("Async")
