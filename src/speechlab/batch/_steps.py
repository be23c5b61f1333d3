"""The three operations: what each asks of a row, sends, keeps and puts into the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.batch._calls import Answer, Call, Facts, Row, Step, text_cell
from speechlab.batch._recordings import content_of, is_path, seconds_of
from speechlab.contract import (
    DEFAULT_SAMPLE_RATE,
    LIMITS,
    AudioFormat,
    Operation,
    RecognitionRequest,
    TranslationRequest,
    Voice,
    VoiceRules,
    audio_digest,
    check_text,
    request_key,
)
from speechlab.errors import AudioDecodeError, InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from speechlab.client import AsyncClient
    from speechlab.store import Stored

__all__ = ["SynthesisStep", "TranscriptionStep", "TranslationStep"]

_FORMATS = frozenset(AudioFormat) - {AudioFormat.PCM}
_STANDS_FOR_AUDIO = "UklGRg=="
_LABELS = frozenset({"session_id"})
"""Options that name a call and cannot change what comes of it."""


class SynthesisStep(Step):
    """Texts to audio."""

    operation: Operation = "synthesize"
    columns: Mapping[str, str] = {
        "audio": "string",
        "duration_s": "float64",
        "sample_rate": "Int64",
        "processing_s": "float64",
    }
    content = ("audio", "duration_s", "sample_rate")

    def __init__(
        self,
        facts: Facts,
        *,
        text: str = "text",
        voice: str = "voice",
        format: str = "flac",  # noqa: A002
        sample_rate: int | None = None,
        temperature: float | None = None,
        repeat: int = 0,
    ) -> None:
        if format not in _FORMATS:
            message = (
                f"format {format!r} cannot be kept as a file that tells its own rate; use one of "
                f"{', '.join(sorted(_FORMATS))}"
            )
            raise InvalidRequestError(message, parameter="format", rule="2.2")
        self.needs = (text, voice)
        self._text, self._voice, self._repeat = text, voice, repeat
        self._format, self._rate, self._temperature = str(AudioFormat(format)), sample_rate, temperature
        self._catalogue, self._service = facts.voices, facts.service
        self.settings = {
            "text": text,
            "voice": voice,
            "format": self._format,
            "sample_rate": sample_rate,
            "temperature": temperature,
            "repeat": repeat,
        }

    def call(self, row: Row) -> Call:
        text = text_cell(row[self._text], self._text)
        check_text(text)
        voice = self._find(row[self._voice])
        rate = VoiceRules.of(voice).check(format=AudioFormat(self._format), sample_rate=self._rate or 0)
        parameters = {
            "voice_id": voice.id,
            "text": text,
            "format": self._format,
            "sample_rate": rate or DEFAULT_SAMPLE_RATE,
            "temperature": self._temperature,
        }
        key = request_key(self.operation, parameters, service=self._service, repeat=self._repeat)
        return Call(key, parameters, voice, characters=len(text))

    def _find(self, value: object) -> Voice:
        if isinstance(value, Voice):
            return value
        assert self._catalogue is not None
        return self._catalogue[text_cell(value, self._voice)]

    async def send(self, call: Call, lab: AsyncClient) -> Answer:
        clip = await lab.synthesize(
            call.parameters["text"],
            voice=call.payload,
            format=self._format,
            sample_rate=self._rate,
            temperature=self._temperature,
        )
        response = {
            "duration_s": clip.duration_s,
            "sample_rate": clip.sample_rate,
            "processing_s": clip.timing.processing_s,
        }
        files = {"audio": (clip.encoded, f".{self._format}")}
        return Answer(response, clip.timing, files, audio_s=clip.duration_s)

    def values(self, stored: Stored) -> dict[str, Any]:
        return {"audio": str(stored.files["audio"]), **stored.response}

    def evidence(self, stored: Stored) -> list[Any]:
        # where the file lies says nothing; its name is its content
        return [stored.files["audio"].name, stored.response["duration_s"], stored.response["sample_rate"]]


class TranscriptionStep(Step):
    """Audio to text."""

    operation: Operation = "transcribe"
    columns: Mapping[str, str] = {
        "hypothesis": "string",
        "hypothesis_language": "category",
        "confidence": "float64",
        "processing_s": "float64",
    }
    content = ("hypothesis", "hypothesis_language", "confidence")

    def __init__(
        self,
        facts: Facts,
        *,
        audio: str = "audio",
        language: str | None = None,
        repeat: int = 0,
        **options: Any,
    ) -> None:
        self._language = language
        self._per_row = language is not None and language.lower() == "language"
        self.needs = (audio, "language") if self._per_row else (audio,)
        self._audio, self._options, self._repeat = audio, options, repeat
        self._service = facts.service
        self._checked: dict[str | None, dict[str, Any]] = {}
        self.settings = {"audio": audio, "language": language, "repeat": repeat, **options}
        # a parameter that no row could have is refused before any work is done
        self._parameters(None if self._per_row else language)

    def _parameters(self, language: str | None) -> dict[str, Any]:
        """The options, defaults filled in, without what cannot change a result."""
        if language not in self._checked:
            unknown = set(self._options) - set(RecognitionRequest.model_fields)
            if unknown:
                allowed = sorted(set(RecognitionRequest.model_fields) - {"audio", "language"})
                message = (
                    f"{', '.join(map(repr, sorted(unknown)))} is no option of recognition; they are {allowed}"
                )
                raise InvalidRequestError(message, parameter=min(unknown))
            asked = RecognitionRequest.parse(
                {"audio": _STANDS_FOR_AUDIO, "language": language, **self._options}
            )
            self._checked[language] = asked.model_dump(mode="json", exclude=set(_LABELS))
        return self._checked[language]

    def call(self, row: Row) -> Call:
        source = row[self._audio]
        language = text_cell(row["language"], "language") if self._per_row else self._language
        data = content_of(source, self._audio)
        parameters = {**self._parameters(language), "audio": audio_digest(data)}
        key = request_key(self.operation, parameters, service=self._service, repeat=self._repeat)
        # a file is read again only when it is sent, so that a long table does not lie in memory as audio
        payload = (source if is_path(source) else data, language)
        return Call(key, parameters, payload, audio_s=seconds_of(source, data))

    async def send(self, call: Call, lab: AsyncClient) -> Answer:
        import asyncio

        source, language = call.payload
        data: bytes = source
        if is_path(source):
            data = await asyncio.to_thread(content_of, source, self._audio)
            if audio_digest(data) != call.parameters["audio"]:
                raise AudioDecodeError(f"{source} was changed since the batch was planned; plan it again")
        transcript = await lab.transcribe(data, language=language, **self._options)
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

    def values(self, stored: Stored) -> dict[str, Any]:
        kept = stored.response
        return {
            "hypothesis": kept["text"],
            "hypothesis_language": kept["language"],
            "confidence": kept["confidence"],
            "processing_s": kept["processing_s"],
        }

    def evidence(self, stored: Stored) -> list[Any]:
        return [*super().evidence(stored), stored.response.get("segments")]


class TranslationStep(Step):
    """Text to text in another language."""

    operation: Operation = "translate"
    columns: Mapping[str, str] = {
        "translation": "string",
        "model": "category",
        "prompt_tokens": "Int64",
        "completion_tokens": "Int64",
        "processing_s": "float64",
    }
    content = ("translation", "model")

    def __init__(
        self,
        facts: Facts,
        *,
        text: str = "text",
        source_lang: str,
        target_lang: str,
        keywords: Sequence[str] = (),
        context: str | None = None,
        model: str | None = None,
        repeat: int = 0,
    ) -> None:
        self.needs = (text,)
        self._text, self._source, self._target, self._repeat = text, source_lang, target_lang, repeat
        terms = (keywords,) if isinstance(keywords, str) else tuple(keywords or ())
        self._options = {"keywords": terms, "context": context, "model": model}
        self._service = facts.service
        self.settings = {
            "text": text,
            "source_lang": source_lang,
            "target_lang": target_lang,
            "keywords": list(terms),
            "context": context,
            "model": model,
            "repeat": repeat,
        }

    def call(self, row: Row) -> Call:
        asked = TranslationRequest.parse(
            {
                "text": text_cell(row[self._text], self._text),
                "source_lang": self._cell(row, self._source),
                "target_lang": self._cell(row, self._target),
                **self._options,
            },
            limits=LIMITS,
        )
        parameters = asked.model_dump(mode="json", exclude={"stream"})
        key = request_key(self.operation, parameters, service=self._service, repeat=self._repeat)
        return Call(key, parameters, characters=len(asked.text))

    @staticmethod
    def _cell(row: Row, name: str) -> str:
        """A language is a code, or the name of the column that holds one."""
        return text_cell(row[name], name) if name in row else name

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

    def values(self, stored: Stored) -> dict[str, Any]:
        kept = dict(stored.response)
        return {"translation": kept.pop("text"), **kept}
