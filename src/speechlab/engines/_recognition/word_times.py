"""Times of words in one window of at most 30 s: from the alignment of Whisper's tokens, and from pauses.

The decoder attends to a token from about the middle of the one before it on, at any speed of speech. So an edge is
later than the alignment says by nearly half of the token's step, and a small shift. Shares and shifts were estimated
on other sentences than those of ``benchmarks/ship.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab._require import require
from speechlab.engines._recognition.timed_words import Place, find_spoken_span
from speechlab.errors import EngineError
from speechlab.text import writes_without_spaces

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Seconds of a token of the alignment, and of a frame of the features.
_TOKEN_S, _FRAME_S, _HOP = 0.02, 0.01, 160
_NEXT_SHARE, _LAST_SHARE, _USUAL_SHIFT_S, _SHIFT_S = 0.45, 0.05, -0.02, {"ja": -0.035}
# A pause is at least 0.12 s (a closed stop is shorter), 40 dB below speech and near the level of the background; it
# separates two words if it is within 0.06 s of their edge.
_PAUSE_S, _PAUSE_DB, _NEAR_BACKGROUND, _REACH_S = 0.12, 40.0, 0.2, 0.06
# The decoder has 448 places; the prompt and the end take some of them.
_MAX_TOKENS, _LEAST_S = 440, 0.001


class AlignedWord(NamedTuple):
    """Start and end in seconds, and the geometric mean of the probabilities of its tokens."""

    start: float
    end: float
    confidence: float


def align_window(
    whisper: Any,
    sound: NDArray[np.float32],
    start_s: float,
    text: str,
    places: Sequence[Place],
    language: str,
) -> list[AlignedWord]:
    """Return the times of consecutive words of a text in a sound of at most 30 s that begins at ``start_s``."""
    lead = "" if writes_without_spaces(language) else " "
    first, last = places[0][0], places[-1][1]
    said = text[first:last].replace("<|", "< ")  # which begins a command to the decoder
    # a sentence in lower case is improbable
    said = said[0].upper() + said[1:] if len(said[0].upper()) == 1 else said
    encoded = whisper.hf_tokenizer.encode(lead + said, add_special_tokens=False)
    duration_s = len(sound) / _HOP * _FRAME_S
    if len(encoded.ids) > _MAX_TOKENS:
        message = f"{len(encoded.ids)} tokens of text cannot be spoken in {duration_s:.1f} s of speech"
        raise EngineError(f"{message} (at most {_MAX_TOKENS}); give the text of this recording")
    tokenizer = require("faster_whisper.tokenizer").Tokenizer(
        whisper.hf_tokenizer, whisper.model.is_multilingual, task="transcribe", language=language
    )
    frames = max(2, len(sound) // _HOP // 2 * 2)
    # Without the usual padding to 30 s, the time is proportional to the length.
    features = whisper.feature_extractor(sound)[:, :frames]
    (result,) = whisper.model.align(whisper.encode(features), tokenizer.sot_sequence, [encoded.ids], [frames])
    path = np.array(result.alignments)
    began = path[np.diff(path[:, 0], prepend=-1) > 0, 1] * _TOKEN_S
    steps = np.diff(began)
    edges = began + _SHIFT_S.get(language, _USUAL_SHIFT_S)
    edges[:-1] += _NEXT_SHARE * steps
    edges[1:] += _LAST_SHARE * steps
    edges = np.maximum.accumulate(edges.clip(0, duration_s))
    offsets = np.array(encoded.offsets) + first - len(lead)
    starts, ends = _time_characters(edges, offsets.tolist(), text)
    spoken = [find_spoken_span(text, place) for place in places]
    times = move_to_pauses(np.array([(starts[a], ends[b - 1]) for a, b in spoken]), features, duration_s)
    logs = np.log(np.maximum(result.text_token_probs, 1e-9))
    confidences = [float(np.exp(logs[(offsets[:, 0] < b) & (offsets[:, 1] > a)].mean())) for a, b in spoken]
    # a word without time of its own was not said
    return [
        AlignedWord(start_s + start, start_s + end, confidence if end - start > _LEAST_S else 0.0)
        for (start, end), confidence in zip(times.tolist(), confidences, strict=True)
    ]


def _time_characters(
    edges: NDArray[np.float64], offsets: Sequence[list[int]], text: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return starts and ends of characters; those of one token share its time, those of several have all of it."""
    starts, ends = np.full(len(text) + 1, np.inf), np.full(len(text) + 1, -np.inf)
    for number, (start, end) in enumerate(offsets):
        first = next((at for at in range(max(start, 0), end) if not text[at].isspace()), max(start, 0))
        shares = np.linspace(edges[number], edges[number + 1], max(end - first, 1) + 1)
        place = slice(first, first + len(shares) - 1)
        starts[place] = np.minimum(starts[place], shares[:-1])
        ends[place] = np.maximum(ends[place], shares[1:])
    return starts, ends


def move_to_pauses(
    times: NDArray[np.float64], features: NDArray[np.float32], duration_s: float
) -> NDArray[np.float64]:
    """Move the edges of words at pauses to these, and the outer edges to the ends of the sound; in order."""
    level = 10 * np.log10(np.sum(10.0 ** (4 * features.astype(np.float64) - 4), axis=0))
    quiet, loud = np.quantile(level, (0.05, 0.95))
    is_low = level < max(loud - _PAUSE_DB, quiet + _NEAR_BACKGROUND * (loud - quiet))
    heard = np.flatnonzero(~is_low) * _FRAME_S
    times[0, 0], times[-1, 1] = heard[0], max(heard[-1] + _FRAME_S, times[-1, 0])
    turns = np.flatnonzero(np.diff(is_low, prepend=False, append=False)) * _FRAME_S
    borders = np.sort(np.stack([times[:-1, 1], times[1:, 0]], axis=1), axis=1)
    times[:-1, 1] = times[1:, 0] = borders.mean(axis=1)
    longest = np.zeros(len(borders))  # pause at each border
    for start, end in zip(turns[::2], turns[1::2], strict=True):
        far = np.maximum(start - borders[:, 1], borders[:, 0] - end).clip(0)
        far += 1e-3 * np.abs(
            borders.mean(axis=1) - (start + end) / 2
        )  # of several in the pause, the middle one
        if not len(borders) or not heard[0] < start < heard[-1] or far.min() > _REACH_S:
            continue
        number = int(far.argmin())
        if end - start >= max(_PAUSE_S, longest[number]):
            times[number, 1], times[number + 1, 0], longest[number] = start, end, end - start
    return np.maximum.accumulate(times.ravel().clip(0, duration_s)).reshape(-1, 2)
