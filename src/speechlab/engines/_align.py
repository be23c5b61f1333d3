"""The times of the words of a known text, as a table: of one recording, of several, or of a table of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, get_args

from speechlab._arguments import build_argument_error, check_text, convert_table, is_missing, require_columns
from speechlab._pandas import pd
from speechlab._traces import warn_user
from speechlab.audio import to_clip
from speechlab.engines._recognition.decoding import SAMPLE_RATE
from speechlab.engines._recognition.word_times import TimedUnit, find_words
from speechlab.errors import InvalidRequestError, SpeechLabError
from speechlab.notebook import open_bar
from speechlab.text import guess_language, parse_primary_language

if TYPE_CHECKING:
    from speechlab.engines._recognition.whisper import WhisperEngine

_COLUMNS = ["word", "start", "end", "confidence"]
# Mean confidence of a run of words (of all, in a shorter text) below which they are hardly said in a recording. Of
# right texts the lowest has 0.13 in English, and 0.5 in Japanese and Chinese; Chinese ones of which one half is
# another have at most 0.09.
_DOUBTFUL, _RUN = 0.1, 10
_BAR_DELAY_S = 2.0
# Threads take turns: the model is loaded once, and a recording has all processors.
_turn = Lock()


def align(
    audio: Any,
    text: Any = None,
    *,
    language: str | None = None,
    unit: TimedUnit | None = None,
    recognizer: WhisperEngine | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Find the times of the words of a known text in its recording.

    The times are those of the attention of the included recognizer, which runs in this process. Long recordings are
    cut at pauses. It does not check the text: words that were not said get times too, and a low confidence.

    Args:
        audio: A recording of any form; a list of recordings; or a table with the columns ``audio`` and ``text``, and
            ``language`` if it differs.
        text: What is said in it; of a list, a text for each recording.
        language: ISO 639-1 code; by default that of the text's script or frequent words (ja, zh, en).
        unit: ``"word"``, or ``"char"`` for characters; by default words, and characters in Chinese and other
            languages without spaces. Signs belong to the word beside them.
        recognizer: Another Whisper of :func:`create`, such as of another size.
        progress: Whether a terminal or notebook has a bar for several recordings that take more than two seconds.

    Returns:
        A row for each word: ``word``, ``start`` and ``end`` in seconds, in order, and ``confidence``, 0 to 1. Of
        several recordings also ``row`` (its position), ``file`` (its name, else its position) and ``error``: why a
        recording could not be aligned, in a row without a word.

    Raises:
        InvalidRequestError: The text has no words, there is no speech, or the language is not given or not clear.
        EngineError: The recognizer does not know the language, or the text is too long for the recording.
        AudioError: The recording cannot be read.
        MissingDependencyError: The extra ``local``, or for Japanese words ``ja``, is not installed.
    """
    if unit is not None and unit not in get_args(TimedUnit):
        raise build_argument_error("unit", unit, "'word', 'char' or None")
    engine = recognizer or _load_recognizer()
    if not hasattr(engine, "align"):
        raise build_argument_error(
            "recognizer", recognizer, "a Whisper, such as sl.engines.create('whisper')"
        )
    several = _list_rows(audio, text, language)
    rows = [(audio, text, language)] if several is None else several
    if several is not None:
        with _turn:
            engine.load()  # without the model, no row can be aligned
    bar: Any = nullcontext()
    if progress and several is not None:
        bar = open_bar(len(rows), "align", "recording", delay=_BAR_DELAY_S, leave=False)
    columns, tables = ["row", "file", *_COLUMNS, "error"], []
    with bar as shown:
        for number, (recording, said, code) in enumerate(rows):
            name = (
                recording if isinstance(recording, str) else getattr(recording, "title", None) or str(number)
            )
            name = name.encode("utf-8", "replace").decode()  # of half of a character, no table could be saved
            try:
                part = _align_one(engine, recording, said, None if is_missing(code) else code, unit)
                tables.append(part.assign(row=number, file=name, error=""))
            except (SpeechLabError, OSError) as error:
                if several is None:
                    raise
                cells = (number, name, "", math.nan, math.nan, 0.0, str(error))
                tables.append(pd.DataFrame([cells], columns=columns))
            if shown is not None:
                shown.update()
    table = pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)
    if failed := int((table["error"] != "").sum()):
        message = f"{failed} of {len(rows)} recordings could not be aligned; the column error says why"
        warn_user(message, stacklevel=2)
    _warn_of_doubts(table[table["error"] == ""], len(rows))
    return table[_COLUMNS] if several is None else table


@lru_cache(maxsize=1)
def _load_recognizer() -> WhisperEngine:
    from speechlab.engines._registry import create

    engine: WhisperEngine = create("whisper")
    return engine


def _list_rows(audio: Any, text: Any, language: str | None) -> Sequence[tuple[Any, Any, Any]] | None:
    """Return recordings, texts and languages; None for one recording."""
    table = convert_table(audio)
    if isinstance(table, pd.DataFrame):
        if text is not None:
            raise build_argument_error("text", text, "None for a table, which has the texts in a column")
        table = require_columns(table, "audio", "text")
        codes = table["language"] if language is None and "language" in table else [language] * len(table)
        return list(zip(table["audio"], table["text"], codes, strict=True))
    if isinstance(text, str) or text is None or not isinstance(text, Iterable):
        return None
    texts, recordings = list(text), list(audio) if isinstance(audio, Iterable) else [audio]
    if len(texts) != len(recordings):
        counts = f"there are {len(recordings)} recordings and {len(texts)} texts"
        raise InvalidRequestError(f"give a text for each recording: {counts}", parameter="text")
    return [(recording, said, language) for recording, said in zip(recordings, texts, strict=True)]


def _align_one(
    engine: WhisperEngine, audio: Any, text: Any, language: Any, unit: TimedUnit | None
) -> pd.DataFrame:
    check_text(text)
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        message = f"the text {text!r:.60} has half of a character (a lone surrogate); repair it first"
        raise InvalidRequestError(message, parameter="text")
    code = guess_language([text]) if language is None else parse_primary_language(language)
    if not (places := find_words(text, code or "", unit)):
        raise InvalidRequestError(f"the text {text!r:.60} has no words to align", parameter="text")
    if code is None:
        message = f"the language of {text!r:.60} is not clear; give language=, such as 'en' or 'de'"
        raise InvalidRequestError(message, parameter="language")
    clip = to_clip(audio)
    samples = clip.to_mono().resample(SAMPLE_RATE).samples.ravel()
    with _turn:
        times = engine.align(samples, text, places, code)
    times[:, :2] = times[:, :2].clip(max=clip.duration_s)
    words = [text[first:last] for first, last in places]
    return pd.DataFrame(times.round(4), columns=_COLUMNS[1:]).assign(word=words)[_COLUMNS]


def _warn_of_doubts(table: pd.DataFrame, recordings: int) -> None:
    """Warn of texts that are hardly those of their recordings, or in a part are not."""
    words = table.groupby("row")["confidence"]
    means = words.rolling(_RUN).mean().groupby("row").min().fillna(words.mean())
    if rows := means.index[means < _DOUBTFUL].tolist():
        numbers = ", ".join(map(str, rows[:5])) + (", …" if len(rows) > 5 else "")
        there = "there" if recordings == 1 else f"there (row {numbers})"
        doubted = f"the text of {len(rows)} of {recordings} recordings, or a part of it,"
        warn_user(f"{doubted} is hardly what is said {there}: low confidence", stacklevel=3)
