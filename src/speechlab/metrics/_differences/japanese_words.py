"""Japanese words that a dictionary writes or reads in several ways, and words that it does not have."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice, product
from typing import TYPE_CHECKING

from speechlab.text import dictionary_entries, kana_key, standard_kanji

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from speechlab.text import Morpheme

_MOST = 256  # combinations of the readings of several words or characters
_LONGEST = 6  # characters of an unknown word that are read one by one
_TO_KATAKANA = {code: code + 0x60 for code in range(ord("ぁ"), ord("ゖ") + 1)}
_TO_HIRAGANA = {code + 0x60: code for code in range(ord("ぁ"), ord("ゖ") + 1)}
_KANA = re.compile(r"[ぁ-ゖァ-ヺー]+")
# The normaliser writes all numbers in kanji.
_KANJI = re.compile(
    r"(?:(?![零一二三四五六七八九十百千万億兆])[㐀-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])+"
)
_ALL_KANJI = re.compile(r"[㐀-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_FORMS = (
    # forms of one unit or counter
    (re.compile("キロ(?:メートル|グラム)"), "キロ"),
    (re.compile("センチメートル"), "センチ"),
    (re.compile("ミリ(?:メートル|グラム|リットル)"), "ミリ"),
    (re.compile("[ヶヵケカ箇個](?=月|所|国|年)"), "か"),
    # spellings of one loanword
    (re.compile("ヴ(?=[ァィェォ])"), "バ行"),
    (re.compile("ウィ"), "ウイ"),
)
_V = re.compile("バ行([ァィェォ])")
_B = dict(zip("ァィェォ", "バビベボ", strict=True))
_DIGIT = re.compile("[一二三四五六七八九]")
_TEN = re.compile("ジュッ|ジッ")


def same_form(old: str, new: str) -> bool:
    """Whether only variants of kanji, forms of one unit, or spellings of sounds from other languages differ."""
    one, other = _form(old), _form(new)
    return one == other or any(_longer(a, b) for a, b in ((old, new), (new, old)))


@lru_cache(maxsize=8_192)
def _form(text: str) -> str:
    text = standard_kanji(text)
    for pattern, form in _FORMS:
        text = pattern.sub(form, text)
    return _V.sub(lambda found: _B[found[1]], text)


def _longer(short: str, full: str) -> bool:
    return any(pattern.sub(form, full) == short for pattern, form in _FORMS[:3])


def is_another_reading(said: Sequence[Morpheme], other: Sequence[Morpheme]) -> bool:
    """Whether one side is in kana and is a reading that the dictionary has for the words of the other side."""
    for words, kana in ((said, other), (other, said)):
        text = "".join(word.surface for word in kana)
        if not _KANA.fullmatch(text) or not any(_KANJI.search(word.surface) for word in words):
            continue
        if _key(text) in _keys(_entry_readings(word) for word in words):
            return True
    return False


def _entry_readings(word: Morpheme) -> list[str]:
    if _KANA.fullmatch(word.surface):
        return [word.surface]
    return [word.reading, *dict.fromkeys(entry.reading for entry in dictionary_entries(word.surface))]


def sound_alike_by_characters(
    one: Sequence[Morpheme], other: Sequence[Morpheme], sounds: tuple[str, str]
) -> bool:
    """Whether a word that no dictionary has is the other one if its characters are read one by one."""
    texts = ["".join(word.surface for word in words) for words in (one, other)]
    unknown = [
        len(text) <= _LONGEST
        and not _DIGIT.search(text)  # 月八日 is a number, not a word that no dictionary has
        and bool(_ALL_KANJI.fullmatch(text) and _KANJI.search(text))
        and not dictionary_entries(text)
        for text in texts
    ]
    readings = [
        _keys(map(_character_readings, text)) | _keys(map(_entry_readings, words)) if new else set()
        for text, words, new in zip(texts, (one, other), unknown, strict=True)
    ]
    if all(unknown):
        return not readings[0].isdisjoint(readings[1])
    usual_sounds = [
        {_key(sound), _key("".join(word.reading for word in words))}
        for sound, words in zip(sounds, (one, other), strict=True)
    ]
    return not readings[0].isdisjoint(usual_sounds[1]) or not readings[1].isdisjoint(usual_sounds[0])


@lru_cache(maxsize=8_192)
def _character_readings(character: str) -> tuple[str, ...]:
    """The readings of a kanji as a word of its own, as a prefix or as a suffix, without those of verbs."""
    entries = [entry for entry in dictionary_entries(character) if not entry.inflected]
    return tuple(dict.fromkeys(entry.reading for entry in entries))


def _keys(readings: Iterable[Sequence[str]]) -> set[str]:
    return {_key("".join(combination)) for combination in islice(product(*readings), _MOST)}


def _key(kana: str) -> str:
    return _TEN.sub("ジュッ", kana_key(kana.translate(_TO_KATAKANA)))


def is_another_word(said: Sequence[Morpheme], heard: Sequence[Morpheme]) -> bool:
    """Whether kana are another word than the kanji on the other side, by the dictionary.

    Katakana are another word if the dictionary has them, and under none of the forms of the other side (以下/イカ).
    Hiragana are if they are a particle or an auxiliary, and the other side is not (薬か/薬化, に本/日本).
    """
    for words, others in ((said, heard), (heard, said)):
        if _has_own_particle(words, others):
            return True
        if not any(_KANJI.search(other.surface) for other in others):
            # イルカ is one word, and いるか two.
            if len(words) == 1 < len(others) and _is_noun_in_katakana(words[0]):
                return True
            continue
        own_words = [word for word in words if word.surface not in {other.surface for other in others}]
        their_words = [other for other in others if other.surface not in {word.surface for word in words}]
        if own_words and their_words and all(word.part in {"助詞", "助動詞"} for word in own_words):
            return not any(
                entry.part in {"助詞", "助動詞"}
                for other in their_words
                for entry in (other, *dictionary_entries(other.surface))
            )
        if (
            len(own_words) == 1
            and re.fullmatch("[ァ-ヺー]+", own_words[0].surface)
            and _has_other_forms(own_words[0].surface, their_words)
        ):
            return True
    return False


def _has_own_particle(words: Sequence[Morpheme], others: Sequence[Morpheme]) -> bool:
    """Whether a particle stands beside kanji that the other side has, too (に本/日本), or is を (をくれ/遅れ)."""
    theirs = {other.surface for other in others}
    if not _ALL_KANJI.search("".join(theirs)):
        return False
    particles = [word.surface for word in words if word.part == "助詞" and word.surface not in theirs]
    if "を" in particles:
        return True
    remaining_text = "".join(word.surface for word in words if word.surface not in particles)
    return (
        len(particles) == 1
        and bool(_ALL_KANJI.search(remaining_text))
        and set(remaining_text) <= set("".join(theirs))
    )


def _is_noun_in_katakana(word: Morpheme) -> bool:
    return bool(re.fullmatch("[ァ-ヺー]+", word.surface)) and any(
        entry.part == "名詞" for entry in dictionary_entries(word.surface)
    )


def _has_other_forms(katakana: str, others: Sequence[Morpheme]) -> bool:
    """Whether the dictionary has katakana as a word, and none of its forms is a form of the other side."""
    # コ for こ is another spelling, not another word.
    same = {katakana, katakana.translate(_TO_HIRAGANA)}
    entries = dictionary_entries(katakana)
    forms = {form for entry in entries for form in ({entry.normal} - same | set(entry.groups))}
    theirs: set[str | int] = set()
    for other in others:
        for entry in (other, *dictionary_entries(other.surface)):
            theirs |= {entry.normal, *entry.groups}
    return bool(forms) and not forms & theirs
