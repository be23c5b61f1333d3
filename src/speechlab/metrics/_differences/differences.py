"""Differences between two texts with their classes, in every language."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from speechlab.metrics._columns import build_table

if TYPE_CHECKING:
    import pandas as pd

# Start and end of a part in one text or list of words, and those in another.
Span: TypeAlias = tuple[int, int, int, int]
DifferenceClass: TypeAlias = Literal["notation", "homophone", "tone", "recognition", "filler"]
# Classes of each language.
CLASSES: dict[str, tuple[DifferenceClass, ...]] = {
    "en": ("notation", "homophone", "recognition", "filler"),
    "ja": ("notation", "homophone", "recognition"),
    "zh": ("notation", "homophone", "tone", "recognition", "filler"),
}
# Classes of parts that can be read alike.
SAME_SOUND: frozenset[DifferenceClass] = frozenset({"notation", "homophone"})
# Classes that a tolerant rate does not count.
HARMLESS_CLASSES: frozenset[DifferenceClass] = frozenset({"notation", "filler"})


class Difference(NamedTuple):
    """One place where hypothesis and reference differ.

    Attributes:
        kind: ``"notation"``, ``"homophone"``, ``"tone"`` (Chinese), ``"recognition"`` or ``"filler"``.
        reference: The part of the compared reference; may be empty.
        hypothesis: The part of the compared hypothesis; may be empty.
        start: Start of the part in the compared reference, in characters.

    Example:
        >>> (difference,) = classify_differences("精度", "制度", "ja").differences
        >>> difference.kind, difference.start
        ('homophone', 0)
    """

    kind: DifferenceClass
    reference: str
    hypothesis: str
    start: int


@dataclass(frozen=True)
class TextComparison:
    """A reference and its hypothesis, difference by difference.

    Attributes:
        reference: The compared reference: normalized in Japanese and Chinese, as written in English.
        hypothesis: The compared hypothesis.
        tolerant: The hypothesis, with the notation of the reference wherever only the notation differs.
        differences: The differences in order.
        tolerant_errors: Errors of ``tolerant``, in words for English and in characters for Japanese and Chinese.

    Example:
        >>> comparison = classify_differences("明日の精度", "あすの制度", "ja")
        >>> comparison.count("notation"), comparison.count("homophone"), comparison.tolerant
        (1, 1, '明日の制度')
    """

    reference: str
    hypothesis: str
    tolerant: str
    differences: tuple[Difference, ...]
    tolerant_errors: int
    _parts: tuple[tuple[DifferenceClass, Span], ...] = field(default=(), repr=False, compare=False)

    def rewrite(self, choose: Callable[[DifferenceClass, str, str], str | None]) -> str:
        """Return the hypothesis with another text in the differences for which a function returns one."""
        return _replace_chosen_parts(self.reference, self.hypothesis, self._parts, choose)

    def count(self, kind: DifferenceClass) -> int:
        """Return the number of differences of one class."""
        return sum(1 for difference in self.differences if difference.kind == kind)

    def frame(self) -> pd.DataFrame:
        """Return one row for each difference: ``kind``, ``reference``, ``hypothesis``, ``start``."""
        types = {"kind": "string", "reference": "string", "hypothesis": "string", "start": "Int64"}
        return build_table(self.differences, types)


def build_differences_and_tolerant_text(
    reference: str, hypothesis: str, parts: Iterable[tuple[DifferenceClass, Span]], blank: str = ""
) -> tuple[tuple[Difference, ...], str]:
    """Return the differences, and the hypothesis with the reference's notation, with blanks around it."""
    parts = tuple(parts)
    differences = [
        Difference(kind, reference[i0:i1], hypothesis[j0:j1], i0) for kind, (i0, i1, j0, j1) in parts
    ]

    def choose_reference_notation(kind: DifferenceClass, old: str, _new: str) -> str | None:
        return f"{blank}{old}{blank}" if kind in HARMLESS_CLASSES else None

    return tuple(differences), _replace_chosen_parts(reference, hypothesis, parts, choose_reference_notation)


def _replace_chosen_parts(
    reference: str,
    hypothesis: str,
    parts: Iterable[tuple[DifferenceClass, Span]],
    choose: Callable[[DifferenceClass, str, str], str | None],
) -> str:
    written: list[str] = []
    copied = 0
    for kind, (i0, i1, j0, j1) in parts:
        new = choose(kind, reference[i0:i1], hypothesis[j0:j1]) if j0 >= copied else None
        if new is not None:
            written += hypothesis[copied:j0], new
            copied = j1
    return "".join(written) + hypothesis[copied:]


def find_differing_span(reference: str, hypothesis: str) -> Span:
    """Return the part between the words with which both texts begin and end."""
    ours, theirs = ([word.span() for word in re.finditer(r"\S+", text)] for text in (reference, hypothesis))
    before = behind = 0
    least = min(len(ours), len(theirs))
    while before < least and reference[slice(*ours[before])] == hypothesis[slice(*theirs[before])]:
        before += 1
    while (
        behind < least - before
        and reference[slice(*ours[-1 - behind])] == hypothesis[slice(*theirs[-1 - behind])]
    ):
        behind += 1
    span: list[int] = []
    for text, places in ((reference, ours), (hypothesis, theirs)):
        inner = places[before : len(places) - behind]
        span += (inner[0][0], inner[-1][1]) if inner else (len(text), len(text))
    return span[0], span[1], span[2], span[3]
