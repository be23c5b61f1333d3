"""Signatures: the computation of a figure in one line, as ``key:value`` pairs separated by bars.

Figures of different computations are never added up or compared; the error names the differences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

_NEEDED = ("unit", "lang", "norm", "counts")
_WORDS = {"norm": "normaliser", "lang": "language"}


def parts(signature: str) -> dict[str, str]:
    """The parts of a signature by their keys."""
    found = dict(part.split(":", 1) for part in signature.split("|") if ":" in part)
    absent = [key for key in _NEEDED if not found.get(key)]
    if absent:
        message = (
            f"the signature {signature!r:.80} does not say {', '.join(map(repr, absent))}, as in "
            "'unit:word|lang:en|norm:none|counts:levenshtein'; score the texts again"
        )
        raise InvalidRequestError(message, parameter="signature")
    return found


def joined(signatures: Iterable[str], what: str = "these rows") -> str:
    """One signature for the sum of several figures, with all their languages and the values of each."""
    unique = sorted(set(signatures))
    if len(unique) < 2:
        return unique[0] if unique else ""
    by_language: dict[str, str] = {}
    for signature in unique:
        language = parts(signature).get("lang", "")
        other = by_language.setdefault(language, signature)
        if other != signature:
            message = (
                f"{what} were scored in different ways: {differing(other, signature)}; score them alike, or keep "
                "them apart, as in by=['signature']"
            )
            raise InvalidRequestError(message, parameter="signature")
    each = [parts(signature) for signature in unique]
    keys = dict.fromkeys(key for part in each for key in part)
    values = {key: dict.fromkeys(part[key] for part in each if key in part) for key in keys}
    return "|".join(f"{key}:{'+'.join(found)}" for key, found in values.items())


def joined_of(frame: pd.DataFrame, what: str = "these rows") -> str:
    """One signature for the rows of a table that have one."""
    return joined(frame["signature"].dropna().unique().tolist(), what)


def differing(one: str, other: str) -> str:
    """The differences between two signatures."""
    here, there = parts(one), parts(other)
    return ", ".join(
        f"{_WORDS.get(key, key)} {here.get(key, 'none')} and {there.get(key, 'none')}"
        for key in dict.fromkeys([*here, *there])
        if here.get(key) != there.get(key)
    )
