"""Rows of two languages, such as ``ja+en``: what they are called, and how their texts are compared.

They are scored by the mixed error rate: characters of languages without spaces between words, words of all others.
Source: N. T. Vu et al., A first speech recognition system for Mandarin-English code-switch conversational speech
(ICASSP 2012).
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Any

from speechlab.errors import InvalidRequestError
from speechlab.text import characters, language_code, normalizer, writes_without_spaces

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

_SEPARATOR = re.compile(r"\s*[+/,]\s*")
_SPACED = re.compile(r"([^\W\d_⺀-鿿豈-﫿　-ヿ㐀-䶿가-힯]+(?:[ '’-]+[^\W\d_⺀-鿿豈-﫿　-ヿ㐀-䶿가-힯]+)*)")
"""Words of a script that has spaces between them."""


def languages_of(value: object) -> tuple[str, ...]:
    """Return the codes of a row's language: one, several of a mixed row, or none if one of them is no language."""
    if not isinstance(value, str):
        return ()
    try:
        return tuple(dict.fromkeys(language_code(part) for part in _SEPARATOR.split(value.strip())))
    except InvalidRequestError:
        return ()


def languages_of_rows(values: pd.Series[Any]) -> pd.Series[Any]:
    """Return the codes of each row, by which rows can be grouped whatever the type of the column."""
    import pandas as pd

    return pd.Series([languages_of(value) for value in values], index=values.index, dtype="object")


def is_mixed(value: object) -> bool:
    """Return whether a row is of several languages."""
    return len(languages_of(value)) > 1


@cache
def mixed_normalizer(languages: tuple[str, ...]) -> Callable[[str], str]:
    """Return a function that makes a text tokens with a space between them: words, and single characters.

    Each stretch is normalised by the rules of its own language, so that Japanese rules glue no English words.

    Args:
        languages: Codes; the first without spaces between words has all characters of such scripts, and all digits.
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
