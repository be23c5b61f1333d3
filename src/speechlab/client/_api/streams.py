"""Streams without ``await``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from speechlab.client._api.face import StreamFace, described_as, each_of, following, mirrored, waited
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
