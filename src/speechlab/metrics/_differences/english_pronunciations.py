"""Pronunciations of English words, of a dictionary: what sounds alike is a homophone."""

from __future__ import annotations

import lzma
from functools import cache, lru_cache
from itertools import islice, product
from pathlib import Path

from speechlab.metrics._differences.english_number_words import IN_WORDS

# The dictionary that tools/pronunciations.py writes.
_FILE = Path(__file__).parent / "cmudict.txt.xz"
_MOST_PRONUNCIATIONS = 64  # combinations of the pronunciations of several words
_UH, _D, _S, _Z = "CIcl"
_SIBILANTS, _VOICELESS = "HScdlm", "NTaef"


@cache
def _load_pronunciations() -> dict[str, str]:
    """Return the pronunciations of each word, with spaces between them: 126,000 lists would take longer."""
    lines = lzma.decompress(_FILE.read_bytes()).decode().split("\n")[1:-1]
    return dict(line.split(" ", 1) for line in lines)


def _list_word_pronunciations(word: str) -> list[str]:
    """Return the pronunciations of a word, one letter for each phoneme, without stress; empty if it is unknown."""
    sounds = _load_pronunciations().get(word) or _load_pronunciations().get(IN_WORDS.get(word, ""))
    if sounds or not word.endswith(("'s", "'d")):
        return sounds.split(" ") if sounds else []
    return [sound + _find_ending_sound(sound, word[-1]) for sound in _list_word_pronunciations(word[:-2])]


def _find_ending_sound(sound: str, letter: str) -> str:
    """Return the sound of a possessive or of a short "had" behind a word."""
    if letter == "d":
        return _D
    if sound[-1] in _SIBILANTS:
        return _UH + _Z
    return _S if sound[-1] in _VOICELESS else _Z


@lru_cache(maxsize=65_536)
def list_pronunciations(words: tuple[str, ...]) -> frozenset[str]:
    """Return the pronunciations of words without a pause; empty if a word is unknown."""
    if len(words) == 1:
        return frozenset(_list_word_pronunciations(words[0]))
    joined: list[str] = []
    for word in words:
        if word.startswith("'") and joined:
            joined[-1] += word
        else:
            joined.append(word)
    return frozenset(
        map("".join, islice(product(*map(_list_word_pronunciations, joined)), _MOST_PRONUNCIATIONS))
    )
