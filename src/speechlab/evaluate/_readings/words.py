"""Words of a text, what was recognized in their place, and other spellings of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from speechlab.metrics import list_pronunciations
from speechlab.text import (
    Lexicon,
    Morpheme,
    find_on_reading,
    list_dictionary_entries,
    normalizer,
    reading,
    split_morphemes,
    to_reading_key,
    to_standard_kanji,
)

_ENGLISH_WORD = re.compile(r"[^\W\d_][\w.&+-]*[\w+]")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z](?![a-z])|\d+")
_KANJI = re.compile("[㐀-\u9fff々]+")
_NUMERAL = re.compile("[零一二三四五六七八九十百千万億兆]")
# Phonemes as they are written, in the order of tools/pronunciations.py: of its letters A to Z, then a to m.
_PHONES = re.findall(
    "[a-z?]+",
    "ah a uh aw ow eye b ch d th eh er ay f g h ih ee j k l m n ng oh oy ? ? ? ? ? ? "
    "p r s sh t th uh oo v w y z zh",
)
_TO_HIRAGANA = {code + 0x60: code for code in range(ord("ぁ"), ord("ゖ") + 1)}
# Sentences for a word of which a table has one.
CARRIERS = {
    "ja": ("次の言葉は{}です。", "ここに{}と書いてあります。"),
    "en": ("The next word is {}.", "They talked about {} again."),
}


class Word(NamedTuple):
    """A word with its possible readings: kana in Japanese, spellings in English, the likeliest first."""

    text: str
    language: str
    readings: tuple[str, ...] = ()
    is_certain: bool = False
    is_rare: bool = True

    @property
    def spellings(self) -> tuple[str, ...]:
        """Other spellings, the best first; none for a word of several readings, which only a person can choose."""
        if self.language == "ja":
            best = self.readings[:1] if self.is_certain else ()
            return tuple(form for kana in best for form in (kana, kana.translate(_TO_HIRAGANA)))
        return self.readings[:3]

    def merge_readings(self, other: Word) -> Word:
        """Return the word with the readings of another place; if they differ, only a person can choose."""
        if self.readings == other.readings:
            return self
        readings = tuple(dict.fromkeys((*self.readings, *other.readings)))
        return self._replace(readings=readings, is_certain=False)

    def is_read_right(self, recognized: str) -> bool:
        """Return whether what was recognized sounds like the word."""
        if self.language == "ja":
            if to_standard_kanji(self.text) in to_standard_kanji(recognized):
                return True
            return not _list_keys(recognized).isdisjoint(map(to_reading_key, self.readings))
        forms = {_join(form) for form in (self.text, *self.readings)}
        sounds = list_pronunciations(tuple(normalizer("en")(self.text).split()))
        return _join(recognized) in forms or not sounds.isdisjoint(
            list_pronunciations(tuple(recognized.split()))
        )

    def has_kun_reading(self, recognized: str) -> bool:
        """Return whether an unknown word was read by the words that its characters are: perhaps a name."""
        keys, on = _list_keys(recognized), self.readings[:1]
        readings = [{""}]
        for sign in self.text if self.language == "ja" and self.is_rare and on else "":
            entries = {entry.reading for entry in list_dictionary_entries(sign)} - {find_on_reading(sign)}
            readings.append({before + entry for before in readings[-1] for entry in entries})
        return not keys.isdisjoint(map(to_reading_key, readings[-1] - {""}))


def _join(text: str) -> str:
    return normalizer("en")(text).replace(" ", "")


def _list_keys(text: str) -> set[str]:
    """Return the readings that a recognized Japanese text may have."""
    dictionary = "".join(word.reading for word in split_morphemes(text))
    on = _read_by_characters(text) if _KANJI.fullmatch(text) else ""
    return {to_reading_key(form) for form in (text, dictionary, on) if form}


def _read_by_characters(text: str) -> str:
    readings = [find_on_reading(sign) for sign in text]
    return "".join(readings) if all(readings) else ""


def find_recognized(text: str, word: Word, recognized: str) -> str:
    """Return what was recognized in the place of a word."""
    normalize = normalizer(word.language)

    def split(part: str) -> list[str]:
        return list(normalize(part)) if word.language == "ja" else normalize(part).split()

    pattern = re.escape(word.text) if word.language == "ja" else rf"(?<!\w){re.escape(word.text)}(?!\w)"
    place = re.search(pattern, text)
    start, end = place.span() if place else (0, len(text))
    before, said, behind = (split(part) for part in (text[:start], text[start:end], text[end:]))
    answer, first, last = split(recognized), len(before), len(before) + len(said)
    low, high = 0, -1
    for op in Levenshtein.opcodes([*before, *said, *behind], answer):
        if op.tag == "equal" and op.src_start < first:
            low = op.dest_start + min(op.src_end, first) - op.src_start
        if op.tag == "equal" and op.src_end > last and high < 0:
            high = op.dest_start + max(op.src_start, last) - op.src_start
    return ("" if word.language == "ja" else " ").join(answer[low : high if high >= 0 else len(answer)])


def list_words(text: str, language: str, known: Mapping[str, str]) -> Iterator[Word]:
    """Yield the words of a text that a voice may misread."""
    given = [
        word
        for word in known
        if word in text and Lexicon([(language, word, "a")]).respell(text, language) != text
    ]
    yield from (Word(word, language, (known[word],), is_certain=True) for word in given)
    if language == "en":
        for found in dict.fromkeys(_ENGLISH_WORD.findall(text)):
            if found not in given:
                yield _look_up_english(found)
        return
    run: list[Morpheme] = []
    for morpheme in [*split_morphemes(text), None]:
        if morpheme and len(morpheme.surface) == 1 and _KANJI.fullmatch(morpheme.surface):
            run.append(morpheme)  # a word that the dictionary lacks falls into its characters
            continue
        joined = "".join(part.surface for part in run)
        if (
            not _NUMERAL.search(joined)
            and joined not in given
            and not list_dictionary_entries(joined)
            and run[1:]
        ):
            on = _read_by_characters(joined)
            yield Word(joined, "ja", (on,) if on else (), is_certain=bool(on))
        run = []
        if morpheme and _is_readable(morpheme) and morpheme.surface not in given:
            yield _look_up_japanese(morpheme)


def _is_readable(word: Morpheme) -> bool:
    return bool(_KANJI.search(word.surface)) and not word.inflected and bool(_NUMERAL.sub("", word.surface))


def _look_up_japanese(word: Morpheme) -> Word:
    """Return a word whose reading is certain if it has one, or if both dictionaries choose the same."""
    others = [entry.reading for entry in list_dictionary_entries(word.surface)]
    keys = {to_reading_key(kana) for kana in (word.reading, *others)}
    certain = len(keys) == 1 or to_reading_key(word.reading) == to_reading_key(reading(word.surface))
    readings = (word.reading,) if certain else (word.reading, *others)
    return Word(word.surface, "ja", tuple(dict.fromkeys(readings)), certain, is_rare=not others)


def _look_up_english(word: str) -> Word:
    sounds = sorted(list_pronunciations((word.lower(),)))
    if sounds:
        letters = ("".join(_PHONES[ord(phone) - ord("A")] for phone in sound) for sound in sounds)
        return Word(word, "en", tuple(letters), is_certain=True, is_rare=word[0].isupper())
    parts = " ".join(_PARTS.findall(word))
    return Word(word, "en", (parts,) if parts != word else ())
