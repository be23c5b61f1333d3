"""The words of a take: parts of its text that were lost, repeated, added, or recognized as others."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from speechlab.metrics import choose_unit, classify_differences, error_rate, has_difference_classes
from speechlab.text import language_code, loops

# Classes of differences that can be heard.
_AUDIBLE = frozenset({"recognition", "tone"})
_MAX_SHOWN = 3
_MAX_PART = 60


class WordFault(NamedTuple):
    """One place where the recognized words differ from the text, by more than its notation."""

    reference: str
    hypothesis: str
    start: int  # in the compared text

    def describe(self, text: str) -> str:
        """Return the fault in words."""
        lost, new = (part.strip()[:_MAX_PART] for part in self[:2])
        if not new:
            return f"lost “{lost}”"
        if not lost:
            return f"{'repeated' if _strip(new) in _strip(text) else 'added'} “{new}”"
        return f"“{new}” for “{lost}”"


def find_word_faults(text: str, hypothesis: str, language: str) -> tuple[WordFault, ...]:
    """Return where a hypothesis differs from a text by more than notation and words that sound alike."""
    code = language_code(language)
    if has_difference_classes(code):
        differences = classify_differences(text, hypothesis, code).differences
        return tuple(WordFault(*each[1:]) for each in differences if each.kind in _AUDIBLE)
    unit = choose_unit(code)
    (alignment,) = error_rate([text], [hypothesis], unit=unit, language=code).alignments
    blank, faults = "" if unit == "char" else " ", []
    for equal, edits in groupby(alignment, key=lambda edit: edit.operation == "equal"):
        if not equal:
            run = list(edits)
            sides = ([edit.reference for edit in run], [edit.hypothesis for edit in run])
            old, new = (blank.join(token for token in side if token is not None) for side in sides)
            faults.append(WordFault(old, new, run[0].reference_index))
    return tuple(faults)


def count_faulty_characters(faults: Iterable[WordFault]) -> int:
    """Return how much of the words is wrong, to compare takes."""
    return sum(max(len(fault.reference), len(fault.hypothesis)) for fault in faults)


def describe_word_faults(faults: tuple[WordFault, ...], text: str, hypothesis: str) -> list[str]:
    """Return the faults in words, the first few."""
    if not hypothesis.strip():
        return ["no word was recognized"]
    parts = [fault.describe(text) for fault in faults[:_MAX_SHOWN]]
    more = [f"{len(faults) - _MAX_SHOWN} more differences"] if len(faults) > _MAX_SHOWN else []
    return [*(["the text is said again and again"] if loops(hypothesis, text) else []), *parts, *more]


def _strip(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())
