"""Raw replies of streams: the head, the bytes, and the stream that is read from them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Generic, Self, TypeVar, cast

from speechlab.client._closable import AsyncOpenable
from speechlab.errors import ConfigurationError, SpeechLabError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from speechlab.client._events import Timing
    from speechlab.client._store.tape import StreamBody
    from speechlab.client._streams.base import Stream

S = TypeVar("S")


class AsyncRawStream(AsyncOpenable, Generic[S]):
    """The reply of a stream as it comes: its head as soon as it is open, then its bytes.

    Use it as ``async with``; leaving it early stops the service's work. Iterate for the bytes as they arrive, or take
    :meth:`parse` and read the stream that it gives. The bytes are checked as the stream is: a reply that is cut short
    is an error at its end.
    """

    def __init__(self, stream: S) -> None:
        self._value = stream
        self._stream = cast("Stream", stream)
        self._steps = cast("AsyncIterator[object]", stream)
        self._pieces: deque[bytes] = deque()
        self._stream._copy_to = self._pieces.append  # noqa: SLF001 - of the same room
        self._problem: SpeechLabError | None = None

    @property
    def status(self) -> int:
        """HTTP status.

        Raises:
            ConfigurationError: It is not open yet.
        """
        return self._head.status

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers, names in lower case.

        Raises:
            ConfigurationError: It is not open yet.
        """
        return self._head.headers

    @property
    def content_type(self) -> str:
        """Media type without its parameters, in lower case.

        Raises:
            ConfigurationError: It is not open yet.
        """
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def timing(self) -> Timing:
        """Durations so far, and the number of attempts."""
        return self._stream.timing

    @property
    def _head(self) -> StreamBody:
        body = self._stream._body  # noqa: SLF001 - of the same room
        if body is None:
            raise ConfigurationError(
                "this stream is not open yet; use it in a with block, or call open() first"
            )
        return body

    async def open(self) -> None:
        """Send the request, and wait for the head of the reply.

        Raises:
            InvalidRequestError: The request breaks a rule of the contract.
            APIError: The service refused.
            APIConnectionError: No answer came.
            ContractError: The answer is of another kind.
        """
        await self._stream.open()

    def parse(self) -> S:
        """The stream that the call without ``with_raw_response`` gives; it goes on where the bytes have come to."""
        self._stream._copy_to = None  # noqa: SLF001 - of the same room
        return self._value

    async def __anext__(self) -> bytes:
        ended = False
        while not self._pieces:
            if self._problem is not None:
                raise self._problem
            if ended:
                raise StopAsyncIteration
            try:
                ended = await anext(self._steps, None) is None
            except SpeechLabError as error:
                self._problem = error  # what came before it comes first
        return self._pieces.popleft()

    async def next_piece(self) -> bytes | None:
        """The next bytes as they arrive, or None at the end.

        Raises:
            StreamTruncatedError: The reply was cut short; ``partial`` holds what had come.
            ContractError: The reply is not what the contract says.
        """
        return await anext(self, None)

    def __aiter__(self) -> Self:
        return self

    async def aclose(self) -> None:
        """Close the connection; the service stops working for it."""
        await self._stream.aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._stream!r})"
