"""Syllables of Chinese text in pinyin, through pypinyin (the extra ``zh``)."""

from __future__ import annotations

import re
from functools import cache
from typing import cast

from speechlab._arguments import check_text
from speechlab.text._third_party import load

# 地 and 得 may be particles (de), which the dictionary reads di4 and de2 where it knows no word: between other
# characters that do not make them a noun or a verb.
_PARTICLE = re.compile(
    r"(?<=[\u4e00-\u9fff]{2})(?<![这那块片本此各两每整全某该这在])地(?=[\u4e00-\u9fff])"
    r"|(?<=[\u4e00-\u9fff])(?<![我你他她它们咱您就都也还总不没必非只可要能])得(?=[\u4e00-\u9fff])(?![了到])"
)
_LONGEST_PHRASE = 4


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
    text = _PARTICLE.sub(lambda found: found[0] if _in_phrase(text, found.start()) else "的", text)
    style = package.Style.TONE3 if tone else package.Style.NORMAL
    if by_character:
        return cast(
            "list[str]", package.lazy_pinyin(text, style=style, neutral_tone_with_five=tone, errors=list)
        )
    syllables = package.lazy_pinyin(text, style=style, neutral_tone_with_five=tone)
    # A run of other characters may contain white space. Items must not, because they are counted like words.
    return [item for syllable in cast("list[str]", syllables) for item in syllable.split()]


def _in_phrase(text: str, place: int) -> bool:
    """Whether a character belongs to a phrase of the dictionary."""
    return any(
        text[start : start + length] in _phrases()
        for length in range(2, _LONGEST_PHRASE + 1)
        for start in range(max(0, place - length + 1), place + 1)
    )


@cache
def _phrases() -> frozenset[str]:
    # Geoscience is rarer than a particle before 学.
    return frozenset(load("pypinyin.phrases_dict").phrases_dict) - {"地学"}
