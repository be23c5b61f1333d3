"""Japanese words with their dictionary forms, through Sudachi (it comes with the extra ``ja``).

Spellings of one word have the same normalised form in Sudachi: 打合せ and 打ち合わせ, サーバ and サーバー.

Source: K. Takaoka et al., Sudachi: a Japanese tokenizer for business (LREC 2018).
"""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from typing import Any, NamedTuple

from speechlab._arguments import check_text
from speechlab.text._third_party import encodable, load

# Sudachi refuses texts of more than 49,149 bytes.
_LONGEST_PIECE = 10_000
_PIECE = re.compile(rf"[^。!?\n]{{1,{_LONGEST_PIECE}}}[。!?\n]?|[。!?\n]")
_INFLECTED = frozenset({"動詞", "形容詞", "助動詞"})
_threads = threading.local()


class Morpheme(NamedTuple):
    """One word of a Japanese text.

    Attributes:
        surface: The word as written.
        normal: Its normalised dictionary form.
        reading: Its dictionary reading in katakana (not as spoken: は is ハ).
        inflected: Whether it is a verb, adjective or auxiliary, whose normalised form hides the inflection.
        start: Start of the word in the text, in characters.
        end: End of the word, exclusive.
        groups: Numbers of its groups of synonyms in the dictionary; spellings of one word share a group.
        part: Its part of speech in Japanese, such as ``"名詞"``.

    Example:
        >>> [(word.surface, word.normal) for word in morphemes("打合せ")]
        [('打合せ', '打ち合わせ')]
    """

    surface: str
    normal: str
    reading: str
    inflected: bool
    start: int
    end: int
    groups: tuple[int, ...] = ()
    part: str = ""


def morphemes(text: str) -> list[Morpheme]:
    """Split a Japanese text into words."""
    check_text(text)
    tokenizer = _tokenizer()
    analyzed: list[Morpheme] = []
    for piece in _PIECE.finditer(encodable(text)):
        offset = piece.start()
        analyzed.extend(_morpheme(word, offset) for word in tokenizer.tokenize(piece.group()))
    return analyzed


def dictionary_entries(text: str) -> list[Morpheme]:
    """The entries of the dictionary that are written as a word, one for each reading and part of speech."""
    check_text(text)
    return list(_entries(text))


@lru_cache(maxsize=16_384)
def _entries(word: str) -> tuple[Morpheme, ...]:
    _tokenizer()
    return tuple(_morpheme(entry, 0) for entry in _threads.dictionary.lookup(encodable(word))) if word else ()


def _morpheme(word: Any, offset: int) -> Morpheme:
    part = word.part_of_speech()[0]
    return Morpheme(
        word.surface(),
        word.normalized_form(),
        word.reading_form(),
        part in _INFLECTED,
        offset + word.begin(),
        offset + word.end(),
        tuple(word.synonym_group_ids()),
        part,
    )


def _tokenizer() -> Any:
    # Each thread needs its own tokenizer. Sudachi shares the dictionary between them.
    if not hasattr(_threads, "tokenizer"):
        dictionary = load("sudachipy").Dictionary()
        # Sudachi 0.7 renamed create() to tokenizer(), and warns about the old name.
        make = dictionary.tokenizer if hasattr(dictionary, "tokenizer") else dictionary.create
        _threads.dictionary, _threads.tokenizer = dictionary, make()
    return _threads.tokenizer
