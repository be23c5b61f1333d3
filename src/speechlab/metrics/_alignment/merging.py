"""Words that count as one: variants that a list names, and compounds.

Compounds are adjacent words that together are one word of the other side; they cost nothing, as in kaldialign's
``merge_compounds``, by which the Open ASR Leaderboard counts. The cheapest path through the table of the words
may also step from several words of one side to one word of the other, for free.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from rapidfuzz.distance import Levenshtein

from speechlab.errors import InvalidRequestError
from speechlab.text import Normalizer, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_MOST = (
    250_000  # cells of the table; in longer pairs, each difference between equal words has a table of its own
)


def with_variants(
    normalize: Callable[[str], str], groups: Iterable[Iterable[str]]
) -> tuple[Callable[[str], str], str]:
    """A function that also writes the words of each group as the first of them, and a hash of the groups."""
    forms: dict[str, str] = {}
    for group in groups:
        names = [] if isinstance(group, str) else [normalize(name) for name in group]
        if len(names) < 2 or not all(names):
            message = f"variants={group!r:.60}: give at least two words or phrases that count as one"
            raise InvalidRequestError(message, parameter="variants")
        for name in names:
            if forms.setdefault(name, names[0]) != names[0]:
                message = f"{name!r:.60} is in two groups; put all that count as one into one group"
                raise InvalidRequestError(message, parameter="variants")
    if not forms:
        return normalize, ""
    # Japanese and Chinese have no blanks between words.
    longest = sorted(map(re.escape, forms), key=len)[::-1]
    pattern = re.compile("|".join(rf"(?<!\w){name}(?!\w)" if name.isascii() else name for name in longest))
    content = f"{sorted(forms.items())}"
    step = Step("variants", lambda text: pattern.sub(lambda found: forms[found[0]], text), content)
    rules = (
        normalize
        if isinstance(normalize, Normalizer)
        else Normalizer("custom", 0, (Step("custom", normalize),))
    )
    marked = Normalizer(rules.name, rules.version, (*rules.steps, step))
    return marked, hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def merged(said: list[str], heard: list[str]) -> list[str]:
    """The hypotheses with the compounds of their references: "whitepaper" for "white paper", and the reverse."""
    return [
        second if first == second else " ".join(_merged(first.split(), second.split()))
        for first, second in zip(said, heard, strict=True)
    ]


def _merged(one: list[str], other: list[str]) -> list[str]:
    if len(one) * len(other) <= _MOST:
        return _spelled(one, other)
    words: list[str] = []
    i = j = 0
    equal = [op for op in Levenshtein.opcodes(one, other) if op.tag == "equal"]
    for first, last, start, end in [
        *((op.src_start, op.src_end, op.dest_start, op.dest_end) for op in equal),
        (len(one), len(one), len(other), len(other)),
    ]:
        reference_part, hypothesis_part = one[i:first], other[j:start]
        words += (
            hypothesis_part
            if len(reference_part) * len(hypothesis_part) > _MOST
            else _spelled(reference_part, hypothesis_part)
        )
        words += other[start:end]
        i, j = last, end
    return words


def _spelled(one: list[str], other: list[str]) -> list[str]:
    """The words of the hypothesis, with those of the reference where the cheapest path merges them."""
    steps: dict[tuple[int, int], tuple[int, int]] = {}
    steps |= {(i, j): (count, 1) for i, j, count in _compounds(one, other)}
    steps |= {(i, j): (1, count) for j, i, count in _compounds(other, one)}
    if not steps:
        return other
    costs = [list(range(len(other) + 1))]
    for i, word in enumerate(one, 1):
        row = [i]
        above = costs[-1]
        for j, token in enumerate(other, 1):
            cost = min(above[j - 1] + (word != token), above[j] + 1, row[j - 1] + 1)
            step = steps.get((i, j))
            if step:
                cost = min(cost, costs[i - step[0]][j - step[1]] if step[0] > 1 else above[j - step[1]])
            row.append(cost)
        costs.append(row)
    words: list[str] = []
    i, j = len(one), len(other)
    while j:
        step = steps.get((i, j))
        if step and costs[i - step[0]][j - step[1]] == costs[i][j]:
            words += reversed(one[i - step[0] : i])
            i, j = i - step[0], j - step[1]
        elif i and costs[i - 1][j - 1] + (one[i - 1] != other[j - 1]) == costs[i][j]:
            words.append(other[j - 1])
            i, j = i - 1, j - 1
        elif i and costs[i - 1][j] + 1 == costs[i][j]:
            i -= 1
        else:
            words.append(other[j - 1])
            j -= 1
    return words[::-1]


def _compounds(parts: list[str], wholes: list[str]) -> Iterator[tuple[int, int, int]]:
    """Ends of adjacent words and of the one word that they are together, and how many they are."""
    places: dict[str, list[int]] = {}
    for place, compound in enumerate(wholes, 1):
        places.setdefault(compound, []).append(place)
    longest = max(map(len, wholes), default=0)
    for start, word in enumerate(parts):
        joined = word
        for end in range(start + 1, len(parts)):
            joined += parts[end]
            if len(joined) > longest:
                break
            for place in places.get(joined, ()):
                yield end + 1, place, end + 1 - start
