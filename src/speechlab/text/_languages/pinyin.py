"""Chinese text as it is spoken, in pinyin, through pypinyin (to be installed besides)."""

from __future__ import annotations

from typing import cast

from speechlab._arguments import check_text
from speechlab.text._third_party import load


def pinyin(text: str, *, tone: bool = True, by_character: bool = False) -> list[str]:
    """The syllables of a Chinese text.

    Args:
        text: Any text. What is not Chinese stays as it is, a run of it as one item.
        tone: Whether to put the tone behind each syllable, 1 to 4, and 5 for the neutral tone.
        by_character: One item for each character, white space included, whatever it is.

    Raises:
        InvalidRequestError: ``text`` is not a str.
        MissingDependencyError: The package pypinyin is not installed.

    Example:
        >>> pinyin("银行行长")
        ['yin2', 'hang2', 'hang2', 'zhang3']
        >>> pinyin("银行", tone=False)
        ['yin', 'hang']
    """
    check_text(text)
    package = load("pypinyin")
    style = package.Style.TONE3 if tone else package.Style.NORMAL
    if by_character:
        return cast(
            "list[str]", package.lazy_pinyin(text, style=style, neutral_tone_with_five=tone, errors=list)
        )
    syllables = package.lazy_pinyin(text, style=style, neutral_tone_with_five=tone)
    # A run of other characters may hold white space; items must not, because they are counted like words.
    return [item for syllable in cast("list[str]", syllables) for item in syllable.split()]
