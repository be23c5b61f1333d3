"""Texts of segments that become one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def join_texts(texts: Iterable[str]) -> str:
    """Join texts with a space, unless the characters that meet are of a script that writes none.

    >>> join_texts(["Good", " morning. "]), join_texts(["三時に", "会議"])
    ('Good morning.', '三時に会議')
    """
    joined = ""
    for text in texts:
        part = text.strip()
        if part:
            joined += part if not joined or (_unspaced(joined[-1]) and _unspaced(part[0])) else f" {part}"
    return joined


def _unspaced(character: str) -> bool:
    """Whether a character is Chinese, Japanese (punctuation and full width too), but not Korean."""
    return "\u2e80" <= character < "\uac00" or "\uff00" <= character <= "\uffef"
