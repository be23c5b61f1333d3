"""Phonemes for Kokoro: each run of a text is read by the reader of its script.

Kokoro has one phoneme alphabet for all languages, so the readings of a Japanese sentence and of the Latin words in it
can be joined. The Japanese reader alone would spell "SpeechLab" letter by letter, and the English reader ignores
everything that is not Latin.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from speechlab.engines._speech.reading import Reader

_JAPANESE = re.compile(
    "[\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f]"
)
_LATIN_WORD = r"[A-Za-z\u00c0-\u024f][A-Za-z0-9\u00c0-\u024f'’&.+#/_-]*"
_LATIN_RUN = re.compile(rf"{_LATIN_WORD}(?: +{_LATIN_WORD})*")
_FULLWIDTH_LATIN = {code: code - 0xFEE0 for code in [*range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B)]}


def has_japanese(text: str) -> bool:
    """Whether a text has kana or kanji."""
    return _JAPANESE.search(text) is not None


def split_scripts(text: str) -> list[tuple[str, str]]:
    """Cut a text into runs for the two readers."""
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
    """Phonemes of a text in Kokoro's alphabet."""
    read = [
        reader.english(run, british=british) if script == "en" else reader.japanese(run)
        for script, run in split_scripts(text)
        if run.strip()
    ]
    return " ".join(part.strip() for part in read if part.strip())
