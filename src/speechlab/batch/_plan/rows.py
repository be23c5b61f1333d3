"""Rows of a table as calls: a step reads the parameters of each row and makes the call with its key."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from speechlab._arguments import refused
from speechlab.batch._plan.parameters import (
    Column,
    read_parameters,
    types_of,
)
from speechlab.contract import Voice, request_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from speechlab.batch._plan.parameters import Row
    from speechlab.client import (
        AsyncClient,
        Operation,
        Timing,
        VoiceCatalogue,
    )
    from speechlab.contract import OperationName
    from speechlab.store import Blob, Stored

_MAX_OPTIONS = 1_000
"""Maximum number of combinations of options that are cached."""
_NUMBER = re.compile(r"(int|float)\b")
"""Beginning of the type of a parameter that takes numbers, where a text can only be the name of a column."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call to make for a row, or for several equal rows.

    Attributes:
        key: Key of the result.
        operation: The operation of the call. It has the path of a recording, not its audio.
        options: The canonical parameters other than the text or recording; calls with equal ones share them.
        content: The text, or the digest of the recording.
        characters: Length of the text in code points.
        audio_s: Duration of the recording in seconds, from its header; 0 if the header does not have it.
    """

    key: str
    operation: Operation[Any] = field(repr=False)
    options: dict[str, Any]
    content: dict[str, Any] = field(repr=False)
    characters: int = 0
    audio_s: float = 0.0

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters that can change the result."""
        return {**self.options, **self.content}


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call, as the store keeps it."""

    request: dict[str, Any]
    response: dict[str, Any]
    timing: Timing
    files: Mapping[str, tuple[bytes, str] | Blob]
    audio_s: float = 0.0
    tokens: int = 0


class RowStep(ABC):
    """An operation over the rows of a table."""

    operation: ClassVar[OperationName]
    parameters: ClassVar[type]
    works_on: ClassVar[str]
    wants_voices: ClassVar[bool] = False
    columns: ClassVar[Mapping[str, str]]
    content: ClassVar[tuple[str, ...]]
    files: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        given: Mapping[str, Any],
        have: Sequence[Any],
        *,
        service: str,
        voices: VoiceCatalogue | None = None,
        fit: Callable[[Any], Any] = lambda operation: operation,
    ) -> None:
        values = dict(given)
        self._have, self._service, self._voices, self._fit = have, service, voices, fit
        self._column = _column(values.pop(self.works_on), self.works_on)
        self._repeat = int(values.pop("repeat"))
        types = types_of(self.parameters)
        numbers = {name for name, kind in types.items() if _NUMBER.match(kind)}
        self._parameters = read_parameters(values, have, numbers)
        self._options: dict[str, dict[str, Any]] = {}
        self.needs = (self._column, *self._parameters.columns.values())
        texts = (at for name, at in self._parameters.columns.items() if name not in numbers)
        self.texts = frozenset({self._column, *texts})
        self.settings = self._settings()
        # a value that is invalid for every row is refused before any work
        self._check(dict(self._parameters.same))

    @abstractmethod
    def _check(self, same: dict[str, Any]) -> None:
        """Refuse values for all rows that would make every row invalid."""

    def call(self, row: Row) -> PlannedCall:
        """Return the call for a row."""
        values = self._parameters.of(row)
        alike = repr([values.get(name) for name in self._parameters.columns])
        return self._call(row[self._column], values, alike)

    @abstractmethod
    def _call(self, cell: Any, given: dict[str, Any], alike: str) -> PlannedCall:
        """The call for a text or recording."""

    def _planned(self, operation: Operation[Any], alike: str, **amounts: Any) -> PlannedCall:
        """Check an operation and return its call. Equal options are checked once for all their rows."""
        options = self._options.get(alike)
        if options is None:
            options = operation.parameters
            del options[self.works_on]
            if len(self._options) >= _MAX_OPTIONS:
                self._options.clear()
            self._options[alike] = options
        content = operation.content
        parameters = {**options, **content}
        key = request_key(self.operation, parameters, service=self._service, repeat=self._repeat)
        return PlannedCall(key, operation, options, content, **amounts)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_options": {}, "_fit": None}  # workers make no plans

    async def send(self, call: PlannedCall, lab: AsyncClient) -> CallResult:
        """Make a call."""
        operation = await self._ready(call)
        result = await lab.perform(operation)
        amounts = self._amounts(call, result)
        kept, files = operation.kept(result), operation.files(result)
        return CallResult(call.parameters, kept, result.timing, files, **amounts)

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
        """The parameters for the manifest: the values for all rows, and the names of columns."""
        same = {
            name: value.id if isinstance(value, Voice) else value
            for name, value in self._parameters.same.items()
            if value is not None
        }
        columns = {self.works_on: self._column, **self._parameters.columns}
        for name, at in columns.items():
            if isinstance(at, str):  # JSON does not allow half a surrogate pair
                columns[name] = at.encode("utf-8", "replace").decode()
        return {**same, "repeat": self._repeat, "columns": columns}


def _column(name: object, parameter: str) -> Any:
    """The label of the column of texts or recordings."""
    if isinstance(name, Column):
        return name.name
    if name is None or not isinstance(name, Hashable):
        raise refused(parameter, name, "the name of a column")
    return name
