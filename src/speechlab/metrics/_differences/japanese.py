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
from functools import cache, cached_property
from typing import TYPE_CHECKING, TypeAlias

from rapidfuzz.distance import Levenshtein

from speechlab.metrics._differences.differences import TextComparison, differing_runs, with_notation
from speechlab.metrics._differences.japanese_words import (
    is_another_reading,
    is_another_word,
    same_form,
    sound_alike_by_characters,
)
from speechlab.text import (
    Normalizer,
    kana_key,
    morphemes,
    normalizer,
    reading_key,
    spoken_words,
    usual_kanji,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from speechlab.metrics._differences.differences import DifferenceClass
    from speechlab.text import Morpheme, SpokenWord

# Words of three morae and more may drop the mark of a long last vowel (JIS Z 8301): メモリ is メモリー, but ビル is
# not ビール and キー not キ.
_FINAL_MARK = re.compile(r"(?<=[ァ-ヺー]{3})ー$")
_KANA = re.compile(r"[ぁ-ゖァ-ヺー]*")
_KATAKANA = re.compile(r"[ァ-ヺー]+")
_Span: TypeAlias = tuple[int, int]
_DIGITS = re.compile("[零一二三四五六七八九]{2}")
_APART = "・"  # the normaliser's separator of two numbers that would otherwise be one: 5〜10 is not 50
_REACH = 8  # times that a part is widened to whole words; more are rare


def compare_japanese(reference: str, hypothesis: str, one: str, other: str) -> TextComparison:
    """Class each difference between two texts with known normalised forms."""
    if one == other:
        return TextComparison(one, other, other, (), 0)
    # In a fixed order, because classes must not depend on which side is the reference.
    swapped = other < one
    sides = _Side(reference, one), _Side(hypothesis, other)
    first, second = reversed(sides) if swapped else sides
    parts = (
        (_judge(first, second, here, there), (*there, *here) if swapped else (*here, *there))
        for here, there in _differing_spans(first, second)
    )
    differences, tolerant = with_notation(one, other, parts)
    return TextComparison(one, other, tolerant, differences, Levenshtein.distance(one, tolerant))


class _Side:
    """One of the two texts with its words, analysed once for all differences."""

    def __init__(self, written: str, text: str) -> None:
        self.text = text
        self._written = written
        # A text without cased letters is the same with and without case.
        caseless = written.lower() == written.upper() and text.lower() == text.upper()
        cased = usual_kanji(text if caseless else _cased()(written))
        # The reading of a Latin word depends on its case. A few letters change their length with their case.
        self._spoken_text = cased if len(cased) == len(text) else usual_kanji(text)
        self.words = morphemes(self._spoken_text.lower() if self._spoken_text is cased else self._spoken_text)

    @cached_property
    def _spoken(self) -> tuple[SpokenWord, ...]:
        return spoken_words(self._spoken_text, self._written)

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

    def usual(self, start: int, end: int) -> str:
        """A part of the text in usual kanji, for its reading."""
        return self._spoken_text[start:end]

    def within(self, start: int, end: int) -> list[Morpheme]:
        """The words of a part."""
        first, last = bisect_left(self._starts, start), bisect_right(self._starts, end)
        return [word for word in self.words[first:last] if word.end <= end]

    def reach(self, start: int, end: int) -> _Span:
        """The number of characters before and after a part that belong to its spoken words."""
        first, last = bisect_right(self._spoken_ends, start), bisect_left(self._spoken_starts, end)
        inside = self._spoken[first:last]
        if not inside:
            return 0, 0
        return max(0, start - inside[0].start), max(0, inside[-1].end - end)

    def sound(self, start: int, end: int) -> str:
        """The sound of a part in its context; empty if it is unknown."""
        first, last = bisect_left(self._spoken_starts, start), bisect_right(self._spoken_starts, end)
        return kana_key("".join(word.kana for word in self._spoken[first:last] if word.end <= end))


@cache
def _cased() -> Normalizer:
    rules = normalizer("ja")
    return Normalizer(
        "ja-cased", rules.version, tuple(step for step in rules.steps if step.name != "lower case")
    )


def _differing_spans(one: _Side, other: _Side) -> list[tuple[_Span, _Span]]:
    """The differing spans, cut where words end on both sides and the aligned characters are equal."""
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


def _judge(one: _Side, other: _Side, here: _Span, there: _Span) -> DifferenceClass:
    old, new = one.text[slice(*here)], other.text[slice(*there)]
    if not old or not new or old.count(_APART) != new.count(_APART):
        return "recognition"
    if same_form(old, new):
        return "notation"
    sounds_alike = _sound_alike(one, other, here, there)
    said, heard = one.within(*here), other.within(*there)
    # The dictionary reads adjacent digits as one number: 二三 as 23.
    numbers = _DIGITS.search(old) or _DIGITS.search(new)
    differing = [(old[a:b], new[c:d]) for a, b, c, d in differing_runs(old, new)]
    if not numbers and _one_form(said, heard, old, new):
        all_kana = all(_KANA.fullmatch(a) and _KANA.fullmatch(b) for a, b in differing)
        loanwords = _KATAKANA.fullmatch(old) and _KATAKANA.fullmatch(new)
        return "recognition" if all_kana and not sounds_alike and not loanwords else "notation"
    if not sounds_alike:
        if is_another_reading(said, heard):
            return "notation"
        sounds = _alone(one.usual(*here)), _alone(other.usual(*there))
        return "homophone" if sound_alike_by_characters(said, heard, sounds) else "recognition"
    in_kana = all(_KANA.fullmatch(a) or _KANA.fullmatch(b) for a, b in differing)
    return "notation" if in_kana and not is_another_word(said, heard) else "homophone"


def _sound_alike(one: _Side, other: _Side, here: _Span, there: _Span) -> bool:
    if _together(one, other, here, there):
        return True
    return _alone(one.usual(*here)) == _alone(other.usual(*there))


def _alone(text: str) -> str:
    words = spoken_words(text)
    return kana_key("".join(word.kana for word in words)) if words else reading_key(text)


def _together(one: _Side, other: _Side, here: _Span, there: _Span) -> bool:
    """Whether two parts sound alike in context, because a particle or a counter alone has another reading.

    If spoken words extend beyond a part, both parts are widened to whole words, as long as the texts agree there.
    """
    (i0, i1), (j0, j1) = here, there
    for _ in range(_REACH):
        (a, b), (c, d) = one.reach(i0, i1), other.reach(j0, j1)
        before, behind = max(a, c), max(b, d)
        if not before and not behind:
            sound = one.sound(i0, i1)
            return bool(sound) and sound == other.sound(j0, j1)
        if before > min(i0, j0) or one.text[i0 - before : i0] != other.text[j0 - before : j0]:
            return False
        if one.text[i1 : i1 + behind] != other.text[j1 : j1 + behind]:
            return False
        i0, i1, j0, j1 = i0 - before, i1 + behind, j0 - before, j1 + behind
    return False


def _one_form(said: Sequence[Morpheme], heard: Sequence[Morpheme], old: str, new: str) -> bool:
    return _forms(said) == _forms(heard) or _FINAL_MARK.sub("", old) == _FINAL_MARK.sub("", new)


def _forms(words: Sequence[Morpheme]) -> list[str]:
    """Dictionary forms, with the reading for inflected words, because the form alone hides 行く/行け."""
    return [f"{word.normal}/{word.reading}" if word.inflected else word.normal for word in words]
