"""The synchronous client: a face of the asynchronous one, over the private loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeVar

from speechlab.client._api import portal as _portal
from speechlab.client._api.async_client import AsyncClient
from speechlab.client._api.face import like
from speechlab.client._api.raw import RawReplies
from speechlab.client._api.realtime import RealtimePool, RealtimeSession
from speechlab.client._api.streams import SpeechStream, TranslationStream
from speechlab.client._settings.settings import as_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType
    from typing import Unpack

    from speechlab.client._events import Usage
    from speechlab.client._operations.call import RawResponse
    from speechlab.client._operations.recording import AudioInput
    from speechlab.client._operations.speech import SpeechClip
    from speechlab.client._operations.transcript import Transcript
    from speechlab.client._operations.translation import Translation
    from speechlab.client._operations.voices import VoiceCatalogue
    from speechlab.client._secret import Secret
    from speechlab.client._settings.options import Options
    from speechlab.client._settings.settings import Settings
    from speechlab.contract import AudioFormat, Voice

T = TypeVar("T")


class Client:
    """A speech service, for scripts, cells, threads and callbacks; works while an event loop is running.

    One client is enough for a program, and may be used from all of its threads: it keeps connections, and adapts
    how many calls run at once to what the service bears. Interrupting a call cancels it.

    Args:
        base_url: HTTP base URL; by default that of ``SPEECHLAB_BASE_URL``.
        ws_base_url: WebSocket base URL; by default that of ``SPEECHLAB_WS_BASE_URL``, or made from ``base_url``.
        api_key: The key; by default that of ``SPEECHLAB_API_KEY``, of ``.env``, or of ``speechlab login``.
        **options: ``timeout`` (seconds for a whole call; None follows the length of text or audio),
            ``max_retries`` (4), ``max_concurrency`` (16, for each of speech, recognition and translation),
            ``patience_s`` (60; for how long a call answered by 429 is repeated), ``allow_insecure`` (send the key
            over plain HTTP to another machine), ``on_event`` (called with each ``CallEvent``), ``store``
            (a ``Store`` or its folder, where calls are kept), ``mode`` (``"auto"``, ``"live"`` or ``"replay"``: how
            it is used), ``pace`` (``"at once"`` or ``"as recorded"``: how streams are replayed), ``transport``
            (``"aiohttp"``: half of the CPU for small calls, with ``speechlab[fast]``; or an httpx2 transport),
            ``clock`` and ``rng`` (for tests).

    Raises:
        ConfigurationError: No service is configured, or an argument is not usable.
    """

    def __init__(
        self,
        base_url: str | None = None,
        ws_base_url: str | None = None,
        api_key: str | Secret | None = None,
        **options: Unpack[Options],
    ) -> None:
        key, api_key = as_secret(api_key), None
        self._set_up(AsyncClient(base_url, ws_base_url, key, **options))

    def _set_up(self, client: AsyncClient) -> None:
        self._async = client

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Make a client of finished settings; :func:`connect` does it so."""
        client = cls.__new__(cls)
        cls._set_up(client, AsyncClient.of(settings))
        return client

    @classmethod
    @like(AsyncClient.connect)
    def connect(
        cls,
        base_url: str | None = None,
        ws_base_url: str | None = None,
        api_key: str | Secret | None = None,
        **options: Unpack[Options],
    ) -> Self:
        from speechlab.client._api.connect import settings_for

        key, api_key = as_secret(api_key), None
        return cls.of(settings_for(base_url, ws_base_url, key, dict(options)))

    @property
    def base_url(self) -> str:
        """HTTP base URL."""
        return self._async.base_url

    @property
    def ws_base_url(self) -> str:
        """WebSocket base URL."""
        return self._async.ws_base_url

    @property
    def usage(self) -> Usage:
        """What has been spent through this client and those made from it by ``with_options``."""
        return self._async.usage

    @like(AsyncClient.with_options)
    def with_options(self, **changes: Unpack[Options]) -> Self:
        cls = type(self)
        client = cls.__new__(cls)
        cls._set_up(client, self._async.with_options(**changes))
        return client

    @like(AsyncClient.voices)
    def voices(self) -> VoiceCatalogue:
        return _portal.run(self._async.voices)

    @like(AsyncClient.identity)
    def identity(self) -> str:
        return _portal.run(self._async.identity)

    @like(AsyncClient.synthesize)
    def synthesize(
        self,
        text: str,
        *,
        voice: Voice | str,
        format: AudioFormat | str = "wav",  # noqa: A002
        sample_rate: int | None = None,
        temperature: float | None = None,
    ) -> SpeechClip:
        return _portal.run(
            self._async.synthesize,
            text,
            voice=voice,
            format=format,
            sample_rate=sample_rate,
            temperature=temperature,
        )

    @like(AsyncClient.stream_speech)
    def stream_speech(
        self,
        text: str,
        *,
        voice: Voice | str,
        format: AudioFormat | str = "wav",  # noqa: A002
        sample_rate: int | None = None,
        temperature: float | None = None,
    ) -> SpeechStream:
        return SpeechStream(
            self._async.stream_speech(
                text, voice=voice, format=format, sample_rate=sample_rate, temperature=temperature
            )
        )

    @like(AsyncClient.transcribe)
    def transcribe(
        self,
        audio: AudioInput,
        *,
        language: str | None = None,
        hotwords: Sequence[str] | None = None,
        vad: str | int = "off",
        min_silence_gap: int | None = None,
        segment_padding: int | None = None,
        initial_segment_padding_ms: int | None = None,
        speech_pad_ms: int | None = None,
        min_segment_duration: float | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        frequency_penalty: float | None = None,
        repetition_penalty: float | None = None,
        session_id: str | None = None,
    ) -> Transcript:
        return _portal.run(
            self._async.transcribe,
            audio,
            language=language,
            hotwords=hotwords,
            vad=vad,
            min_silence_gap=min_silence_gap,
            segment_padding=segment_padding,
            initial_segment_padding_ms=initial_segment_padding_ms,
            speech_pad_ms=speech_pad_ms,
            min_segment_duration=min_segment_duration,
            temperature=temperature,
            top_p=top_p,
            frequency_penalty=frequency_penalty,
            repetition_penalty=repetition_penalty,
            session_id=session_id,
        )

    @like(AsyncClient.translate)
    def translate(
        self,
        text: str,
        *,
        source_lang: str,
        target_lang: str,
        keywords: Iterable[str] = (),
        context: str | None = None,
        model: str | None = None,
    ) -> Translation:
        return _portal.run(
            self._async.translate,
            text,
            source_lang=source_lang,
            target_lang=target_lang,
            keywords=keywords,
            context=context,
            model=model,
        )

    @like(AsyncClient.stream_translation)
    def stream_translation(
        self,
        text: str,
        *,
        source_lang: str,
        target_lang: str,
        keywords: Iterable[str] = (),
        context: str | None = None,
        model: str | None = None,
    ) -> TranslationStream:
        return TranslationStream(
            self._async.stream_translation(
                text,
                source_lang=source_lang,
                target_lang=target_lang,
                keywords=keywords,
                context=context,
                model=model,
            )
        )

    @like(AsyncClient.realtime)
    def realtime(
        self,
        *,
        voice: Voice | str,
        format: AudioFormat | str = "wav",  # noqa: A002
        sample_rate: int | None = None,
        temperature: float | None = None,
        audio_transport: str = "binary",
    ) -> RealtimeSession:
        return RealtimeSession(
            self._async.realtime(
                voice=voice,
                format=format,
                sample_rate=sample_rate,
                temperature=temperature,
                audio_transport=audio_transport,
            )
        )

    @like(AsyncClient.realtime_pool)
    def realtime_pool(self, size: int = 4) -> RealtimePool:
        return RealtimePool(self._async.realtime_pool(size))

    @property
    @like(AsyncClient.with_raw_response)
    def with_raw_response(self) -> RawReplies:
        return RawReplies(self._async.with_raw_response)

    @like(AsyncClient.request)
    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        form: Sequence[tuple[str, str]] | None = None,
        content: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> RawResponse:
        return _portal.run(
            self._async.request, method, path, json=json, form=form, content=content, headers=headers
        )

    @like(AsyncClient.close)
    def close(self) -> None:
        _portal.run(self._async.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __copy__(self) -> Self:
        return self.with_options()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.with_options()

    def __reduce__(self) -> tuple[Any, ...]:
        rebuild, (_, facts) = self._async.__reduce__()
        return rebuild, (type(self), facts)

    def __repr__(self) -> str:
        if not hasattr(self, "_async"):  # a traceback through the constructor shows it unfinished
            return f"{type(self).__name__}(not configured)"
        return repr(self._async).removeprefix("Async")
