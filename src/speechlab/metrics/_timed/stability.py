"""Stability of texts that are shown before they are final."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from speechlab._arguments import build_argument_error, check_text
from speechlab.text import language_code, words, writes_without_spaces


@dataclass(frozen=True)
class PartialStability:
    """How often words changed after they were shown.

    Attributes:
        revisions: Texts that change or withdraw a word of the text before; for each recording, this is the unstable
            partial segment ratio (UPSR).
        unstable_words: Words that were shown and then changed or withdrawn, each time anew.
        words: Words of the final texts.

    Example:
        >>> found = partial_stability([("good", False), ("good mourning", False), ("good morning", True)])
        >>> found.revisions, found.unstable_partial_word_ratio
        (1, 0.5)
    """

    revisions: int
    unstable_words: int
    words: int

    @property
    def unstable_partial_word_ratio(self) -> float:
        """Unstable words over words of the final texts (UPWR), 0 or more; NaN without any."""
        return self.unstable_words / self.words if self.words else math.nan


def partial_stability(partials: Iterable[tuple[str, bool]], *, language: str = "") -> PartialStability:
    """Count the words of streamed recognition that changed after they were shown.

    A word is unstable if the next text has another word at its place or before it. Notation counts, as a reader sees
    it: a capital, a mark, a word that only grows. Chinese and Japanese are counted by characters.

    Source: Y. Shangguan et al., Analyzing the quality and stability of a streaming end-to-end on-device speech
    recognizer (Interspeech 2020).

    Args:
        partials: The texts of one recording in order, and whether each is final: what follows a final text belongs to
            the next segment.
        language: Language code; empty for words between spaces.

    Returns:
        The counts and their ratio.

    Raises:
        InvalidRequestError: The partials are not pairs of a text and a bool, or the language does not exist.

    Example:
        >>> partial_stability([("三十", False), ("三時に", True)], language="ja").unstable_words
        1
    """
    check_text(language, "language")
    unspaced = bool(language) and writes_without_spaces(language_code(language))
    previous: list[str] = []
    revisions = unstable = count = 0
    updates: Iterable[Any] = partials if isinstance(partials, Iterable) else [partials]  # type: ignore[redundant-expr]  # of users
    for pair in updates:
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], str)):
            raise build_argument_error(
                "partials", pair, "pairs of a text and whether it is final, as in ('good mor', False)"
            )
        current = list("".join(pair[0].split())) if unspaced else words(pair[0])
        unchanged = sum(1 for _ in takewhile(lambda same: same, map(str.__eq__, previous, current)))
        revisions, unstable = revisions + (unchanged < len(previous)), unstable + len(previous) - unchanged
        previous = current
        if pair[1]:
            count, previous = count + len(current), []
    return PartialStability(revisions, unstable, count)
