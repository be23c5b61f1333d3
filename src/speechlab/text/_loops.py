"""Loops of recognisers: repetitions in a hypothesis that are not in its reference.

The rule: a string of at least four characters (punctuation and spaces do not count) occurs three or more times in a
row, or one of at least twelve characters occurs twice in a row; and the reference, if there is one, does not have
this repetition.
"""

from __future__ import annotations

import re

_SIGNS = re.compile(r"[\W_]+")
_SHORT, _LONG = re.compile(r"(.{4,200}?)\1{2,}"), re.compile(r"(.{12,400}?)\1+")


def loops(hypothesis: object, reference: object = None) -> bool:
    """Return whether a hypothesis has a repetition that its reference does not have.

    Args:
        hypothesis: The hypothesis; False for a value that is not a text.
        reference: The reference, if it is known.

    Example:
        >>> loops("Thank you so much, thank you so much."), loops("Bye bye.")
        (True, False)
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
