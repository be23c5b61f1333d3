"""The three operations: what each asks of a row, sends, keeps and puts into the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Required, TypedDict

from speechlab._arguments import no_column
from speechlab.batch._plan.cells import content_of, is_path, seconds_of, text_cell
from speechlab.batch._plan.step import Answer, Call, RowStep
from speechlab.contract import (
    DEFAULT_SAMPLE_RATE,
    LIMITS,
    AudioFormat,
    RecognitionRequest,
    SpeechRequest,
    TranslationRequest,
    VadMode,
    Voice,
    VoiceRules,
    audio_digest,
    request_key,
)
from speechlab.errors import AudioDecodeError, InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from speechlab.batch._plan.parameters import Column, Row
    from speechlab.client import AsyncClient
    from speechlab.store import Stored

_FORMATS = frozenset(AudioFormat) - {AudioFormat.PCM}
_STANDS_FOR_AUDIO = "UklGRg=="
_STANDS_FOR_VOICE = "00000000-0000-0000-0000-000000000000"
_FEW = 1_000
_LABELS = frozenset({"session_id"})
"""Options that name a call and cannot change what comes of it."""


class SynthesisParameters(TypedDict, total=False):
    """What to speak, and how."""

    text: str
    voice: str | Voice | Column
    format: str | Column
    sample_rate: int | str | Column | None
    temperature: float | str | Column | None
    repeat: int


class TranscriptionParameters(TypedDict, total=False):
    """What to transcribe, and how."""

    audio: str
    language: str | Column | None
    hotwords: Sequence[str] | str | Column | None
    vad: str | int | Column
    min_silence_gap: int | str | Column | None
    segment_padding: int | str | Column | None
    initial_segment_padding_ms: int | str | Column | None
    speech_pad_ms: int | str | Column | None
    min_segment_duration: float | str | Column | None
    temperature: float | str | Column | None
    top_p: float | str | Column | None
    frequency_penalty: float | str | Column | None
    repetition_penalty: float | str | Column | None
    session_id: str | Column | None
    repeat: int


class TranslationParameters(TypedDict, total=False):
    """What to translate, and how."""

    text: str
    source_lang: Required[str | Column]
    target_lang: Required[str | Column]
    keywords: Sequence[str] | str | Column
    context: str | Column | None
    model: str | Column | None
    repeat: int


class SynthesisStep(RowStep):
    """Texts to audio."""

    operation = "synthesize"
    parameters = SynthesisParameters
    works_on = "text"
    wants_voices = True
    columns: ClassVar[Mapping[str, str]] = {
        "audio": "string",
        "duration_s": "float64",
        "sample_rate": "Int64",
        "processing_s": "float64",
    }
    content = ("audio", "duration_s", "sample_rate")

    def _check(self, same: dict[str, Any]) -> None:
        if "voice" in same:
            self._find(same.pop("voice"), for_all=True)
        self._request({"voice_id": _STANDS_FOR_VOICE, "text": "a", "format": "flac", **same})

    def _request(self, fields: dict[str, Any]) -> SpeechRequest:
        if not isinstance(fields["format"], str) or fields["format"] not in _FORMATS:
            message = (
                f"format {fields['format']!r} cannot be kept as a file that tells its own rate; use one of "
                f"{', '.join(sorted(_FORMATS))}"
            )
            raise InvalidRequestError(message, parameter="format", rule="2.2")
        return SpeechRequest.parse(fields)

    def call(self, row: Row) -> Call:
        text = text_cell(row[self._column], self._column)
        asked = self._parameters.of(row)
        voice = self._find(asked.pop("voice"))
        asked["format"] = asked["format"] or "flac"
        request = self._request({"voice_id": voice.id, "text": text, **asked})
        rate = VoiceRules.of(voice).check(format=request.format, sample_rate=request.sample_rate)
        parameters = {
            "voice_id": voice.id,
            "text": text,
            "format": str(request.format),
            "sample_rate": rate or DEFAULT_SAMPLE_RATE,
            "temperature": request.temperature,
        }
        key = request_key(self.operation, parameters, service=self._service, repeat=self._repeat)
        # a voice with a single rate refuses to be told even that one
        return Call(key, parameters, (voice, request.sample_rate or None), characters=len(text))

    def _find(self, value: object, *, for_all: bool = False) -> Voice:
        if isinstance(value, Voice):
            return value
        if not isinstance(value, str):
            message = f"voice is {value!r}; give a voice, its id or name, or the column that holds one"
            raise InvalidRequestError(message, parameter="voice")
        assert self._voices is not None
        shown = no_column(self._have, value)
        if for_all and value == "voice":  # a column was meant, whatever a description may say
            raise InvalidRequestError(shown, parameter="voice")
        try:
            return self._voices[value]
        except InvalidRequestError as error:
            if not for_all:
                raise
            raise InvalidRequestError(f"{shown}; and {error}", parameter="voice") from None

    async def send(self, call: Call, lab: AsyncClient) -> Answer:
        voice, rate = call.payload
        asked = call.parameters
        clip = await lab.synthesize(
            asked["text"],
            voice=voice,
            format=asked["format"],
            sample_rate=rate,
            temperature=asked["temperature"],
        )
        response = {
            "duration_s": clip.duration_s,
            "sample_rate": clip.sample_rate,
            "processing_s": clip.timing.processing_s,
        }
        files = {"audio": (clip.encoded, f".{asked['format']}")}
        return Answer(response, clip.timing, files, audio_s=clip.duration_s)

    @staticmethod
    def values(stored: Stored) -> dict[str, Any]:
        return {"audio": str(stored.files["audio"]), **stored.response}

    @classmethod
    def evidence(cls, stored: Stored) -> list[Any]:
        # where the file lies says nothing; its name is its content
        return [stored.files["audio"].name, *super().evidence(stored)[1:]]


class TranscriptionStep(RowStep):
    """Audio to text."""

    operation = "transcribe"
    parameters = TranscriptionParameters
    works_on = "audio"
    columns: ClassVar[Mapping[str, str]] = {
        "hypothesis": "string",
        "hypothesis_language": "category",
        "confidence": "float64",
        "processing_s": "float64",
    }
    content = ("hypothesis", "hypothesis_language", "confidence")

    def _check(self, same: dict[str, Any]) -> None:
        self._asked: dict[str, dict[str, Any]] = {}
        self._filled({**same, "vad": VadMode.SEGMENTS})  # without segments, some are not looked at
        self._filled(same)

    def _filled(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options, defaults filled in, without what cannot change a result."""
        known = repr(options)
        if known not in self._asked:
            request = RecognitionRequest.parse({"audio": _STANDS_FOR_AUDIO, **options})
            if len(self._asked) > _FEW:
                self._asked.clear()
            self._asked[known] = request.model_dump(mode="json", exclude=set(_LABELS))
        return self._asked[known]

    def call(self, row: Row) -> Call:
        source = row[self._column]
        options = {name: value for name, value in self._parameters.of(row).items() if value is not None}
        filled = self._filled(options)
        data = content_of(source, self._column)
        parameters = {**filled, "audio": audio_digest(data)}
        key = request_key(self.operation, parameters, service=self._service, repeat=self._repeat)
        # a file is read again only when it is sent, so that a long table does not lie in memory as audio
        payload = (source if is_path(source) else data, options)
        return Call(key, parameters, payload, audio_s=seconds_of(source, data))

    async def send(self, call: Call, lab: AsyncClient) -> Answer:
        import asyncio

        source, options = call.payload
        data: bytes = source
        if is_path(source):
            data = await asyncio.to_thread(content_of, source, self._column)
            if audio_digest(data) != call.parameters["audio"]:
                raise AudioDecodeError(f"{source} was changed since the batch was planned; plan it again")
        transcript = await lab.transcribe(data, **options)
        response: dict[str, Any] = {
            "text": transcript.text,
            "language": transcript.language,
            "confidence": transcript.confidence,
            "processing_s": transcript.timing.processing_s,
        }
        if transcript.pieces is not None:
            response["segments"] = [
                {"start": piece.start, "end": piece.end, "text": piece.text} for piece in transcript.pieces
            ]
        return Answer(response, transcript.timing, audio_s=call.audio_s)

    @staticmethod
    def values(stored: Stored) -> dict[str, Any]:
        kept = stored.response
        return {
            "hypothesis": kept["text"],
            "hypothesis_language": kept["language"],
            "confidence": kept["confidence"],
            "processing_s": kept["processing_s"],
        }

    @classmethod
    def evidence(cls, stored: Stored) -> list[Any]:
        return [*super().evidence(stored), stored.response.get("segments")]


class TranslationStep(RowStep):
    """Text to text in another language."""

    operation = "translate"
    parameters = TranslationParameters
    works_on = "text"
    columns: ClassVar[Mapping[str, str]] = {
        "translation": "string",
        "model": "category",
        "prompt_tokens": "Int64",
        "completion_tokens": "Int64",
        "processing_s": "float64",
    }
    content = ("translation", "model")

    def _check(self, same: dict[str, Any]) -> None:
        self._request({"text": "a", "source_lang": "ja", "target_lang": "en", **same})

    @staticmethod
    def _request(fields: dict[str, Any]) -> TranslationRequest:
        terms = tuple(fields.get("keywords") or ())
        return TranslationRequest.parse({**fields, "keywords": terms}, limits=LIMITS)

    def call(self, row: Row) -> Call:
        text = text_cell(row[self._column], self._column)
        asked = self._request({"text": text, **self._parameters.of(row)})
        parameters = asked.model_dump(mode="json", exclude={"stream"})
        key = request_key(self.operation, parameters, service=self._service, repeat=self._repeat)
        return Call(key, parameters, characters=len(asked.text))

    async def send(self, call: Call, lab: AsyncClient) -> Answer:
        translation = await lab.translate(**call.parameters)
        usage = translation.usage
        response = {
            "text": translation.text,
            "model": translation.model,
            "prompt_tokens": usage.prompt_tokens if usage else None,
            "completion_tokens": usage.completion_tokens if usage else None,
            "processing_s": translation.timing.processing_s,
        }
        return Answer(response, translation.timing, tokens=usage.total_tokens or 0 if usage else 0)

    @staticmethod
    def values(stored: Stored) -> dict[str, Any]:
        kept = dict(stored.response)
        return {"translation": kept.pop("text"), **kept}


STEPS: dict[str, type[RowStep]] = {
    step.operation: step for step in (SynthesisStep, TranscriptionStep, TranslationStep)
}
"""The steps, by the names of their operations."""
