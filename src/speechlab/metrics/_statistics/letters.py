"""Letters of significance: systems that share a letter cannot be told apart.

Source: H.-P. Piepho, An algorithm for a letter-based representation of all-pairwise comparisons, Journal of
Computational and Graphical Statistics 13 (2004): groups are split at each significant pair, and those that lie in
another are absorbed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def letters(names: Sequence[str], apart: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The letters of each system.

    Args:
        names: Systems, the best first, which has the letter a.
        apart: Pairs that differ significantly.
    """
    groups = [frozenset(names)]
    for one, other in apart:
        split: list[frozenset[str]] = []
        for group in groups:
            both = one in group and other in group
            split += [group - {one}, group - {other}] if both else [group]
        unique = list(dict.fromkeys(split))
        groups = [group for group in unique if not any(group < wider for wider in unique)]
    place = {name: number for number, name in enumerate(names)}
    groups.sort(key=lambda group: sorted(place[name] for name in group))
    return {
        name: "".join(_letter(number) for number, group in enumerate(groups) if name in group)
        for name in names
    }


def _letter(number: int) -> str:
    """A to z, then (27), (28) and so on."""
    return chr(ord("a") + number) if number < 26 else f"({number + 1})"
