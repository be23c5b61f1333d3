"""Speech: whole, as it is made, and realtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab.client._api.voice_calls import VoiceCalls, beside
from speechlab.client._memory.memory import answered
from speechlab.client._operations.requests import speech_call
from speechlab.client._operations.speech import SpeechClip, SpeechFacts, read_speech
from speechlab.client._realtime.dial import RealtimeConfig, realtime_config
from speechlab.client._realtime.pool import AsyncRealtimePool
from speechlab.client._realtime.session import AsyncRealtimeSession
from speechlab.client._streams.speech import AsyncSpeechStream

if TYPE_CHECKING:
    from speechlab.client._operations.call import Call
    from speechlab.contract import AudioFormat, Voice


class SpeechCalls(VoiceCalls):
    """The part of :class:`AsyncClient` that speaks."""

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
        clip = await beside(size, read_speech, answer.reply, facts)
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
