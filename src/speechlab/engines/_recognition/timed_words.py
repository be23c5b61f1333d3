"""The words, or the characters, of a text that are timed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from speechlab.errors import InvalidRequestError
from speechlab.text import split_morphemes, writes_without_spaces

TimedUnit = Literal["word", "char"]
# Start and end of a word in a text.
Place = tuple[int, int]
# Letters, digits, and signs that are read aloud; other signs belong to a word beside them.
_SPOKEN = re.compile(r"[^\W_]|[&%@#+=$€£¥°℃％＆＋＝＄￥]")
# A Latin word or a number in Chinese or Japanese is one unit.
_CHARACTER = re.compile(r"[A-Za-zＡ-Ｚａ-ｚÀ-ɏ0-9０-９]+(?:['.,:][A-Za-zÀ-ɏ0-9]+)*|\S")
_WORD, _SIGN = re.compile(r"\S+"), re.compile(r"\S")
_OPENING = frozenset("\"'“‘«¿¡([{<（「『【〈《［｛〔$€£¥＄￥#")


def find_words(text: str, language: str, unit: TimedUnit | None = None) -> list[Place]:
    """Return the places of words with the signs around them; all that is no white space is in one of them."""
    unspaced = writes_without_spaces(language)
    if unit == "word" and unspaced and language != "ja":
        message = f"the words of {language!r} are not divided here; unit='char' gives the times of characters"
        raise InvalidRequestError(message, parameter="unit")
    if language == "ja" and unit != "char":
        return list(_attach_signs(text, ((word.start, word.end) for word in split_morphemes(text))))
    pattern = _CHARACTER if unspaced else _SIGN if unit == "char" else _WORD
    return list(_attach_signs(text, (match.span() for match in pattern.finditer(text))))


def find_spoken_span(text: str, place: Place) -> Place:
    """Return a place without the unspoken signs at its edges."""
    spoken = [match.start() for match in _SPOKEN.finditer(text, *place)]
    return (spoken[0], spoken[-1] + 1) if spoken else place


def _attach_signs(text: str, pieces: Iterable[Place]) -> Iterator[Place]:
    word: Place | None = None
    opened: int | None = None  # where signs before the next word begin
    for start, end in pieces:
        piece = text[start:end]
        if not piece.strip():
            continue
        if _SPOKEN.search(piece):
            if word is not None:
                yield word
            word = (start if opened is None else opened, end)
            opened = None
        elif opened is None and word is not None and piece[0] not in _OPENING:
            word = (word[0], end)
        elif opened is None:
            opened = start
    if word is not None:
        yield word if opened is None else (word[0], len(text.rstrip()))
