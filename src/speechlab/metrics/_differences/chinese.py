"""Classes of differences in Chinese: another character that sounds alike, another tone, or another sound.

A character error rate counts 他/她 as an error, although they sound the same. A pinyin error rate does not count
试/是. So each difference between a reference and its hypothesis gets a class:

- *notation*: two ways to read one sign or number (¥/块, 3:30/三点半, 两/二).
- *filler*: only a sound of hesitation (嗯, 呃).
- *homophone*: the same syllables with the same tones (权利/权力).
- *tone*: the same syllables with another tone (买/卖, 水饺/睡觉).
- *recognition*: other syllables (北京/南京), or nothing on one side.

A character is read in the context of its own sentence (银行, 行走; 音乐). If the readings of two characters differ
there, each is also read in the place of the other, and both are read alone, because a wrong character breaks up its
word. The classes do not depend on which side is the reference. Other ways to write one word (traditional characters,
digits, width) are removed by the normalizer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from speechlab.text import find_differing_runs, pinyin

if TYPE_CHECKING:
    from speechlab.metrics._differences.differences import DifferenceClass, Span

_CONTEXT_LENGTH = 20  # characters of context: longer than a word, shorter than a long text


def classify_chinese_differences(
    written: tuple[str, str], one: str, other: str
) -> Iterator[tuple[DifferenceClass, Span]]:
    """Yield the differing parts of two normalized texts with their classes."""
    forms = [pair for pair in _FORMS if pair.sign is None or any(map(pair.sign.search, written))]
    for run in _join_shifted_runs(find_differing_runs(one, other), one, other):
        i0, i1, j0, j1 = run
        if not set(one[i0:i1] + other[j0:j1]) - _FILLERS:
            yield "filler", run
            continue
        if any(_is_form_difference(form, one, other, run) for form in forms) or _has_only_form_differences(
            forms, one[i0:i1], other[j0:j1]
        ):
            yield "notation", run
            continue
        ways = _list_syllable_pairs(one, other, run)
        if i1 - i0 != j1 - j0:
            yield _classify_syllable_pairs(ways), run
            continue
        # Both sides have as many characters, and each pair of them has a class.
        kinds = [
            "homophone"
            if _is_particle_pair(one, i0 + step, other, j0 + step)
            else _classify_syllable_pairs(
                (reference[step : step + 1], hypothesis[step : step + 1]) for reference, hypothesis in ways
            )
            for step in range(i1 - i0)
        ]
        start = 0
        for kind, same_kind in groupby(kinds):
            end = start + len(list(same_kind))
            yield kind, (i0 + start, i0 + end, j0 + start, j0 + end)
            start = end


_MOST_BETWEEN = 3  # characters between one that is added and one that is missing


def _join_shifted_runs(runs: Iterable[Span], one: str, other: str) -> Iterator[Span]:
    """Join a character that is added and one that is missing if the syllables are the same (事实/试事)."""
    last: Span | None = None
    for run in runs:
        if last is not None:
            joined = last[0], run[1], last[2], run[3]
            i0, i1, j0, j1 = joined
            near = run[0] - last[1] <= _MOST_BETWEEN and i1 - i0 == j1 - j0
            if (
                near
                and last[1] - last[0] != last[3] - last[2]
                and (_strip_tones(_to_syllables(one)[i0:i1]) == _strip_tones(_to_syllables(other)[j0:j1]))
            ):
                last = joined
                continue
            yield last
        last = run
    if last is not None:
        yield last


class _Form(NamedTuple):
    """Two ways to read one sign or number, and the sign, if they are only one where it stands."""

    one: str
    other: str
    before: str = ""
    sign: re.Pattern[str] | None = None


_CLOCK = "点"
_LOOK_BACK = 6  # characters in which the sign before a form is looked for
_FORMS = (
    _Form("两", "二"),
    _Form("三十分", "半", _CLOCK),
    _Form("三十", "半", _CLOCK),
    _Form("十五分", "一刻", _CLOCK),
    _Form("十五", "一刻", _CLOCK),
    _Form("分", "", "十"),
    _Form("零", "", _CLOCK),
    _Form("日", "号"),
    _Form("一百", "百", "百分之"),
    *(_Form("元", name, sign=re.compile("[¥￥]")) for name in ("块", "块钱")),
    _Form("千克", "公斤", sign=re.compile("kg|㎏", re.IGNORECASE)),
    _Form("公里", "千米", sign=re.compile("km|㎞", re.IGNORECASE)),
    _Form("厘米", "公分", sign=re.compile("cm|㎝", re.IGNORECASE)),
    _Form("平方米", "平米", sign=re.compile("m2|m²|㎡", re.IGNORECASE)),
    _Form("升", "公升", sign=re.compile("[0-9]l", re.IGNORECASE)),
    _Form("摄氏度", "度", sign=re.compile("[°℃]")),
)
_FILLERS = frozenset("嗯呃唔")
_OWN_SYLLABLES = {"一": "yi1", "不": "bu4"}


def _is_form_difference(form: _Form, one: str, other: str, run: Span) -> bool:
    """Return whether a run is the difference of two forms, which may begin or end alike (摄氏度/度)."""
    if form.before not in one[max(0, run[0] - _LOOK_BACK) : run[0]]:
        return False
    return _is_form_to_form_change(form.one, form.other, one, other, run) or _is_form_to_form_change(
        form.other, form.one, one, other, run
    )


def _is_form_to_form_change(a: str, b: str, one: str, other: str, run: Span) -> bool:
    """Return whether a run turns one form into the other; what both begin or end with is outside of the run."""
    start, end, j0, j1 = run
    old, new = one[start:end], other[j0:j1]
    while a and b and a[-1] == b[-1] == one[end : end + 1]:
        end, a, b = end + 1, a[:-1], b[:-1]
    while a and b and a[0] == b[0] == one[start - 1 : start]:
        start, a, b = start - 1, a[1:], b[1:]
    return (a, b) == (old, new)


def _has_only_form_differences(forms: Iterable[_Form], old: str, new: str) -> bool:
    """Return whether two parts are one if each of several forms is written in one way (二千克/两公斤)."""
    for form in forms:
        if form.other and not form.before:
            old, new = old.replace(form.other, form.one), new.replace(form.other, form.one)
    return old == new


# 得 behind another character than these is a particle, unless it begins 得到 or 得了.
_PARTICLES = frozenset("的地得")
_NO_VERB = frozenset("我你他她它们咱您就都也还总不没必非只可要能获取值懂觉记舍")


def _is_particle_pair(one: str, place: int, other: str, there: int) -> bool:
    """Return whether 得, and 的 or 地 in its place, stand behind a verb or an adjective."""
    pair = one[place], other[there]
    if not _PARTICLES.issuperset(pair) or pair.count("得") != 1 or not place or not there:
        return False
    text, at = (one, place) if pair[0] == "得" else (other, there)
    before, behind = text[at - 1], text[at + 1 : at + 2]
    return "\u4e00" <= before <= "\u9fff" and before not in _NO_VERB and behind not in {"到", "了"}


def _list_syllable_pairs(one: str, other: str, run: Span) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The syllables of both sides of a run: in their own texts, each in the place of the other, and both alone."""
    i0, i1, j0, j1 = run
    old, new = one[i0:i1], other[j0:j1]
    if not old or not new:
        return []
    our_syllables, their_syllables = _to_syllables(one), _to_syllables(other)
    readings = [(our_syllables[i0:i1], their_syllables[j0:j1])]
    if readings[0][0] != readings[0][1]:
        readings += [
            (our_syllables[i0:i1], _pronounce_part_in_context(one, i0, i1, new)),
            (_pronounce_part_in_context(other, j0, j1, old), their_syllables[j0:j1]),
            (_to_syllables(old), _to_syllables(new)),
        ]
    return readings


def _classify_syllable_pairs(ways: Iterable[tuple[tuple[str, ...], tuple[str, ...]]]) -> DifferenceClass:
    ways = list(ways)
    if any(reference == hypothesis for reference, hypothesis in ways):
        return "homophone"
    if any(_strip_tones(reference) == _strip_tones(hypothesis) for reference, hypothesis in ways):
        return "tone"
    return "recognition"


def _pronounce_part_in_context(text: str, start: int, end: int, part: str) -> tuple[str, ...]:
    """Return the readings of characters in the place of others, in this context."""
    before = text[max(0, start - _CONTEXT_LENGTH) : start]
    return _to_syllables(before + part + text[end : end + _CONTEXT_LENGTH])[
        len(before) : len(before) + len(part)
    ]


@lru_cache(maxsize=4_096)
def _to_syllables(text: str) -> tuple[str, ...]:
    """Return the syllable of each character, with its tone; 一 and 不 with their own, whatever follows."""
    syllables = pinyin(text, by_character=True)
    return tuple(_OWN_SYLLABLES.get(sign, syllable) for sign, syllable in zip(text, syllables, strict=True))


def _strip_tones(syllables: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(syllable.rstrip("12345") if len(syllable) > 1 else syllable for syllable in syllables)
