"""Places of tokens in a text as written.

Normalisation moves characters. A :class:`speechlab.text.Normalizer` gives the origin of each character, so an error
can be marked in the transcript as written, not only in the compared text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from speechlab.text import Normalizer, Spans, Step

if TYPE_CHECKING:
    from speechlab.metrics._alignment.units import Preparation

_WORD = re.compile(r"\S+")


def places(text: str, preparation: Preparation) -> list[tuple[int, int]]:
    """The place of each token in the text as written; empty for readings and syllables, which have no place."""
    if preparation.unit not in {"word", "char"}:
        return []
    if preparation.unit == "word":
        return [(start, end) for _, start, end in placed_words(text, preparation)]
    normalized, spans = _spans(text, preparation)
    start = len(normalized) - len(normalized.lstrip())
    return spans[start : start + len(normalized.strip())]


def placed_words(text: str, preparation: Preparation) -> list[tuple[str, int, int]]:
    """The normalised words of a text, each with its place in the text as written."""
    normalized, spans = _spans(text, preparation)
    return [
        (word[0], spans[word.start()][0], spans[word.end() - 1][1]) for word in _WORD.finditer(normalized)
    ]


def _spans(text: str, preparation: Preparation) -> Spans:
    rules = preparation.normalize
    if not isinstance(rules, Normalizer):
        rules = Normalizer("custom", 0, (Step("custom", rules),))
    return rules.spans(text)
