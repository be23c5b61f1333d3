"""Parameters of an operation: the same for all rows, or columns. One rule tells which."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Required, TypedDict

from speechlab._arguments import is_missing, no_column, plain_number
from speechlab.batch._plan.mistyped import ask_if_mistyped
from speechlab.contract import AudioFormat, Language, VadMode, Voice
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    Row = Mapping[str, Any]

_TAG = re.compile(r"[A-Za-z]{2,3}([-_]([A-Z][a-z]{3}|[A-Za-z]{2}|\d{3}))*")
_REQUIRED = frozenset({"voice", "source_lang", "target_lang"})
_LANGUAGES = frozenset({"language", "source_lang", "target_lang"})
_TERMS = frozenset({"keywords", "hotwords"})


def types_of(options: type) -> dict[str, str]:
    """Return the types of a TypedDict's entries, as they are written in it."""
    return {name: one.__forward_arg__ for name, one in options.__annotations__.items()}


@dataclass(frozen=True, slots=True)
class Column:
    """Marks a parameter as a column, where its name alone might be read as a value.

    ``text`` and ``audio`` are always names of columns. Of every other parameter, a string is

    1. a value, if the parameter knows it, also where a column has that name: ja, en or zh as a language, with a
       region or without; a format; a mode of ``vad``;
    2. or else a column, if the table has one of that name;
    3. or else a value, the same for all rows: a voice, a model, a context.

    ``Column("ja")`` is a column in each case, and ``Value("ja")`` a value. A value that may be a mistyped column is
    refused, if a column has a name like it, or else told in a warning. What is no string is the same for all rows. An
    empty cell leaves the parameter out for that row; where it is needed, the row is an error.

    Attributes:
        name: Of the column: a text, or a number or tuple in a table whose columns are named so.

    Example:
        >>> Column("ja"), Value("ja")
        (Column(name='ja'), Value(value='ja'))
    """

    name: Any


@dataclass(frozen=True, slots=True)
class Value:
    """Marks a parameter as the same for all rows, where a column may have been meant; see :class:`Column`.

    Attributes:
        value: For all rows.
    """

    value: Any


class SynthesisParameters(TypedDict, total=False):
    """What to speak, and how."""

    text: Any
    voice: str | Voice | Column | Value
    format: str | Column | Value
    sample_rate: int | str | Column | Value | None
    temperature: float | str | Column | Value | None
    repeat: int


class TranscriptionParameters(TypedDict, total=False):
    """What to transcribe, and how."""

    audio: Any
    language: str | Column | Value | None
    hotwords: Sequence[str] | str | Column | Value | None
    vad: str | int | Column | Value
    min_silence_gap: int | str | Column | Value | None
    segment_padding: int | str | Column | Value | None
    initial_segment_padding_ms: int | str | Column | Value | None
    speech_pad_ms: int | str | Column | Value | None
    min_segment_duration: float | str | Column | Value | None
    temperature: float | str | Column | Value | None
    top_p: float | str | Column | Value | None
    frequency_penalty: float | str | Column | Value | None
    repetition_penalty: float | str | Column | Value | None
    session_id: str | Column | Value | None
    repeat: int


class TranslationParameters(TypedDict, total=False):
    """What to translate, and how."""

    text: Any
    source_lang: Required[str | Column | Value]
    target_lang: Required[str | Column | Value]
    keywords: Sequence[str] | str | Column | Value
    context: str | Column | Value | None
    model: str | Column | Value | None
    repeat: int


@dataclass(frozen=True)
class Parameters:
    """The parameters of an operation for a table.

    Attributes:
        same: Those that are the same for all rows.
        columns: The column of each that is not.
    """

    same: Mapping[str, Any]
    columns: Mapping[str, Any]

    def of(self, row: Row) -> dict[str, Any]:
        """Return the parameters of a row that are not None.

        Raises:
            InvalidRequestError: A cell is empty where there must be something, or holds no text where it must.
        """
        given = dict(self._given)
        for name, at in self.columns.items():
            if (value := _cell(name, row[at], at)) is not None:
                given[name] = value
        return given

    @cached_property
    def _given(self) -> dict[str, Any]:
        return {name: value for name, value in self.same.items() if value is not None}


def read_parameters(
    given: Mapping[str, Any], have: Sequence[Any], numbers: Collection[str] = ()
) -> Parameters:
    """Tell columns from values.

    Args:
        given: Parameters by name.
        have: Names of the table's columns.
        numbers: Names of those parameters that take numbers.

    Raises:
        InvalidRequestError: There is no such column, or a string can be neither, or may be either.
    """
    same, columns = {}, {}
    for name, value in given.items():
        if isinstance(value, Value):
            same[name] = _listed(name, plain_number(value.value))
        elif isinstance(value, Column) or (
            isinstance(value, str) and value in have and not _knows(name, value)
        ):
            columns[name] = _present(value.name if isinstance(value, Column) else value, have)
        elif name in _LANGUAGES and isinstance(value, str) and not _TAG.fullmatch(value):
            shown = ", ".join(map(repr, have)) or "none"
            message = (
                f"{name} {value!r} is no language code, such as 'ja', and no column; the table has {shown}"
            )
            raise InvalidRequestError(message, parameter=name)
        elif name in numbers and isinstance(value, str):
            shown = ", ".join(map(repr, have)) or "none"
            message = f"{name} {value!r:.60} is no number, and no column; the table has {shown}"
            raise InvalidRequestError(message, parameter=name)
        else:
            if isinstance(value, str) and not _knows(name, value):
                ask_if_mistyped(name, value, have)
            same[name] = _listed(name, plain_number(value))
    return Parameters(same, columns)


def _present(name: Any, have: Sequence[Any]) -> Any:
    if name not in have:
        raise InvalidRequestError(no_column(have, name), parameter=str(name)[:60])
    return name


def _knows(name: str, value: str) -> bool:
    """Return whether a string is one of the values that a parameter has names for."""
    if name in _LANGUAGES:  # not any code: "to" and "id" are codes too, and columns more often
        return bool(_TAG.fullmatch(value)) and re.split("[-_]", value.lower())[0] in set(Language)
    return (name == "format" and value in set(AudioFormat)) or (name == "vad" and value in set(VadMode))


def _listed(name: str, value: Any) -> Any:
    if name not in _TERMS or value is None:
        return value
    if isinstance(value, Mapping):
        message = (
            f"{name} is a {type(value).__name__}, of which only the keys could be sent, because the service takes "
            "terms alone; give a list of them"
        )
        raise InvalidRequestError(message, parameter=name)
    try:
        return [value] if isinstance(value, str) else list(value)
    except TypeError:
        message = f"{name} is {value!r}; give a list of words"
        raise InvalidRequestError(message, parameter=name) from None


def text_cell(value: object, column: str) -> str:
    """Return a cell that must hold text.

    Raises:
        InvalidRequestError: It is empty, or something else.
    """
    if isinstance(value, str):
        return value
    message = f"column {column!r} is empty in this row"
    if not is_missing(value):
        message = (
            f"column {column!r} holds {value!r:.40} ({type(value).__name__}) in this row, and must hold text"
        )
    raise InvalidRequestError(message, parameter=column)


def _cell(name: str, value: Any, column: str) -> Any:
    if name == "voice" and isinstance(value, Voice):
        return value
    if name in _REQUIRED or isinstance(value, str):
        value = text_cell(value, column)
        if name in _LANGUAGES and value and not _TAG.fullmatch(value):
            message = (
                f"column {column!r} holds {value[:20]!r} in this row, which is no language code such as 'ja'"
            )
            raise InvalidRequestError(message, parameter=name)
    elif is_missing(value):
        return None
    elif isinstance(value, float) and value.is_integer():
        value = int(value)  # whole numbers beside an empty cell are floats in a table
    return _listed(name, value)
