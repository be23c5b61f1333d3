"""The synchronous client with its streams and sessions, and ``connect``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Self, Unpack

from speechlab._brief import briefly
from speechlab.client._api import portal as _portal
from speechlab.client._api.async_client import AsyncClient
from speechlab.client._api.base import Configured
from speechlab.client._api.portal import (
    Face,
    StreamFace,
    described_as,
    each_of,
    faced,
    following,
    mirrored,
    waited,
)
from speechlab.client._realtime.job import AsyncSpeechEvents
from speechlab.client._realtime.session import AsyncRealtimeSession
from speechlab.client._secret import Secret, as_secret
from speechlab.client._settings.resolve import settings_for
from speechlab.client._settings.settings import ClientOptions, Settings, check_names
from speechlab.client._streams.base import Playable
from speechlab.client._streams.speech import AsyncSpeechStream
from speechlab.client._streams.translation import AsyncTranslationStream

if TYPE_CHECKING:
    from speechlab.audio import AudioClip
    from speechlab.notebook import Playback


class SpeechStream(Playable, StreamFace[AsyncSpeechStream]):
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
    __next__ = following(AsyncSpeechStream.__anext__)
    collect = waited(AsyncSpeechStream.collect)

    @described_as(AsyncSpeechStream.save_to)
    def save_to(self, path: str | os.PathLike[str]) -> Self:
        self._async.save_to(path)
        return self

    @described_as(AsyncSpeechStream.clips)
    def clips(self) -> Iterator[AudioClip]:
        yield from each_of(self._async.clips())


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
    __next__ = following(AsyncTranslationStream.__anext__)
    collect = waited(AsyncTranslationStream.collect)


class SpeechEvents(Playable, StreamFace[AsyncSpeechEvents]):
    """Events of one text: iterate for them in order, or :meth:`collect` a clip."""

    text = mirrored(AsyncSpeechEvents.text)
    partial = mirrored(AsyncSpeechEvents.partial)
    timing = mirrored(AsyncSpeechEvents.timing)

    @described_as(AsyncSpeechEvents.clips)
    def clips(self) -> Iterator[AudioClip]:
        yield from each_of(self._async.clips())

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


class Client(Configured, Face[AsyncClient]):
    """A speech service, for scripts, cells, threads and callbacks; works while an event loop is running.

    One client is enough for a program, and all threads may use it: it keeps connections, and adapts the number of
    concurrent calls to the load that the service accepts. An interrupt cancels the call.

    Example:
        >>> with Client("https://speech.example", api_key="sl:a-key-of-mine") as lab:
        ...     print(lab)
        ...     try:
        ...         lab.translate("", source_lang="ja", target_lang="en")  # refused here: nothing is sent
        ...     except sl.InvalidRequestError as error:
        ...         print(error)
        Client(base_url='https://speech.example', api_key='***')
        text is empty; it must hold something to translate
    """

    def _set_up(self, settings: Settings, parent: Self | None = None) -> None:
        self._settings = settings
        behind = None if parent is None else parent._async  # noqa: SLF001 - of the same class
        self._async = AsyncClient.from_settings(settings, behind)

    @classmethod
    @described_as(AsyncClient.connect)
    def connect(
        cls,
        base_url: str | None = None,
        *,
        ws_base_url: str | None = None,
        api_key: str | Secret | Callable[[], str] | None = None,
        **options: Unpack[ClientOptions],
    ) -> Self:
        key, api_key = as_secret(api_key), None
        check_names(options)
        return cls.from_settings(settings_for(base_url, ws_base_url, key, dict(options)))

    usage = mirrored(AsyncClient.usage)

    voices = waited(AsyncClient.voices)
    identity = waited(AsyncClient.identity)
    synthesize = waited(AsyncClient.synthesize)
    stream_speech = faced(AsyncClient.stream_speech, SpeechStream)
    transcribe = waited(AsyncClient.transcribe)
    translate = waited(AsyncClient.translate)
    stream_translation = faced(AsyncClient.stream_translation, TranslationStream)
    realtime = faced(AsyncClient.realtime, RealtimeSession)
    perform = waited(AsyncClient.perform)
    request = waited(AsyncClient.request)
    close = waited(AsyncClient.aclose)

    @property
    @described_as(AsyncClient.with_raw_response)
    def with_raw_response(self) -> Any:
        client = self.with_options()
        client._async = self._async.with_raw_response  # noqa: SLF001 - of the same class
        return client

    def __enter__(self) -> Self:
        return self


if Client.__doc__ and AsyncClient.__doc__:  # python -OO keeps no descriptions
    _arguments = cleandoc(AsyncClient.__doc__).partition("\nArgs:\n")[2]
    Client.__doc__ = f"{cleandoc(Client.__doc__)}\n\nArgs:\n{_arguments}"


@briefly
@described_as(AsyncClient.connect)
def connect(
    base_url: str | None = None,
    *,
    ws_base_url: str | None = None,
    api_key: str | Secret | Callable[[], str] | None = None,
    **options: Unpack[ClientOptions],
) -> Client:
    key, api_key = as_secret(api_key), None
    check_names(options)
    return Client.connect(base_url, ws_base_url=ws_base_url, api_key=key, **options)
