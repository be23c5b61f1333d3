"""Long recordings: cut into windows at pauses, each with its part of the text."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab.engines._alignment.timing import AlignedWord, align_window
from speechlab.engines._recognition.decoding import SAMPLE_RATE, Span, cut_at_pauses, find_speech
from speechlab.errors import InvalidRequestError
from speechlab.text import find_differing_runs, writes_without_spaces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.engines._alignment.words import Place

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
    speech = find_speech(sound, _GAP_MS)
    duration_s = len(sound) / SAMPLE_RATE
    if not speech:
        message = f"no speech was found in the recording of {duration_s:.2f} s; check recording and text"
        raise InvalidRequestError(message, parameter="audio")
    windows = _cut_into_windows(sound, speech)
    parts = [sound[round(window.start * SAMPLE_RATE) : round(window.end * SAMPLE_RATE)] for window in windows]
    cuts = [0, len(places)]
    if len(windows) > 1:
        cuts = divide_text(text, places, [recognize(part) for part in parts], language)
    aligned: list[AlignedWord] = []
    for window, part, (first, last) in zip(windows, parts, itertools.pairwise(cuts), strict=True):
        if first < last:
            aligned += [
                AlignedWord(
                    word.start + window.start, min(word.end + window.start, duration_s), word.confidence
                )
                for word in align_window(whisper, part, text, places[first:last], language)
            ]
    return aligned


def _cut_into_windows(sound: NDArray[np.float32], speech: Sequence[Span]) -> list[Span]:
    """Return windows that are as long as possible, without the silence around the speech in them."""
    seams = [(one.end + other.start) / 2 for one, other in itertools.pairwise(speech)]
    begin, end = (
        max(0.0, speech[0].start - _MARGIN_S),
        min(len(sound) / SAMPLE_RATE, speech[-1].end + _MARGIN_S),
    )
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
    unspaced = writes_without_spaces(language)
    ours: list[str] = []
    begins = []  # of each word in the units
    for start, end in places:
        begins.append(len(ours))
        ours += _split_into_units(text[start:end], unspaced=unspaced)
    theirs: list[str] = []
    ends = []  # of each window in the units
    for part in recognized:
        theirs += _split_into_units(part, unspaced=unspaced)
        ends.append(len(theirs))
    known = [(0, 0)]  # corners of the runs that differ: unit of the windows, unit of the text
    for a, b, c, d in find_differing_runs(ours, theirs):
        known += [(c, a), (d, b)]
    known.append((len(theirs), len(ours)))
    xs, ys = np.array(known, dtype=np.float64).T
    cuts = [0]
    for end in ends[:-1]:
        # text that was not recognized at a cut is halved: either window may have it
        unit = float(np.interp([end - 1e-6, end + 1e-6], xs, ys).mean()) - 0.5
        cuts.append(max(cuts[-1], bisect_left(begins, unit)))
    return [*cuts, len(places)]


def _split_into_units(text: str, *, unspaced: bool) -> list[str]:
    folded = text.casefold()
    if unspaced:
        return list(_SIGNS.sub("", folded))
    return [unit for word in folded.split() if (unit := _SIGNS.sub("", word))]
