"""Sentences of answers: names as they are, and as many clauses as a reader takes in at once."""

from __future__ import annotations

import re
from collections.abc import Sequence

from speechlab.display import join_with_and

# Most words of the first sentence of an answer, and of each line below it.
TITLE_WORDS, LINE_WORDS = 14, 25
_MAX_NAMES = 3


def quote_name(name: object) -> str:
    """Return a name for a sentence: as it is, in quotation marks if it has several words."""
    text = str(name)
    return f"“{text}”" if len(text.split()) > 1 else text


def count_words(text: str) -> int:
    """Return the number of words of a title, in which a name in quotation marks is one."""
    return len(re.sub(r"“[^”]*”", "name", text).split())


def join_names(names: Sequence[object], last: str = "and", most: int = _MAX_NAMES) -> str:
    """Return names for a sentence; of many names the first and the number of the others."""
    if len(names) > most:
        return f"{quote_name(names[0])} {last} {len(names) - 1} others"
    quoted = [quote_name(name) for name in names]
    if last == "and":
        return join_with_and(quoted)
    return f" {last} ".join([", ".join(quoted[:-1]), quoted[-1]]) if len(quoted) > 1 else "".join(quoted)


def capitalize_unless_name(words: str, names: Sequence[object] = ()) -> str:
    """Return words as the beginning of a sentence; a name that they begin with stays as it is."""
    if any(
        re.match(rf"(?:{re.escape(str(name))}|{re.escape(quote_name(name))})(?!\w)", words) for name in names
    ):
        return words
    return f"{words[:1].upper()}{words[1:]}"


def join_fitting_clauses(clauses: Sequence[str], most: int = LINE_WORDS) -> str:
    """Return the first of some clauses, and as many of the others, in their order, as the words allow."""
    kept: list[str] = []
    for clause in filter(None, clauses):
        if not kept or len(" ".join([*kept, clause]).split()) <= most:
            kept.append(clause)
    return "; ".join(kept)
