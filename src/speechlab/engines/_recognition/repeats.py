"""Repetition in a text: said again, or a loop of the decoder?

A loop stays within the window of 30 seconds in which it began, so that windows are looked at one by one. In a piece
of such a window that is decoded alone, what was said again is found again, and a loop is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from speechlab.engines._recognition.decoding import (
    Span,
    cut_at_pauses,
    find_letters,
    find_speech,
    has_repetition,
)
from speechlab.engines._recognition.gaps import Decoded, collect_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FRAMES_PER_S = 100
_WINDOW_S = 30.0
# Similarity of two texts of one piece: their edges differ, since text without times is shared out by length.
_ALIKE = 0.6


@dataclass(frozen=True, slots=True)
class Window:
    """A window of the decoder: its time in the recording in seconds, and its segments, from ``first`` to ``last``."""

    span: Span
    segments: tuple[Any, ...]
    first: int
    last: int
    language: str

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments)


def find_repeating_windows(decoded: Decoded, duration_s: float) -> list[Window]:
    """Return the windows whose texts repeat words, alone or together with those of their neighbors."""
    windows = _split_into_windows(decoded, duration_s)
    repeating: set[int] = set()
    for together in (1, 2, 3):  # of the same sentence, three in a row are a repetition
        for first in range(len(windows) - together + 1):
            numbers = range(first, first + together)
            if repeating.isdisjoint(numbers) and has_repetition("".join(windows[n].text for n in numbers)):
                repeating.update(numbers)
    return [windows[n] for n in sorted(repeating)]


def _split_into_windows(decoded: Decoded, duration_s: float) -> list[Window]:
    numbered = list(enumerate(zip(decoded.segments, decoded.languages, strict=True)))
    grouped = [list(group) for _, group in groupby(numbered, key=lambda item: item[1][0].seek)]
    starts = [group[0][1][0].seek / _FRAMES_PER_S for group in grouped]
    return [
        Window(
            Span(start, min(start + _WINDOW_S, following)),
            tuple(segment for _, (segment, _) in group),
            group[0][0],
            group[-1][0],
            group[0][1][1],
        )
        for group, start, following in zip(grouped, starts, [*starts[1:], duration_s], strict=True)
        if start < following
    ]


def cut_into_pieces(sound: NDArray[np.float32]) -> list[tuple[float, float]]:
    """Return starts and ends of the pieces between short pauses, in seconds."""
    stretches = find_speech(sound, gap_ms=150)
    seams = [(first.end + second.start) / 2 for first, second in pairwise(stretches)]
    return cut_at_pauses(sound, seams)


def choose_tested_piece(window: Window, pieces: Sequence[tuple[float, float]]) -> tuple[int, str]:
    """Return the number of the piece of a window that is decoded alone, and its text: the last that repeats words."""
    texts = [
        collect_text(window.segments, Span(window.span.start + start, window.span.start + end))
        for start, end in pieces
    ]
    letters = [find_letters(text) for text in texts]
    ranks = [
        (has_repetition(text), any(is_alike(text, texts[other]) for other in range(n)), bool(letters[n]), n)
        for n, text in enumerate(texts)
    ]
    chosen = max(ranks)[-1]
    return chosen, texts[chosen]


def is_alike(first: str, second: str) -> bool:
    """Return whether two texts have most of their letters in common, in one order."""
    one, other = find_letters(first), find_letters(second)
    return bool(one and other) and SequenceMatcher(None, one, other, autojunk=False).ratio() >= _ALIKE


def replace_window(decoded: Decoded, window: Window, found: Decoded) -> Decoded:
    """Put what was decoded of a window in the place of its segments."""
    before, after = slice(None, window.first), slice(window.last + 1, None)
    return replace(
        decoded,
        segments=(*decoded.segments[before], *found.segments, *decoded.segments[after]),
        languages=(*decoded.languages[before], *found.languages, *decoded.languages[after]),
    )
