"""Recognition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.client._api.voice_calls import LARGE, VoiceCalls, beside
from speechlab.client._memory.memory import answered
from speechlab.client._operations.recording import AudioInput, read_recording
from speechlab.client._operations.requests import recognition_call, words
from speechlab.client._operations.transcript import Transcript, kept_transcript, read_transcript

if TYPE_CHECKING:
    from collections.abc import Sequence


class RecognitionCalls(VoiceCalls):
    """The part of :class:`AsyncClient` that listens."""

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
        recording = await beside(0 if isinstance(audio, bytes) else LARGE, read_recording, audio)
        fields: dict[str, Any] = {
            "language": language,
            "hotwords": None if hotwords is None else words("hotwords", hotwords, rule="2.3"),
            "vad": None if isinstance(vad, str) and vad == "off" else vad,
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
        call = await beside(recording.size, recognition_call, recording, fields, limit)
        answer = await answered(self._core, call, await self._question(call, recording))
        transcript = read_transcript(answer.reply)
        if answer.fresh:
            self._core.ledger.add(calls=1, recognized_s=recording.duration_s if recording.exact else 0.0)
            await answer.keep(kept_transcript(transcript))
        return transcript
