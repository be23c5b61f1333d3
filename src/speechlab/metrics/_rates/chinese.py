"""Classes of differences in Chinese: another character that sounds alike, another tone, or another sound.

A character error rate counts 他/她 like a mistake, though nobody can hear it; a pinyin error rate forgives 试/是. So
each difference between a reference and its hypothesis is judged for itself, in the context of the reference, which
decides how a character is read (银行, 行走):

- *homophone*: the same syllables with the same tones (权利/权力).
- *tone*: the same syllables, another tone (买/卖).
- *recognition*: other syllables (北京/南京), or nothing on one side.

Ways of writing one word (traditional characters, figures, width) are settled by the normaliser before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from rapidfuzz.distance import Levenshtein

from speechlab._arguments import check_text
from speechlab.text import normalizer, pinyin

if TYPE_CHECKING:
    from collections.abc import Iterator

ChineseDifferenceClass: TypeAlias = Literal["homophone", "tone", "recognition"]
_Span: TypeAlias = tuple[int, int, int, int]


class ChineseDifference(NamedTuple):
    """One place where hypothesis and reference differ.

    Attributes:
        kind: ``"homophone"``, ``"tone"`` or ``"recognition"``.
        reference: The characters of the reference, normalised; may be empty.
        hypothesis: The characters of the hypothesis, normalised; may be empty.
        start: Where they begin in the normalised reference, in characters.
    """

    kind: ChineseDifferenceClass
    reference: str
    hypothesis: str
    start: int


@dataclass(frozen=True)
class ChineseComparison:
    """A Chinese reference and its hypothesis, difference by difference.

    Attributes:
        reference: The normalised reference.
        hypothesis: The normalised hypothesis.
        differences: What differs, in order. Neighbours of one kind are one difference.
    """

    reference: str
    hypothesis: str
    differences: tuple[ChineseDifference, ...]

    def count(self, kind: ChineseDifferenceClass) -> int:
        """How many differences are of one kind."""
        return sum(1 for difference in self.differences if difference.kind == kind)


def compare_chinese(reference: str, hypothesis: str) -> ChineseComparison:
    """Class each difference between two Chinese texts.

    Args:
        reference: What was said.
        hypothesis: What was recognised.

    Raises:
        InvalidRequestError: One of them is no text.
        MissingDependencyError: The package pypinyin is not installed (the extra ``zh``).

    Example:
        >>> [(d.kind, d.reference, d.hypothesis) for d in compare_chinese("他想买书", "她想卖花").differences]
        [('homophone', '他', '她'), ('tone', '买', '卖'), ('recognition', '书', '花')]
    """
    check_text(reference, "reference")
    check_text(hypothesis, "hypothesis")
    rules = normalizer("zh")
    one, other = rules(reference), rules(hypothesis)
    differences: list[ChineseDifference] = []
    for i0, i1, j0, j1 in _spans(one, other):
        old, new = one[i0:i1], other[j0:j1]
        kind = _judge(one, i0, i1, old, new)
        last = differences[-1] if differences else None
        if last and last.kind == kind and last.start + len(last.reference) == i0:
            differences.pop()
            old, new, i0 = last.reference + old, last.hypothesis + new, last.start  # noqa: PLW2901
        differences.append(ChineseDifference(kind, old, new, i0))
    return ChineseComparison(one, other, tuple(differences))


def _spans(one: str, other: str) -> Iterator[_Span]:
    """Character against character where as many are replaced, and else what lies between two equal ones."""
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


def _judge(one: str, start: int, end: int, old: str, new: str) -> ChineseDifferenceClass:
    if not old or not new:
        return "recognition"
    # In context and alone: words decide how a character is read, and the wrong one may break up the word.
    changed = one[:start] + new + one[end:]
    kinds: tuple[tuple[ChineseDifferenceClass, bool], ...] = (("homophone", True), ("tone", False))
    for kind, tone in kinds:
        if pinyin(old, tone=tone) == pinyin(new, tone=tone) or pinyin(one, tone=tone) == pinyin(
            changed, tone=tone
        ):
            return kind
    return "recognition"
