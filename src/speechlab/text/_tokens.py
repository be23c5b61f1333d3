"""Tokens: words and characters of a text."""

from __future__ import annotations

from speechlab._arguments import check_text


def words(text: str) -> list[str]:
    """Split a text at white space of any kind, including tabs, line breaks, no-break and ideographic spaces.

    Example:
        >>> words("one\u00a0two\u3000three")
        ['one', 'two', 'three']
    """
    check_text(text)
    return text.split()


def characters(text: str) -> list[str]:
    """Split a text into its Unicode characters, without the white space at both ends.

    White space inside the text counts, as in jiwer; the normalisers for Japanese and Chinese remove it first.
    Characters are code points: a flag or a family emoji is several characters.

    Example:
        >>> characters(" 三時 に ")
        ['三', '時', ' ', 'に']
    """
    check_text(text)
    return list(text.strip())
