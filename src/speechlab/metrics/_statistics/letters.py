"""Letters of significance: systems that share a letter cannot be told apart.

A letter is a group of systems without significant differences. For each pair of systems without a common letter, a
new group grows from the best system on. This limits the number of letters and the time for many systems.

Source: H.-P. Piepho, An algorithm for a letter-based representation of all-pairwise comparisons, Journal of
Computational and Graphical Statistics 13 (2004); groups: J. Gramm et al., Algorithms for compact letter displays:
comparison and evaluation, Computational Statistics & Data Analysis 52 (2007).
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def letters(names: Sequence[str], apart: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The letters of each system."""
    different = {frozenset(pair) for pair in apart}
    groups: list[set[str]] = []
    for one, other in combinations_with_replacement(names, 2):
        pair = {one, other}
        if pair in different or any(pair <= group for group in groups):
            continue
        for name in names:
            if not any({name, member} in different for member in pair):
                pair.add(name)
        groups.append(pair)
    place = {name: number for number, name in enumerate(names)}
    groups.sort(key=lambda group: sorted(place[name] for name in group))
    return {
        name: "".join(_letter(number) for number, group in enumerate(groups) if name in group)
        for name in names
    }


def _letter(number: int) -> str:
    """A to z, then (27), (28) and so on."""
    return chr(ord("a") + number) if number < 26 else f"({number + 1})"
