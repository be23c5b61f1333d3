"""Classes of differences in Japanese: another spelling, another word that sounds alike, or another sound.

A character error rate counts 今日/きょう like a mistake, and a reading error rate forgives 精度/制度. So each
difference between a Japanese reference and its hypothesis is judged for itself, in the context of the reference:

- *notation*: the same words, written otherwise. Their dictionary forms agree (サーバ/サーバー, 打合せ/打ち合わせ),
  or they sound alike and one side is in kana wherever they differ (東京都/とうきょうと).
- *homophone*: they sound alike, but other words are written (精度/制度).
- *recognition*: they do not sound alike (三時/四時).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from rapidfuzz.distance import Levenshtein

from speechlab._arguments import check_text
from speechlab.text import morphemes, normalizer, reading_key

if TYPE_CHECKING:
    from speechlab.text import Morpheme

DifferenceClass: TypeAlias = Literal["notation", "homophone", "recognition"]
# Words of three morae and more may drop the mark of a long last vowel (JIS Z 8301): メモリ is メモリー, but ビル is
# not ビール and キー not キ.
_FINAL_MARK = re.compile(r"(?<=[ァ-ヺー]{3})ー$")
_KANA = re.compile(r"[ぁ-ゖァ-ヺー]*")


class Difference(NamedTuple):
    """One place where hypothesis and reference differ, widened to whole words.

    Attributes:
        kind: ``"notation"``, ``"homophone"`` or ``"recognition"``.
        reference: The words of the reference, normalised; may be empty.
        hypothesis: The words of the hypothesis, normalised; may be empty.
        start: Where the words begin in the normalised reference, in characters.
    """

    kind: DifferenceClass
    reference: str
    hypothesis: str
    start: int


@dataclass(frozen=True)
class JapaneseComparison:
    """A Japanese reference and its hypothesis, difference by difference.

    Attributes:
        reference: The normalised reference.
        hypothesis: The normalised hypothesis.
        tolerant: The hypothesis, with the spelling of the reference wherever only the spelling differs.
        differences: What differs, in order.
    """

    reference: str
    hypothesis: str
    tolerant: str
    differences: tuple[Difference, ...]

    def count(self, kind: DifferenceClass) -> int:
        """How many differences are of one kind."""
        return sum(1 for difference in self.differences if difference.kind == kind)

    @property
    def tolerant_errors(self) -> int:
        """Character errors that are left when spellings are forgiven."""
        return Levenshtein.distance(self.reference, self.tolerant)


def compare_japanese(reference: str, hypothesis: str) -> JapaneseComparison:
    """Class each difference between two Japanese texts.

    Args:
        reference: What was said.
        hypothesis: What was recognised.

    Raises:
        MissingDependencyError: The extra ``ja`` is not installed.

    Example:
        >>> [
        ...     (d.kind, d.reference, d.hypothesis)
        ...     for d in compare_japanese("明日の精度", "あすの制度").differences
        ... ]
        [('notation', '明日', 'あす'), ('homophone', '精度', '制度')]
    """
    check_text(reference, "reference")
    check_text(hypothesis, "hypothesis")
    rules = normalizer("ja")
    one, other = rules(reference), rules(hypothesis)
    if one == other:
        return JapaneseComparison(one, other, other, ())
    here, there = morphemes(one), morphemes(other)
    differences = []
    tolerant = []
    done = 0
    for (i0, i1), (j0, j1) in _differing_spans(one, other, here, there):
        kind = _judge(one, other, (i0, i1), (j0, j1), _within(here, i0, i1), _within(there, j0, j1))
        differences.append(Difference(kind, one[i0:i1], other[j0:j1], i0))
        tolerant += [other[done:j0], one[i0:i1] if kind == "notation" else other[j0:j1]]
        done = j1
    return JapaneseComparison(one, other, "".join(tolerant) + other[done:], tuple(differences))


Span: TypeAlias = tuple[int, int]


def _differing_spans(
    one: str, other: str, here: list[Morpheme], there: list[Morpheme]
) -> list[tuple[Span, Span]]:
    """Spans between the points where words end on both sides and the alignment runs through equal characters."""
    ends_here = {word.end for word in here} | {0}
    ends_there = {word.end for word in there} | {0}
    spans = []
    last = (0, 0)
    changed = False
    for op in Levenshtein.opcodes(one, other):
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
        spans.append(((last[0], len(one)), (last[1], len(other))))
    return spans


def _within(words: list[Morpheme], start: int, end: int) -> list[Morpheme]:
    return [word for word in words if start <= word.start and word.end <= end]


def _judge(
    one: str, other: str, span: Span, other_span: Span, here: list[Morpheme], there: list[Morpheme]
) -> DifferenceClass:
    (i0, i1), (j0, j1) = span, other_span
    old, new = one[i0:i1], other[j0:j1]
    if not old or not new:
        return "recognition"
    if _forms(here) == _forms(there) or _FINAL_MARK.sub("", old) == _FINAL_MARK.sub("", new):
        return "notation"
    # In context: a particle or a counter is read otherwise when it stands alone.
    if reading_key(one) != reading_key(one[:i0] + new + one[i1:]) and reading_key(old) != reading_key(new):
        return "recognition"
    return "notation" if _kana_against_anything(old, new) else "homophone"


def _forms(words: list[Morpheme]) -> list[str]:
    """Dictionary forms; of words that inflect with the reading, because the form alone hides 行く/行け."""
    return [f"{word.normal}/{word.reading}" if word.inflected else word.normal for word in words]


def _kana_against_anything(old: str, new: str) -> bool:
    return all(
        _KANA.fullmatch(old[op.src_start : op.src_end]) or _KANA.fullmatch(new[op.dest_start : op.dest_end])
        for op in Levenshtein.opcodes(old, new)
        if op.tag != "equal"
    )
