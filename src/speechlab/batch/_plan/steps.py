"""Rows of a table as calls: a step reads the parameters of each row, and makes its call and its result columns."""

from __future__ import annotations

import asyncio
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from speechlab._arguments import build_argument_error, describe_missing_columns
from speechlab._traces import warn_user
from speechlab.audio import AudioClip
from speechlab.batch._outcome import CallResult, PlannedCall, find_user_stacklevel, is_warning
from speechlab.batch._plan.parameters import (
    MODEL_COLUMN,
    Column,
    SynthesisParameters,
    TranscriptionParameters,
    TranslationParameters,
    check_text_cell,
    collect_annotation_texts,
    is_path,
    read_header_duration_s,
    read_recording_cell,
    split_columns_and_values,
)
from speechlab.client import (
    AsyncClient,
    Operation,
    Synthesize,
    Transcribe,
    Translate,
    VoiceCatalogue,
    describe_absent_voices,
)
from speechlab.contract import AudioFormat, OperationName, VadMode, Voice, compute_request_key
from speechlab.errors import AudioDecodeError, InvalidRequestError

if TYPE_CHECKING:
    from speechlab.batch._plan.parameters import Row
    from speechlab.client import Service
    from speechlab.store import StoredResult

# Formats of files, the best first: lossless and small, lossless, lossy.
_FORMATS = ("flac", "wav", "ogg", "mp3")
_FORMATS_ALLOWED = frozenset(AudioFormat) - {AudioFormat.PCM}
_ANY_VOICE = "00000000-0000-0000-0000-000000000000"
# Maximum number of combinations of options that are cached.
_MAX_OPTIONS = 1_000
# Beginning of the type of a parameter that takes numbers, where a text can only be the name of a column.
_NUMBER_TYPE = re.compile(r"(int|float)\b")


class RowStep(ABC):
    """An operation over the rows of a table."""

    operation: ClassVar[OperationName]
    parameters: ClassVar[type]
    works_on: ClassVar[str]
    wants_voices: ClassVar[bool] = False
    columns: ClassVar[Mapping[str, str]]
    content: ClassVar[tuple[str, ...]] = ()  # the columns that are what was given; empty for all

    def __init__(
        self,
        given: Mapping[str, Any],
        have: Sequence[Any],
        service: str,
        voices: VoiceCatalogue | None,
        rules: Service,
    ) -> None:
        values = dict(given)
        self._have, self._service, self._voices, self._rules = have, service, voices, rules
        column = values.pop(self.works_on)
        if column is None or not isinstance(column, Hashable):
            raise build_argument_error(self.works_on, column, "the name of a column")
        self._column: Any = column.name if isinstance(column, Column) else column
        self._repeat = int(values.pop("repeat"))
        types = collect_annotation_texts(self.parameters)
        numbers = {name for name, kind in types.items() if _NUMBER_TYPE.match(kind)}
        self._parameters = split_columns_and_values(values, have, numbers)
        self._options: dict[str, dict[str, Any]] = {}
        self.needs = (self._column, *self._parameters.columns.values())
        texts = (at for name, at in self._parameters.columns.items() if name not in numbers)
        self.texts = frozenset({self._column, *texts})
        same = {
            name: value.id if isinstance(value, Voice) else value
            for name, value in self._parameters.same.items()
            if value is not None
        }
        columns = {self.works_on: self._column, **self._parameters.columns}
        for name, at in columns.items():
            if isinstance(at, str):  # JSON does not allow half a surrogate pair
                columns[name] = at.encode("utf-8", "replace").decode()
        self.settings = {**same, "repeat": self._repeat, "columns": columns}
        """The parameters for the manifest: the values for all rows, and the names of columns."""
        # a value that is invalid for every row is refused before any work
        self._check_common_values(dict(self._parameters.same))

    @abstractmethod
    def _check_common_values(self, same: dict[str, Any]) -> None:
        """Refuse values for all rows that would make every row invalid."""

    def build_call(self, row: Row) -> PlannedCall:
        """Return the call for a row."""
        values = self._parameters.collect_row_values(row)
        varying = repr([values.get(name) for name in self._parameters.columns])
        return self._build_cell_call(row[self._column], values, varying)

    @abstractmethod
    def _build_cell_call(self, cell: Any, given: dict[str, Any], alike: str) -> PlannedCall:
        """Return the call for a text or recording."""

    def _build_planned_call(self, operation: Operation[Any], alike: str, **amounts: Any) -> PlannedCall:
        """Check an operation and return its call. Equal options are checked once for all their rows."""
        options = self._options.get(alike)
        if options is None:
            options = self._rules.build_parameters(operation)
            del options[self.works_on]
            if len(self._options) >= _MAX_OPTIONS:
                self._options.clear()
            self._options[alike] = options
        content = self._rules.build_content(operation)
        parameters = {**options, **content}
        key = compute_request_key(self.operation, parameters, service=self._service, repeat=self._repeat)
        return PlannedCall(key, operation, options, content, **amounts)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_options": {}, "_rules": None}  # workers make no plans

    async def send(self, call: PlannedCall, lab: AsyncClient) -> CallResult:
        """Make a call."""
        operation = await self._prepare_operation(call)
        result = await lab.perform(operation)
        usage = getattr(result, "usage", None)  # of a translation
        return CallResult(
            call.parameters,
            operation.build_record(result),
            result.timing,
            operation.collect_files(result),
            audio_s=getattr(result, "duration_s", call.audio_s),  # of speech, else of the recording
            tokens=usage.total_tokens or 0 if usage else 0,
        )

    async def _prepare_operation(self, call: PlannedCall) -> Operation[Any]:
        """Return the operation of a call, ready to be sent."""
        return call.operation

    @staticmethod
    @abstractmethod
    def to_cells(stored: StoredResult) -> dict[str, Any]:
        """Return the result columns of a stored result."""

    @classmethod
    def to_digest_values(cls, stored: StoredResult) -> list[Any]:
        """Return the content of a stored result as JSON values; audio by its SHA-256."""
        values = cls.to_cells(stored)
        return [values[name] for name in cls.content or cls.columns]


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

    def __init__(self, given: Mapping[str, Any], *facts: Any) -> None:
        self._respell = given["respell"]
        super().__init__({name: value for name, value in given.items() if name != "respell"}, *facts)
        if self._respell is not None:
            self.settings["respell"] = [list(entry) for entry in self._respell]
            text = (
                describe_absent_voices(self._respell, self._voices) if self._voices and is_warning() else ""
            )
            if text:
                warn_user(text, stacklevel=find_user_stacklevel())

    def _check_common_values(self, same: dict[str, Any]) -> None:
        if "voice" in same:
            self._resolve_voice(same.pop("voice"), for_all=True)
        given = {name: value for name, value in same.items() if value is not None}
        operation = self._build_operation("a", _ANY_VOICE, **{"format": _FORMATS[0], **given})
        self._rules.check_options(replace(operation, respell=None))  # which needs a voice of the catalogue

    def _build_cell_call(self, cell: Any, given: dict[str, Any], alike: str) -> PlannedCall:
        text = check_text_cell(cell, self._column)
        voice = self._resolve_voice(given.pop("voice"))
        has = voice.formats or _FORMATS
        format_ = next((name for name in _FORMATS if name in has), _FORMATS[0])
        operation = self._build_operation(text, voice, **{"format": format_, **given})
        return self._build_planned_call(operation, alike, characters=len(operation.sent_text))

    def _build_operation(self, text: str, voice: Voice | str, **options: Any) -> Synthesize:
        kind = options["format"]
        if not isinstance(kind, str) or kind not in _FORMATS_ALLOWED:
            message = (
                f"format {str(kind)!r} cannot be kept as a file, as it has no header with the rate; use one of "
                f"{', '.join(sorted(_FORMATS_ALLOWED))}"
            )
            raise InvalidRequestError(message, parameter="format", rule="2.2")
        return Synthesize(text, voice=voice, respell=self._respell, **options)

    def _resolve_voice(self, value: object, *, for_all: bool = False) -> Voice:
        if isinstance(value, Voice):
            return value
        if not isinstance(value, str):
            message = f"voice is {value!r}; give a voice, its id or name, or the column that holds one"
            raise InvalidRequestError(message, parameter="voice")
        assert self._voices is not None
        if for_all and value == "voice":  # the column is missing, even if a voice's description has the word
            raise InvalidRequestError(describe_missing_columns(self._have, value), parameter="voice")
        try:
            return self._voices[value]
        except InvalidRequestError as error:
            if not for_all:
                raise
            message = f"{describe_missing_columns(self._have, value)}; and {error}"
            raise InvalidRequestError(message, parameter="voice") from None

    @staticmethod
    def to_cells(stored: StoredResult) -> dict[str, Any]:
        return {"audio": str(stored.files["audio"]), **stored.response}

    @classmethod
    def to_digest_values(cls, stored: StoredResult) -> list[Any]:
        # the name of a file is the digest of its content; its folder does not matter
        return [stored.files["audio"].name, *super().to_digest_values(stored)[1:]]


class TranscriptionStep(RowStep):
    """Transcription: audio to text."""

    operation = "transcribe"
    parameters = TranscriptionParameters
    works_on = "audio"
    columns: ClassVar[Mapping[str, str]] = {
        "hypothesis": "string",
        "hypothesis_language": "category",
        "confidence": "float64",
        MODEL_COLUMN: "category",
    }
    content = ("hypothesis", "hypothesis_language", "confidence")

    def _check_common_values(self, same: dict[str, Any]) -> None:
        # if vad is a column, its other options apply to the rows with segments
        mode = {"vad": VadMode.SEGMENTS} if "vad" in self._parameters.columns else {}
        self._rules.check_options(Transcribe(b"", **{**same, **mode}))

    def _build_cell_call(self, cell: Any, given: dict[str, Any], alike: str) -> PlannedCall:
        audio = read_recording_cell(cell, self._column)
        call = self._build_planned_call(
            Transcribe(audio, **given), alike, audio_s=read_header_duration_s(audio)
        )
        if isinstance(cell, bytes) or callable(getattr(cell, "read", None)):
            return call
        # the audio of a long table must not stay in memory: files are read again, and clips encoded, when sent
        return replace(call, operation=Transcribe(cell, **given))

    async def _prepare_operation(self, call: PlannedCall) -> Transcribe:
        operation = cast("Transcribe", call.operation)
        if isinstance(operation.audio, bytes | AudioClip):  # neither changes
            return operation
        return await asyncio.to_thread(self._reload_unchanged_audio, operation, call)

    def _reload_unchanged_audio(self, operation: Transcribe, call: PlannedCall) -> Transcribe:
        audio = operation.audio
        reread = replace(operation, audio=read_recording_cell(audio, self._column))
        if reread.content != call.content:
            name = os.fspath(audio) if is_path(audio) else f"a recording in column {self._column!r}"
            raise AudioDecodeError(f"{name} was changed since the batch was planned; plan it again")
        return reread

    @staticmethod
    def to_cells(stored: StoredResult) -> dict[str, Any]:
        response = stored.response
        return {
            "hypothesis": response["text"],
            "hypothesis_language": response["language"],
            "confidence": response["confidence"],
            MODEL_COLUMN: response.get("model"),
            "processing_s": response["processing_s"],
        }

    @classmethod
    def to_digest_values(cls, stored: StoredResult) -> list[Any]:
        return [*super().to_digest_values(stored), stored.response.get("segments")]


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

    def _check_common_values(self, same: dict[str, Any]) -> None:
        self._rules.check_options(Translate("a", **{"source_lang": "ja", "target_lang": "en", **same}))
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

    def _build_cell_call(self, cell: Any, given: dict[str, Any], alike: str) -> PlannedCall:
        text = check_text_cell(cell, self._column)
        self._check_languages(given)
        return self._build_planned_call(Translate(text, **given), alike, characters=len(text))

    @staticmethod
    def to_cells(stored: StoredResult) -> dict[str, Any]:
        response = dict(stored.response)
        return {"translation": response.pop("text"), **response}


# The steps, by the names of their operations.
STEPS: dict[str, type[RowStep]] = {
    step.operation: step for step in (SynthesisStep, TranscriptionStep, TranslationStep)
}
