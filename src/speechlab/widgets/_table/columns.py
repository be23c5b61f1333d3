"""Columns of a table of recordings: the column of recordings, and the kinds of the others."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

import numpy as np

from speechlab._arguments import is_missing, is_number, require_columns, to_column_names, to_python_number
from speechlab.audio import AudioClip, detect_format, unify_recording
from speechlab.errors import AudioError, InvalidRequestError
from speechlab.remote import find_file_name
from speechlab.text import language_code

if TYPE_CHECKING:
    import pandas as pd

Kind: TypeAlias = Literal["text", "label", "category", "list", "number"]

_AUDIO_FILE = re.compile(r"\.(wav|wave|mp3|ogg|oga|opus|flac)$", re.IGNORECASE)
_HYPOTHESIS = re.compile(r"(hyp|transcript|recogni[sz]ed|heard|asr)", re.IGNORECASE)
_HYPOTHESIS_TEXT = re.compile(r"hyp(othesis)?\d?|transcript|translation.*", re.IGNORECASE)
_REFERENCES = ("reference", "text", "sentence")
_LANGUAGE_SUFFIX = re.compile(r"_([a-z]{2})$")
# The bookkeeping of a batch and identifiers of files: available, but not visible at first.
_COLUMNS_TO_HIDE = re.compile(
    r"(key|.*sha256|.*_id|usage_.*|attempts|http_status|error_type|processing_s|first_byte_s|answered_at|sample_rate"
    r"|model|.*_tokens|.*_normalized|normalizer|counts|unit|license)$"
)
# Columns of one of several systems, whose name is at the end.
_OF_SYSTEM = re.compile(r"(hypothesis|error_rate|errors)_(?!rate$|classes)(.+)", re.DOTALL)
_SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_UNITS = {"s": "s", "ms": "ms", "db": "dB", "dbfs": "dBFS", "lufs": "LUFS", "hz": "Hz", "bytes": "bytes"}
_WORDS = {
    **{
        word: word.upper()
        for word in ("cer", "wer", "mer", "id", "rtf", "vad", "asr", "mos", "dnsmos", "url")
    },
    "bleu": "BLEU",
    "chrf": "chrF",
    "ter": "TER",
    "f0": "F0",
    "snr": "SNR",
}
# A yes; a no is empty.
_TICK = "✓"
_MAX_CATEGORIES = 24
_MAX_CATEGORY_CHARACTERS = 40
_MAX_LABEL_CHARACTERS = 24
_MAX_CHARACTERS = 5_000
_MAX_LIST_ITEMS = 100
# Largest whole number that JavaScript represents exactly.
MAX_WHOLE = 2**53
# Names and ids have neither spaces nor letters of scripts without spaces.
_WORD_GAP = re.compile(r"[\s\u3040-\u30ff\u4e00-\u9fff]")
_SAMPLE_ROWS = 50


@dataclass(frozen=True)
class ColumnView:
    """A column of the widget."""

    name: Any
    title: str
    kind: Kind
    shown: bool = True
    lang: str = ""  # of all texts; empty if each row has its own
    compared: bool = False  # whether it is shown as differences from the reference
    decimals: int = 0

    def to_browser_state(self) -> dict[str, Any]:
        """Return the description of the column for the browser."""
        names = ("kind", "shown", "lang", "compared", "decimals", "label")
        return {"name": self.title, **{name: getattr(self, name) for name in names}}

    @property
    def label(self) -> str:
        """The name in words: ``Error rate`` for ``error_rate``, ``Latency (s)`` for ``latency_s``."""
        if match := _OF_SYSTEM.fullmatch(self.title):
            return f"{match[1].replace('_', ' ').capitalize()}, {match[2]}"
        if not _SNAKE_CASE.fullmatch(self.title):
            return self.title
        words = self.title.split("_")
        unit = _UNITS.get(words[-1]) if len(words) > 1 else None
        words = [_WORDS.get(word, word) for word in (words[:-1] if unit else words)]
        text = " ".join([words[0][:1].upper() + words[0][1:], *words[1:]])
        return f"{text} ({unit})" if unit else text


@dataclass(frozen=True)
class Layout:
    """The columns of a table by their roles."""

    audio: Any  # name of the column of recordings, or None
    columns: tuple[ColumnView, ...]
    reference: str = ""  # title of the column
    language: Any = None  # name of the column with the language of each row
    lang: str = ""  # language of all rows
    by_title: Mapping[str, ColumnView] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_title", {column.title: column for column in self.columns})


class ColumnRoles(TypedDict, total=False):
    """Options of a table that give columns their roles, see :func:`build_layout`."""

    audio: Any
    columns: Iterable[Any] | None
    reference: Any
    hypotheses: Any
    language: Any


def build_layout(
    frame: pd.DataFrame,
    *,
    audio: Any = None,
    columns: Iterable[Any] | None = None,
    reference: Any = None,
    hypotheses: Any = None,
    language: Any = None,
    categories: Iterable[Any] = (),
    aside: Iterable[str] = (),
    silent: bool = False,
) -> Layout:
    """Determine the roles of the columns; ``categories`` have any number of texts, ``aside`` are left out."""
    _check_column_names(frame)
    sound = _find_audio_column(frame, audio, silent=silent)
    visible = None if columns is None else to_column_names(columns, "columns")
    compared = None if hypotheses is None else to_column_names(hypotheses, "hypotheses")
    texts = [*(compared or ()), *(() if reference is None else (reference,))]
    frame = require_columns(frame, *(visible or ()), *texts)
    languages, lang = _resolve_language_column_or_code(frame, language)
    names = [name for name in frame.columns if (sound is None or name != sound) and name not in set(aside)]
    if visible is not None:
        names = [
            *(name for name in visible if name in names),
            *(name for name in names if name not in visible),
        ]
    kinds: dict[Any, Kind] = dict.fromkeys(categories, "category")
    kinds.update(dict.fromkeys(texts, "text"))
    described = [_build_column(frame[name], name, visible, compared, kinds.get(name)) for name in names]
    return Layout(sound, tuple(described), _find_reference_column(described, reference), languages, lang)


def _check_column_names(frame: pd.DataFrame) -> None:
    """Refuse names of columns that are equal, or that look equal when displayed."""
    if frame.columns.nlevels > 1:
        message = (
            "the columns have names of several levels; give each one name, as in frame.columns.map('_'.join)"
        )
        raise InvalidRequestError(message, parameter="frame")
    frame = require_columns(frame, *dict.fromkeys(frame.columns))  # each exists exactly once
    titles = [str(name) for name in frame.columns]
    twice = next((title for title in titles if titles.count(title) > 1), None)
    if twice is not None:
        message = f"two columns are displayed as {twice!r}, but only one name is a text; rename one of them"
        raise InvalidRequestError(message, parameter=twice)


def _build_column(
    series: pd.Series[Any],
    name: Any,
    visible: list[Any] | None,
    compared: list[Any] | None,
    known: Kind | None,
) -> ColumnView:
    title = str(name)
    kind, decimals = _infer_kind_and_decimals(series)
    # A few sentences spoken by many voices are texts, not categories.
    if known is None and (title.lower() in _REFERENCES or _HYPOTHESIS_TEXT.fullmatch(title)):
        known = "text"
    if known is not None and kind not in {"number", "list"}:
        kind = known
    chosen = not _COLUMNS_TO_HIDE.match(title) and not series.isna().all()
    matches = bool(_HYPOTHESIS.match(title)) if compared is None else name in compared
    suffix = _LANGUAGE_SUFFIX.search(title)
    return ColumnView(
        name,
        title,
        kind,
        shown=chosen if visible is None else name in visible,
        lang=normalize_language(suffix[1]) if kind == "text" and suffix else "",
        compared=kind == "text" and matches,
        decimals=decimals,
    )


def _resolve_language_column_or_code(frame: pd.DataFrame, given: Any) -> tuple[Any, str]:
    """Name of the column with the language of each row, and the language of all rows; one of them, or neither."""
    if given is None:
        return ("language" if "language" in frame.columns else None), ""
    if given in frame.columns:
        return given, ""
    return None, language_code(given)


def to_json_value(value: Any, kind: Kind) -> Any:
    """Return a cell as JSON: a text, a number, a list of texts, or None; infinities are ``∞`` and ``-∞``."""
    if kind == "list" and _is_text_list(value):
        return [to_json_value(str(item), "text") for item in list(value)[:_MAX_LIST_ITEMS]]
    if is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return _TICK if value else ""
    if kind == "number":
        number = to_python_number(value)
        if not isinstance(number, int) or abs(number) > MAX_WHOLE:
            number = float(number)
        return number if math.isfinite(number) else "∞" if number > 0 else "-∞"
    text = value if isinstance(value, str) else str(value)
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"


def _find_audio_column(frame: pd.DataFrame, given: Any, *, silent: bool) -> Any:
    if given is False:  # a report, whose recordings stand in no other column
        return None
    if given is not None:
        frame = require_columns(
            frame, given, argument="frame", hint="Name the column of sound, as in audio='path'"
        )
        return given
    likely = [name for name in frame.columns if str(name).lower() in {"audio", "clip", "sound", "wav"}]
    # Names of files are no sound next to recordings that are all missing.
    others = () if silent and any(frame[name].isna().all() for name in likely) else frame.columns
    for name in [*likely, *others]:
        values = [value for value in frame[name].head(_SAMPLE_ROWS) if not is_missing(value)]
        if values and all(map(_is_sound_cell, values)):
            return name
    for name in likely:  # its rows have the reasons for missing recordings
        if any(_is_sound_cell(value) for value in frame[name].head(_SAMPLE_ROWS)):
            return name
    if silent:
        return None
    for name in likely:  # if all rows failed, or there are no rows
        if frame[name].isna().all():
            return name
    have = ", ".join(repr(str(name)) for name in frame.columns) or "none"
    message = f"no column holds sound (clips, paths or bytes); name it as in audio='path'. Columns: {have}"
    raise InvalidRequestError(message, parameter="audio")


def _is_sound_cell(value: Any) -> bool:
    if not isinstance(value, str):
        try:
            value = unify_recording(value)
            if isinstance(value, AudioClip):
                return True
            if isinstance(value, bytes):
                return bool(detect_format(value[:4096]))
        except (AudioError, InvalidRequestError):
            return False
    if isinstance(value, PurePath) or (isinstance(value, str) and len(value) < 4_096):
        return bool(_AUDIO_FILE.search(find_file_name(value)))
    return False


def _infer_kind_and_decimals(series: pd.Series[Any]) -> tuple[Kind, int]:
    values = [
        value
        for value in series.tolist()
        if isinstance(value, str) or _is_text_list(value) or not is_missing(value)
    ]
    if values and all(_is_text_list(value) for value in values):
        return "list", 0
    if values and all(is_number(value) for value in values):
        numbers = [to_python_number(value) for value in values]
        if all(isinstance(number, int) for number in numbers) and max(map(abs, numbers)) > MAX_WHOLE:
            return "label", 0  # ids, whose last digits a browser would change
        return "number", _choose_decimals(numbers)
    if not values and str(series.dtype) in {"float64", "Int64"}:
        return "number", 2 if series.dtype.kind == "f" else 0  # to be filled later
    if str(series.dtype) in {"category", "bool", "boolean"}:
        return "category", 0
    if series.dtype.kind in "mM":
        return "label", 0  # dates and durations
    texts = [value if isinstance(value, str) else str(value) for value in values]
    kinds = set(texts)
    few = len(kinds) <= min(_MAX_CATEGORIES, max(len(texts) // 2, 1))
    short = all(len(text) <= _MAX_CATEGORY_CHARACTERS for text in kinds)
    if few and short and len(texts) > 2:
        return "category", 0
    name = bool(kinds) and all(
        len(text) <= _MAX_LABEL_CHARACTERS and not _WORD_GAP.search(text) for text in kinds
    )
    return ("label" if name else "text"), 0


def _is_text_list(value: object) -> bool:
    """Return whether a cell is a list of texts for a filter, or such an array, which Parquet returns for a list."""
    return isinstance(value, list | tuple | np.ndarray) and all(isinstance(item, str) for item in value)


def _choose_decimals(numbers: list[float]) -> int:
    if all(float(number).is_integer() for number in numbers):
        return 0
    largest = max((abs(number) for number in numbers if math.isfinite(number)), default=0.0) or 1.0
    return min(max(2 - math.floor(math.log10(largest)), 0), 4)


def normalize_language(code: Any) -> str:
    """Return the code of a language in its usual form; empty for anything else."""
    try:
        return language_code(code)
    except InvalidRequestError:
        return ""


def _find_reference_column(columns: list[ColumnView], given: Any) -> str:
    texts = [column for column in columns if column.kind == "text"]
    if given is not None:
        return str(given)
    if not any(column.compared for column in texts):
        return ""
    titles = {column.title.lower(): column.title for column in texts if not column.compared}
    return next((titles[name] for name in _REFERENCES if name in titles), "")
