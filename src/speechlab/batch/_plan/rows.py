"""The steps of batches: operations asked of each row, with the columns that they read and add."""

from __future__ import annotations

import asyncio
import os
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from speechlab._arguments import no_column, refused
from speechlab.batch._plan.parameters import (
    Column,
    SynthesisParameters,
    TranscriptionParameters,
    TranslationParameters,
    read_parameters,
    text_cell,
    types_of,
)
from speechlab.batch._plan.recordings import is_path, recording_of, seconds_of
from speechlab.client import Synthesize, Transcribe, Translate
from speechlab.contract import AudioFormat, VadMode, Voice, request_key
from speechlab.errors import AudioDecodeError, InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from speechlab.batch._plan.parameters import Row
    from speechlab.client import (
        AsyncClient,
        Operation,
        SpeechClip,
        Timing,
        Transcript,
        Translation,
        VoiceCatalogue,
    )
    from speechlab.contract import OperationName
    from speechlab.store import Stored

_FORMATS = frozenset(AudioFormat) - {AudioFormat.PCM}
_ANY_VOICE = "00000000-0000-0000-0000-000000000000"
_MAX_OPTIONS = 1_000
"""Combinations of options that are remembered."""
_NUMBER = re.compile(r"\b(int|float)\b")


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call to make for a row, or for several rows that ask the same.

    Attributes:
        key: Key of the result.
        operation: What is asked; a recording is named by its path, and not held.
        options: Its parameters but for the text or recording, shared with the calls that have the same.
        characters: Length of the text, in code points.
        audio_s: Length of the recording in seconds, as far as its header tells.
    """

    key: str
    operation: Operation[Any] = field(repr=False)
    options: dict[str, Any]
    characters: int = 0
    audio_s: float = 0.0

    @property
    def parameters(self) -> dict[str, Any]:
        """All that can change the result."""
        return {**self.options, **self.operation.content}


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call, as the store keeps it.

    Attributes:
        request: All that could change them; kept with them.
        response: Values for the store.
        timing: How the call went.
        files: By role: bytes, and the suffix of their file.
        audio_s: Seconds of audio that were made or heard.
        tokens: Tokens read and written.
    """

    request: dict[str, Any]
    response: dict[str, Any]
    timing: Timing
    files: dict[str, tuple[bytes, str]]
    audio_s: float = 0.0
    tokens: int = 0


class RowStep(ABC):
    """An operation over the rows of a table.

    Args:
        given: The parameters, complete.
        have: Names of the table's columns.
        service: Identity of the service, never a credential.
        voices: Its catalogue, if the operation needs it.

    Attributes:
        operation: Its name in the contract.
        parameters: What it takes, by name and type.
        works_on: The parameter that names the column of texts or recordings.
        wants_voices: Whether it has to know the service's catalogue.
        columns: Result columns and their types.
        content: Those of them that are the result, and not how it came about.
        needs: Columns of the input.
        texts: Those of them whose cells are texts, also where a file does not say so.
        settings: The parameters, for the manifest.

    Raises:
        InvalidRequestError: A parameter is not allowed, or the table lacks a column.
    """

    operation: ClassVar[OperationName]
    parameters: ClassVar[type]
    works_on: ClassVar[str]
    wants_voices: ClassVar[bool] = False
    columns: ClassVar[Mapping[str, str]]
    content: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        given: Mapping[str, Any],
        have: Sequence[Any],
        *,
        service: str,
        voices: VoiceCatalogue | None = None,
    ) -> None:
        values = dict(given)
        self._have, self._service, self._voices = have, service, voices
        self._column = _column(values.pop(self.works_on), self.works_on)
        self._repeat = int(values.pop("repeat"))
        self._parameters = read_parameters(values, have)
        self._options: dict[str, dict[str, Any]] = {}
        self.needs = (self._column, *self._parameters.columns.values())
        types = types_of(self.parameters)
        texts = (at for name, at in self._parameters.columns.items() if not _NUMBER.search(types[name]))
        self.texts = frozenset({self._column, *texts})
        self.settings = self._settings()
        # what no row could have is refused before any work is done
        self._check(dict(self._parameters.same))

    @abstractmethod
    def _check(self, same: dict[str, Any]) -> None:
        """Refuse parameters, the same for all rows, that no row could have."""

    def call(self, row: Row) -> PlannedCall:
        """Return the call for a row.

        Raises:
            SpeechLabError: The row cannot be asked.
        """
        given = self._parameters.of(row)
        alike = repr([given.get(name) for name in self._parameters.columns])
        return self._call(row[self._column], given, alike)

    @abstractmethod
    def _call(self, cell: Any, given: dict[str, Any], alike: str) -> PlannedCall:
        """The call for a text or recording.

        Args:
            cell: The text or recording.
            given: The parameters of the row.
            alike: Those from columns as a text, the same for rows that have the same options.
        """

    def _planned(self, operation: Operation[Any], alike: str, **amounts: Any) -> PlannedCall:
        """The call for an operation, which is checked by this; options of rows that are alike are checked once."""
        options = self._options.get(alike)
        if options is None:
            options = operation.parameters
            del options[self.works_on]
            if len(self._options) >= _MAX_OPTIONS:
                self._options.clear()
            self._options[alike] = options
        parameters = {**options, **operation.content}
        key = request_key(self.operation, parameters, service=self._service, repeat=self._repeat)
        return PlannedCall(key, operation, options, **amounts)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_options": {}}  # workers plan nothing

    async def send(self, call: PlannedCall, lab: AsyncClient) -> CallResult:
        """Make a call.

        Raises:
            SpeechLabError: It failed.
        """
        operation = await self._ready(call)
        result = await lab.perform(operation)
        amounts = self._amounts(call, result)
        kept, files = operation.kept(result), operation.files(result)
        return CallResult({**call.options, **operation.content}, kept, result.timing, files, **amounts)

    async def _ready(self, call: PlannedCall) -> Operation[Any]:
        """The operation of a call, ready to be sent."""
        return call.operation

    @staticmethod
    @abstractmethod
    def _amounts(call: PlannedCall, result: Any) -> dict[str, Any]:
        """The seconds of audio and the tokens of a result."""

    @staticmethod
    @abstractmethod
    def values(stored: Stored) -> dict[str, Any]:
        """Return the result columns of a stored result."""

    @classmethod
    def evidence(cls, stored: Stored) -> list[Any]:
        """Return the content of a stored result as JSON values; audio by its SHA-256."""
        values = cls.values(stored)
        return [values[name] for name in cls.content]

    def _settings(self) -> dict[str, Any]:
        """The parameters for the manifest: those of all rows by value, and which are columns."""
        same = {
            name: value.id if isinstance(value, Voice) else value
            for name, value in self._parameters.same.items()
            if value is not None
        }
        columns = {self.works_on: self._column, **self._parameters.columns}
        return {**same, "repeat": self._repeat, "columns": columns}


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
        _ = self._operation("a", _ANY_VOICE, **{"format": "flac", **same}).parameters

    def _call(self, cell: Any, given: dict[str, Any], alike: str) -> PlannedCall:
        text = text_cell(cell, self._column)
        voice = self._find(given.pop("voice"))
        operation = self._operation(text, voice, **{"format": "flac", **given})
        return self._planned(operation, alike, characters=len(text))

    @staticmethod
    def _operation(text: str, voice: Voice | str, **options: Any) -> Synthesize:
        kind = options["format"]
        if not isinstance(kind, str) or kind not in _FORMATS:
            message = (
                f"format {kind!r} cannot be kept as a file that tells its own rate; use one of "
                f"{', '.join(sorted(_FORMATS))}"
            )
            raise InvalidRequestError(message, parameter="format", rule="2.2")
        return Synthesize(text, voice=voice, **options)

    def _find(self, value: object, *, for_all: bool = False) -> Voice:
        if isinstance(value, Voice):
            return value
        if not isinstance(value, str):
            message = f"voice is {value!r}; give a voice, its id or name, or the column that holds one"
            raise InvalidRequestError(message, parameter="voice")
        assert self._voices is not None
        if for_all and value == "voice":  # a column was meant, whatever a description may say
            raise InvalidRequestError(no_column(self._have, value), parameter="voice")
        try:
            return self._voices[value]
        except InvalidRequestError as error:
            if not for_all:
                raise
            message = f"{no_column(self._have, value)}; and {error}"
            raise InvalidRequestError(message, parameter="voice") from None

    @staticmethod
    def _amounts(call: PlannedCall, result: SpeechClip) -> dict[str, Any]:  # noqa: ARG004
        return {"audio_s": result.duration_s}

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
        # without segments, some options are not looked at
        for options in ({**same, "vad": VadMode.SEGMENTS}, same):
            _ = Transcribe(b"", **options).options

    def _call(self, cell: Any, given: dict[str, Any], alike: str) -> PlannedCall:
        audio = recording_of(cell, self._column)
        call = self._planned(Transcribe(audio, **given), alike, audio_s=seconds_of(audio))
        if isinstance(cell, bytes):
            return call
        # a long table must not lie in memory as audio: files are read again, and clips encoded, to be sent
        return replace(call, operation=Transcribe(cell, **given))

    async def _ready(self, call: PlannedCall) -> Transcribe:
        operation = cast("Transcribe", call.operation)
        if isinstance(operation.audio, bytes):
            return operation
        return await asyncio.to_thread(self._read_again, operation, call)

    def _read_again(self, operation: Transcribe, call: PlannedCall) -> Transcribe:
        audio = operation.audio
        again = replace(operation, audio=recording_of(audio, self._column))
        if again.key(self._service, self._repeat) != call.key:
            name = os.fspath(audio) if is_path(audio) else f"a recording in column {self._column!r}"
            raise AudioDecodeError(f"{name} was changed since the batch was planned; plan it again")
        return again

    @staticmethod
    def _amounts(call: PlannedCall, result: Transcript) -> dict[str, Any]:  # noqa: ARG004
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
        _ = Translate("a", **{"source_lang": "ja", "target_lang": "en", **same}).parameters

    def _call(self, cell: Any, given: dict[str, Any], alike: str) -> PlannedCall:
        text = text_cell(cell, self._column)
        return self._planned(Translate(text, **given), alike, characters=len(text))

    @staticmethod
    def _amounts(call: PlannedCall, result: Translation) -> dict[str, Any]:  # noqa: ARG004
        return {"tokens": result.usage.total_tokens or 0 if result.usage else 0}

    @staticmethod
    def values(stored: Stored) -> dict[str, Any]:
        kept = dict(stored.response)
        return {"translation": kept.pop("text"), **kept}


STEPS: dict[str, type[RowStep]] = {
    step.operation: step for step in (SynthesisStep, TranscriptionStep, TranslationStep)
}
"""The steps, by the names of their operations."""


def _column(name: object, parameter: str) -> str:
    """The name of the column that is worked on."""
    plain = name.name if isinstance(name, Column) else name
    if not isinstance(plain, str):
        raise refused(parameter, plain, "the name of a column, a string")
    return plain
