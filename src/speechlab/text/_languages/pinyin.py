"""Syllables of Chinese text in pinyin, through pypinyin (the extra ``zh``)."""

from __future__ import annotations

from typing import cast

from speechlab._arguments import check_text
from speechlab.text._third_party import load


def pinyin(text: str, *, tone: bool = True, by_character: bool = False) -> list[str]:
    """The syllables of a Chinese text.

    Args:
        text: Any text. A run of other characters than Chinese stays as it is, as one item; white space separates
            items.
        tone: Whether to write the tone after each syllable: 1 to 4, or 5 for the neutral tone.
        by_character: Whether to return one item for each character, including white space and other characters.

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
    # A run of other characters may contain white space. Items must not, because they are counted like words.
    return [item for syllable in cast("list[str]", syllables) for item in syllable.split()]
