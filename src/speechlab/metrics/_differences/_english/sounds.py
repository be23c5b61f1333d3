"""Sounds of English words, by the dictionary that ``tools/pronunciations.py`` writes."""

from __future__ import annotations

import lzma
from functools import cache, lru_cache
from itertools import islice, product
from pathlib import Path

from speechlab.metrics._differences._english.numbers import IN_WORDS

_FILE = Path(__file__).parent / "cmudict.txt.xz"
_MOST = 64  # combinations of the pronunciations of several words
_UH, _D, _S, _Z = "CIcl"
_SIBILANTS, _VOICELESS = "HScdlm", "NTaef"


@cache
def _dictionary() -> dict[str, list[str]]:
    lines = lzma.decompress(_FILE.read_bytes()).decode().split("\n")[1:-1]
    return {word: rest.split(" ") for word, _, rest in (line.partition(" ") for line in lines)}


def _sounds(word: str) -> list[str]:
    """The pronunciations of a word, one letter for each phoneme, without stress; empty if it is unknown."""
    known = _dictionary().get(word) or _dictionary().get(IN_WORDS.get(word, ""))
    if known or not word.endswith(("'s", "'d")):
        return known or []
    return [sound + _ending(sound, word[-1]) for sound in _sounds(word[:-2])]


def _ending(sound: str, letter: str) -> str:
    """The sound of a possessive or of a short "had" behind a word."""
    if letter == "d":
        return _D
    if sound[-1] in _SIBILANTS:
        return _UH + _Z
    return _S if sound[-1] in _VOICELESS else _Z


@lru_cache(maxsize=65_536)
def sounds_of(words: tuple[str, ...]) -> frozenset[str]:
    """The pronunciations of words without a pause; empty if a word is unknown."""
    if len(words) == 1:
        return frozenset(_sounds(words[0]))
    joined: list[str] = []
    for word in words:
        if word.startswith("'") and joined:
            joined[-1] += word
        else:
            joined.append(word)
    return frozenset(map("".join, islice(product(*map(_sounds, joined)), _MOST)))
