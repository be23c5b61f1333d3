"""Streams and sessions without ``await``; written by ``tools/write_sync_client.py``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Self

from speechlab.client._api.portal import SyncIterator, SyncWrapper, iterate, run, run_next, run_on_loop
from speechlab.client._realtime.job import AsyncSpeechEvents
from speechlab.client._realtime.session import AsyncRealtimeSession, require_text
from speechlab.client._streams.base import Playable
from speechlab.client._streams.speech_stream import AsyncSpeechStream
from speechlab.client._streams.translation_stream import AsyncTranslationStream

if TYPE_CHECKING:
    from speechlab.audio import AudioClip
    from speechlab.client._events import Timing
    from speechlab.client._operations.speech import SpeechClip
    from speechlab.client._operations.translation import Translation, TranslationChunk
    from speechlab.client._realtime.protocol import RealtimeEvent
    from speechlab.contract import SessionInfo
    from speechlab.notebook import Playback


class SpeechStream(Playable, SyncIterator[AsyncSpeechStream]):
    """Speech while it is made: iterate for its bytes, or :meth:`clips` for sound.

    Use it with ``with``; leaving it early stops the service's work.
    """

    @property
    def partial(self) -> bytes:
        """The bytes received so far."""
        return self._async.partial

    @property
    def content_type(self) -> str:
        """Media type from the service; empty before the stream is open."""
        return self._async.content_type

    @property
    def timing(self) -> Timing:
        """Durations so far, and the number of attempts."""
        return self._async.timing

    @property
    def status(self) -> int | None:
        """HTTP status; None before the stream is open."""
        return self._async.status

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the reply, names in lower case; empty before the stream is open."""
        return self._async.headers

    def open(self) -> None:
        """Send the request, and wait for the headers of the reply.

        Raises:
            InvalidRequestError: The request breaks a rule of the contract.
            APIError: The service returned an error.
            APIConnectionError: No reply came.
            ContractError: The reply has another type.
        """
        return run(self._async.open)

    def close(self) -> None:
        """Close the connection, which stops the service's work."""
        return run(self._async.aclose)

    def __next__(self) -> bytes:
        """Return the next bytes as they arrive.

        Raises:
            StreamTruncatedError: The connection broke, or sound is missing; ``partial`` contains what has come.
        """
        found: bytes = run_next(self._async.__anext__)
        return found

    def collect(self) -> SpeechClip:
        """Wait for the rest, and return all of it as one clip.

        Raises:
            StreamTruncatedError: The connection broke.
        """
        return run(self._async.collect)

    def save_to(self, path: str | os.PathLike[str]) -> Self:
        """Write the bytes to a file as well, while the stream is read or played.

        The file appears when the stream is complete. It includes the bytes that were read before this call. If the
        stream breaks off or is left early, no file remains, and ``partial`` contains what has come.

        Args:
            path: The file; an existing one is replaced.

        Returns:
            The stream itself, as in ``stream.save_to("a.mp3").collect()``.

        Raises:
            OSError: The file cannot be written.
            InvalidRequestError: The file name has the extension of another format.
            ConfigurationError: The stream is closed, or is being saved already.
        """
        self._async.save_to(path)
        return self

    def clips(self) -> Iterator[AudioClip]:
        """Yield the sound in short clips as it arrives, for the formats pcm and wav.

        It continues after the bytes read so far.

        Raises:
            InvalidRequestError: The stream has another format, which cannot be decoded in pieces.
            StreamTruncatedError: The connection broke.
        """
        yield from iterate(self._async.clips())


class TranslationStream(SyncIterator[AsyncTranslationStream]):
    """A translation while it is made: iterate for its chunks; ``text`` is the translation so far.

    Use it with ``with``; leaving it early stops the service's work.
    """

    @property
    def text(self) -> str:
        """The translation so far."""
        return self._async.text

    @property
    def translation(self) -> Translation:
        """The whole translation, after the end of the stream.

        Raises:
            ConfigurationError: The stream has not ended.
        """
        return self._async.translation

    @property
    def timing(self) -> Timing:
        """Durations so far, and the number of attempts."""
        return self._async.timing

    @property
    def status(self) -> int | None:
        """HTTP status; None before the stream is open."""
        return self._async.status

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the reply, names in lower case; empty before the stream is open."""
        return self._async.headers

    def open(self) -> None:
        """Send the request, and wait for the headers of the reply.

        Raises:
            InvalidRequestError: The request breaks a rule of the contract.
            APIError: The service returned an error.
            APIConnectionError: No reply came.
            ContractError: The reply has another type.
        """
        return run(self._async.open)

    def close(self) -> None:
        """Close the connection, which stops the service's work."""
        return run(self._async.aclose)

    def __next__(self) -> TranslationChunk:
        """Return the next chunk as it arrives.

        Raises:
            StreamTruncatedError: The stream broke off without an end, or the service reported a failure in it;
                ``partial`` contains the text so far.
            ContractError: An event is not a chunk.
        """
        found: TranslationChunk = run_next(self._async.__anext__)
        return found

    def collect(self) -> Translation:
        """Wait for the rest, and return the whole translation.

        Raises:
            StreamTruncatedError: The stream is incomplete.
        """
        return run(self._async.collect)


class SpeechEvents(Playable, SyncIterator[AsyncSpeechEvents]):
    """Events of one text: iterate for them in order, or :meth:`collect` a clip."""

    @property
    def text(self) -> str:
        """The text that is spoken."""
        return self._async.text

    @property
    def partial(self) -> bytes:
        """The audio received so far."""
        return self._async.partial

    @property
    def timing(self) -> Timing:
        """Duration so far; ``first_byte_s`` is the time to the first piece of audio."""
        return self._async.timing

    def clips(self) -> Iterator[AudioClip]:
        """Yield the sound in short clips as it arrives, for the formats pcm and wav.

        It begins with the sound that came with the events read so far.

        Raises:
            InvalidRequestError: The session has another format, which cannot be decoded in pieces.
            SpeechLabError: The service could not speak the text, or the connection ended.
        """
        yield from iterate(self._async.clips())

    def __next__(self) -> RealtimeEvent:
        """Return the next event as it arrives; the last one is the record of usage.

        Raises:
            RealtimeError: The service could not speak the text; ``code`` is the reason.
            StreamTruncatedError: The connection closed, or the text timed out; ``partial`` contains the audio so far.
            ContractError: The audio differs from the service's description of it.
            APITimeoutError: The text timed out before its first sound.
            APIConnectionError: No reply came.
        """
        found: RealtimeEvent = run_next(self._async.__anext__)
        return found

    def collect(self) -> SpeechClip:
        """Wait for the rest, and return all of it as one clip.

        Raises:
            RealtimeError: The service could not speak the text; ``code`` is the reason.
            StreamTruncatedError: The connection closed, or the text timed out; ``partial`` contains the audio so far.
            ContractError: The audio differs from the service's description of it.
        """
        return run(self._async.collect)

    def close(self) -> None:
        """Stop the text if it is not complete; the service then stops its synthesis."""
        return run(self._async.aclose)


class RealtimeSession(SyncWrapper[AsyncRealtimeSession]):
    """A realtime session: several texts, one voice, one connection.

    Use it with ``with``. Texts are spoken one after the other; several tasks may send texts at once.
    """

    @property
    def info(self) -> SessionInfo | None:
        """The service's description of the session: id, rate, model; None before it is open."""
        return self._async.info

    @property
    def is_open(self) -> bool:
        """Whether the connection is open, as far as is known."""
        return self._async.is_open

    def open(self) -> None:
        """Connect and configure, if there is no connection; a session known to the store waits for a new text.

        Raises:
            InvalidRequestError: A setting breaks a rule of the contract, or the voice does not support it.
            APIError: The service refused the connection.
            APIConnectionError: No reply came.
            RealtimeError: The service refused the settings.
        """
        return run(self._async.open)

    def say(self, text: str, *, timeout: float | None = None) -> SpeechClip:
        """Speak a text, and wait for the whole audio.

        Args:
            text: The whole text to speak; at most 5,000 characters.
            timeout: Seconds from this call to the usage record; None is the session's.

        Returns:
            A clip, checked for completeness.

        Raises:
            InvalidRequestError: The text breaks a rule of the contract; nothing was sent.
            RealtimeError: The service could not speak the text; ``code`` is the reason.
            StreamTruncatedError: The connection closed, or the text timed out; ``partial`` contains the audio so far.
            ContractError: The audio differs from the service's description of it.
            APIError: The service refused a new connection.
            APITimeoutError: The text timed out before its first sound.
            APIConnectionError: No reply came.
        """
        return run(self._async.say, text, timeout=timeout)

    def close(self) -> None:
        """Close the connection, which stops the service's work."""
        return run(self._async.aclose)

    def speak(self, text: str, *, timeout: float | None = None) -> SpeechEvents:
        """Speak a text; it is sent after the texts before it.

        Args:
            text: The whole text to speak; at most 5,000 characters.
            timeout: Seconds from this call to the usage record; None is the session's.

        Returns:
            Its events: ``AudioStart``, ``AudioDelta`` for each piece, ``AudioDone`` and ``Usage``. Dropping or
            closing it before the end closes the connection, which stops the service's work; the next text opens
            another connection.

        Raises:
            InvalidRequestError: The text breaks a rule of the contract; nothing is sent.
            ConfigurationError: The session is closed.
        """
        return SpeechEvents(run_on_loop(self._async.speak, text, timeout=timeout))

    def play(self, text: str = "", *, timeout: float | None = None) -> Playback:
        """Speak a text as :meth:`speak` does, and play the sound while it is made, in a player in the running cell.

        Args:
            text: The whole text to speak; at most 5,000 characters.
            timeout: Seconds from this call to the usage record; None is the session's.

        Returns:
            The player: ``wait()`` or ``await`` gives the clip at the end, ``times`` the times, ``stop()`` stops it.
            The session has to stay open until then.

        Raises:
            InvalidRequestError: There is no text, or it breaks a rule of the contract; nothing is sent.
            MissingDependencyError: The extra ``lab`` is not installed.
        """
        return self.speak(require_text(text), timeout=timeout).play()
