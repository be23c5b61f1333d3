"""What each of the three operations asks, keeps and puts into the table."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab.audio import AudioClip
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
    from speechlab.client import Client
    from speechlab.store import Stored

__all__ = ["Answer", "Call", "Row", "Step", "SynthesisStep", "TranscriptionStep", "TranslationStep"]

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: values for the store, files by role, and how it went."""

    response: dict[str, Any]
    files: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Call:
    """One request to make, for one row or several that ask the same.

    Attributes:
        key: Key of the request.
        parameters: All that can change the result.
        send: Makes the call.
        characters: Length of the text, in code points.
        audio_bytes: Length of the recording.
    """

    key: str
    parameters: dict[str, Any]
    send: Callable[[], Answer]
    characters: int = 0
    audio_bytes: int = 0


class Step(ABC):
    """One of the operations, with the parameters that are the same for all rows."""

    operation: Operation
    columns: Mapping[str, str]
    """Result columns and their types."""
    needs: tuple[str, ...]
    """Columns of the input."""

    @abstractmethod
    def call(self, row: Row) -> Call:
        """Return the request of a row.

        Raises:
            SpeechLabError: The row has no valid request.
        """

    @abstractmethod
    def values(self, stored: Stored) -> dict[str, Any]:
        """Return the result columns of a stored result."""


class SynthesisStep(Step):
    """Texts to audio."""

    operation: Operation = "synthesize"
    columns: Mapping[str, str] = {
        "audio": "string",
        "duration_s": "float64",
        "sample_rate": "Int64",
        "processing_s": "float64",
    }

    def __init__(
        self,
        lab: Client,
        *,
        text: str,
        voice: str,
        format: str,  # noqa: A002
        sample_rate: int | None,
        temperature: float | None,
        repeat: int,
    ) -> None:
        self.needs = (text, voice)
        self._lab, self._text, self._voice = lab, text, voice
        self._format, self._rate, self._temperature, self._repeat = format, sample_rate, temperature, repeat
        if format not in set(AudioFormat) - {AudioFormat.PCM}:
            allowed = ", ".join(sorted(set(AudioFormat) - {AudioFormat.PCM}))
            message = (
                f"format {format!r} cannot be kept as a file that tells its own rate; use one of {allowed}"
            )
            raise InvalidRequestError(message, parameter="format", rule="2.2")
        self._catalogue = lab.voices()
        self._service = lab.identity()

    def call(self, row: Row) -> Call:
        text = _text(row[self._text], self._text)
        check_text(text)
        voice = self._find(row[self._voice])
        rate = VoiceRules.of(voice).check(format=self._format, sample_rate=self._rate or 0)
        parameters = {
            "voice_id": voice.id,
            "text": text,
            "format": self._format,
            "sample_rate": rate or DEFAULT_SAMPLE_RATE,
            "temperature": self._temperature,
        }
        key = request_key(
            self.operation,
            parameters,
            service=self._service,
            repeat=self._repeat,
        )
        return Call(key, parameters, lambda: self._send(text, voice), characters=len(text))

    def _find(self, value: object) -> Voice:
        if isinstance(value, Voice):
            return value
        return self._catalogue[_text(value, self._voice)]

    def _send(self, text: str, voice: Voice) -> Answer:
        clip = self._lab.synthesize(
            text, voice=voice, format=self._format, sample_rate=self._rate, temperature=self._temperature
        )
        response = {
            "duration_s": clip.duration_s,
            "sample_rate": clip.sample_rate,
            "processing_s": clip.timing.processing_s,
        }
        return Answer(response, {"audio": (clip.encoded, f".{self._format}")}, clip.timing.attempts)

    def values(self, stored: Stored) -> dict[str, Any]:
        return {"audio": str(stored.files["audio"]), **stored.response}


class TranscriptionStep(Step):
    """Audio to text."""

    operation: Operation = "transcribe"
    columns: Mapping[str, str] = {
        "hypothesis": "string",
        "hypothesis_language": "category",
        "confidence": "float64",
        "processing_s": "float64",
    }

    def __init__(
        self, lab: Client, *, audio: str, language: str | None, options: Mapping[str, Any], repeat: int
    ) -> None:
        self._language = language
        self._per_row = language is not None and language.lower() == "language"
        self.needs = (audio, "language") if self._per_row else (audio,)
        self._lab, self._audio, self._options, self._repeat = lab, audio, dict(options), repeat
        self._service = lab.identity()
        # a parameter that no row could have is refused before any work is done
        RecognitionRequest.parse(
            {"audio": "UklGRg==", "language": None if self._per_row else language, **options}
        )

    def call(self, row: Row) -> Call:
        source = row[self._audio]
        data = _audio_bytes(source, self._audio)
        language = _text(row["language"], "language") if self._per_row else self._language
        asked = RecognitionRequest.parse({"audio": "UklGRg==", "language": language, **self._options})
        parameters = {**asked.model_dump(mode="json"), "audio": audio_digest(data)}
        key = request_key(
            self.operation,
            parameters,
            service=self._service,
            repeat=self._repeat,
        )
        held = None if isinstance(source, str | os.PathLike) else data
        return Call(key, parameters, lambda: self._send(source, held, language), audio_bytes=len(data))

    def _send(self, source: Any, held: bytes | None, language: str | None) -> Answer:
        # a file is read again only now, so that a long table does not lie in memory as audio
        data = _audio_bytes(source, self._audio) if held is None else held
        transcript = self._lab.transcribe(data, language=language, **self._options)
        response: dict[str, Any] = {
            "text": transcript.text,
            "language": transcript.language,
            "confidence": transcript.confidence,
            "processing_s": transcript.timing.processing_s,
        }
        if self._options.get("vad") == "segments":
            response["segments"] = transcript.segments.to_dict("records")
        return Answer(response, attempts=transcript.timing.attempts)

    def values(self, stored: Stored) -> dict[str, Any]:
        kept = stored.response
        return {
            "hypothesis": kept["text"],
            "hypothesis_language": kept["language"],
            "confidence": kept["confidence"],
            "processing_s": kept["processing_s"],
        }


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

    def __init__(
        self,
        lab: Client,
        *,
        text: str,
        source_lang: str,
        target_lang: str,
        options: Mapping[str, Any],
        repeat: int,
    ) -> None:
        self._lab, self._text, self._repeat = lab, text, repeat
        self._service = lab.identity()
        self._source, self._target, self._options = source_lang, target_lang, dict(options)
        self.needs = (text,)

    def call(self, row: Row) -> Call:
        asked = TranslationRequest.parse(
            {
                "text": _text(row[self._text], self._text),
                "source_lang": self._cell(row, self._source),
                "target_lang": self._cell(row, self._target),
                **{name: value for name, value in self._options.items() if value is not None},
                "keywords": tuple(self._options.get("keywords") or ()),
            },
            limits=LIMITS,
        )
        parameters = asked.model_dump(mode="json", exclude={"stream"})
        key = request_key(
            self.operation,
            parameters,
            service=self._service,
            repeat=self._repeat,
        )
        return Call(key, parameters, lambda: self._send(asked), characters=len(asked.text))

    @staticmethod
    def _cell(row: Row, name: str) -> str:
        """A language is a code, or the name of the column that holds one."""
        return _text(row[name], name) if name in row else name

    def _send(self, asked: TranslationRequest) -> Answer:
        translation = self._lab.translate(
            asked.text,
            source_lang=asked.source_lang,
            target_lang=asked.target_lang,
            keywords=asked.keywords,
            context=asked.context,
            model=asked.model,
        )
        usage = translation.usage
        response = {
            "text": translation.text,
            "model": translation.model,
            "prompt_tokens": usage.prompt_tokens if usage else None,
            "completion_tokens": usage.completion_tokens if usage else None,
            "processing_s": translation.timing.processing_s,
        }
        return Answer(response, attempts=translation.timing.attempts)

    def values(self, stored: Stored) -> dict[str, Any]:
        kept = dict(stored.response)
        return {"translation": kept.pop("text"), **kept}


def _text(value: object, column: str) -> str:
    if isinstance(value, str):
        return value
    if value is None or value != value:
        message = f"column {column!r} is empty in this row"
    else:
        message = f"column {column!r} holds a {type(value).__name__} in this row, and must hold text"
    raise InvalidRequestError(message, parameter=column)


def _audio_bytes(source: object, column: str) -> bytes:
    if isinstance(source, bytes):
        return source
    if isinstance(source, AudioClip):
        return source.encode("flac")
    path = Path(source) if isinstance(source, os.PathLike) else Path(_text(source, column))
    try:
        return path.read_bytes()
    except FileNotFoundError:
        message = f"there is no file {path}"
    except IsADirectoryError:
        message = f"{path} is a folder, and must be a recording"
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
    raise AudioDecodeError(message)
