"""The asynchronous client: every operation of the contract. The synchronous one is derived from it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, cast

from speechlab.client._api.base import ClientBase
from speechlab.client._api.perform import Performer
from speechlab.client._closable import AsyncClosable
from speechlab.client._operations.call import (
    BytesBody,
    HttpCall,
    RawResponse,
    Reply,
    Timeouts,
    build_form_body,
    build_json_body,
)
from speechlab.client._operations.operation import Operation, accept_arguments_of, resolve_timeout
from speechlab.client._operations.recognition import Transcribe, Transcript
from speechlab.client._operations.speech import SpeechClip, StreamSpeech, Synthesize
from speechlab.client._operations.translation import StreamTranslation, Translate, Translation
from speechlab.client._realtime.dial import RealtimeConfig, RealtimeOptions
from speechlab.client._realtime.session import AsyncRealtimeSession
from speechlab.client._secret import Secret, to_secret
from speechlab.client._services.kinds import build_service
from speechlab.client._services.progress import RunningTotals
from speechlab.client._services.sender import Sender
from speechlab.client._settings.resolve import find_settings_or_start_service
from speechlab.client._settings.settings import ClientOptions, Settings, check_option_names
from speechlab.client._streams.speech_stream import AsyncSpeechStream
from speechlab.client._streams.translation_stream import AsyncTranslationStream
from speechlab.errors import ConfigurationError, InvalidRequestError

if TYPE_CHECKING:
    from speechlab.client._events import CallTotals
    from speechlab.client._operations.voices import VoiceCatalogue

R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True)
class RawReply(RawResponse):
    """A raw reply (status, headers, content, timing) and its result."""

    _result: Any = field(default=None, repr=False)

    def parse(self) -> Any:
        """Return the result, as the call without ``with_raw_response`` returns it."""
        return self._result


class AsyncClient(ClientBase, AsyncClosable):
    """A speech service, for ``await``.

    It belongs to the event loop of its first call. One client is enough for a program: it keeps connections, and
    adapts the number of concurrent calls to the load that the service accepts.

    Args:
        base_url: HTTP base URL; default ``SPEECHLAB_BASE_URL``.
        ws_base_url: WebSocket base URL; default ``SPEECHLAB_WS_BASE_URL``, or derived from ``base_url``.
        api_key: API key; default ``SPEECHLAB_API_KEY``, then ``.env``, then the key kept by ``speechlab login``.
            A function that returns the key is called before the first call, and again when the key is refused.
        **options: ``timeout`` (seconds for a whole call, streams included; None follows the length of text or
            audio), ``connect_timeout_s`` (5; for one attempt to connect), ``read_timeout_s`` (seconds of
            silence; None is the timeout, or else at least 120, following the length), ``max_retries`` (maximum of
            retries of a call; None is 4 after failures, and as many as ``patience_s`` allows while the service says
            "later"), ``max_concurrency`` (16, for each of speech, recognition and translation), ``patience_s`` (60;
            seconds of retries while the service says "later"), ``default_headers`` (sent with every call),
            ``allow_insecure`` (send the key over plain HTTP to another machine), ``on_event`` (called with each
            ``CallEvent``), ``store`` (a ``Store`` or its folder, where results are kept), ``mode`` (use of the
            store: ``"auto"``, ``"live"`` or ``"replay"``), ``pace`` (replay of streams: ``"at once"`` or
            ``"as recorded"``), ``transport`` (``"aiohttp"``, the default with ``speechlab[fast]``, ``"httpx2"``, or a
            transport of httpx2), ``adapter`` (an ``OpenAIAdapter``, for a service that speaks OpenAI's API),
            ``engines`` (options by engine, such as ``{"whisper": {"beam_size": 1}}``, for ``connect``: a separate
            embedded service in addition to the usual one), ``clock`` and ``rng`` (for tests).

    Raises:
        ConfigurationError: No service is configured, or an argument is not usable.
    """

    _raw = False
    """Whether calls return their replies as they came."""

    def _set_up_client(self, settings: Settings, parent: Self | None = None) -> None:
        self._settings = settings
        self._owner = parent is None
        if parent is None:
            self._performer = Performer(Sender(settings, build_service(settings), RunningTotals()))
        else:
            self._performer = parent._performer.copy(settings=settings)  # noqa: SLF001 - of the same class

    @classmethod
    def from_performer(cls, performer: Performer) -> Self:
        """Make a client of what performs its operations; its connections are those of another client."""
        client = cls.__new__(cls)
        client._settings, client._performer, client._owner = performer.settings, performer, False  # noqa: SLF001 - of the same class
        return client

    @property
    def usage(self) -> CallTotals:
        """Totals of all calls through this client and the copies made by ``with_options``."""
        return self._performer.sender.totals.sums

    async def aclose(self) -> None:
        """Close the connections, and release the embedded service if this client uses it."""
        if self._owner:
            await self._performer.sender.connections.close()
            if self._settings.lease is not None:
                self._settings.lease.release()

    @property
    def with_raw_response(self) -> Any:
        """A copy of the client whose calls over HTTP return the reply as it came.

        A reply has ``status``, ``headers``, ``content`` and ``timing``; its ``parse()`` returns the usual result. An
        open stream has its ``status`` and ``headers`` itself.
        """
        client = self.with_options()
        client._raw = True  # noqa: SLF001 - of the same class
        return client

    def _wrap_result_if_raw(self, reply: Reply | RawResponse, result: T) -> T:
        """Return what a call returns: its result, or its raw reply."""
        if not self._raw:
            return result
        if isinstance(reply, RawResponse):
            return cast("T", RawReply(reply.status, reply.headers, reply.content, reply.timing, result))
        raise ConfigurationError(
            f"{self._performer.service.place} was asked without HTTP, so that there is no raw reply"
        )

    @classmethod
    async def connect(
        cls,
        base_url: str | None = None,
        *,
        ws_base_url: str | None = None,
        api_key: str | Secret | Callable[[], str] | None = None,
        **options: Unpack[ClientOptions],
    ) -> Self:
        """Make a client of the configured service, or of the embedded one, which is started if necessary.

        Args:
            base_url: HTTP base URL; default ``SPEECHLAB_BASE_URL``, then the embedded service.
            ws_base_url: WebSocket base URL.
            api_key: API key; default as for the class.
            **options: See the class.

        Raises:
            ConfigurationError: An argument is not usable.
            ServiceStartError: The embedded service could not be started.
        """
        key, api_key = to_secret(api_key), None
        check_option_names(options)
        return cls.from_settings(
            await asyncio.to_thread(find_settings_or_start_service, base_url, ws_base_url, key, dict(options))
        )

    async def perform(self, operation: Operation[R]) -> R:
        """Take the result of an operation from the store, or make the call, as ``synthesize`` and the others do.

        Args:
            operation: A ``Synthesize``, ``Transcribe`` or ``Translate``.

        Returns:
            The result of the method of the same name, whose errors it raises.
        """
        return self._wrap_result_if_raw(*await self._performer.perform(operation))

    async def voices(self, *, timeout: float | None = None) -> VoiceCatalogue:  # noqa: ASYNC109 - of the request, retries included
        """List the voices (section 4.2 of the contract).

        Args:
            timeout: Seconds for this call with its retries; None is the client's.

        Raises:
            SpeechLabError: The service returned an error or no catalogue, or no reply came.
        """
        return self._wrap_result_if_raw(*await self._performer.list_voices(timeout))

    async def identity(self, *, timeout: float | None = None) -> str:  # noqa: ASYNC109 - of the request, retries included
        """Return the identity of the service, part of the keys under which its results are kept.

        Args:
            timeout: Seconds, if a request is necessary; None is the client's.

        Returns:
            The header ``X-Speechlab-Service`` of the catalogue (the service's version and a digest of its engines'
            settings), or else the address. Never a credential.

        Raises:
            SpeechLabError: Those of :meth:`voices`.
        """
        return await self._performer.identify(timeout)

    @accept_arguments_of(Synthesize)
    async def synthesize(self, operation: Synthesize) -> SpeechClip:
        """Speak a text (section 4.1 of the contract).

        Returns:
            The clip, with the encoded bytes of the reply (``encoded``) and the ``timing``.

        Raises:
            InvalidRequestError: The request breaks a rule of the contract; nothing was sent.
            APIError: The service returned an error.
            APIConnectionError: No reply came.
            StreamTruncatedError: The audio is incomplete.
            ContractError: The reply is not audio.
        """
        return await self.perform(operation)

    @accept_arguments_of(StreamSpeech)
    def stream_speech(self, operation: StreamSpeech) -> AsyncSpeechStream:
        """Speak a text, and stream the audio while it is made.

        Use the result as a context manager; leaving it early stops the service's work.

        Returns:
            A stream: iterate for bytes, ``clips()`` for sound, ``collect()`` for all of it. Entering it sends the
            request, and raises the errors of :meth:`synthesize`.
        """
        performer = self._performer
        resolve = partial(performer.resolve_voice, operation)
        return AsyncSpeechStream(performer.sender, resolve, performer.build_stored_call)

    @accept_arguments_of(Transcribe)
    async def transcribe(self, operation: Transcribe) -> Transcript:
        """Transcribe a recording (section 4.4 of the contract).

        An argument that is None is not sent; the service's default is in parentheses.

        Raises:
            InvalidRequestError: The recording or a field breaks a rule of the contract; nothing was sent.
            OSError: The file cannot be read.
            APIError: The service returned an error.
            APIConnectionError: No reply came.
            ContractError: The reply is not a transcript.
        """
        return await self.perform(operation)

    @accept_arguments_of(Translate)
    async def translate(self, operation: Translate) -> Translation:
        """Translate a text (section 4.5 of the contract).

        Raises:
            InvalidRequestError: A field breaks a rule of the contract; nothing was sent.
            APIError: The service returned an error.
            APIConnectionError: No reply came.
            ContractError: The reply contains no translation.
        """
        return await self.perform(operation)

    @accept_arguments_of(StreamTranslation)
    def stream_translation(self, operation: StreamTranslation) -> AsyncTranslationStream:
        """Translate a text, and stream the translation while it is made.

        Use the result as a context manager; leaving it early stops the service's work.

        Returns:
            A stream of ``TranslationChunk``. Its ``text`` is the translation so far; its ``translation`` is the
            result at the end.

        Raises:
            InvalidRequestError: A field breaks a rule of the contract; nothing is sent.
        """
        performer = self._performer
        return AsyncTranslationStream(performer.sender, operation, performer.build_stored_call)

    @accept_arguments_of(RealtimeOptions)
    def realtime(self, options: RealtimeOptions) -> AsyncRealtimeSession:
        """Open a realtime session (section 4.3 of the contract): one connection that speaks text after text.

        Returns:
            A session, to be used as a context manager: ``speak(text)`` gives events, ``say(text)`` a clip. Entering
            it raises the errors of its settings.
        """

        async def resolve_config() -> RealtimeConfig:
            return (await self._performer.resolve_voice(options)).build_config()

        settings = self._settings
        settings = replace(settings, timeout=resolve_timeout(options.timeout, settings.timeout))
        return AsyncRealtimeSession(
            replace(self._performer.sender, settings=settings), resolve_config, self.identity
        )

    async def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        form: Sequence[tuple[str, str]] | None = None,
        content: bytes | None = None,
        headers: dict[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - what users of other SDKs look for
    ) -> RawResponse:
        """Send a request as it is: no check, no retry, and every status is a reply.

        Args:
            method: HTTP method.
            path: Path below the base URL, such as ``"/tts"``.
            json: Body, sent as JSON.
            form: Body, sent as multipart/form-data; names may repeat.
            content: Body, sent unchanged; give its type in ``headers``.
            headers: Further headers; they replace the client's headers of the same name.
            timeout: Seconds for the call; None is the client's, or else 600, and 300 for each piece of a reply.

        Raises:
            InvalidRequestError: More than one body is given, or a value cannot be sent over HTTP.
            APIConnectionError: No reply came.
        """
        _check_request(method, path, form, content, headers)
        bodies: list[BytesBody] = []
        if json is not None:
            bodies.append(build_json_body(json))
        if form is not None:
            bodies.append(build_form_body(form))
        if content is not None:
            bodies.append(BytesBody(content))
        if len(bodies) > 1:
            raise InvalidRequestError(
                "json, form and content are three forms of the body; give at most one of them"
            )
        time_s = resolve_timeout(timeout, self._settings.timeout)
        read = time_s or 300.0
        call = HttpCall(
            "request",
            "raw",
            Timeouts(read=read, total=time_s or 2 * read, given=time_s is not None),
            method.upper(),
            "/" + path.lstrip("/"),
            body=bodies[0] if bodies else None,
            headers=headers or {},
            raw=True,
        )
        reply = await self._performer.sender.send(call)
        assert isinstance(reply, RawResponse)  # a service without HTTP raises
        return reply


def _check_request(method: object, path: object, form: object, content: object, headers: object) -> None:
    texts = {"method": method, "path": path}
    if isinstance(headers, Mapping):
        texts.update((f"headers[{name!r}]", value) for name, value in headers.items())
        texts.update((f"the name of a header, {name!r},", name) for name in headers)
    elif headers is not None:
        raise InvalidRequestError(f"headers is a {type(headers).__name__}; give a dict of texts")
    for what, value in texts.items():
        if not isinstance(value, str):
            raise InvalidRequestError(f"{what} is a {type(value).__name__}; give a text")
    if not str(method).isalpha():
        raise InvalidRequestError(f"method is {method!r}; give one such as 'GET' or 'POST'")
    if not str(path).isprintable():
        raise InvalidRequestError(
            f"path is {path!r}; give one without line breaks and other control characters"
        )
    if form is not None and not _is_list_of_text_pairs(form):
        raise InvalidRequestError("form is not a list of pairs of texts; give [(name, value), …]")
    if content is not None and not isinstance(content, bytes):
        raise InvalidRequestError(f"content is a {type(content).__name__}; give bytes")


def _is_list_of_text_pairs(form: object) -> bool:
    return isinstance(form, (list, tuple)) and all(
        isinstance(pair, (list, tuple)) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
        for pair in form
    )
