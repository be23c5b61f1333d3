"""HTTP requests and replies as data."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from speechlab import contract
from speechlab.client._events import Timing, attach_timing
from speechlab.client._operations.failures import (
    attach_headers_and_redact,
    build_error_from_reply,
    find_request_id,
)
from speechlab.errors import ContractError, InvalidRequestError, SpeechLabError

if TYPE_CHECKING:
    from speechlab.client._secret import Secret


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

    @property
    def length(self) -> int:  # type: ignore[override]  # the base class has a field
        """Number of bytes."""
        return len(self.content)

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
class HttpCall:
    """One request of one operation."""

    operation: str  # its name for events
    service: str  # whose rate limit applies: tts, asr or translate
    method: str
    path: str  # below the base URL
    timeouts: Timeouts
    body: Body | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    accept: str = "*/*"
    free: bool = False  # a retry costs nothing, even if the outcome of the attempt is unknown
    raw: bool = False  # every status is a reply, and nothing is retried
    defaults: Mapping[str, Secret] = field(default_factory=dict)  # of the client, for other names
    reply_limit: int = 64 << 20  # bytes of the reply, unpacked
    fields: Any = field(default=None, repr=False)  # of the body; of a form, pairs of names and values
    asked: Any = field(default=None, repr=False)  # the call of a function, in place of HTTP

    def describe_target(self, base_url: str) -> str:
        """Return where the call goes, for messages."""
        if self.asked is not None:
            return f"{self.operation} of {base_url}"
        return f"{self.method} {base_url.rstrip('/')}{self.path}"


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
