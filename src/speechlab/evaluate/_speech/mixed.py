"""Rows of several languages, such as ``ja+en``: their codes, and the comparison of their texts.

They are scored by the mixed error rate: characters in languages without spaces between words, words in all others.
Source: N. T. Vu et al., A first speech recognition system for Mandarin-English code-switch conversational speech
(ICASSP 2012).
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Any

from speechlab.evaluate._arguments import languages_of
from speechlab.text import characters, normalizer, writes_without_spaces

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

_SPACED = re.compile(r"([^\W\d_⺀-鿿豈-﫿　-ヿ㐀-䶿가-힯]+(?:[ '’-]+[^\W\d_⺀-鿿豈-﫿　-ヿ㐀-䶿가-힯]+)*)")
"""Words of scripts with spaces between words."""


def languages_of_rows(values: pd.Series[Any]) -> pd.Series[Any]:
    """Return the codes of each row for grouping, for any type of the column."""
    import pandas as pd

    return pd.Series([languages_of(value) for value in values], index=values.index, dtype="object")


def is_mixed(value: object) -> bool:
    """Return whether a row has several languages."""
    return len(languages_of(value)) > 1


@cache
def mixed_normalizer(languages: tuple[str, ...]) -> Callable[[str], str]:
    """Return a function that splits a text into tokens with spaces between them: words, and single characters.

    Each stretch is normalised by the rules of its own language, so that Japanese rules do not join English words.

    Args:
        languages: Codes. The first language without spaces between words gets all characters of such scripts, and all
            digits.
    """
    dense = next((code for code in languages if writes_without_spaces(code)), None)
    spaced = next((code for code in languages if not writes_without_spaces(code)), None)
    words = normalizer(spaced if spaced == "en" else "basic")
    letters = normalizer(dense if dense in {"ja", "zh"} else "basic")

    def normalize(text: str) -> str:
        if dense is None:
            return words(text)
        stretches = _SPACED.split(unicodedata.normalize("NFKC", text))
        tokens = []
        for number, stretch in enumerate(stretches):
            tokens += words(stretch).split() if number % 2 else characters(letters(stretch).replace(" ", ""))
        return " ".join(tokens)

    normalize.__name__ = normalize.__qualname__ = f"mixed_{'_'.join(languages)}"
    return normalize
