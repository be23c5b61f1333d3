"""Long recordings: cut into windows at pauses, each with its part of the text."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab.engines._recognition.decoding import SAMPLE_RATE, Span, cut_at_pauses, find_speech
from speechlab.engines._recognition.word_times import AlignedWord, align_window
from speechlab.errors import InvalidRequestError
from speechlab.text import find_differing_runs, writes_without_spaces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.engines._recognition.timed_words import Place

_LONGEST_S, _MARGIN_S, _GAP_MS = 28.0, 0.2, 200
_SIGNS = re.compile(r"[\W_]+")


def align_words(
    whisper: Any,
    sound: NDArray[np.float32],
    text: str,
    places: Sequence[Place],
    language: str,
    recognize: Callable[[NDArray[np.float32]], str],
) -> list[AlignedWord]:
    """Return the times of the words of a text. Windows of a long sound are recognized, to divide the text."""
    if not (speech := find_speech(sound, _GAP_MS)):
        message = (
            f"no speech was found in the recording of {len(sound) / SAMPLE_RATE:.2f} s; check it and its text"
        )
        raise InvalidRequestError(message, parameter="audio")
    windows = _cut_into_windows(sound, speech)
    parts = [sound[round(window.start * SAMPLE_RATE) : round(window.end * SAMPLE_RATE)] for window in windows]
    cuts = [0, len(places)]
    if len(windows) > 1:
        cuts = divide_text(text, places, [recognize(part) for part in parts], language)
    return [
        word
        for window, part, (first, last) in zip(windows, parts, itertools.pairwise(cuts), strict=True)
        if first < last
        for word in align_window(whisper, part, window.start, text, places[first:last], language)
    ]


def _cut_into_windows(sound: NDArray[np.float32], speech: Sequence[Span]) -> list[Span]:
    """Return windows that are as long as possible, without the silence around the speech in them."""
    seams = [(one.end + other.start) / 2 for one, other in itertools.pairwise(speech)]
    begin = max(0.0, speech[0].start - _MARGIN_S)
    end = min(len(sound) / SAMPLE_RATE, speech[-1].end + _MARGIN_S)
    if end - begin <= _LONGEST_S:
        return [Span(begin, end)]
    windows: list[Span] = []
    for cut in cut_at_pauses(sound, seams):
        start, stop = max(cut[0], begin), min(cut[1], end)
        if windows and stop - windows[-1].start <= _LONGEST_S:
            windows[-1] = Span(windows[-1].start, max(stop, windows[-1].end))
        elif stop > start:
            windows.append(Span(start, stop))
    return windows


def divide_text(text: str, places: Sequence[Place], recognized: Sequence[str], language: str) -> list[int]:
    """Return the numbers of the words with which each window begins, and the number of all words.

    The text and what was recognized are compared in characters, or in words of languages with spaces.
    """
    ours, begins = _split_into_units([text[start:end] for start, end in places], language)
    theirs, ends = _split_into_units([*recognized, ""], language)
    known = [(0, 0)]  # corners of the runs that differ: unit of the windows, unit of the text
    for a, b, c, d in find_differing_runs(ours, theirs):
        known += [(c, a), (d, b)]
    known.append((len(theirs), len(ours)))
    xs, ys = np.array(known, dtype=np.float64).T
    cuts = [0]
    for end in ends[1:-1]:
        # text that was not recognized at a cut is halved: either window may have it
        unit = float(np.interp([end - 1e-6, end + 1e-6], xs, ys).mean()) - 0.5
        cuts.append(max(cuts[-1], bisect_left(begins, unit)))
    return [*cuts, len(places)]


def _split_into_units(texts: Sequence[str], language: str) -> tuple[list[str], list[int]]:
    """Return the units of all texts, and with which of them each text begins."""
    units: list[str] = []
    begins = []
    for text in texts:
        begins.append(len(units))
        words = [_SIGNS.sub("", word) for word in text.casefold().split()]
        units += "".join(words) if writes_without_spaces(language) else filter(None, words)
    return units, begins
