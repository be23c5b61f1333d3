"""HTTP requests and replies as data."""

from __future__ import annotations

import secrets
from codecs import BOM_UTF8
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from speechlab import contract
from speechlab.client._events import Timing
from speechlab.client._operations.failures import error_from_reply
from speechlab.errors import ContractError, InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence


class Body:
    """A body that can be opened again for each sending.

    Attributes:
        content_type: Value of the header.
        length: Number of bytes, known before the first is made.
    """

    content_type: str
    length: int

    def open(self) -> bytes | AsyncIterator[bytes]:
        """The bytes, whole or in pieces."""
        raise NotImplementedError


@dataclass(frozen=True)
class BytesBody(Body):
    """A body that fits in memory."""

    content: bytes = field(repr=False)
    content_type: str = "application/octet-stream"

    @property
    def length(self) -> int:  # type: ignore[override]
        """Number of bytes."""
        return len(self.content)

    def open(self) -> bytes:
        """The bytes."""
        return self.content


def json_body(value: object) -> BytesBody:
    """A JSON body.

    Raises:
        InvalidRequestError: It cannot be written as JSON.
    """
    try:
        return BytesBody(orjson.dumps(value), "application/json")
    except TypeError as error:  # among them integers of more than 64 bits, and half a surrogate pair
        problem = str(error)
    raise InvalidRequestError(
        f"the body cannot be written as JSON ({problem}); give dicts, lists, texts and numbers"
    )


def form_body(pairs: Sequence[tuple[str, str]]) -> BytesBody:
    """A multipart/form-data body without files; names may repeat, and values keep their line breaks."""
    return BytesBody(*contract.form_body(pairs, secrets.token_hex(16)))


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts of a call, in seconds.

    Attributes:
        read: For the head of the reply, and for each piece of it.
        total: For the whole call with its retries, from when it is first sent; None is without end.
        connect: For a connection.
        write: For the network to take a piece of the body.
    """

    read: float
    total: float | None
    connect: float = 5.0
    write: float = 60.0


@dataclass(frozen=True)
class HttpCall:
    """One request of one operation.

    Attributes:
        operation: Name for events.
        service: ``tts``, ``asr`` or ``translate``: whose rate limit it counts against.
        method: HTTP method.
        path: Path below the base URL.
        timeouts: How long to wait.
        body: What to send.
        headers: Headers besides the usual ones.
        accept: Value of the Accept header.
        free: Whether it costs nothing to repeat it even when the outcome is unknown.
        raw: Whether any status is a reply, and nothing is repeated.
        parameters: All that can change the result, defaults filled in, but a recording: for keys of kept calls.
    """

    operation: str
    service: str
    method: str
    path: str
    timeouts: Timeouts
    body: Body | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    accept: str = "*/*"
    free: bool = False
    raw: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class RawResponse:
    """A reply as it came.

    Attributes:
        status: HTTP status.
        headers: Headers, names in lower case.
        content: The body.
        timing: How long it took, and how many attempts.
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
    def text(self) -> str:
        """The body as text; what is not UTF-8 becomes U+FFFD."""
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            ContractError: It is not JSON.
        """
        try:
            return orjson.loads(self.content.removeprefix(BOM_UTF8))
        except orjson.JSONDecodeError:
            start = self.text[:2000]
            what = "empty" if not self.content.strip() else f"not JSON but {self.content_type or 'untyped'}"
            text = f"the service answered {self.status}, but the body is {what}: {start[:200]!r}"
        raise ContractError(text, body=start)

    def raise_for_status(self) -> RawResponse:
        """Return the reply itself if it is a success.

        Raises:
            APIError: The status is not of the 200s; the subclass tells which.
        """
        if 200 <= self.status < 300:
            return self
        error = error_from_reply(self.status, self.headers, self.content)
        error.timing = self.timing
        raise error
