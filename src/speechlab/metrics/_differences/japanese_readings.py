"""Readings that a dictionary has for Japanese words, and those of the characters of words that it does not have.

OpenJTalk and Sudachi each choose one reading. Where they choose differently, or a word is in no dictionary, one of
them alone is no evidence of what was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice, product

from rapidfuzz.distance import Levenshtein

from speechlab.text import (
    Morpheme,
    find_on_reading,
    list_dictionary_entries,
    split_morphemes,
    to_kana_key,
    to_reading_key,
)

_MAX_COMBINATIONS = 256  # of the readings of several words or characters
_LONGEST = 6  # characters of an unknown word that are read one by one
_TO_KATAKANA = {code: code + 0x60 for code in range(ord("ぁ"), ord("ゖ") + 1)}
_KANA = re.compile(r"[ぁ-ゖァ-ヺー]+")
# The normalizer writes all numbers in kanji.
KANJI = re.compile(
    r"(?:(?![零一二三四五六七八九十百千万億兆])[㐀-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])+"
)
ONLY_KANJI = re.compile(r"[㐀-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_DIGIT = re.compile("[零一二三四五六七八九十百千万億兆]")
_TEN = re.compile("ジュッ|ジッ")


def is_either_kana_reading_of_other(said: Sequence[Morpheme], other: Sequence[Morpheme]) -> bool:
    """Return whether one side is in kana and is a reading that the dictionary has for the words of the other."""
    for words, kana in ((said, other), (other, said)):
        text = "".join(word.surface for word in kana)
        if not _KANA.fullmatch(text) or not any(KANJI.search(word.surface) for word in words):
            continue
        if _to_comparison_key(text) in _build_reading_keys(_list_morpheme_readings(word) for word in words):
            return True
    return False


def _list_morpheme_readings(word: Morpheme) -> list[str]:
    if _KANA.fullmatch(word.surface):
        return [word.surface]
    return [word.reading, *dict.fromkeys(entry.reading for entry in list_dictionary_entries(word.surface))]


def list_sound_keys(words: Sequence[Morpheme], sound: str) -> set[str]:
    """Return the sound of words by OpenJTalk, and by Sudachi if they are kanji without numbers."""
    text = "".join(word.surface for word in words)
    if not ONLY_KANJI.fullmatch(text) or _DIGIT.search(text):
        return {_to_comparison_key(sound)}
    return {_to_comparison_key(sound), _to_comparison_key("".join(word.reading for word in words))}


def is_homophone_by_characters(
    one: Sequence[Morpheme], other: Sequence[Morpheme], sounds: tuple[str, str]
) -> bool:
    """Return whether a word that no dictionary has is the other one if its characters are read one by one."""
    ours, theirs = map(_list_unknown_word_readings, (one, other))
    if ours and theirs:
        return not ours.isdisjoint(theirs)
    usual_sounds = [
        {_to_comparison_key(sound), _to_comparison_key("".join(word.reading for word in words))}
        for sound, words in zip(sounds, (one, other), strict=True)
    ]
    return not ours.isdisjoint(usual_sounds[1]) or not theirs.isdisjoint(usual_sounds[0])


def _list_unknown_word_readings(words: Sequence[Morpheme]) -> set[str]:
    """Return the readings of the words and characters of what is no word of a dictionary; none for a word."""
    text = "".join(word.surface for word in words)
    if len(text) > _LONGEST or not ONLY_KANJI.fullmatch(text) or list_dictionary_entries(text):
        return set()
    if re.search("[一二三四五六七八九]", text) or not KANJI.search(text):  # 月八日 is a number
        return set()
    return _build_reading_keys(map(_list_character_readings, text)) | _build_reading_keys(
        map(_list_morpheme_readings, words)
    )


@lru_cache(maxsize=8_192)
def _list_character_readings(character: str) -> tuple[str, ...]:
    """Return the readings of a kanji as a word of its own, as a prefix or as a suffix, without those of verbs."""
    readings = [entry.reading for entry in list_dictionary_entries(character) if not entry.inflected]
    return tuple(dict.fromkeys(filter(None, [*readings, find_on_reading(character)])))


@lru_cache(maxsize=8_192)
def find_nearest_reading(said: str, recognized: str) -> str:
    """Return the reading of recognized kanji that is nearest to what was said; empty if there is only one."""
    words = split_morphemes(recognized)
    sounds = list_sound_keys(words, to_reading_key(recognized)) | _list_unknown_word_readings(words)
    if len(sounds) < 2:
        return ""
    reading = to_reading_key(said)
    return min(sorted(sounds), key=lambda sound: Levenshtein.distance(reading, sound))


def _build_reading_keys(readings: Iterable[Sequence[str]]) -> set[str]:
    return {
        _to_comparison_key("".join(combination))
        for combination in islice(product(*readings), _MAX_COMBINATIONS)
    }


def _to_comparison_key(kana: str) -> str:
    return _TEN.sub("ジュッ", to_kana_key(kana.translate(_TO_KATAKANA)))
