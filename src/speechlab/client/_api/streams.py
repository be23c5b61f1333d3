"""Streams without ``await``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from speechlab.client._api.face import StreamFace, described_as, each_of, following, mirrored, waited
from speechlab.client._streams.raw import AsyncRawStream
from speechlab.client._streams.speech import AsyncSpeechStream
from speechlab.client._streams.translation import AsyncTranslationStream
from speechlab.notebook import play

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from speechlab.audio import AudioClip
    from speechlab.notebook import Playback

S = TypeVar("S")


class SpeechStream(StreamFace[AsyncSpeechStream]):
    """Speech while it is made: iterate for its bytes, or :meth:`clips` for sound.

    Use it with ``with``; leaving it early stops the service's work.
    """

    partial = mirrored(AsyncSpeechStream.partial)
    content_type = mirrored(AsyncSpeechStream.content_type)
    timing = mirrored(AsyncSpeechStream.timing)
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
    open = waited(AsyncTranslationStream.open)
    close = waited(AsyncTranslationStream.aclose)
    next_chunk = waited(AsyncTranslationStream.next_chunk)
    __next__ = following(AsyncTranslationStream.__anext__)
    collect = waited(AsyncTranslationStream.collect)


class RawStream(StreamFace[AsyncRawStream[Any]], Generic[S]):
    """The raw reply of a stream: status and headers once it is open, then the bytes.

    Use it with ``with``; leaving it early stops the service's work. Iterate for the bytes as they arrive, or call
    :meth:`parse` and read the stream that it returns. The bytes are checked like those of the stream: an incomplete
    reply raises at its end.
    """

    def __init__(self, behind: AsyncRawStream[Any], face: Callable[[Any], S]) -> None:
        super().__init__(behind)
        self._face = face

    status = mirrored(AsyncRawStream.status)
    headers = mirrored(AsyncRawStream.headers)
    content_type = mirrored(AsyncRawStream.content_type)
    timing = mirrored(AsyncRawStream.timing)
    open = waited(AsyncRawStream.open)
    close = waited(AsyncRawStream.aclose)
    next_piece = waited(AsyncRawStream.next_piece)
    __next__ = following(AsyncRawStream.__anext__)

    @described_as(AsyncRawStream.parse)
    def parse(self) -> S:
        return self._face(self._async.parse())
