"""Raw replies of streams: headers, bytes, and the parsed stream."""

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
    """The raw reply of a stream: status and headers once it is open, then the bytes.

    Use it with ``async with``; leaving it early stops the service's work. Iterate for the bytes as they arrive, or
    call :meth:`parse` and read the stream that it returns. The bytes are checked like those of the stream: an
    incomplete reply raises at its end.
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
            ConfigurationError: The stream is not open yet.
        """
        return self._head.status

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers, names in lower case.

        Raises:
            ConfigurationError: The stream is not open yet.
        """
        return self._head.headers

    @property
    def content_type(self) -> str:
        """Media type without its parameters, in lower case.

        Raises:
            ConfigurationError: The stream is not open yet.
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
        """Send the request, and wait for the headers of the reply.

        Raises:
            InvalidRequestError: The request breaks a rule of the contract.
            APIError: The service returned an error.
            APIConnectionError: No reply came.
            ContractError: The reply has another type.
        """
        await self._stream.open()

    def parse(self) -> S:
        """The stream of the call without ``with_raw_response``; it continues after the bytes read so far."""
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
                self._problem = error  # raised after the pieces that came before it
        return self._pieces.popleft()

    async def next_piece(self) -> bytes | None:
        """The next bytes as they arrive, or None at the end.

        Raises:
            StreamTruncatedError: The reply is incomplete; ``partial`` contains what has come.
            ContractError: The reply breaks the contract.
        """
        return await anext(self, None)

    def __aiter__(self) -> Self:
        return self

    async def aclose(self) -> None:
        """Close the connection, which stops the service's work."""
        await self._stream.aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._stream!r})"
