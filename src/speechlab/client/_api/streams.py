"""Streams and realtime speech without ``await``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from speechlab.client._api import portal as _portal
from speechlab.client._api.face import Face, StreamFace, described_as, each_of, following, mirrored, waited
from speechlab.client._realtime.events import AsyncSpeechEvents
from speechlab.client._realtime.session import AsyncRealtimeSession
from speechlab.client._streams.speech import AsyncSpeechStream
from speechlab.client._streams.translation import AsyncTranslationStream
from speechlab.notebook import play

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from speechlab.audio import AudioClip
    from speechlab.notebook import Playback


class SpeechStream(StreamFace[AsyncSpeechStream]):
    """Speech while it is made: iterate for its bytes, or :meth:`clips` for sound.

    Use it with ``with``; leaving it early stops the service's work.
    """

    partial = mirrored(AsyncSpeechStream.partial)
    content_type = mirrored(AsyncSpeechStream.content_type)
    timing = mirrored(AsyncSpeechStream.timing)
    status = mirrored(AsyncSpeechStream.status)
    headers = mirrored(AsyncSpeechStream.headers)
    open = waited(AsyncSpeechStream.open)
    close = waited(AsyncSpeechStream.aclose)
    next_piece = waited(AsyncSpeechStream.next_piece)
    __next__ = following(AsyncSpeechStream.__anext__)
    collect = waited(AsyncSpeechStream.collect)

    @described_as(AsyncSpeechStream.save_to)
    def save_to(self, path: str | os.PathLike[str]) -> Self:
        self._async.save_to(path)
        return self

    @described_as(AsyncSpeechStream.clips)
    def clips(self) -> Iterator[AudioClip]:
        yield from each_of(self._async.clips())

    @described_as(AsyncSpeechStream.play)
    def play(self) -> Playback:
        return play(self)


class TranslationStream(StreamFace[AsyncTranslationStream]):
    """A translation while it is made: iterate for its chunks; ``text`` is the translation so far.

    Use it with ``with``; leaving it early stops the service's work.
    """

    text = mirrored(AsyncTranslationStream.text)
    translation = mirrored(AsyncTranslationStream.translation)
    timing = mirrored(AsyncTranslationStream.timing)
    status = mirrored(AsyncTranslationStream.status)
    headers = mirrored(AsyncTranslationStream.headers)
    open = waited(AsyncTranslationStream.open)
    close = waited(AsyncTranslationStream.aclose)
    next_chunk = waited(AsyncTranslationStream.next_chunk)
    __next__ = following(AsyncTranslationStream.__anext__)
    collect = waited(AsyncTranslationStream.collect)


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
