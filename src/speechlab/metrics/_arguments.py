"""Checks of arguments that this room needs beside the shared ones: lists of texts, choices, numbers in a range.

What is wrong with an argument is refused, with the argument's name in the error; what is wrong with one row of a
table is no business of this module, because one row stops nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from speechlab._arguments import is_frame, is_number
from speechlab.errors import InvalidRequestError


def as_texts(values: object, argument: str, remedy: str = "leave such pairs out") -> list[str]:
    """A list of texts, or what is not a text in it.

    Args:
        values: One text or many.
        argument: What the caller calls them.
        remedy: What to do about missing ones.
    """
    if isinstance(values, str):
        return [values]
    if (
        not isinstance(values, Iterable)
        or isinstance(values, Mapping | set | frozenset | bytes)
        or is_frame(values)
    ):
        message = f"{argument} is {values!r:.60} ({type(values).__name__}); give one text, or a list of texts"
        raise InvalidRequestError(message, parameter=argument)
    texts: list[Any] = list(values)
    if set(map(type, texts)) <= {str}:
        return texts
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            message = f"{argument}[{position}] is {text!r:.60}, not a text; {remedy}"
            raise InvalidRequestError(message, parameter=argument)
    return texts


def check_choice(value: object, choices: Iterable[str], argument: str, what: str) -> None:
    """Refuse what is none of the names that are there."""
    names = tuple(choices)
    if not isinstance(value, str) or value not in names:
        message = f"{what} {value!r:.60}; use one of {', '.join(map(repr, names))}"
        raise InvalidRequestError(message, parameter=argument)


def check_number(value: object, argument: str, low: float, high: float, unit: str) -> None:
    """Refuse what is no number in a range."""
    if not is_number(value) or not low <= float(value) <= high:
        message = (
            f"{argument}={value!r:.60} is out of range; give a number of {unit} from {low:g} to {high:g}"
        )
        raise InvalidRequestError(message, parameter=argument)
