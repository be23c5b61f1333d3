"""The three operations: what each asks of a row, sends, keeps and puts into the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.batch._plan.parameters import Column, Parameters, read_parameters
from speechlab.batch._plan.recordings import content_of, is_path, seconds_of
from speechlab.batch._plan.step import Answer, Call, Facts, Row, Step, text_cell
from speechlab.contract import (
    DEFAULT_SAMPLE_RATE,
    LIMITS,
    AudioFormat,
    Operation,
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

    from speechlab.client import AsyncClient
    from speechlab.store import Stored

_FORMATS = frozenset(AudioFormat) - {AudioFormat.PCM}
_STANDS_FOR_AUDIO = "UklGRg=="
_STANDS_FOR_VOICE = "00000000-0000-0000-0000-000000000000"
_FEW = 1_000
_LABELS = frozenset({"session_id"})
"""Options that name a call and cannot change what comes of it."""


def _column(name: object, parameter: str) -> str:
    """Return the name of the column that is worked on."""
    plain = name.name if isinstance(name, Column) else name
    if not isinstance(plain, str):
        message = f"{parameter} is {plain!r}; it must be the name of a column, a string"
        raise InvalidRequestError(message, parameter=parameter)
    return plain


def _number(repeat: object) -> int:
    if isinstance(repeat, int) and not isinstance(repeat, bool) and repeat >= 0:
        return repeat
    message = f"repeat is {repeat!r}; it must be a whole number of at least 0"
    raise InvalidRequestError(message, parameter="repeat")


def _settings(column: Mapping[str, str], parameters: Parameters, repeat: int) -> dict[str, Any]:
    """What the manifest says of the parameters: those of all rows by value, and which are columns."""
    same = {
        name: value.id if isinstance(value, Voice) else value
        for name, value in parameters.same.items()
        if value is not None
    }
    return {**same, "repeat": repeat, "columns": {**column, **parameters.columns}}


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
    wants_voices = True

    def __init__(
        self,
        facts: Facts,
        have: Sequence[Any],
        *,
        text: str = "text",
        voice: str | Voice | Column = "voice",
        format: str | Column = "flac",  # noqa: A002
        sample_rate: int | str | Column | None = None,
        temperature: float | str | Column | None = None,
        repeat: int = 0,
    ) -> None:
        self._catalogue, self._service = facts.voices, facts.service
        self._text, self._repeat = _column(text, "text"), _number(repeat)
        given = {"voice": voice, "format": format, "sample_rate": sample_rate, "temperature": temperature}
        self._parameters = read_parameters(given, have)
        self.needs = (self._text, *self._parameters.columns.values())
        self.texts = self._parameters.texts | {self._text}
        self.settings = _settings({"text": self._text}, self._parameters, self._repeat)
        # what no row could have is refused before any work is done
        same = dict(self._parameters.same)
        if "voice" in same:
            self._find(same.pop("voice"), have)
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
        text = text_cell(row[self._text], self._text)
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

    def _find(self, value: object, have: Sequence[Any] | None = None) -> Voice:
        if isinstance(value, Voice):
            return value
        if not isinstance(value, str):
            message = f"voice is {value!r}; give a voice, its id or name, or the column that holds one"
            raise InvalidRequestError(message, parameter="voice")
        assert self._catalogue is not None
        shown = f"the table has no column {value!r}; it has {', '.join(map(repr, have or ())) or 'none'}"
        if have is not None and value == "voice":  # a column was meant, whatever a description may say
            raise InvalidRequestError(shown, parameter="voice")
        try:
            return self._catalogue[value]
        except InvalidRequestError as error:
            if have is None:
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
        have: Sequence[Any],
        *,
        audio: str = "audio",
        language: str | Column | None = None,
        hotwords: Sequence[str] | str | Column | None = None,
        vad: str | int | Column = "off",
        min_silence_gap: int | str | Column | None = None,
        segment_padding: int | str | Column | None = None,
        initial_segment_padding_ms: int | str | Column | None = None,
        speech_pad_ms: int | str | Column | None = None,
        min_segment_duration: float | str | Column | None = None,
        temperature: float | str | Column | None = None,
        top_p: float | str | Column | None = None,
        frequency_penalty: float | str | Column | None = None,
        repetition_penalty: float | str | Column | None = None,
        session_id: str | Column | None = None,
        repeat: int = 0,
    ) -> None:
        given = {
            "language": language,
            "hotwords": hotwords,
            "vad": vad,
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
        self._audio, self._repeat = _column(audio, "audio"), _number(repeat)
        self._service = facts.service
        self._parameters = read_parameters(given, have)
        self.needs = (self._audio, *self._parameters.columns.values())
        self.texts = self._parameters.texts | {self._audio}
        self.settings = _settings({"audio": self._audio}, self._parameters, self._repeat)
        self._asked: dict[str, dict[str, Any]] = {}
        # what no row could have is refused before any work is done
        self._filled(
            {**self._parameters.same, "vad": VadMode.SEGMENTS}
        )  # without which some count for nothing
        self._filled(dict(self._parameters.same))

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
        source = row[self._audio]
        options = {name: value for name, value in self._parameters.of(row).items() if value is not None}
        filled = self._filled(options)
        data = content_of(source, self._audio)
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
            data = await asyncio.to_thread(content_of, source, self._audio)
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
        have: Sequence[Any],
        *,
        text: str = "text",
        source_lang: str | Column,
        target_lang: str | Column,
        keywords: Sequence[str] | str | Column = (),
        context: str | Column | None = None,
        model: str | Column | None = None,
        repeat: int = 0,
    ) -> None:
        given = {
            "source_lang": source_lang,
            "target_lang": target_lang,
            "keywords": keywords or (),
            "context": context,
            "model": model,
        }
        self._text, self._repeat = _column(text, "text"), _number(repeat)
        self._service = facts.service
        self._parameters = read_parameters(given, have)
        self.needs = (self._text, *self._parameters.columns.values())
        self.texts = self._parameters.texts | {self._text}
        self.settings = _settings({"text": self._text}, self._parameters, self._repeat)
        # what no row could have is refused before any work is done
        self._request({"text": "a", "source_lang": "ja", "target_lang": "en", **self._parameters.same})

    @staticmethod
    def _request(fields: dict[str, Any]) -> TranslationRequest:
        terms = tuple(fields.get("keywords") or ())
        return TranslationRequest.parse({**fields, "keywords": terms}, limits=LIMITS)

    def call(self, row: Row) -> Call:
        text = text_cell(row[self._text], self._text)
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

    def values(self, stored: Stored) -> dict[str, Any]:
        kept = dict(stored.response)
        return {"translation": kept.pop("text"), **kept}
