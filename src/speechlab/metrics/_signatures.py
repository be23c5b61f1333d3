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
    fields = dict(field.split(":", 1) for field in signature.split("|") if ":" in field)
    absent = [key for key in _NEEDED if not fields.get(key)]
    if absent:
        message = (
            f"the signature {signature!r:.80} does not say {', '.join(map(repr, absent))}, as in "
            "'unit:word|lang:en|norm:none|counts:levenshtein'; score the texts again"
        )
        raise InvalidRequestError(message, parameter="signature")
    return fields


def joined(signatures: Iterable[str], what: str = "these rows") -> str:
    """One signature for the sum of several figures, with all their languages and the values of each."""
    unique = sorted(set(signatures))
    if len(unique) < 2:
        return unique[0] if unique else ""
    by_language: dict[str, str] = {}
    for signature in unique:
        language = parts(signature).get("lang", "")
        first = by_language.setdefault(language, signature)
        if first != signature:
            message = (
                f"{what} were scored in different ways: {differing(first, signature)}; score them alike, or keep "
                "them apart, as in by=['signature']"
            )
            raise InvalidRequestError(message, parameter="signature")
    each = [parts(signature) for signature in unique]
    keys = dict.fromkeys(key for fields in each for key in fields)
    values = {key: dict.fromkeys(fields[key] for fields in each if key in fields) for key in keys}
    return "|".join(f"{key}:{'+'.join(texts)}" for key, texts in values.items())


def joined_of(frame: pd.DataFrame, what: str = "these rows") -> str:
    """One signature for the rows of a table that have one."""
    return joined(frame["signature"].dropna().unique().tolist(), what)


def differing(one: str, other: str) -> str:
    """The differences between two signatures."""
    first_parts, second_parts = parts(one), parts(other)
    return ", ".join(
        f"{_WORDS.get(key, key)} {first_parts.get(key, 'none')} and {second_parts.get(key, 'none')}"
        for key in dict.fromkeys([*first_parts, *second_parts])
        if first_parts.get(key) != second_parts.get(key)
    )
