"""The words of a take: parts of its text that were lost, repeated, added, or recognized as others."""

from __future__ import annotations

from typing import NamedTuple

from speechlab.metrics import choose_unit, classify_differences, has_difference_classes
from speechlab.text import characters, find_differing_runs, language_code, normalizer, words

# Classes of differences that can be heard.
_AUDIBLE = frozenset({"recognition", "tone"})
_MAX_SHOWN, _MAX_PART = 3, 60


class WordFault(NamedTuple):
    """One place where the recognized words differ from the text, by more than its notation."""

    reference: str
    hypothesis: str
    start: int  # in the compared text

    def describe(self, text: str) -> str:
        """Return the fault in words."""
        lost, new = (part.strip()[:_MAX_PART] for part in self[:2])
        if lost:
            return f"“{new}” for “{lost}”" if new else f"lost “{lost}”"
        whole, part = ("".join(filter(str.isalnum, side.casefold())) for side in (text, new))
        return f"{'repeated' if part in whole else 'added'} “{new}”"


def find_word_faults(text: str, hypothesis: str, language: str) -> tuple[WordFault, ...]:
    """Return where a hypothesis differs from a text by more than notation and words that sound alike."""
    code = language_code(language)
    if has_difference_classes(code):
        differences = classify_differences(text, hypothesis, code).differences
        return tuple(WordFault(*each[1:]) for each in differences if each.kind in _AUDIBLE)
    split, blank = (characters, "") if choose_unit(code) == "char" else (words, " ")
    ours, theirs = (split(normalizer(code)(side)) for side in (text, hypothesis))
    runs = find_differing_runs(ours, theirs)
    return tuple(WordFault(blank.join(ours[a:b]), blank.join(theirs[c:d]), a) for a, b, c, d in runs)


def count_faulty_characters(faults: tuple[WordFault, ...]) -> int:
    """Return how much of the words is wrong, to compare takes."""
    return sum(max(len(fault.reference), len(fault.hypothesis)) for fault in faults)


def describe_word_faults(faults: tuple[WordFault, ...], text: str, hypothesis: str) -> list[str]:
    """Return the faults in words, the first few."""
    if not hypothesis.strip():
        return ["no word was recognized"]
    more = [f"{len(faults) - _MAX_SHOWN} more differences"] if len(faults) > _MAX_SHOWN else []
    return [*(fault.describe(text) for fault in faults[:_MAX_SHOWN]), *more]
