"""Classes of differences in Japanese: another spelling, another word that sounds alike, or another sound.

A character error rate counts 今日/きょう as an error, and a reading error rate does not count 精度/制度. So each
difference between a Japanese reference and its hypothesis gets a class, by the first rule that applies:

1. One side is empty, or has two numbers where the other has one (5〜10/50): *recognition*.
2. Only variant forms of kanji differ (高橋/髙橋): *notation*.
3. The dictionary has one form for both (打合せ/打ち合わせ, 明日/あす): *notation*, unless the differing parts are
   kana on both sides and sound different (あなた/あんた, やはり/やっぱり), because kana shows the pronunciation.
   Loanwords in katakana have several spellings and stay *notation* (ウイルス/ウィルス, サーバ/サーバー).
4. Both sides sound different, in their own sentences and alone (三時/四時, 二三人/二十三人): *recognition*.
5. Both sides sound alike, and one of them is kana in each differing part (東京都/とうきょうと): *notation*, unless
   the dictionary has this katakana as another word (以下/イカ), which is a *homophone*.
6. Both sides sound alike otherwise (精度/制度): *homophone*.

The classes do not depend on which side is the reference.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, TypeAlias

from rapidfuzz.distance import Levenshtein

from speechlab.metrics._differences.japanese_readings import (
    KANJI,
    ONLY_KANJI,
    is_either_kana_reading_of_other,
    is_homophone_by_characters,
    list_sound_keys,
)
from speechlab.text import (
    Morpheme,
    Normalizer,
    SpokenWord,
    find_differing_runs,
    list_dictionary_entries,
    normalizer,
    split_morphemes,
    split_spoken_words,
    to_kana_key,
    to_reading_key,
    to_standard_kanji,
    to_usual_kanji,
)

if TYPE_CHECKING:
    from speechlab.metrics._differences.differences import DifferenceClass, Span

_TO_HIRAGANA = {code + 0x60: code for code in range(ord("ぁ"), ord("ゖ") + 1)}
_KATAKANA = re.compile(r"[ァ-ヺー]+")
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


def is_notation_variant(old: str, new: str) -> bool:
    """Whether only variants of kanji, forms of one unit, or spellings of sounds from other languages differ."""
    return _to_standard_form(old) == _to_standard_form(new) or any(
        pattern.sub(form, full) == short
        for short, full in ((old, new), (new, old))
        for pattern, form in _FORMS[:3]
    )


@lru_cache(maxsize=8_192)
def _to_standard_form(text: str) -> str:
    text = to_standard_kanji(text)
    for pattern, form in _FORMS:
        text = pattern.sub(form, text)
    return _V.sub(lambda found: _B[found[1]], text)


def is_kana_another_word(said: Sequence[Morpheme], recognized: Sequence[Morpheme]) -> bool:
    """Return whether kana are another word than the kanji on the other side, by the dictionary.

    Katakana are another word if the dictionary has them, and under none of the forms of the other side (以下/イカ).
    Hiragana are if they are a particle or an auxiliary, and the other side is not (薬か/薬化, に本/日本).
    """
    for words, opposite in ((said, recognized), (recognized, said)):
        if _has_own_particle(words, opposite):
            return True
        if not any(KANJI.search(word.surface) for word in opposite):
            # イルカ is one word, and いるか two.
            in_katakana = len(words) == 1 < len(opposite) and _KATAKANA.fullmatch(words[0].surface)
            if in_katakana and any(
                entry.part == "名詞" for entry in list_dictionary_entries(words[0].surface)
            ):
                return True
            continue
        ours, theirs = ({word.surface for word in side} for side in (words, opposite))
        own_words = [word for word in words if word.surface not in theirs]
        their_words = [word for word in opposite if word.surface not in ours]
        if own_words and their_words and all(word.part in {"助詞", "助動詞"} for word in own_words):
            return not any(
                entry.part in {"助詞", "助動詞"}
                for word in their_words
                for entry in (word, *list_dictionary_entries(word.surface))
            )
        if (
            len(own_words) == 1
            and _KATAKANA.fullmatch(own_words[0].surface)
            and _has_unrelated_forms(own_words[0].surface, their_words)
        ):
            return True
    return False


def _has_own_particle(words: Sequence[Morpheme], others: Sequence[Morpheme]) -> bool:
    """Whether a particle is next to kanji that the other side has, too (に本/日本), or is を (をくれ/遅れ)."""
    theirs = {neighbor.surface for neighbor in others}
    if not ONLY_KANJI.search("".join(theirs)):
        return False
    particles = [word.surface for word in words if word.part == "助詞" and word.surface not in theirs]
    if "を" in particles:
        return True
    remaining_text = "".join(word.surface for word in words if word.surface not in particles)
    return (
        len(particles) == 1
        and bool(ONLY_KANJI.search(remaining_text))
        and set(remaining_text) <= set("".join(theirs))
    )


def _has_unrelated_forms(katakana: str, others: Sequence[Morpheme]) -> bool:
    """Return whether the dictionary has katakana as a word, and none of its forms is a form of the other side."""
    # コ for こ is another spelling, not another word.
    same = {katakana, katakana.translate(_TO_HIRAGANA)}
    entries = list_dictionary_entries(katakana)
    forms = {form for entry in entries for form in ({entry.normal} - same | set(entry.groups))}
    theirs: set[str | int] = set()
    for word in others:
        for entry in (word, *list_dictionary_entries(word.surface)):
            theirs |= {entry.normal, *entry.groups}
    return bool(forms) and not forms & theirs


# Words of three morae and more may drop the mark of a long last vowel (JIS Z 8301): メモリ is メモリー, but ビル is
# not ビール and キー not キ.
_FINAL_MARK = re.compile(r"(?<=[ァ-ヺー]{3})ー$")
_KANA_ONLY = re.compile(r"[ぁ-ゖァ-ヺー]*")
_Span: TypeAlias = tuple[int, int]
_DIGITS = re.compile("[零一二三四五六七八九]{2}")
_APART = "・"  # the normalizer's separator of two numbers that would otherwise be one: 5〜10 is not 50
_REACH = 8  # times that a part is widened to whole words; more are rare


def classify_japanese_differences(
    written: tuple[str, str], one: str, other: str
) -> Iterator[tuple[DifferenceClass, Span]]:
    """Yield the differing parts of two normalized texts with their classes."""
    first, second = _Side(written[0], one), _Side(written[1], other)
    for reference_span, hypothesis_span in _find_differing_spans(first, second):
        kind = _classify_spans(first, second, reference_span, hypothesis_span)
        # Words may be cut in another way where the texts are one to the ear: 一つ|目 and ひと|つめ.
        if kind == "recognition" and one.count(_APART) == other.count(_APART) and _has_same_reading(*written):
            kind = _classify_homophones(first, second, reference_span, hypothesis_span)
        yield kind, (*reference_span, *hypothesis_span)


class _Side:
    """One of the two texts with its words, analyzed once for all differences."""

    def __init__(self, written: str, text: str) -> None:
        self.text = text
        self._written = written
        # A text without cased letters is the same with and without case.
        caseless = written.lower() == written.upper() and text.lower() == text.upper()
        cased = to_usual_kanji(text if caseless else _build_case_keeping_normalizer()(written))
        # The reading of a Latin word depends on its case. A few letters change their length with their case.
        self._spoken_text = cased if len(cased) == len(text) else to_usual_kanji(text)
        self.words = split_morphemes(
            self._spoken_text.lower() if self._spoken_text is cased else self._spoken_text
        )

    @cached_property
    def _spoken(self) -> tuple[SpokenWord, ...]:
        return split_spoken_words(self._spoken_text, self._written)

    # Starts and ends of words in order, for a search by bisection in long texts.
    @cached_property
    def _starts(self) -> list[int]:
        return [word.start for word in self.words]

    @cached_property
    def _spoken_starts(self) -> list[int]:
        return [word.start for word in self._spoken]

    @cached_property
    def _spoken_ends(self) -> list[int]:
        return [word.end for word in self._spoken]

    def get_part_in_usual_kanji(self, start: int, end: int) -> str:
        """Return a part of the text in usual kanji, for its reading."""
        return self._spoken_text[start:end]

    def list_words(self, start: int, end: int) -> list[Morpheme]:
        """Return the words of a part."""
        first, last = bisect_left(self._starts, start), bisect_right(self._starts, end)
        return [word for word in self.words[first:last] if word.end <= end]

    def measure_word_overhang(self, start: int, end: int) -> _Span:
        """Return the number of characters before and after a part that belong to its spoken words."""
        first, last = bisect_right(self._spoken_ends, start), bisect_left(self._spoken_starts, end)
        inside = self._spoken[first:last]
        if not inside:
            return 0, 0
        return max(0, start - inside[0].start), max(0, inside[-1].end - end)

    def pronounce(self, start: int, end: int) -> str:
        """Return the sound of a part in its context; empty if it is unknown."""
        first, last = bisect_left(self._spoken_starts, start), bisect_right(self._spoken_starts, end)
        return to_kana_key("".join(word.kana for word in self._spoken[first:last] if word.end <= end))


@cache
def _build_case_keeping_normalizer() -> Normalizer:
    rules = normalizer("ja")
    return Normalizer(
        "ja-cased", rules.version, tuple(step for step in rules.steps if step.name != "lower case")
    )


def _find_differing_spans(one: _Side, other: _Side) -> list[tuple[_Span, _Span]]:
    """Return the differing spans, cut where words end on both sides and the aligned characters are equal."""
    ends_here = {word.end for word in one.words} | {0}
    ends_there = {word.end for word in other.words} | {0}
    spans = []
    last = (0, 0)
    changed = False
    for op in Levenshtein.opcodes(one.text, other.text):
        if op.tag != "equal":
            changed = True
            continue
        for step in range(op.src_end - op.src_start + 1):
            i, j = op.src_start + step, op.dest_start + step
            if i in ends_here and j in ends_there:
                if changed:
                    spans.append(((last[0], i), (last[1], j)))
                    changed = False
                last = (i, j)
    if changed:
        spans.append(((last[0], len(one.text)), (last[1], len(other.text))))
    return spans


def _classify_spans(one: _Side, other: _Side, here: _Span, there: _Span) -> DifferenceClass:
    old, new = one.text[slice(*here)], other.text[slice(*there)]
    if not old or not new or old.count(_APART) != new.count(_APART):
        return "recognition"
    if is_notation_variant(old, new):
        return "notation"
    sounds_alike = _is_homophone_in_context(one, other, here, there) or (
        _pronounce_alone(one.get_part_in_usual_kanji(*here))
        == _pronounce_alone(other.get_part_in_usual_kanji(*there))
    )
    reference_words, hypothesis_words = one.list_words(*here), other.list_words(*there)
    # The dictionary reads adjacent digits as one number: 二三 as 23.
    numbers = _DIGITS.search(old) or _DIGITS.search(new)
    differing = [(old[a:b], new[c:d]) for a, b, c, d in find_differing_runs(old, new)]
    one_form = _list_forms_with_readings(reference_words) == _list_forms_with_readings(hypothesis_words)
    if not numbers and (one_form or _FINAL_MARK.sub("", old) == _FINAL_MARK.sub("", new)):
        all_kana = all(_KANA_ONLY.fullmatch(a) and _KANA_ONLY.fullmatch(b) for a, b in differing)
        loanwords = _KATAKANA.fullmatch(old) and _KATAKANA.fullmatch(new)
        return "recognition" if all_kana and not sounds_alike and not loanwords else "notation"
    if not sounds_alike:
        if is_either_kana_reading_of_other(reference_words, hypothesis_words):
            return "notation"
        sounds = (
            _pronounce_alone(one.get_part_in_usual_kanji(*here)),
            _pronounce_alone(other.get_part_in_usual_kanji(*there)),
        )
        ours, theirs = map(list_sound_keys, (reference_words, hypothesis_words), sounds)
        if ours.isdisjoint(theirs) and not is_homophone_by_characters(
            reference_words, hypothesis_words, sounds
        ):
            return "recognition"
    return _classify_homophones(one, other, here, there)


def _has_same_reading(written: str, other: str) -> bool:
    return to_reading_key(written) == to_reading_key(other)


def _classify_homophones(one: _Side, other: _Side, here: _Span, there: _Span) -> DifferenceClass:
    """Return the class of two parts that sound alike."""
    old, new = one.text[slice(*here)], other.text[slice(*there)]
    in_kana = all(
        _KANA_ONLY.fullmatch(old[a:b]) or _KANA_ONLY.fullmatch(new[c:d])
        for a, b, c, d in find_differing_runs(old, new)
    )
    return (
        "notation"
        if in_kana and not is_kana_another_word(one.list_words(*here), other.list_words(*there))
        else "homophone"
    )


def _pronounce_alone(text: str) -> str:
    words = split_spoken_words(text)
    return to_kana_key("".join(word.kana for word in words)) if words else to_reading_key(text)


def _is_homophone_in_context(one: _Side, other: _Side, here: _Span, there: _Span) -> bool:
    """Return whether two parts sound alike in context, because a particle or a counter alone has another reading.

    If spoken words extend beyond a part, both parts are widened to whole words, as long as the texts agree there.
    """
    (i0, i1), (j0, j1) = here, there
    for _ in range(_REACH):
        (a, b), (c, d) = one.measure_word_overhang(i0, i1), other.measure_word_overhang(j0, j1)
        before, behind = max(a, c), max(b, d)
        if not before and not behind:
            sound = one.pronounce(i0, i1)
            return bool(sound) and sound == other.pronounce(j0, j1)
        if before > min(i0, j0) or one.text[i0 - before : i0] != other.text[j0 - before : j0]:
            return False
        if one.text[i1 : i1 + behind] != other.text[j1 : j1 + behind]:
            return False
        i0, i1, j0, j1 = i0 - before, i1 + behind, j0 - before, j1 + behind
    return False


def _list_forms_with_readings(words: Sequence[Morpheme]) -> list[str]:
    """Dictionary forms, with the reading for inflected words, because the form alone hides 行く/行け."""
    return [f"{word.normal}/{word.reading}" if word.inflected else word.normal for word in words]
