"""The synchronous client, and ``connect``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from speechlab._brief import briefly
from speechlab.client._api.async_client import AsyncClient
from speechlab.client._api.face import Face, described_as, faced, mirrored, taking_arguments_of, waited
from speechlab.client._api.streams import RealtimeSession, SpeechStream, TranslationStream
from speechlab.client._secret import as_secret
from speechlab.client._settings.resolve import settings_for, settings_from
from speechlab.client._settings.settings import check_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Unpack

    from speechlab.client._secret import Secret
    from speechlab.client._settings.settings import ClientOptions, Settings


@taking_arguments_of(AsyncClient)
class Client(Face[AsyncClient]):
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

    def __init__(
        self,
        base_url: str | None = None,
        *,
        ws_base_url: str | None = None,
        api_key: str | Secret | Callable[[], str] | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        key, api_key = as_secret(api_key), None
        check_names(options)
        self._async = AsyncClient(base_url, ws_base_url=ws_base_url, api_key=key, **options)

    @classmethod
    def _of(cls, behind: AsyncClient) -> Self:
        client = cls.__new__(cls)
        client._async = behind  # noqa: SLF001 - of the same class
        return client

    @classmethod
    @described_as(AsyncClient.from_settings)
    def from_settings(cls, settings: Settings) -> Self:
        return cls._of(AsyncClient.from_settings(settings))

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

    base_url = mirrored(AsyncClient.base_url)
    ws_base_url = mirrored(AsyncClient.ws_base_url)
    usage = mirrored(AsyncClient.usage)

    @described_as(AsyncClient.with_options)
    def with_options(self, **changes: Unpack[ClientOptions]) -> Self:
        check_names(changes, change=True)
        return self._of(self._async.with_options(**changes))

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
        return self._of(self._async.with_raw_response)

    def __enter__(self) -> Self:
        return self

    def __copy__(self) -> Self:
        return self.with_options()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.with_options()

    def __reduce__(self) -> tuple[Any, ...]:
        _, description = self._async.__reduce__()
        return self._rebuilt, description

    @classmethod
    def _rebuilt(cls, description: Mapping[str, Any]) -> Self:
        return cls.from_settings(settings_from(description))

    def __repr__(self) -> str:
        if not hasattr(self, "_async"):  # repr in a traceback through the constructor
            return f"{type(self).__name__}(not configured)"
        return super().__repr__()


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
