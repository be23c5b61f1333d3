"""The steps of batches: the call for each row, and the result columns."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard, cast

from speechlab._arguments import is_missing, no_column
from speechlab._files import user_path
from speechlab.audio import AudioClip
from speechlab.batch._plan.parameters import (
    SynthesisParameters,
    TranscriptionParameters,
    TranslationParameters,
    text_cell,
)
from speechlab.batch._plan.rows import PlannedCall, RowStep
from speechlab.client import Synthesize, Transcribe, Translate
from speechlab.contract import AudioFormat, VadMode, Voice
from speechlab.errors import AudioDecodeError, InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from speechlab.client import SpeechClip, Transcript, Translation
    from speechlab.store import Stored

_FORMATS = frozenset(AudioFormat) - {AudioFormat.PCM}
_ANY_VOICE = "00000000-0000-0000-0000-000000000000"


class SynthesisStep(RowStep):
    """Synthesis: text to audio."""

    operation = "synthesize"
    parameters = SynthesisParameters
    works_on = "text"
    wants_voices = True
    columns: ClassVar[Mapping[str, str]] = {
        "audio": "string",
        "duration_s": "float64",
        "sample_rate": "Int64",
    }
    content = ("audio", "duration_s", "sample_rate")
    files = ("audio",)

    def _check(self, same: dict[str, Any]) -> None:
        if "voice" in same:
            self._find(same.pop("voice"), for_all=True)
        _ = self._operation("a", _ANY_VOICE, **{"format": "flac", **same}).parameters

    def _call(self, cell: Any, given: dict[str, Any], alike: str) -> PlannedCall:
        text = text_cell(cell, self._column)
        voice = self._find(given.pop("voice"))
        operation = self._operation(text, voice, **{"format": "flac", **given})
        return self._planned(operation, alike, characters=len(text))

    def _operation(self, text: str, voice: Voice | str, **options: Any) -> Synthesize:
        kind = options["format"]
        if not isinstance(kind, str) or kind not in _FORMATS:
            message = (
                f"format {str(kind)!r} cannot be kept as a file, as it has no header with the rate; use one of "
                f"{', '.join(sorted(_FORMATS))}"
            )
            raise InvalidRequestError(message, parameter="format", rule="2.2")
        fitted: Synthesize = self._fit(Synthesize(text, voice=voice, **options))
        return fitted

    def _find(self, value: object, *, for_all: bool = False) -> Voice:
        if isinstance(value, Voice):
            return value
        if not isinstance(value, str):
            message = f"voice is {value!r}; give a voice, its id or name, or the column that holds one"
            raise InvalidRequestError(message, parameter="voice")
        assert self._voices is not None
        if for_all and value == "voice":  # the column is missing, even if a voice's description has the word
            raise InvalidRequestError(no_column(self._have, value), parameter="voice")
        try:
            return self._voices[value]
        except InvalidRequestError as error:
            if not for_all:
                raise
            message = f"{no_column(self._have, value)}; and {error}"
            raise InvalidRequestError(message, parameter="voice") from None

    @staticmethod
    def _amounts(call: PlannedCall, result: SpeechClip) -> dict[str, Any]:  # noqa: ARG004 - another step needs it
        return {"audio_s": result.duration_s}

    @staticmethod
    def values(stored: Stored) -> dict[str, Any]:
        return {"audio": str(stored.files["audio"]), **stored.response}

    @classmethod
    def evidence(cls, stored: Stored) -> list[Any]:
        # the name of a file is the digest of its content; its folder does not matter
        return [stored.files["audio"].name, *super().evidence(stored)[1:]]


class TranscriptionStep(RowStep):
    """Transcription: audio to text."""

    operation = "transcribe"
    parameters = TranscriptionParameters
    works_on = "audio"
    columns: ClassVar[Mapping[str, str]] = {
        "hypothesis": "string",
        "hypothesis_language": "category",
        "confidence": "float64",
    }
    content = ("hypothesis", "hypothesis_language", "confidence")

    def _check(self, same: dict[str, Any]) -> None:
        # if vad is a column, its other options apply to the rows with segments
        mode = {"vad": VadMode.SEGMENTS} if "vad" in self._parameters.columns else {}
        _ = self._fit(Transcribe(b"", **{**same, **mode})).options

    def _call(self, cell: Any, given: dict[str, Any], alike: str) -> PlannedCall:
        audio = recording_of(cell, self._column)
        call = self._planned(self._fit(Transcribe(audio, **given)), alike, audio_s=seconds_of(audio))
        if isinstance(cell, bytes):
            return call
        # the audio of a long table must not stay in memory: files are read again, and clips encoded, when sent
        return replace(call, operation=self._fit(Transcribe(cell, **given)))

    async def _ready(self, call: PlannedCall) -> Transcribe:
        operation = cast("Transcribe", call.operation)
        if isinstance(operation.audio, bytes | AudioClip):  # neither changes
            return operation
        return await asyncio.to_thread(self._read_again, operation, call)

    def _read_again(self, operation: Transcribe, call: PlannedCall) -> Transcribe:
        audio = operation.audio
        again = replace(operation, audio=recording_of(audio, self._column))
        if again.content != call.content:
            name = os.fspath(audio) if is_path(audio) else f"a recording in column {self._column!r}"
            raise AudioDecodeError(f"{name} was changed since the batch was planned; plan it again")
        return again

    @staticmethod
    def _amounts(call: PlannedCall, result: Transcript) -> dict[str, Any]:  # noqa: ARG004 - another step needs it
        return {"audio_s": call.audio_s}

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
    """Translation: text to text in another language."""

    operation = "translate"
    parameters = TranslationParameters
    works_on = "text"
    columns: ClassVar[Mapping[str, str]] = {
        "translation": "string",
        "model": "category",
        "prompt_tokens": "Int64",
        "completion_tokens": "Int64",
    }
    content = ("translation", "model")

    def _check(self, same: dict[str, Any]) -> None:
        _ = self._fit(Translate("a", **{"source_lang": "ja", "target_lang": "en", **same})).parameters
        self._check_languages(same)

    def _check_languages(self, given: Mapping[str, Any]) -> None:
        """Refuse a language that the service says to lack."""
        languages = self._voices.translates if self._voices is not None else ()
        for name in ("source_lang", "target_lang"):
            if (
                languages
                and name in given
                and re.split("[-_]", given[name].strip().lower())[0] not in languages
            ):
                message = (
                    f"{name} is {given[name]!r}, and this service translates between {', '.join(languages)}"
                )
                raise InvalidRequestError(message, parameter=name, rule="2.5")

    def _call(self, cell: Any, given: dict[str, Any], alike: str) -> PlannedCall:
        text = text_cell(cell, self._column)
        self._check_languages(given)
        return self._planned(self._fit(Translate(text, **given)), alike, characters=len(text))

    @staticmethod
    def _amounts(call: PlannedCall, result: Translation) -> dict[str, Any]:  # noqa: ARG004 - another step needs it
        return {"tokens": result.usage.total_tokens or 0 if result.usage else 0}

    @staticmethod
    def values(stored: Stored) -> dict[str, Any]:
        kept = dict(stored.response)
        return {"translation": kept.pop("text"), **kept}


STEPS: dict[str, type[RowStep]] = {
    step.operation: step for step in (SynthesisStep, TranscriptionStep, TranslationStep)
}
"""The steps, by the names of their operations."""


def is_path(source: object) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether a cell names a file."""
    return isinstance(source, str | os.PathLike)


def recording_of(source: object, column: str) -> bytes | AudioClip:
    """Return the recording in a cell: the bytes of the named file, or the bytes or clip in the cell."""
    if isinstance(source, bytes | AudioClip):
        return source
    if is_missing(source) or (isinstance(source, str) and not source.strip()):
        raise InvalidRequestError(f"column {column!r} is empty in this row", parameter=column)
    if not is_path(source):
        message = (
            f"column {column!r} holds {source!r:.40} ({type(source).__name__}) in this row, and must hold a path, "
            "bytes or an AudioClip"
        )
        raise InvalidRequestError(message, parameter=column)
    path = user_path(source)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        message = f"there is no file {str(path)!r}"
        if "://" in str(source):
            message = f"{source} is a URL; download the recording and give the path of the file"
    except IsADirectoryError:
        message = f"{path} is a folder; give the path of a recording"
    except (OSError, ValueError) as error:
        message = f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
    raise AudioDecodeError(message)


def seconds_of(recording: bytes | AudioClip) -> float:
    """Return the duration of a recording in seconds from its header; 0 if the header does not have it."""
    if isinstance(recording, AudioClip):
        return recording.duration_s
    import soundfile

    try:
        with soundfile.SoundFile(BytesIO(recording)) as file:  # soundfile.info reads much more
            found: float = file.frames / file.samplerate
    except (soundfile.LibsndfileError, ValueError):
        return 0.0
    # the header of a streamed WAV file may have a length of days
    return found if 0 <= found < len(recording) else 0.0
