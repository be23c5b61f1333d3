"""Realtime speech without ``await``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab.client._api import portal as _portal
from speechlab.client._api.face import Face, StreamFace, described_as, each_of, following, mirrored, waited
from speechlab.client._realtime.events import AsyncSpeechEvents
from speechlab.client._realtime.pool import AsyncRealtimePool
from speechlab.client._realtime.session import AsyncRealtimeSession
from speechlab.notebook import play

if TYPE_CHECKING:
    from collections.abc import Iterator

    from speechlab.audio import AudioClip
    from speechlab.notebook import Playback


class SpeechEvents(StreamFace[AsyncSpeechEvents]):
    """Events of one text: iterate for them in order, or :meth:`collect` a clip."""

    text = mirrored(AsyncSpeechEvents.text)
    partial = mirrored(AsyncSpeechEvents.partial)
    timing = mirrored(AsyncSpeechEvents.timing)
    next_event = waited(AsyncSpeechEvents.next_event)

    @described_as(AsyncSpeechEvents.clips)
    def clips(self) -> Iterator[AudioClip]:
        yield from each_of(self._async.clips())

    @described_as(AsyncSpeechEvents.play)
    def play(self) -> Playback:
        return play(self, self.text)

    __next__ = following(AsyncSpeechEvents.__anext__)
    collect = waited(AsyncSpeechEvents.collect)
    close = waited(AsyncSpeechEvents.aclose)


class RealtimeSession(Face[AsyncRealtimeSession]):
    """A realtime session: several texts, one voice, one connection.

    Use it with ``with``. Texts are spoken one after the other; several threads may send texts at once.
    """

    info = mirrored(AsyncRealtimeSession.info)
    is_open = mirrored(AsyncRealtimeSession.is_open)
    open = waited(AsyncRealtimeSession.open)
    say = waited(AsyncRealtimeSession.say)
    close = waited(AsyncRealtimeSession.aclose)

    @described_as(AsyncRealtimeSession.speak)
    def speak(self, text: str, *, timeout: float | None = None) -> SpeechEvents:
        async def begin() -> AsyncSpeechEvents:  # its task belongs to the loop
            return self._async.speak(text, timeout=timeout)

        return SpeechEvents(_portal.run(begin))

    @described_as(AsyncRealtimeSession.play)
    def play(self, text: str, *, timeout: float | None = None) -> Playback:
        return self.speak(text, timeout=timeout).play()


class RealtimePool(Face[AsyncRealtimePool]):
    """Realtime sessions, opened on demand and used again for texts with the same settings.

    Use it with ``with``, and call :meth:`say` from as many threads as there are texts.
    """

    sessions = mirrored(AsyncRealtimePool.sessions)
    say = waited(AsyncRealtimePool.say)
    close = waited(AsyncRealtimePool.aclose)
