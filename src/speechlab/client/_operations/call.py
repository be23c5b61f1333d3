"""Calls and replies as data: of any service, and those over HTTP."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from speechlab import contract
from speechlab.client._events import Timing, attach_timing
from speechlab.client._operations.failures import (
    attach_headers_and_redact,
    build_error_from_reply,
    find_request_id,
)
from speechlab.errors import ContractError, InvalidRequestError, SpeechLabError

# Codings of bodies that have been unpacked.
_UNPACKED = frozenset({"identity", "gzip", "x-gzip", "deflate"})


def attach_headers_and_timing(
    error: SpeechLabError, headers: Mapping[str, str], timing: Timing
) -> SpeechLabError:
    """Attach the headers and the timing of a reply to an error about it."""
    attach_headers_and_redact(error, headers)
    attach_timing(error, timing)
    return error


class Body(ABC):
    """A body that can be opened again for each attempt."""

    content_type: str
    length: int

    @abstractmethod
    def open(self) -> bytes | AsyncIterator[bytes]:
        """Return the bytes, whole or in pieces."""


@dataclass(frozen=True)
class BytesBody(Body):
    """A body that fits in memory."""

    content: bytes = field(repr=False)
    content_type: str = "application/octet-stream"
    length: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", len(self.content))

    def open(self) -> bytes:
        """Return the bytes."""
        return self.content


def build_json_body(value: object) -> BytesBody:
    """Return a JSON body."""
    try:
        return BytesBody(orjson.dumps(value), "application/json")
    except TypeError as error:  # among them integers of more than 64 bits, and half a surrogate pair
        problem = str(error)
    raise InvalidRequestError(
        f"the body cannot be written as JSON ({problem}); give dicts, lists, texts and numbers"
    )


def build_form_body(pairs: Sequence[tuple[str, str]]) -> BytesBody:
    """Return a multipart/form-data body without files; names may repeat, and values keep their line breaks."""
    return BytesBody(*contract.encode_form(pairs, secrets.token_hex(16)))


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts of a call, in seconds."""

    read: float  # of silence, to this call and to others like it; for a stream, for each piece
    total: float | None  # for the whole call with its retries; None is no limit
    write: float = 60.0  # for the network to accept a piece of the body
    given: bool = False  # by the user; it then includes the wait for the first attempt


@dataclass(frozen=True)
class ServiceCall(ABC):
    """An operation as its service can make it: checked, and prepared once for all attempts."""

    operation: str  # its name for events
    service: str  # whose rate limit applies: tts, asr or translate
    timeouts: Timeouts
    free: bool = field(default=False, kw_only=True)  # a retry costs nothing, whatever became of the attempt
    raw: bool = field(default=False, kw_only=True)  # every status is a reply, and nothing is retried

    @abstractmethod
    def describe_target(self, place: str) -> str:
        """Return what is called, and where, for messages."""


@dataclass(frozen=True)
class HttpCall(ServiceCall):
    """A call that is one request of HTTP."""

    method: str
    path: str  # below the base URL
    body: Body | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    accept: str = "*/*"
    reply_limit: int = 64 << 20  # bytes of the reply, unpacked
    fields: Any = field(default=None, repr=False)  # of the body; of a form, pairs of names and values

    def describe_target(self, place: str) -> str:
        return f"{self.method} {place.rstrip('/')}{self.path}"


@dataclass(frozen=True)
class Reply:
    """What a service made of an operation, as a value.

    Attributes:
        fields: Fields of a transcript (``text``, ``language``, ``confidence``, ``segments`` …) or of a translation
            (``text``, ``model`` …).
        audio: The speech: the bytes of a file, or an ``AudioClip`` or ``(samples, rate)``, which the client encodes.
        content_type: Media type of the speech.
        timing: Duration and attempts. The client measures them.

    Example:
        >>> Reply({"text": "hello"}).fields["text"]
        'hello'
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    audio: Any = field(default=b"", repr=False, kw_only=True)
    content_type: str = field(default="", kw_only=True)
    timing: Timing = field(default_factory=Timing, kw_only=True)

    @property
    def headers(self) -> Mapping[str, str]:
        """The media type, under the name that it has in a store."""
        return {"content-type": self.content_type} if self.content_type else {}


@dataclass(frozen=True)
class RawResponse:
    """A reply as it came.

    Attributes:
        status: HTTP status.
        headers: Headers, names in lower case.
        content: The body.
        timing: Duration and attempts.

    Example:
        >>> reply = RawResponse(200, {"content-type": "application/json"}, b'{"voices": []}')
        >>> reply.content_type, reply.json()
        ('application/json', {'voices': []})
    """

    status: int
    headers: Mapping[str, str]
    content: bytes = field(repr=False)
    timing: Timing = field(default_factory=Timing)

    @property
    def content_type(self) -> str:
        """Media type without its parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def fields(self) -> Any:
        """The body as JSON."""
        return self.json()

    @property
    def audio(self) -> bytes:
        """The body as sound."""
        return self.content

    @property
    def request_id(self) -> str | None:
        """The service's id of the request, if a header has it."""
        return find_request_id(self.headers)

    @property
    def text(self) -> str:
        """The body as text; bytes that are not UTF-8 become U+FFFD."""
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """Return the body as JSON."""
        try:
            return contract.parse_lenient_json(self.content)
        except ValueError:
            start = self.text[:2000]
            what = "empty" if not self.content.strip() else f"not JSON but {self.content_type or 'untyped'}"
            packing = self.headers.get("content-encoding", "identity").lower()
            if packing not in _UNPACKED:
                what = f"packed in a way that was not asked for (Content-Encoding: {packing[:40]})"
            text = f"the service answered {self.status}, but the body is {what}: {start[:200]!r}"
        broken = ContractError(text, body=start)
        attach_headers_and_redact(broken, self.headers)
        raise broken

    def raise_for_status(self) -> RawResponse:
        """Return this reply if it is a success."""
        if 200 <= self.status < 300:
            return self
        error = build_error_from_reply(self.status, self.headers, self.content)
        error.timing = self.timing
        raise error
