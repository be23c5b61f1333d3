"""The synchronous client; written by ``tools/write_sync_client.py``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from speechlab.client._api.portal import run, run_and_show
from speechlab.client._api.sync_base import SyncClientBase
from speechlab.client._api.sync_streams import RealtimeSession, SpeechStream, TranslationStream
from speechlab.client._operations.operation import advise_on_voice
from speechlab.client._operations.recognition import Transcribe
from speechlab.client._operations.speech import Synthesize
from speechlab.client._operations.translation import Translate
from speechlab.client._wait_bar import show_transcription

if TYPE_CHECKING:
    from speechlab.client._events import CallTotals
    from speechlab.client._operations.call import RawResponse
    from speechlab.client._operations.operation import Operation
    from speechlab.client._operations.recognition import Transcript
    from speechlab.client._operations.recording import AudioInput
    from speechlab.client._operations.speech import SpeechClip
    from speechlab.client._operations.translation import Translation
    from speechlab.client._operations.voices import VoiceCatalogue
    from speechlab.contract import AudioFormat, Voice
    from speechlab.text import Lexicon

R = TypeVar("R")


class Client(SyncClientBase):
    """A speech service, for scripts, cells, threads and callbacks; works while an event loop is running.

    One client is enough for a program and its threads: it keeps connections, and adapts to the load that the service
    accepts. An interrupt cancels the call.

    Example:
        >>> with Client("https://speech.example", api_key="sl:a-key-of-mine") as lab:
        ...     print(lab)
        Client(base_url='https://speech.example', api_key='***')
    """

    @property
    def usage(self) -> CallTotals:
        """Totals of all calls through this client and the copies made by ``with_options``."""
        return self._async.usage

    def voices(self, *, timeout: float | None = None) -> VoiceCatalogue:
        """List the voices (section 4.2 of the contract).

        Args:
            timeout: Seconds for this call with its retries; None is the client's.

        Raises:
            SpeechLabError: The service returned an error or no catalogue, or no reply came.
        """
        return run(self._async.voices, timeout=timeout)

    def identity(self, *, timeout: float | None = None) -> str:
        """Return the identity of the service, part of the keys under which its results are kept.

        Args:
            timeout: Seconds, if a request is necessary; None is the client's.

        Returns:
            The header ``X-Speechlab-Service`` of the catalogue (the service's version and a digest of its engines'
            settings), or else the address. Never a credential.

        Raises:
            SpeechLabError: Those of :meth:`voices`.
        """
        return run(self._async.identity, timeout=timeout)

    @advise_on_voice
    def synthesize(
        self,
        text: str,
        timeout: float | None = None,
        *,
        voice: Voice | str,
        format: AudioFormat | str = "wav",  # noqa: A002 - the contract's name
        sample_rate: int | None = None,
        temperature: float | None = None,
        respell: Lexicon | None = None,
    ) -> SpeechClip:
        """Speak a text (section 4.1 of the contract).

        Args:
            text: Text to speak, at most 5,000 characters.
            timeout: Seconds for this call with its retries; None is the client's.
            voice: A voice of the catalogue, its id, or an unambiguous part of its description.
            format: ``"wav"``, ``"mp3"``, ``"ogg"``, ``"flac"`` or ``"pcm"``; for streams, one that the voice streams.
            sample_rate: Rate in Hz, for voices with several rates; None is the service's default, 24,000.
            temperature: Variation, 0 or more, for voices of provider Q; None is the service's default.
            respell: A :class:`speechlab.text.Lexicon` of words that the voice misreads: the text is sent with its
                spellings, and kept as it is. None sends it as it is.

        Returns:
            The clip, with the encoded bytes of the reply (``encoded``) and the ``timing``.

        Raises:
            InvalidRequestError: The request breaks a rule of the contract; nothing was sent.
            APIError: The service returned an error.
            APIConnectionError: No reply came.
            StreamTruncatedError: The audio is incomplete.
            ContractError: The reply is not audio.
        """
        return run(
            self._async.perform,
            Synthesize(
                text,
                timeout,
                voice=voice,
                format=format,
                sample_rate=sample_rate,
                temperature=temperature,
                respell=respell,
            ),
        )

    @advise_on_voice
    def stream_speech(
        self,
        text: str,
        timeout: float | None = None,
        *,
        voice: Voice | str,
        format: AudioFormat | str = "wav",  # noqa: A002 - the contract's name
        sample_rate: int | None = None,
        temperature: float | None = None,
        respell: Lexicon | None = None,
    ) -> SpeechStream:
        """Speak a text, and stream the audio while it is made.

        Use the result as a context manager; leaving it early stops the service's work.

        Args:
            text: Text to speak, at most 5,000 characters.
            timeout: Seconds for this call with its retries; None is the client's.
            voice: A voice of the catalogue, its id, or an unambiguous part of its description.
            format: ``"wav"``, ``"mp3"``, ``"ogg"``, ``"flac"`` or ``"pcm"``; for streams, one that the voice streams.
            sample_rate: Rate in Hz, for voices with several rates; None is the service's default, 24,000.
            temperature: Variation, 0 or more, for voices of provider Q; None is the service's default.
            respell: A :class:`speechlab.text.Lexicon` of words that the voice misreads: the text is sent with its
                spellings, and kept as it is. None sends it as it is.

        Returns:
            A stream: iterate for bytes, ``clips()`` for sound, ``collect()`` for all of it. Entering it sends the
            request, and raises the errors of :meth:`synthesize`.
        """
        return SpeechStream(
            self._async.stream_speech(
                text,
                timeout,
                voice=voice,
                format=format,
                sample_rate=sample_rate,
                temperature=temperature,
                respell=respell,
            )
        )

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
        stream: bool = False,
        timeout: float | None = None,
    ) -> Transcript:
        """Transcribe a recording (section 4.4 of the contract).

        An argument that is None is not sent; the service's default is in parentheses.

        Args:
            audio: A path, bytes, a file opened in binary mode, ``(samples, rate)`` in either order, an AudioClip, or
                a cell of a data set of Hugging Face. Samples may be a tensor.
            language: Code of a language that the service has, such as ``"ja"``; None identifies it.
            hotwords: Words or phrases to boost.
            vad: ``"off"``, ``"on"`` (skip silence) or ``"segments"`` (timed segments).
            min_silence_gap: With segments: milliseconds of silence that separate segments (400).
            segment_padding: With segments: milliseconds added at their edges, 0 to 5,000 (100).
            initial_segment_padding_ms: With segments: milliseconds before the first, 0 to 5,000 (1,500).
            speech_pad_ms: With segments: milliseconds added to detected speech (200).
            min_segment_duration: With segments: minimum in seconds; shorter segments are merged (1.5).
            temperature: 0 to 2 (0).
            top_p: 0 to 1 (0.85).
            frequency_penalty: -2 to 2 (0.5).
            repetition_penalty: 1 to 2 (1.05).
            session_id: A label for the service.
            stream: Whether the recording is recognized while it is spoken: only for a system with
                ``transcribe_stream`` (:func:`speechlab.client.system`).
            timeout: Seconds for this call with its retries; None is the client's.

        Raises:
            InvalidRequestError: The recording or a field breaks a rule of the contract; nothing was sent.
            OSError: The file cannot be read.
            APIError: The service returned an error.
            APIConnectionError: No reply came.
            ContractError: The reply is not a transcript.
        """
        with show_transcription(self, audio) as show:
            return run_and_show(
                show,
                self._async.perform,
                Transcribe(
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
                    stream=stream,
                    timeout=timeout,
                ),
            )

    def translate(
        self,
        text: str,
        *,
        source_lang: str,
        target_lang: str,
        keywords: Iterable[str] = (),
        context: str | None = None,
        model: str | None = None,
        timeout: float | None = None,
    ) -> Translation:
        """Translate a text (section 4.5 of the contract).

        Args:
            text: Text to translate, at most 10,000 characters.
            source_lang: Code of the source language, such as ``"ja"``.
            target_lang: Code of the target language, such as ``"en"``.
            keywords: Terms to preserve: at most 20, at most 100 bytes of UTF-8 each.
            context: Text that helps the translation and is not translated itself; at most 2,000 characters.
            model: Model id; None is the service's default.
            timeout: Seconds for this call with its retries; None is the client's.

        Raises:
            InvalidRequestError: A field breaks a rule of the contract; nothing was sent.
            APIError: The service returned an error.
            APIConnectionError: No reply came.
            ContractError: The reply contains no translation.
        """
        return run(
            self._async.perform,
            Translate(
                text,
                source_lang=source_lang,
                target_lang=target_lang,
                keywords=keywords,
                context=context,
                model=model,
                timeout=timeout,
            ),
        )

    def stream_translation(
        self,
        text: str,
        *,
        source_lang: str,
        target_lang: str,
        keywords: Iterable[str] = (),
        context: str | None = None,
        model: str | None = None,
        timeout: float | None = None,
    ) -> TranslationStream:
        """Translate a text, and stream the translation while it is made.

        Use the result as a context manager; leaving it early stops the service's work.

        Args:
            text: Text to translate, at most 10,000 characters.
            source_lang: Code of the source language, such as ``"ja"``.
            target_lang: Code of the target language, such as ``"en"``.
            keywords: Terms to preserve: at most 20, at most 100 bytes of UTF-8 each.
            context: Text that helps the translation and is not translated itself; at most 2,000 characters.
            model: Model id; None is the service's default.
            timeout: Seconds for this call with its retries; None is the client's.

        Returns:
            A stream of ``TranslationChunk``. Its ``text`` is the translation so far; its ``translation`` is the
            result at the end.

        Raises:
            InvalidRequestError: A field breaks a rule of the contract; nothing is sent.
        """
        return TranslationStream(
            self._async.stream_translation(
                text,
                source_lang=source_lang,
                target_lang=target_lang,
                keywords=keywords,
                context=context,
                model=model,
                timeout=timeout,
            )
        )

    @advise_on_voice
    def realtime(
        self,
        *,
        voice: Voice | str,
        format: AudioFormat | str = "wav",  # noqa: A002 - the contract's name
        sample_rate: int | None = None,
        temperature: float | None = None,
        respell: Lexicon | None = None,
        audio_transport: str = "binary",
        timeout: float | None = None,
    ) -> RealtimeSession:
        """Open a realtime session (section 4.3 of the contract): one connection that speaks text after text.

        Args:
            voice: A voice of the catalogue, its id, or an unambiguous part of its description.
            format: ``"wav"``, ``"mp3"``, ``"ogg"``, ``"flac"`` or ``"pcm"``; for streams, one that the voice streams.
            sample_rate: Rate in Hz, for voices with several rates; None is the service's default, 24,000.
            temperature: Variation, 0 or more, for voices of provider Q; None is the service's default.
            respell: A :class:`speechlab.text.Lexicon` of words that the voice misreads: the text is sent with its
                spellings, and kept as it is. None sends it as it is.
            audio_transport: Form of the audio: ``"binary"`` frames, or ``"base64_json"`` for proxies that pass text
                only. Events contain the same bytes in both.
            timeout: Seconds for connecting and configuring, and for each text with its waits; None is the client's.

        Returns:
            A session, to be used as a context manager: ``speak(text)`` gives events, ``say(text)`` a clip. Entering
            it raises the errors of its settings.
        """
        return RealtimeSession(
            self._async.realtime(
                voice=voice,
                format=format,
                sample_rate=sample_rate,
                temperature=temperature,
                respell=respell,
                audio_transport=audio_transport,
                timeout=timeout,
            )
        )

    def perform(self, operation: Operation[R]) -> R:
        """Take the result of an operation from the store, or make the call, as ``synthesize`` and the others do.

        Args:
            operation: A ``Synthesize``, ``Transcribe`` or ``Translate``.

        Returns:
            The result of the method of the same name, whose errors it raises.
        """
        return run(self._async.perform, operation)

    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        form: Sequence[tuple[str, str]] | None = None,
        content: bytes | None = None,
        headers: dict[str, str] | None = None,
        timeout: float | None = None,
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
        return run(
            self._async.request,
            method,
            path,
            json=json,
            form=form,
            content=content,
            headers=headers,
            timeout=timeout,
        )

    def close(self) -> None:
        """Close the connections, and release the embedded service if this client uses it."""
        return run(self._async.aclose)

    @property
    def with_raw_response(self) -> Any:
        """A copy of the client whose calls over HTTP return the reply as it came.

        A reply has ``status``, ``headers``, ``content`` and ``timing``; its ``parse()`` returns the usual result. An
        open stream has its ``status`` and ``headers`` itself.
        """
        return self._copy_with_raw_response()
