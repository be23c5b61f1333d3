"""Parameters and recordings of an operation: one value for all rows, or a column, by the rule of :class:`Column`."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any, Required, TypedDict, TypeGuard

from speechlab._arguments import describe_missing_columns, is_missing, to_python_number
from speechlab._files import expand_user_path, read_regular_file
from speechlab._traces import warn_user
from speechlab.audio import RECORDINGS_ALLOWED, AudioClip, measure_length_s, unify_recording
from speechlab.batch._outcome import find_user_stacklevel
from speechlab.contract import AudioFormat, Language, VadMode, Voice
from speechlab.errors import AudioDecodeError, InvalidRequestError
from speechlab.remote import hide_secrets, is_remote, locate_file

if TYPE_CHECKING:
    from speechlab.text import Lexicon

    Row = Mapping[str, Any]

# A result that a later step replaces like bookkeeping: who drops the text of a step does not know of its model.
MODEL_COLUMN = "hypothesis_model"
_LANGUAGE_TAG = re.compile(r"[A-Za-z]{2,3}([-_]([A-Z][a-z]{3}|[A-Za-z]{2}|\d{3}))*")
_REQUIRED_PARAMETERS = frozenset({"voice", "source_lang", "target_lang"})
_LANGUAGE_PARAMETERS = frozenset({"language", "source_lang", "target_lang"})
_TERM_PARAMETERS = frozenset({"keywords", "hotwords"})


def collect_annotation_texts(options: type) -> dict[str, str]:
    """Return the types of a TypedDict's entries as they are written in the source."""
    return {name: kind.__forward_arg__ for name, kind in options.__annotations__.items()}


@dataclass(frozen=True, slots=True)
class Column:
    """Mark an argument as a column whose name could also be a value.

    ``text`` and ``audio`` are always names of columns. For every other parameter, a string is

    1. a value, if the parameter knows it, even if a column has that name: ja, en or zh as a language, with or without
       a region; a format; a mode of ``vad``;
    2. otherwise a column, if the table has one of that name;
    3. otherwise a value for all rows: a voice, a model, a context.

    ``Column("ja")`` is always a column, and ``Value("ja")`` always a value. A value that may be a mistyped column
    raises an error if a column has a similar name, and gives a warning otherwise. Anything but a string is a value
    for all rows. An empty cell leaves the parameter out for its row. If the parameter is required, the row is an
    error.

    Attributes:
        name: Name of the column: a text, or a number or tuple if the table's columns have such names.

    Example:
        >>> Column("ja"), Value("ja")
        (Column(name='ja'), Value(value='ja'))
    """

    name: Any


@dataclass(frozen=True, slots=True)
class Value:
    """Mark an argument as a value for all rows that could also be the name of a column; see :class:`Column`.

    Attributes:
        value: The value for all rows.
    """

    value: Any


class SynthesisParameters(TypedDict, total=False):
    """Parameters of a synthesis."""

    text: Any
    voice: str | Voice | Column | Value
    format: str | Column | Value | None
    sample_rate: int | str | Column | Value | None
    temperature: float | str | Column | Value | None
    respell: Lexicon | None
    repeat: int


class TranscriptionParameters(TypedDict, total=False):
    """Parameters of a transcription."""

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
    stream: bool
    repeat: int


class TranslationParameters(TypedDict, total=False):
    """Parameters of a translation."""

    text: Any
    source_lang: Required[str | Column | Value]
    target_lang: Required[str | Column | Value]
    keywords: Sequence[str] | str | Column | Value
    context: str | Column | Value | None
    model: str | Column | Value | None
    repeat: int


@dataclass(frozen=True)
class Parameters:
    """The parameters of an operation for a table."""

    same: Mapping[str, Any]
    columns: Mapping[str, Any]

    def collect_row_values(self, row: Row) -> dict[str, Any]:
        """Return the parameters of a row that are not None."""
        values = dict(self._common_values)
        for name, at in self.columns.items():
            if (value := _normalize_cell(name, row[at], at)) is not None:
                values[name] = value
        return values

    @cached_property
    def _common_values(self) -> dict[str, Any]:
        return {name: value for name, value in self.same.items() if value is not None}


def split_columns_and_values(
    given: Mapping[str, Any], have: Sequence[Any], numbers: Collection[str]
) -> Parameters:
    """Sort arguments into columns and values by the rule of :class:`Column`."""
    same, columns = {}, {}
    for name, value in given.items():
        if isinstance(value, Value):
            same[name] = _normalize_terms_parameter(name, to_python_number(value.value))
        elif isinstance(value, Column) or (
            isinstance(value, str) and value in have and not _is_known_parameter_value(name, value)
        ):
            column = value.name if isinstance(value, Column) else value
            if column not in have:
                raise InvalidRequestError(describe_missing_columns(have, column), parameter=str(column)[:60])
            columns[name] = column
        else:
            if isinstance(value, str):
                _check_text_value(name, value, have, numbers)
            same[name] = _normalize_terms_parameter(name, to_python_number(value))
    return Parameters(same, columns)


def _is_known_parameter_value(name: str, value: str) -> bool:
    """Return whether a string is one of the named values of a parameter."""
    if name in _LANGUAGE_PARAMETERS:  # not any code: "to" and "id" are language codes, but more often columns
        return bool(_LANGUAGE_TAG.fullmatch(value)) and re.split("[-_]", value.lower())[0] in set(Language)
    return (name == "format" and value in set(AudioFormat)) or (name == "vad" and value in set(VadMode))


def _normalize_terms_parameter(name: str, value: Any) -> Any:
    if name not in _TERM_PARAMETERS or value is None:
        return value
    if isinstance(value, Mapping):
        message = (
            f"{name} is a {type(value).__name__}, and the service accepts terms without values; give a list of "
            "terms"
        )
        raise InvalidRequestError(message, parameter=name)
    try:
        return [value] if isinstance(value, str) else list(value)
    except TypeError:
        message = f"{name} is {value!r}; give a list of words"
        raise InvalidRequestError(message, parameter=name) from None


def check_text_cell(value: object, column: str) -> str:
    """Return a cell that must hold text."""
    if isinstance(value, str):
        return value
    message = f"column {column!r} is empty in this row"
    if not is_missing(value):
        message = (
            f"column {column!r} holds {value!r:.40} ({type(value).__name__}) in this row, and must hold text"
        )
    raise InvalidRequestError(message, parameter=column)


def _normalize_cell(name: str, value: Any, column: str) -> Any:
    if name == "voice" and isinstance(value, Voice):
        return value
    if name in _REQUIRED_PARAMETERS or isinstance(value, str):
        value = check_text_cell(value, column)
        if name in _LANGUAGE_PARAMETERS and value and not _LANGUAGE_TAG.fullmatch(value):
            message = (
                f"column {column!r} holds {value[:20]!r} in this row, which is no language code such as 'ja'"
            )
            raise InvalidRequestError(message, parameter=name)
    elif is_missing(value):
        return None
    elif isinstance(value, float) and value.is_integer():
        value = int(value)  # pandas stores whole numbers as floats if a cell of the column is empty
    return _normalize_terms_parameter(name, value)


# Parameters whose texts speechlab cannot check.
_FREE_TEXT_PARAMETERS = frozenset(
    {"keywords", "hotwords", "context", "model", "session_id", "source_lang", "target_lang", "language"}
)
# Parameters of these whose values are words that seldom look like names of columns.
_WORD_PARAMETERS = frozenset({"keywords", "hotwords", "context"})
_MAX_NAME = 40
_MIN_NAME = 3
_MIN_SIMILARITY = 0.8
_COLUMN_NAME = re.compile(r"[a-z][a-z0-9_]{2,39}")


def _check_text_value(parameter: str, value: str, have: Sequence[Any], numbers: Collection[str]) -> None:
    """Refuse a text that a parameter cannot have, or nearly the name of a column; warn if it looks like a name."""
    names = ", ".join(map(repr, have)) or "none"
    lacking_tag = parameter in _LANGUAGE_PARAMETERS and not _LANGUAGE_TAG.fullmatch(value)
    if lacking_tag or parameter in numbers:
        noun = "language code, such as 'ja'" if lacking_tag else "number"
        message = f"{parameter} {value!r:.60} is no {noun}, and no column; the table has {names}"
        raise InvalidRequestError(message, parameter=parameter)
    if parameter not in _FREE_TEXT_PARAMETERS or _is_known_parameter_value(parameter, value):
        return
    near = _find_similar_column(value, [name for name in have if isinstance(name, str)])
    if near is not None:
        message = (
            f"{parameter} {value!r} is no column of the table, but {near!r} is. Say which is meant: "
            f"{parameter}=sl.batch.Column({near!r}) for the column, or {parameter}=sl.batch.Value({value!r}) for "
            "this text in every row"
        )
        raise InvalidRequestError(message, parameter=parameter)
    if value == parameter:
        message = (
            f"{parameter} {value!r} is no column of the table, which has {names}; "
            f"give sl.batch.Column(…) for one of them, or sl.batch.Value({value!r}) for this text in every row"
        )
        raise InvalidRequestError(message, parameter=parameter)
    if parameter in _WORD_PARAMETERS and _COLUMN_NAME.fullmatch(value):
        message = (
            f"{parameter} is the text {value!r} for every row, since no column has that name; "
            f"{parameter}=sl.batch.Value({value!r}) says the same without this warning"
        )
        warn_user(message, stacklevel=find_user_stacklevel())


def _find_similar_column(value: str, columns: list[str]) -> str | None:
    """The column with a name similar to a value: of the same letters, one of its words, or nearly the same."""
    bare = _simplify_name(value)
    if not _MIN_NAME <= len(bare) <= _MAX_NAME:
        return None
    for name in columns:
        if sorted(bare) == sorted(_simplify_name(name)) or bare in map(
            _simplify_name, re.split(r"[\W_]+", name)
        ):
            return name
    close = get_close_matches(bare, [_simplify_name(name) for name in columns], n=1, cutoff=_MIN_SIMILARITY)
    return next((name for name in columns if close and _simplify_name(name) == close[0]), None)


def _simplify_name(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def is_path(source: object) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether a cell names a file."""
    return isinstance(source, str | os.PathLike)


def check_recording_cell(source: object, column: object) -> bytes | AudioClip | str | os.PathLike[str]:
    """Return a cell that holds a recording, or the path of one."""
    if isinstance(source, bytes | AudioClip):
        return source
    is_blank = isinstance(source, str) and not source.strip()
    is_empty = isinstance(source, Mapping) and all(value is None for value in source.values())
    if is_blank or is_empty or is_missing(source):
        raise InvalidRequestError(f"column {column!r} is empty in this row", parameter=str(column))
    recording = unify_recording(source)
    if recording is not None:
        return recording
    message = (
        f"column {column!r} holds {source!r:.40} ({type(source).__name__}) in this row, and must hold a recording: "
        f"{RECORDINGS_ALLOWED}"
    )
    raise InvalidRequestError(message, parameter=str(column))


def read_recording_cell(source: object, column: str) -> bytes | AudioClip:
    """Return the recording in a cell: the bytes of the named file, or the bytes or clip in the cell."""
    recording = check_recording_cell(source, column)
    if isinstance(recording, bytes | AudioClip):
        return recording
    path = hide_secrets(recording) if is_remote(recording) else expand_user_path(recording)
    try:
        return read_regular_file(locate_file(recording))
    except FileNotFoundError:
        message = f"there is no file {str(path)!r}"
    except IsADirectoryError:
        message = f"{path} is a folder; give the path of a recording"
    except (OSError, ValueError) as error:
        message = f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
    raise AudioDecodeError(message)


def read_header_duration_s(recording: bytes | AudioClip) -> float:
    """Return the duration of a recording in seconds from its header; 0 if the header does not have it."""
    if isinstance(recording, AudioClip):
        return recording.duration_s
    try:
        return measure_length_s(recording)
    except AudioDecodeError:
        return 0.0
