"""Texts of the voice explorer: the label of its button, and the summary of the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_COST = "The embedded service is free; others may bill characters."


def asked_for(left: Sequence[tuple[int, str]], *, any_meant: bool) -> str:
    """Label of the button: the effect of a press.

    Args:
        left: Row and sentence of each voice that has not spoken it yet.
        any_meant: Whether any voice is selected.
    """
    if not left:
        return "Spoken already" if any_meant else "Speak: mark voices first"
    characters = sum(len(text) for _, text in left)
    return f"Speak: {len(left)} voice{'' if len(left) == 1 else 's'}, {characters:,} characters"


def spoken_so_far(voices: int, failed: int, characters: int) -> str:
    """Return a sentence with the numbers of voices asked, failures and characters sent."""
    if not voices:
        return _COST
    parts = [f"{voices - failed} spoken.", f"{characters:,} characters in all.", _COST]
    if failed:
        parts.insert(1, f"{failed} failed: their rows say why.")
    return " ".join(parts)
