"""Loops of recognisers: repetitions in a text that nobody said."""

from __future__ import annotations

import re

from speechlab._arguments import check_text

_SIGNS = re.compile(r"[\W_]+")
_SHORT, _LONG = re.compile(r"(.{4,200}?)\1{2,}"), re.compile(r"(.{12,400}?)\1+")


def loops(text: str, reference: str = "") -> bool:
    """Return whether a text has a repetition that its reference does not have.

    The rule: without spaces and punctuation, a string of at least four characters occurs three or more times in a
    row, or one of at least twelve twice; and the reference does not have this repetition.

    Args:
        text: The text, such as a hypothesis.
        reference: The text that was said, if it is known.

    Raises:
        InvalidRequestError: One of them is not a text.

    Example:
        >>> loops("Thank you so much, thank you so much."), loops("Bye bye.")
        (True, False)
    """
    check_text(text)
    check_text(reference, "reference")
    letters, reference_letters = _letters(text), _letters(reference)
    for rule in (_SHORT, _LONG):
        for match in rule.finditer(letters):
            unit = match[1]
            if unit * (len(match[0]) // len(unit)) not in reference_letters:
                return True
    return False


def _letters(text: str) -> str:
    return _SIGNS.sub("", text.casefold())
