"""Speech without text: Whisper, set to one language, drops speech of another one, and sometimes a sentence.

A stretch of speech with much less text than anybody would say in that time is decoded once more, alone, in the
language that is then found in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from speechlab.engines._chunks import estimate_spoken_length
from speechlab.text import writes_without_spaces

if TYPE_CHECKING:
    from speechlab.engines._recognition.decoding import Span

# Seconds of a stretch below which it may have no words.
_LEAST_STRETCH_S = 1.0
# Text that is replaced, as a share of the spoken length of the new one.
_MAX_LENGTH_RATIO = 0.34
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Decoded:
    """What was decoded: the segments of faster-whisper, each with its language, and the language of the recording."""

    segments: tuple[Any, ...]
    languages: tuple[str, ...]
    language: str
    certainty: float

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments)

    @property
    def is_mixed(self) -> bool:
        return len(set(self.languages)) > 1


def get_min_chars_per_s(language: str) -> float:
    """Return the characters per second of the slowest speech; less text is incomplete."""
    return 1.5 if writes_without_spaces(language) else 5.0


def find_gaps(decoded: Decoded, stretches: Sequence[Span]) -> list[Span]:
    """Return the stretches of speech that have too little text."""
    least = min(get_min_chars_per_s(code) for code in {*decoded.languages, decoded.language})
    return [
        stretch
        for stretch in stretches
        if (length := stretch.end - stretch.start) >= _LEAST_STRETCH_S
        and len(collect_text(decoded.segments, stretch)) < length * least
    ]


def fill_gap(decoded: Decoded, gap: Span, found: Decoded) -> Decoded:
    """Put what was found in a gap in the place of the little text there; unchanged unless it is much more."""
    former = estimate_spoken_length(collect_text(decoded.segments, gap))
    if not _WORD.search(found.text) or former > _MAX_LENGTH_RATIO * estimate_spoken_length(found.text):
        return decoded
    kept = [
        (_drop_words(segment, gap), code)
        for segment, code in zip(decoded.segments, decoded.languages, strict=True)
    ]
    pairs = [(segment, code) for segment, code in kept if segment.text.strip()]
    pairs += zip(found.segments, found.languages, strict=True)
    pairs.sort(key=lambda pair: (pair[0].start + pair[0].end) / 2)
    return replace(
        decoded, segments=tuple(pair[0] for pair in pairs), languages=tuple(pair[1] for pair in pairs)
    )


def choose_main_language(decoded: Decoded) -> Decoded:
    """Give the recording the language of most of its speech."""
    seconds: dict[str, float] = {}
    for segment, code in zip(decoded.segments, decoded.languages, strict=True):
        seconds[code] = seconds.get(code, 0.0) + segment.end - segment.start
    return replace(decoded, language=max(seconds, key=lambda code: seconds[code])) if seconds else decoded


def change_texts(decoded: Decoded, change: Callable[[str, str], str]) -> Decoded:
    """Change the text of each segment and of its words, by a function of text and language."""
    changed = [
        replace(
            segment,
            text=change(segment.text, code),
            words=segment.words
            if segment.words is None
            else [replace(word, word=change(word.word, code)) for word in segment.words],
        )
        for segment, code in zip(decoded.segments, decoded.languages, strict=True)
    ]
    return replace(decoded, segments=tuple(changed))


def collect_text(segments: Sequence[Any], span: Span) -> str:
    """Return the text in a span: words by their middles, or of segments without words a share by time."""
    text = ""
    for segment in segments:
        if segment.words:
            text += "".join(word.word for word in segment.words if _is_inside(word, span))
            continue
        overlap = min(segment.end, span.end) - max(segment.start, span.start)
        length = segment.end - segment.start
        if overlap > 0 and length > 0:
            text += segment.text.strip()[: round(len(segment.text.strip()) * min(1.0, overlap / length))]
    return text.strip()


def _is_inside(timed: Any, span: Span) -> bool:
    return bool(span.start <= (timed.start + timed.end) / 2 <= span.end)


def _drop_words(segment: Any, span: Span) -> Any:
    """Return a segment without its words in a span; without words, all or nothing of it."""
    if not segment.words:
        return replace(segment, text="") if _is_inside(segment, span) else segment
    words = [word for word in segment.words if not _is_inside(word, span)]
    if len(words) == len(segment.words):
        return segment
    return replace(segment, words=words, text="".join(word.word for word in words))
