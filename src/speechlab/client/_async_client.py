"""The client: every operation of the contract, awaited. The synchronous one is a face of this."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from speechlab.client._audio_input import AudioInput, Recording, digest_of, read_recording
from speechlab.client._call import BytesBody, Call, RawResponse, Timeouts, form_body, json_body
from speechlab.client._client_base import ClientBase
from speechlab.client._memory import Memory, Question, answered
from speechlab.client._misses import nothing_is_sent
from speechlab.client._operations import recognition_call, speech_call, translation_call, voices_call
from speechlab.client._raw import AsyncRawReplies, note
from speechlab.client._realtime import AsyncRealtimeSession
from speechlab.client._realtime_link import RealtimeConfig, realtime_config
from speechlab.client._realtime_pool import AsyncRealtimePool
from speechlab.client._settings import plain_url
from speechlab.client._speech import SpeechClip, SpeechFacts, read_speech
from speechlab.client._speech_stream import AsyncSpeechStream
from speechlab.client._transcript import Transcript, kept_transcript, read_transcript
from speechlab.client._translation import Translation, kept_translation, read_translation
from speechlab.client._translation_stream import AsyncTranslationStream
from speechlab.client._voices import VoiceCatalogue, read_catalogue
from speechlab.contract import AudioFormat, Voice, VoiceList, canonical_uuid
from speechlab.errors import InvalidRequestError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["AsyncClient"]

T = TypeVar("T")
_SMALL = 300_000


class AsyncClient(ClientBase):
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
            it is used), ``pace`` (``"at once"`` or ``"as recorded"``: how streams are replayed), ``transport``,
            ``clock`` and ``rng`` (for tests).

    Raises:
        ConfigurationError: No service is configured, or an argument is not usable.
    """

    @property
    def with_raw_response(self) -> AsyncRawReplies:
        """``voices``, ``synthesize``, ``transcribe`` and ``translate``, giving the reply as it came.

        What they return has ``status``, ``headers``, ``content`` and ``timing``, and ``parse()``, which gives what
        the call itself would have given.
        """
        return AsyncRawReplies(self)

    async def voices(self) -> VoiceCatalogue:
        """List the voices (section 4.2 of the contract).

        Raises:
            APIError: The service answered with an error.
            APIConnectionError: No answer came.
            ContractError: The answer is not a catalogue.
        """
        memory = Memory.of(self._settings)
        if memory is not None and memory.replaying:
            service, body = await asyncio.to_thread(memory.catalogue, plain_url(self.base_url))
            if body is None:
                raise nothing_is_sent("voices")
            note(RawResponse(200, {"content-type": "application/json"}, orjson.dumps(body)))
            self._catalogue = VoiceCatalogue(VoiceList.parse(body).voices, service)
            return self._catalogue
        reply = note(await self._core.send(voices_call(self._settings.timeout)))
        self._catalogue = read_catalogue(reply)
        if memory is not None:
            here = plain_url(self.base_url)
            service = self._catalogue.service or here
            await asyncio.to_thread(memory.keep_catalogue, here, service, reply.json())
        return self._catalogue

    async def identity(self) -> str:
        """Tell what the service is, for keys under which its results are kept.

        Returns:
            What the service says of itself (its version and a digest of its engines' settings, in the header
            ``X-Speechlab-Service`` of the catalogue), or else its address. Never a credential.

        Raises:
            APIError: The service answered with an error.
            APIConnectionError: No answer came.
            ContractError: The answer is not a catalogue.
        """
        memory, here = Memory.of(self._settings), plain_url(self.base_url)
        if memory is not None and memory.replaying:
            return (await asyncio.to_thread(memory.catalogue, here))[0]
        try:
            return (self._catalogue if self._catalogue is not None else await self.voices()).service or here
        except NotFoundError:  # a service that only listens has no catalogue
            if memory is not None:
                await asyncio.to_thread(memory.keep_catalogue, here, here, None)
            return here

    async def synthesize(
        self,
        text: str,
        *,
        voice: Voice | str,
        format: AudioFormat | str = "wav",  # noqa: A002
        sample_rate: int | None = None,
        temperature: float | None = None,
    ) -> SpeechClip:
        """Speak a text (section 4.1 of the contract).

        Args:
            text: What to say, at most 5,000 characters.
            voice: A voice of the catalogue, its id, or as much of its description as is unambiguous.
            format: ``"wav"``, ``"mp3"``, ``"ogg"``, ``"flac"`` or ``"pcm"``.
            sample_rate: Rate in Hz, for voices that offer several; None is the service's 24,000.
            temperature: Variation, 0 or more, for voices of provider Q; None leaves it to the service.

        Returns:
            A clip, which also has the bytes as they came (``encoded``) and the ``timing``.

        Raises:
            InvalidRequestError: The request breaks a rule of the contract; nothing was sent.
            APIError: The service answered with an error.
            APIConnectionError: No answer came.
            StreamTruncatedError: The audio was cut short.
            ContractError: The answer is not audio.
        """
        call, facts = await self._speech(text, voice, format, sample_rate, temperature, stream=False)
        answer = await answered(self._core, call, await self._question(call))
        size = len(answer.reply.content)
        clip = await _beside(size, read_speech, answer.reply, facts)
        if answer.fresh:
            self._core.ledger.add(calls=1, synthesized_chars=len(text), audio_bytes=size)
            heard = {"duration_s": clip.duration_s, "sample_rate": clip.sample_rate}
            await answer.keep(heard, audio=str(facts.format))
        return clip

    def stream_speech(
        self,
        text: str,
        *,
        voice: Voice | str,
        format: AudioFormat | str = "wav",  # noqa: A002
        sample_rate: int | None = None,
        temperature: float | None = None,
    ) -> AsyncSpeechStream:
        """Speak a text, and give the audio as it is made.

        Use the result as a context manager; leaving it early stops the service's work.

        Args:
            text: What to say, at most 5,000 characters.
            voice: A voice of the catalogue that streams, its id, or an unambiguous part of its description.
            format: A format that the voice's provider can stream.
            sample_rate: Rate in Hz, for voices that offer several; None is the service's 24,000.
            temperature: Variation, 0 or more, for voices of provider Q; None leaves it to the service.

        Returns:
            A stream: iterate for bytes, ``clips()`` for sound, ``collect()`` for all of it. What is wrong with
            the request is raised when it is entered.
        """

        async def prepare() -> tuple[Call, SpeechFacts]:
            return await self._speech(text, voice, format, sample_rate, temperature, stream=True)

        return AsyncSpeechStream(self._core, prepare, self._question)

    async def transcribe(
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
    ) -> Transcript:
        """Write down what is said in a recording (section 4.4 of the contract).

        What is None is left to the service; its defaults are in brackets.

        Args:
            audio: A path, bytes, a file opened in binary mode, ``(samples, rate)`` or an AudioClip.
            language: ``"ja"``, ``"en"`` or ``"zh"``; None identifies it.
            hotwords: Words or phrases to boost.
            vad: ``"off"``, ``"on"`` (skip silence) or ``"segments"`` (timed pieces).
            min_silence_gap: With segments: milliseconds of silence that split (400).
            segment_padding: With segments: milliseconds added at their edges, 0 to 5,000 (100).
            initial_segment_padding_ms: With segments: milliseconds before the first, 0 to 5,000 (1,500).
            speech_pad_ms: With segments: milliseconds added to the speech that was found (200).
            min_segment_duration: With segments: seconds; shorter ones are merged (1.5).
            temperature: 0 to 2 (0).
            top_p: 0 to 1 (0.85).
            frequency_penalty: -2 to 2 (0.5).
            repetition_penalty: 1 to 2 (1.05).
            session_id: A label for the service.

        Raises:
            InvalidRequestError: The recording or a field breaks a rule of the contract; nothing was sent.
            OSError: The file cannot be read.
            APIError: The service answered with an error.
            APIConnectionError: No answer came.
            ContractError: The answer is not a transcript.
        """
        # A path may lead to a slow disk, samples have to be encoded; bytes only have to be looked at.
        recording = await _beside(0 if isinstance(audio, bytes) else _SMALL, read_recording, audio)
        fields: dict[str, Any] = {
            "language": language,
            "hotwords": None if hotwords is None else _words(hotwords),
            "vad": None if vad == "off" else vad,
            "min_silence_gap": min_silence_gap,
            "segment_padding": segment_padding,
            "initial_segment_padding_ms": initial_segment_padding_ms,
            "speech_pad_ms": speech_pad_ms,
            "min_segment_duration": min_segment_duration,
            "temperature": temperature,
            "top_p": top_p,
            "frequency_penalty": frequency_penalty,
            "repetition_penalty": repetition_penalty,
            "session_id": session_id,
        }
        limit = self._settings.timeout
        call = await _beside(recording.size, recognition_call, recording, fields, limit)
        answer = await answered(self._core, call, await self._question(call, recording))
        transcript = read_transcript(answer.reply)
        if answer.fresh:
            self._core.ledger.add(calls=1, recognized_s=recording.duration_s if recording.exact else 0.0)
            await answer.keep(kept_transcript(transcript))
        return transcript

    async def translate(
        self,
        text: str,
        *,
        source_lang: str,
        target_lang: str,
        keywords: Iterable[str] = (),
        context: str | None = None,
        model: str | None = None,
    ) -> Translation:
        """Translate a text (section 4.5 of the contract).

        Args:
            text: What to translate, at most 10,000 characters.
            source_lang: Code of its language, for example ``"ja"``.
            target_lang: Code of the language wanted, for example ``"en"``.
            keywords: Terms to preserve: at most 20, at most 100 bytes of UTF-8 each.
            context: Text that helps to understand and is not translated; at most 2,000 characters.
            model: Model id; None is the service's default.

        Raises:
            InvalidRequestError: A field breaks a rule of the contract; nothing was sent.
            APIError: The service answered with an error.
            APIConnectionError: No answer came.
            ContractError: The answer holds no translation.
        """
        call = self._translation(text, source_lang, target_lang, keywords, context, model, stream=False)
        answer = await answered(self._core, call, await self._question(call))
        result = read_translation(answer.reply, source_lang, target_lang)
        if answer.fresh:
            usage = result.usage
            self._core.ledger.add(
                calls=1,
                translated_chars=len(text),
                prompt_tokens=usage.prompt_tokens if usage else 0,
                completion_tokens=usage.completion_tokens if usage else 0,
            )
            await answer.keep(kept_translation(result))
        return result

    def stream_translation(
        self,
        text: str,
        *,
        source_lang: str,
        target_lang: str,
        keywords: Iterable[str] = (),
        context: str | None = None,
        model: str | None = None,
    ) -> AsyncTranslationStream:
        """Translate a text, and give the translation as it is made.

        Use the result as a context manager; leaving it early stops the service's work.

        Args:
            text: What to translate, at most 10,000 characters.
            source_lang: Code of its language, for example ``"ja"``.
            target_lang: Code of the language wanted, for example ``"en"``.
            keywords: Terms to preserve: at most 20, at most 100 bytes of UTF-8 each.
            context: Text that helps to understand and is not translated; at most 2,000 characters.
            model: Model id; None is the service's default.

        Returns:
            A stream of ``TranslationChunk``; its ``text`` is the translation so far, and ``translation`` the whole
            once it has ended.

        Raises:
            InvalidRequestError: A field breaks a rule of the contract; nothing is sent.
        """
        call = self._translation(text, source_lang, target_lang, keywords, context, model, stream=True)
        return AsyncTranslationStream(self._core, call, (source_lang, target_lang), len(text), self._question)

    def realtime(
        self,
        *,
        voice: Voice | str,
        format: AudioFormat | str = "wav",  # noqa: A002
        sample_rate: int | None = None,
        temperature: float | None = None,
        audio_transport: str = "binary",
    ) -> AsyncRealtimeSession:
        """Open a realtime session (section 4.3 of the contract): one connection that speaks text after text.

        Args:
            voice: A voice of the catalogue that streams, its id, or an unambiguous part of its description.
            format: A format that the voice's provider can stream.
            sample_rate: Rate in Hz, for voices that offer several; None is the service's 24,000.
            temperature: Variation, 0 or more, for voices of provider Q; None leaves it to the service.
            audio_transport: How the audio travels: ``"binary"`` frames, or ``"base64_json"``, for proxies that let
                only text pass. Events hold the same bytes in both.

        Returns:
            A session, to be used as a context manager: ``speak(text)`` gives events, ``say(text)`` a clip. What is
            wrong with the settings is raised when it is entered.
        """
        fields = {
            "format": format,
            "sample_rate": sample_rate,
            "temperature": temperature,
            "audio_transport": audio_transport,
        }

        async def prepare() -> RealtimeConfig:
            known = await self._known(voice)
            return realtime_config({**fields, "voice_id": known.id if known else voice}, known)

        return AsyncRealtimeSession(self._core, prepare, self.identity)

    def realtime_pool(self, size: int = 4) -> AsyncRealtimePool:
        """Speak several texts at once over realtime sessions, which are kept for texts of the same settings.

        Args:
            size: Most sessions at once.

        Returns:
            A pool, to be used as a context manager.

        Raises:
            ConfigurationError: The size is not usable.
        """
        return AsyncRealtimePool(self.realtime, size)

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
            InvalidRequestError: More than one body is given.
            APIConnectionError: No answer came.
        """
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

    async def _question(self, call: Call, recording: Recording | None = None) -> Question | None:
        """The call as the store knows it; None for a client without a store."""
        if self._settings.store is None:
            return None
        parameters = dict(call.parameters)
        if recording is not None:
            parameters["audio"] = await _beside(recording.size, digest_of, recording)
        return Question(call.operation, parameters, await self.identity())

    async def _speech(
        self,
        text: str,
        voice: Voice | str,
        format: str,  # noqa: A002
        sample_rate: int | None,
        temperature: float | None,
        *,
        stream: bool,
    ) -> tuple[Call, SpeechFacts]:
        known = await self._known(voice)
        fields = {
            "voice_id": known.id if known is not None else voice,
            "text": text,
            "format": format,
            "sample_rate": sample_rate,
            "temperature": temperature,
        }
        return speech_call(fields, known, stream=stream, timeout=self._settings.timeout)

    async def _known(self, voice: object) -> Voice | None:
        """What the catalogue says of a voice; it is asked for only to turn a description into an id."""
        if not isinstance(voice, str):
            if isinstance(voice, Voice):
                return voice
            message = f"voice is a {type(voice).__name__}; give a Voice, its id, or part of its description"
            raise InvalidRequestError(message, parameter="voice_id", rule="2.2")
        if canonical_uuid(voice.strip()) is not None:
            return self._catalogue.get(voice.strip()) if self._catalogue is not None else None
        return (self._catalogue or await self.voices()).one(voice)

    def _translation(
        self,
        text: str,
        source_lang: str,
        target_lang: str,
        keywords: Iterable[str],
        context: str | None,
        model: str | None,
        *,
        stream: bool,
    ) -> Call:
        fields = {
            "text": text,
            "source_lang": source_lang,
            "target_lang": target_lang,
            "context": context,
            "model": model,
        }
        return translation_call(fields, keywords, stream=stream, timeout=self._settings.timeout)


async def _beside(size: int, function: Callable[..., T], *args: Any) -> T:
    """Call a function, in a thread if the work is large enough to hold up the loop noticeably.

    Args:
        size: Bytes to be worked on.
        function: What to call.
        *args: Its arguments.
    """
    return function(*args) if size < _SMALL else await asyncio.to_thread(function, *args)


def _words(values: Sequence[str]) -> list[str]:
    return [values] if isinstance(values, str) else list(values)
