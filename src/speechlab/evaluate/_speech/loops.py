"""Recognisers that loop: a text that says the same thing again and again, though its reference does not.

The rule: a stretch of at least four characters (signs and spaces do not count) stands three times in a row or more,
or one of at least twelve stands twice in a row; and in the reference, if there is one, it does not stand so.
"""

from __future__ import annotations

import re

_SIGNS = re.compile(r"[\W_]+")
_SHORT, _LONG = re.compile(r"(.{4,200}?)\1{2,}"), re.compile(r"(.{12,400}?)\1+")


def loops(hypothesis: object, reference: object = None) -> bool:
    """Return whether a hypothesis repeats itself as no reference does.

    Args:
        hypothesis: The text that was recognised; what is no text does not loop.
        reference: What was said, if it is known.
    """
    if not isinstance(hypothesis, str):
        return False
    heard, said = (_letters(text) if isinstance(text, str) else "" for text in (hypothesis, reference))
    for rule in (_SHORT, _LONG):
        for found in rule.finditer(heard):
            unit = found[1]
            if unit * (len(found[0]) // len(unit)) not in said:
                return True
    return False


def _letters(text: str) -> str:
    return _SIGNS.sub("", text.casefold())
