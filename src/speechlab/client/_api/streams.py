"""Streams for code that does not await: faces of the asynchronous ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from speechlab.client._api import portal as _portal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from speechlab.audio import AudioClip
    from speechlab.client._events import Timing
    from speechlab.client._operations.speech import SpeechClip
    from speechlab.client._operations.translation import Translation, TranslationChunk
    from speechlab.client._streams.speech import AsyncSpeechStream
    from speechlab.client._streams.translation import AsyncTranslationStream


class SpeechStream:
    """Speech while it is being made: iterate for its bytes, or :meth:`clips` for sound.

    Use it as ``with``; leaving it early stops the service's work.
    """

    def __init__(self, stream: AsyncSpeechStream) -> None:
        self._stream = stream

    @property
    def partial(self) -> bytes:
        """The bytes that have come so far."""
        return self._stream.partial

    @property
    def content_type(self) -> str:
        """Media type that the service named; empty before the stream is open."""
        return self._stream.content_type

    @property
    def timing(self) -> Timing:
        """How long it has taken so far, and how many attempts."""
        return self._stream.timing

    def open(self) -> None:
        """Send the request, and wait until the service begins to answer.

        Raises:
            InvalidRequestError: The request breaks a rule of the contract.
            APIError: The service refused.
            APIConnectionError: No answer came.
            ContractError: The answer is not audio.
        """
        _portal.run(self._stream.open)

    def close(self) -> None:
        """Close the connection; the service stops working for it."""
        _portal.run(self._stream.aclose)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece = self.next_piece()
        if piece is None:
            raise StopIteration
        return piece

    def next_piece(self) -> bytes | None:
        """The next bytes as they arrive, or None at the end.

        Raises:
            StreamTruncatedError: The connection broke, or sound is missing; ``partial`` holds what had come.
        """
        return _portal.run(self._stream.next_piece)

    def clips(self) -> Iterator[AudioClip]:
        """The sound as it comes, in short clips; for the formats pcm and wav.

        It goes on where the bytes have come to.

        Raises:
            InvalidRequestError: Another format, which cannot be cut into pieces that can be decoded.
            StreamTruncatedError: The connection broke.
        """
        clips = self._stream.clips()

        async def following() -> AudioClip | None:
            return await anext(clips, None)

        while (clip := _portal.run(following)) is not None:
            yield clip

    def collect(self) -> SpeechClip:
        """Wait for the rest, and return all of it as one clip.

        Raises:
            StreamTruncatedError: The connection broke.
        """
        return _portal.run(self._stream.collect)

    def __repr__(self) -> str:
        return repr(self._stream).removeprefix("Async")


class TranslationStream:
    """A translation while it is being made: iterate for its chunks; ``text`` is what there is so far.

    Use it as ``with``; leaving it early stops the service's work.
    """

    def __init__(self, stream: AsyncTranslationStream) -> None:
        self._stream = stream

    @property
    def text(self) -> str:
        """The translation so far."""
        return self._stream.text

    @property
    def translation(self) -> Translation:
        """The whole translation, once the stream has ended.

        Raises:
            ConfigurationError: It has not.
        """
        return self._stream.translation

    @property
    def timing(self) -> Timing:
        """How long it has taken so far, and how many attempts."""
        return self._stream.timing

    def open(self) -> None:
        """Send the request, and wait until the service begins to answer.

        Raises:
            APIError: The service refused.
            APIConnectionError: No answer came.
            ContractError: The answer is neither events nor JSON.
        """
        _portal.run(self._stream.open)

    def close(self) -> None:
        """Close the connection; the service stops working for it."""
        _portal.run(self._stream.aclose)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[TranslationChunk]:
        return self

    def __next__(self) -> TranslationChunk:
        chunk = self.next_chunk()
        if chunk is None:
            raise StopIteration
        return chunk

    def next_chunk(self) -> TranslationChunk | None:
        """The next chunk as it arrives, or None at the end.

        Raises:
            StreamTruncatedError: The stream ended without saying so, or the service reported a fault in it;
                ``partial`` holds the text so far.
            ContractError: An event is not a chunk.
        """
        return _portal.run(self._stream.next_chunk)

    def collect(self) -> Translation:
        """Wait for the rest, and return the whole translation.

        Raises:
            StreamTruncatedError: The stream was cut short.
        """
        return _portal.run(self._stream.collect)

    def __repr__(self) -> str:
        return repr(self._stream).removeprefix("Async")
