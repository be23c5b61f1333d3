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
        if self.language == "en":
            return self.readings[:3]
        best = self.readings[:1] if self.is_certain else ()
        return tuple(form for kana in best for form in (kana, kana.translate(_TO_HIRAGANA)))

    def merge_readings(self, other: Word) -> Word:
        """Return the word with the readings of another place; if they differ, only a person can choose."""
        readings = tuple(dict.fromkeys((*self.readings, *other.readings)))
        return self._replace(
            readings=readings, is_certain=self.is_certain and self.readings == other.readings
        )

    def is_read_right(self, recognized: str) -> bool:
        """Return whether what was recognized sounds like the word."""
        if self.language == "ja":
            if to_standard_kanji(self.text) in to_standard_kanji(recognized):
                return True
            return not _list_keys(recognized).isdisjoint(map(to_reading_key, self.readings))
        said = normalizer("en")(self.text).split()
        forms = {"".join(said), *("".join(normalizer("en")(form).split()) for form in self.readings)}
        sounds = list_pronunciations(tuple(said)) & list_pronunciations(tuple(recognized.split()))
        return bool(sounds) or recognized.replace(" ", "") in forms

    def has_kun_reading(self, recognized: str) -> bool:
        """Return whether an unknown word was read by the words that its characters are: perhaps a name."""
        readings = {""}
        for sign in self.text if self.language == "ja" and self.is_rare and self.readings else "":
            entries = {entry.reading for entry in list_dictionary_entries(sign)} - {find_on_reading(sign)}
            readings = {before + entry for before in readings for entry in entries}
        return not _list_keys(recognized).isdisjoint(map(to_reading_key, readings - {""}))


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
    pattern = re.escape(word.text) if word.language == "ja" else rf"(?<!\w){re.escape(word.text)}(?!\w)"
    place = re.search(pattern, text)
    start, end = place.span() if place else (0, len(text))
    split, blank = (list, "") if word.language == "ja" else (str.split, " ")
    before, said, behind, answer = (
        split(normalizer(word.language)(part))
        for part in (text[:start], text[start:end], text[end:], recognized)
    )
    equal = [
        (op.src_start + at, op.dest_start + at)
        for op in Levenshtein.opcodes([*before, *said, *behind], answer)
        for at in range(op.src_end - op.src_start if op.tag == "equal" else 0)
    ]
    low = max((theirs + 1 for ours, theirs in equal if ours < len(before)), default=0)
    high = min((theirs for ours, theirs in equal if ours >= len(before) + len(said)), default=len(answer))
    return blank.join(answer[low:high])


def list_words(text: str, language: str, known: Mapping[str, str]) -> Iterator[Word]:
    """Yield the words of a text that a voice may misread."""
    given = {
        word: Word(word, language, (known[word],), is_certain=True)
        for word in known
        if word in text and Lexicon([(language, word, "a")]).respell(text, language) != text
    }
    found = _list_english(text) if language == "en" else _list_japanese(text)
    yield from ({word.text: word for word in found} | given).values()


def _list_english(text: str) -> Iterator[Word]:
    for word in _ENGLISH_WORD.findall(text):
        sounds = sorted(list_pronunciations((word.lower(),)))
        letters = tuple("".join(_PHONES[ord(phone) - ord("A")] for phone in sound) for sound in sounds)
        parts = " ".join(_PARTS.findall(word))
        is_known = bool(sounds)
        others = letters if is_known else (parts,) if parts != word else ()
        yield Word(word, "en", others, is_known, is_rare=not is_known or word[0].isupper())


def _list_japanese(text: str) -> Iterator[Word]:
    """Yield dictionary words whose reading is certain if both dictionaries choose the same, and other compounds."""
    run: list[Morpheme] = []
    for word in [*split_morphemes(text), None]:
        if word and len(word.surface) == 1 and _KANJI.fullmatch(word.surface):
            run.append(word)  # a word that the dictionary lacks falls into its characters
            continue
        joined = "".join(part.surface for part in run)
        if run[1:] and not _NUMERAL.search(joined) and not list_dictionary_entries(joined):
            on = _read_by_characters(joined)
            yield Word(joined, "ja", (on,) if on else (), is_certain=bool(on))
        run = []
        if word and _KANJI.search(word.surface) and not word.inflected and _NUMERAL.sub("", word.surface):
            others = [entry.reading for entry in list_dictionary_entries(word.surface)]
            keys = {to_reading_key(kana) for kana in (word.reading, *others)}
            certain = len(keys) == 1 or to_reading_key(word.reading) == to_reading_key(reading(word.surface))
            readings = (word.reading,) if certain else tuple(dict.fromkeys((word.reading, *others)))
            yield Word(word.surface, "ja", readings, certain, is_rare=not others)
