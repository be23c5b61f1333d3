"""Times of the words, or the characters, of a known text: from the alignment of Whisper's tokens, and from pauses.

The decoder attends to a token from about the middle of the one before it on, at any speed of speech. So an edge is
later than the alignment says by nearly half of the token's step, and a small shift. Shares and shifts were estimated
on other sentences than those of ``benchmarks/ship.py``. Long recordings are cut into windows at pauses, which are
recognized, to give each its part of the text.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from speechlab._require import require
from speechlab.engines._recognition.decoding import SAMPLE_RATE, Span, cut_at_pauses, find_speech
from speechlab.errors import EngineError, InvalidRequestError
from speechlab.text import find_differing_runs, split_morphemes, writes_without_spaces

if TYPE_CHECKING:
    from numpy.typing import NDArray

TimedUnit = Literal["word", "char"]
# Start and end of a word in a text.
Place = tuple[int, int]
# Letters, digits, and signs that are read aloud; other signs belong to a word beside them.
_SPOKEN = re.compile(r"[^\W_]|[&%@#+=$€£¥°℃％＆＋＝＄￥]")
# A Latin word or a number in Chinese or Japanese is one unit.
_CHARACTER = re.compile(r"[A-Za-zＡ-Ｚａ-ｚÀ-ɏ0-9０-９]+(?:['.,:][A-Za-zÀ-ɏ0-9]+)*|\S")
_WORD, _SIGN = re.compile(r"\S+"), re.compile(r"\S")
_OPENING = frozenset("\"'“‘«¿¡([{<（「『【〈《［｛〔$€£¥＄￥#")
# Seconds of a window, and of sound around speech in it; milliseconds between stretches of speech.
_LONGEST_S, _MARGIN_S, _GAP_MS = 28.0, 0.2, 200
# Seconds of silence before and after the speech of a window, at the least: at the edge of its sound, Whisper misses
# the first and the last words, and then attends to others elsewhere.
_SILENCE_S, _QUIET_SHARE = 0.4, 0.01
# Seconds of a token of the alignment, and of a frame of the features.
_TOKEN_S, _FRAME_S, _HOP = 0.02, 0.01, 160
_NEXT_SHARE, _LAST_SHARE, _USUAL_SHIFT_S, _SHIFT_S = 0.45, 0.05, -0.02, {"ja": -0.035}
# A pause is at least 0.12 s (a closed stop is shorter), 40 dB below speech and near the level of the background; it
# separates two words if it is within 0.06 s of their edge.
_PAUSE_S, _PAUSE_DB, _NEAR_BACKGROUND, _REACH_S = 0.12, 40.0, 0.2, 0.06
# The decoder has 448 places; the prompt and the end take some of them.
_MAX_TOKENS, _LEAST_S = 440, 0.001


def align_words(
    whisper: Any,
    sound: NDArray[np.float32],
    text: str,
    places: Sequence[Place],
    language: str,
    recognize: Callable[[NDArray[np.float32]], str],
) -> NDArray[np.float64]:
    """Return start and end in seconds and confidence of the words of a text, as columns."""
    if not (speech := find_speech(sound, _GAP_MS)):
        length = f"{len(sound) / SAMPLE_RATE:.2f} s"
        message = f"no speech was found in the recording of {length}; check it and its text"
        raise InvalidRequestError(message, parameter="audio")
    windows = _cut_into_windows(sound, speech)
    parts = [sound[round(window.start * SAMPLE_RATE) : round(window.end * SAMPLE_RATE)] for window in windows]
    cuts = [0, len(places)]
    if len(windows) > 1:
        cuts = divide_text(text, places, [recognize(part) for part in parts], language)
    return np.concatenate(
        [
            _align_window(whisper, part, text, places[first:last], language)
            + np.array([window.start] * 2 + [0])
            for window, part, (first, last) in zip(windows, parts, itertools.pairwise(cuts), strict=True)
            if first < last
        ]
    )


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
        words = ["".join(filter(str.isalnum, word)) for word in text.casefold().split()]
        units += "".join(words) if writes_without_spaces(language) else filter(None, words)
    return units, begins


def find_words(text: str, language: str, unit: TimedUnit | None = None) -> list[Place]:
    """Return the places of words with the signs around them; all that is no white space is in one of them."""
    unspaced = writes_without_spaces(language)
    if unit == "word" and unspaced and language != "ja":
        message = f"the words of {language!r} are not divided here; unit='char' gives the times of characters"
        raise InvalidRequestError(message, parameter="unit")
    if language == "ja" and unit != "char":
        return list(_attach_signs(text, ((word.start, word.end) for word in split_morphemes(text))))
    pattern = _CHARACTER if unspaced else _SIGN if unit == "char" else _WORD
    return list(_attach_signs(text, (match.span() for match in pattern.finditer(text))))


def _find_spoken_span(text: str, place: Place) -> Place:
    """Return a place without the unspoken signs at its edges."""
    spoken = [match.start() for match in _SPOKEN.finditer(text, *place)]
    return (spoken[0], spoken[-1] + 1) if spoken else place


def _attach_signs(text: str, pieces: Iterable[Place]) -> Iterator[Place]:
    word: Place | None = None
    opened: int | None = None  # where signs before the next word begin
    for start, end in pieces:
        piece = text[start:end]
        if not piece.strip():
            continue
        if _SPOKEN.search(piece):
            if word is not None:
                yield word
            word = (start if opened is None else opened, end)
            opened = None
        elif opened is None and word is not None and piece[0] not in _OPENING:
            word = (word[0], end)
        elif opened is None:
            opened = start
    if word is not None:
        yield word if opened is None else (word[0], len(text.rstrip()))


def _align_window(
    whisper: Any, sound: NDArray[np.float32], text: str, places: Sequence[Place], language: str
) -> NDArray[np.float64]:
    """Return starts, ends and confidences of consecutive words of a text in a sound of at most 30 s."""
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
    before, after = _count_lacking_frames(sound), _count_lacking_frames(sound[::-1])
    frames = max(2, len(sound) // _HOP // 2 * 2)
    # Without the usual padding to 30 s, the time is proportional to the length.
    padded = np.pad(sound, (before * _HOP, after * _HOP))
    features = whisper.feature_extractor(padded)[:, : before + frames + after]
    (result,) = whisper.model.align(
        whisper.encode(features), tokenizer.sot_sequence, [encoded.ids], [features.shape[1]]
    )
    path = np.array(result.alignments)
    began = path[np.diff(path[:, 0], prepend=-1) > 0, 1] * _TOKEN_S
    began = (began - before * _FRAME_S).clip(0, duration_s)
    steps = np.diff(began)
    edges = began + _SHIFT_S.get(language, _USUAL_SHIFT_S)
    edges[:-1] += _NEXT_SHARE * steps
    edges[1:] += _LAST_SHARE * steps
    edges = np.maximum.accumulate(edges.clip(0, duration_s))
    offsets = np.array(encoded.offsets) + first - len(lead)
    # Of the characters with which tokens begin and end; between these, all characters take as long.
    begins, ends = dict[int, float](), {first: edges[0]}
    for number, (start, end) in enumerate(offsets.tolist()):
        sign = next((at for at in range(max(start, 0), end) if not text[at].isspace()), max(start, 0))
        begins.setdefault(sign, edges[number])
        ends[end] = edges[number + 1]
    begins.setdefault(last, edges[-1])
    spoken = np.array([_find_spoken_span(text, place) for place in places])
    times = np.stack(
        [np.interp(spoken[:, side], [*of], [*of.values()]) for side, of in enumerate((begins, ends))], axis=1
    )
    times = move_to_pauses(times, features[:, before : before + frames], duration_s)
    logs = np.log(np.maximum(result.text_token_probs, 1e-9))
    means = [np.exp(logs[(offsets[:, 0] < b) & (offsets[:, 1] > a)].mean()) for a, b in spoken]
    # a word without time of its own was not said
    return np.column_stack([times, np.where(times[:, 1] - times[:, 0] > _LEAST_S, means, 0.0)])


def _count_lacking_frames(sound: NDArray[np.float32]) -> int:
    """Return how many frames of silence a sound lacks at its start, whole tokens."""
    size = np.abs(sound)
    quiet_s = int((size > _QUIET_SHARE * size.max()).argmax()) / SAMPLE_RATE
    return 2 * max(0, round((_SILENCE_S - quiet_s) / _TOKEN_S))


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
