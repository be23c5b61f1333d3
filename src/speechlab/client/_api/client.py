"""The synchronous client with its streams and sessions, and ``connect``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Self, Unpack

from speechlab._brief import shorten_tracebacks
from speechlab.client._api import portal as _portal
from speechlab.client._api.async_client import AsyncClient
from speechlab.client._api.base import ClientBase
from speechlab.client._api.portal import (
    SyncIterator,
    SyncWrapper,
    copy_docstring,
    iterate_sync,
    sync_property,
    to_sync,
    to_sync_next,
    to_sync_wrapping_result,
)
from speechlab.client._api.wait_bar import show_transcription
from speechlab.client._realtime.job import AsyncSpeechEvents
from speechlab.client._realtime.session import AsyncRealtimeSession, require_text
from speechlab.client._secret import Secret, to_secret
from speechlab.client._settings.resolve import find_settings_or_start_service
from speechlab.client._settings.settings import ClientOptions, Settings, check_option_names
from speechlab.client._streams.base import Playable
from speechlab.client._streams.speech_stream import AsyncSpeechStream
from speechlab.client._streams.translation_stream import AsyncTranslationStream

if TYPE_CHECKING:
    from speechlab.audio import AudioClip
    from speechlab.client._api.perform import Performer
    from speechlab.notebook import Playback


class SpeechStream(Playable, SyncIterator[AsyncSpeechStream]):
    """Speech while it is made: iterate for its bytes, or :meth:`clips` for sound.

    Use it with ``with``; leaving it early stops the service's work.
    """

    partial = sync_property(AsyncSpeechStream.partial)
    content_type = sync_property(AsyncSpeechStream.content_type)
    timing = sync_property(AsyncSpeechStream.timing)
    status = sync_property(AsyncSpeechStream.status)
    headers = sync_property(AsyncSpeechStream.headers)
    open = to_sync(AsyncSpeechStream.open)
    close = to_sync(AsyncSpeechStream.aclose)
    __next__ = to_sync_next(AsyncSpeechStream.__anext__)
    collect = to_sync(AsyncSpeechStream.collect)

    @copy_docstring(AsyncSpeechStream.save_to)
    def save_to(self, path: str | os.PathLike[str]) -> Self:
        self._async.save_to(path)
        return self

    @copy_docstring(AsyncSpeechStream.clips)
    def clips(self) -> Iterator[AudioClip]:
        yield from iterate_sync(self._async.clips())


class TranslationStream(SyncIterator[AsyncTranslationStream]):
    """A translation while it is made: iterate for its chunks; ``text`` is the translation so far.

    Use it with ``with``; leaving it early stops the service's work.
    """

    text = sync_property(AsyncTranslationStream.text)
    translation = sync_property(AsyncTranslationStream.translation)
    timing = sync_property(AsyncTranslationStream.timing)
    status = sync_property(AsyncTranslationStream.status)
    headers = sync_property(AsyncTranslationStream.headers)
    open = to_sync(AsyncTranslationStream.open)
    close = to_sync(AsyncTranslationStream.aclose)
    __next__ = to_sync_next(AsyncTranslationStream.__anext__)
    collect = to_sync(AsyncTranslationStream.collect)


class SpeechEvents(Playable, SyncIterator[AsyncSpeechEvents]):
    """Events of one text: iterate for them in order, or :meth:`collect` a clip."""

    text = sync_property(AsyncSpeechEvents.text)
    partial = sync_property(AsyncSpeechEvents.partial)
    timing = sync_property(AsyncSpeechEvents.timing)

    @copy_docstring(AsyncSpeechEvents.clips)
    def clips(self) -> Iterator[AudioClip]:
        yield from iterate_sync(self._async.clips())

    __next__ = to_sync_next(AsyncSpeechEvents.__anext__)
    collect = to_sync(AsyncSpeechEvents.collect)
    close = to_sync(AsyncSpeechEvents.aclose)


class RealtimeSession(SyncWrapper[AsyncRealtimeSession]):
    """A realtime session: several texts, one voice, one connection.

    Use it with ``with``. Texts are spoken one after the other; several threads may send texts at once.
    """

    info = sync_property(AsyncRealtimeSession.info)
    is_open = sync_property(AsyncRealtimeSession.is_open)
    open = to_sync(AsyncRealtimeSession.open)
    say = to_sync(AsyncRealtimeSession.say)
    close = to_sync(AsyncRealtimeSession.aclose)

    @copy_docstring(AsyncRealtimeSession.speak)
    def speak(self, text: str, *, timeout: float | None = None) -> SpeechEvents:
        async def speak_on_loop() -> AsyncSpeechEvents:  # its task belongs to the loop
            return self._async.speak(text, timeout=timeout)

        return SpeechEvents(_portal.run(speak_on_loop))

    @copy_docstring(AsyncRealtimeSession.play)
    def play(self, text: str = "", *, timeout: float | None = None) -> Playback:
        return self.speak(require_text(text), timeout=timeout).play()


class Client(ClientBase, SyncWrapper[AsyncClient]):
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

    def _set_up_client(self, settings: Settings, parent: Self | None = None) -> None:
        self._settings = settings
        behind = None if parent is None else parent._async  # noqa: SLF001 - of the same class
        self._async = AsyncClient.from_settings(settings, behind)

    @classmethod
    def from_performer(cls, performer: Performer) -> Self:
        """Make a client of what performs its operations; its connections are those of another client."""
        client = cls.__new__(cls)
        client._settings, client._async = performer.settings, AsyncClient.from_performer(performer)  # noqa: SLF001 - of the same class
        return client

    usage = sync_property(AsyncClient.usage)

    voices = to_sync(AsyncClient.voices)
    identity = to_sync(AsyncClient.identity)
    synthesize = to_sync(AsyncClient.synthesize)
    stream_speech = to_sync_wrapping_result(AsyncClient.stream_speech, SpeechStream)
    transcribe = to_sync(AsyncClient.transcribe, show_transcription)
    translate = to_sync(AsyncClient.translate)
    stream_translation = to_sync_wrapping_result(AsyncClient.stream_translation, TranslationStream)
    realtime = to_sync_wrapping_result(AsyncClient.realtime, RealtimeSession)
    perform = to_sync(AsyncClient.perform)
    request = to_sync(AsyncClient.request)
    close = to_sync(AsyncClient.aclose)

    @property
    @copy_docstring(AsyncClient.with_raw_response)
    def with_raw_response(self) -> Any:
        client = self.with_options()
        client._async = self._async.with_raw_response  # noqa: SLF001 - of the same class
        return client

    def __enter__(self) -> Self:
        return self


if Client.__doc__ and AsyncClient.__doc__:  # python -OO keeps no descriptions
    _arguments = cleandoc(AsyncClient.__doc__).partition("\nArgs:\n")[2]
    Client.__doc__ = f"{cleandoc(Client.__doc__)}\n\nArgs:\n{_arguments}"


@shorten_tracebacks
@copy_docstring(AsyncClient.connect)
def connect(
    base_url: str | None = None,
    *,
    ws_base_url: str | None = None,
    api_key: str | Secret | Callable[[], str] | None = None,
    **options: Unpack[ClientOptions],
) -> Client:
    key, api_key = to_secret(api_key), None
    check_option_names(options)
    return Client.from_settings(find_settings_or_start_service(base_url, ws_base_url, key, dict(options)))
