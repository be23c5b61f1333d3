"""The client: every operation of the contract, awaited. The synchronous one is a face of this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from speechlab.client._api.raw import AsyncRawReplies
from speechlab.client._api.recognition_calls import RecognitionCalls
from speechlab.client._api.speech_calls import SpeechCalls
from speechlab.client._api.translation_calls import TranslationCalls
from speechlab.client._operations.call import BytesBody, Call, RawResponse, Timeouts, form_body, json_body
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Sequence


class AsyncClient(SpeechCalls, RecognitionCalls, TranslationCalls):
    """A speech service, for ``await``.

    It belongs to the event loop of its first call. One client is enough for a program: it keeps connections, and
    adapts how many calls run at once to what the service bears.

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

    @property
    def with_raw_response(self) -> AsyncRawReplies:
        """The operations over HTTP, giving the reply as it came.

        What ``voices``, ``synthesize``, ``transcribe`` and ``translate`` return has ``status``, ``headers``,
        ``content`` and ``timing``, and ``parse()``, which gives what the call itself would have given.
        ``stream_speech`` and ``stream_translation`` return a context manager, which has ``status``, ``headers`` and
        ``timing`` as soon as it is entered, gives the bytes when iterated, and the stream with ``parse()``.
        """
        return AsyncRawReplies(self)

    async def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        form: Sequence[tuple[str, str]] | None = None,
        content: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> RawResponse:
        """Send anything, as it is: nothing is checked, nothing is repeated, and any status is a reply.

        Args:
            method: HTTP method.
            path: Path below the base URL, such as ``"/tts"``.
            json: Body, to be sent as JSON.
            form: Body, to be sent as multipart/form-data; names may repeat.
            content: Body, to be sent as it is; its type goes into ``headers``.
            headers: Further headers; they replace those that would be sent.

        Raises:
            InvalidRequestError: More than one body is given, or something cannot be sent at all.
            APIConnectionError: No answer came.
        """
        _check_request(method, path, form, content, headers)
        bodies: list[BytesBody] = []
        if json is not None:
            bodies.append(json_body(json))
        if form is not None:
            bodies.append(form_body(form))
        if content is not None:
            bodies.append(BytesBody(content))
        if len(bodies) > 1:
            raise InvalidRequestError(
                "json, form and content are three ways to give the body; give one of them"
            )
        read = self._settings.timeout or 300.0
        call = Call(
            "request",
            "raw",
            method.upper(),
            "/" + path.lstrip("/"),
            Timeouts(read=read, total=2 * read if self._settings.timeout is None else read),
            body=bodies[0] if bodies else None,
            headers=headers or {},
            raw=True,
        )
        return await self._core.send(call)


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
    if form is not None and not _is_form(form):
        raise InvalidRequestError("form is not a list of pairs of texts; give [(name, value), …]")
    if content is not None and not isinstance(content, bytes):
        raise InvalidRequestError(f"content is a {type(content).__name__}; give bytes")


def _is_form(form: object) -> bool:
    return isinstance(form, (list, tuple)) and all(
        isinstance(pair, (list, tuple)) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
        for pair in form
    )
