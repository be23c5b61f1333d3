"""Classes of differences in Chinese: another character that sounds alike, another tone, or another sound.

A character error rate counts 他/她 as an error, although they sound the same. A pinyin error rate does not count
试/是. So each difference between a reference and its hypothesis gets a class:

- *homophone*: the same syllables with the same tones (权利/权力).
- *tone*: the same syllables with another tone (买/卖, 水饺/睡觉).
- *recognition*: other syllables (北京/南京), or nothing on one side.

A character is read in the context of its own sentence (银行, 行走; 音乐). If the readings of two characters differ
there, each is also read in the place of the other, and both are read alone, because a wrong character breaks up its
word. The classes do not depend on which side is the reference. Other ways to write one word (traditional characters,
digits, width) are removed by the normaliser.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from rapidfuzz.distance import Levenshtein

from speechlab.metrics._differences.differences import Difference, TextComparison
from speechlab.text import pinyin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from speechlab.metrics._differences.differences import DifferenceClass

_Span: TypeAlias = tuple[int, int, int, int]
_AROUND = 20  # characters of context: longer than a word, shorter than a long text


def compare_chinese(one: str, other: str) -> TextComparison:
    """Class each difference between two texts with known normalised forms.

    Args:
        one: Reference after the normaliser ``zh``.
        other: Hypothesis after the normaliser ``zh``.
    """
    # In a fixed order, because classes must not depend on which side is the reference.
    swapped = other < one
    first, second = (other, one) if swapped else (one, other)
    differences: list[Difference] = []
    for span in _spans(first, second):
        kind = _judge(first, second, span)
        i0, i1, j0, j1 = (*span[2:], *span[:2]) if swapped else span
        old, new = one[i0:i1], other[j0:j1]
        last = differences[-1] if differences else None
        if last and last.kind == kind and last.start + len(last.reference) == i0:
            differences.pop()
            old, new, i0 = last.reference + old, last.hypothesis + new, last.start
        differences.append(Difference(kind, old, new, i0))
    return TextComparison(one, other, other, tuple(differences), Levenshtein.distance(one, other))


def _spans(one: str, other: str) -> Iterator[_Span]:
    """The differing spans between equal characters, split into single characters if both sides have equal length."""
    start: tuple[int, int] | None = None
    here, there = 0, 0
    for op in Levenshtein.opcodes(one, other):
        if op.tag != "equal":
            start = start or (op.src_start, op.dest_start)
            here, there = op.src_end, op.dest_end
            continue
        if start:
            yield from _parts(*start, here, there)
            start = None
    if start:
        yield from _parts(*start, here, there)


def _parts(i0: int, j0: int, i1: int, j1: int) -> Iterator[_Span]:
    if i1 - i0 != j1 - j0:
        yield i0, i1, j0, j1
        return
    for step in range(i1 - i0):
        yield i0 + step, i0 + step + 1, j0 + step, j0 + step + 1


def _judge(one: str, other: str, span: _Span) -> DifferenceClass:
    i0, i1, j0, j1 = span
    old, new = one[i0:i1], other[j0:j1]
    if not old or not new:
        return "recognition"
    here, there = _syllables(one), _syllables(other)
    ways = [(here[i0:i1], there[j0:j1])]
    if ways[0][0] != ways[0][1]:
        # Each in the place of the other, and both alone.
        ways += [
            (here[i0:i1], _in_place(one, i0, i1, new)),
            (_in_place(other, j0, j1, old), there[j0:j1]),
            (_syllables(old), _syllables(new)),
        ]
    if any(said == heard for said, heard in ways):
        return "homophone"
    if any(_toneless(said) == _toneless(heard) for said, heard in ways):
        return "tone"
    return "recognition"


def _in_place(text: str, start: int, end: int, part: str) -> tuple[str, ...]:
    """The readings of characters in the place of others, in this context."""
    before = text[max(0, start - _AROUND) : start]
    return _syllables(before + part + text[end : end + _AROUND])[len(before) : len(before) + len(part)]


@lru_cache(maxsize=4_096)
def _syllables(text: str) -> tuple[str, ...]:
    """The syllable of each character, with its tone."""
    return tuple(pinyin(text, by_character=True))


def _toneless(syllables: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(syllable.rstrip("12345") if len(syllable) > 1 else syllable for syllable in syllables)
