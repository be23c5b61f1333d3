"""Pieces of a text, which are spoken one after the other.

The pieces are a partition of the text: joined, they are the text again, character for character, so that nothing is
lost. Engines strip the white space themselves.

The first piece is short, because the time to the first sound is the time of its synthesis. Whole sentences follow,
with which voices sound best. Very short sentences are joined with the next one, and very long ones are cut at
clauses, then at spaces, then anywhere.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_ENDS = "。！？!?…．"
_CLOSERS = "」』）)］]”’\"'】〉》"
_SENTENCE_END = re.compile(
    rf"[{_ENDS}]+[{re.escape(_CLOSERS)}]*|(?<!\.)\.+[{re.escape(_CLOSERS)}]*(?=\s|$)|\n"
)
_CLAUSE_END = re.compile(r"[、，；：・]|[,;:](?=\s|$)|\s[—–-]+(?=\s)|(?<=\S)——")
_SPACE = re.compile(r"\s+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'“‘])(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|No|Fig|e\.g|i\.e|cf|[A-Z])\.$"
)

_ABBREVIATION_LENGTH = 8  # more than the longest one, with what stands before it

_SHORT_LENGTH = 6.0


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a text."""

    text: str
    pause_s: float


def estimate_spoken_length(text: str) -> float:
    """Spoken duration of a text, in units of one kana or kanji (about a sixth of a second)."""
    total = 0.0
    for char in text:
        if unicodedata.east_asian_width(char) in "WF":
            total += 1.0
        elif char.isdigit():
            total += 1.5
        elif not char.isspace():
            total += 0.4
    return total


def chunk_text(text: str, *, first: float = 16.0, limit: float = 90.0) -> list[Piece]:
    """Cut a text into pieces for synthesis."""
    sentences = _join_short_sentences(split_sentences(text))
    if sentences:
        sentences[:1] = _cut_after_first_clause(sentences[0], first)
    return [Piece(part, _choose_pause(part)) for sentence in sentences for part in cut_long(sentence, limit)]


def split_to_limit(text: str, limit: int) -> list[str]:
    """Cut a string into parts of at most ``limit`` characters, preferably at marks, then at spaces."""
    pieces: list[str] = []
    while len(text) > limit:
        window = text[:limit]
        cut = max(window.rfind(mark) for mark in ";:,.!?—…") + 1
        if cut <= limit // 4:
            cut = max(cut, window.rfind(" ") + 1)
        pieces.append(text[: cut or limit])
        text = text[cut or limit :]
    if text:
        pieces.append(text)
    return pieces


def split_sentences(text: str) -> list[str]:
    """Cut a text after its sentences; joined, the sentences are the text, white space included."""
    sentences: list[str] = []
    start = 0
    for match in _SENTENCE_END.finditer(text):
        end = match.end()
        if end <= start:
            continue
        if match.group().startswith(".") and _ABBREVIATION.search(
            text[max(start, end - _ABBREVIATION_LENGTH) : end]
        ):
            continue
        while end < len(text) and text[end].isspace():
            end += 1
        sentences.append(text[start:end])
        start = end
    if start < len(text):
        sentences.append(text[start:])
    return sentences


def _join_short_sentences(sentences: list[str]) -> list[str]:
    joined: list[str] = []
    for sentence in sentences:
        # The first sentence is not joined, even if it is short: はい。 is quick to speak, and so a good first piece.
        if (
            len(joined) > 1
            and estimate_spoken_length(joined[-1]) < _SHORT_LENGTH
            and not joined[-1].endswith("\n")
        ):
            joined[-1] += sentence
        else:
            joined.append(sentence)
    if len(joined) > 1 and not any(char.isalnum() for char in joined[0]):
        joined[:2] = [joined[0] + joined[1]]
    return joined


def _cut_after_first_clause(sentence: str, first: float) -> list[str]:
    if estimate_spoken_length(sentence) <= first:
        return [sentence]
    best = 0
    for match in _CLAUSE_END.finditer(sentence):
        end = match.end()
        head = estimate_spoken_length(sentence[:end])
        if head < _SHORT_LENGTH / 2 or estimate_spoken_length(sentence[end:]) < _SHORT_LENGTH / 2:
            continue
        if best and head > first:
            break
        best = end
        if head > first:
            break
    if not best:
        return [sentence]
    while best < len(sentence) and sentence[best].isspace():
        best += 1
    return [sentence[:best], sentence[best:]] if best < len(sentence) else [sentence]


def cut_long(sentence: str, limit: float) -> list[str]:
    """Cut a sentence into parts that weigh at most ``limit``: at clauses, else at spaces, else anywhere."""
    if estimate_spoken_length(sentence) <= limit:
        return [sentence]
    for pattern in (_CLAUSE_END, _SPACE):
        pieces = _cut_at_ends(sentence, [match.end() for match in pattern.finditer(sentence)], limit)
        if len(pieces) > 1:
            return [piece for part in pieces for piece in cut_long(part, limit)]
    return _cut_at_ends(sentence, list(range(1, len(sentence))), limit)


def _cut_at_ends(sentence: str, ends: list[int], limit: float) -> list[str]:
    """Cut at some of the given positions, so that the parts are as long as the limit allows."""
    pieces: list[str] = []
    start = last = 0
    heavy = 0.0
    for end in [*ends, len(sentence)]:
        added = estimate_spoken_length(sentence[last:end])
        if heavy + added > limit and last > start:
            pieces.append(sentence[start:last])
            start, heavy = last, 0.0
        heavy += added
        last = end
    if start < len(sentence):
        pieces.append(sentence[start:])
    return pieces


def _choose_pause(part: str) -> float:
    """Seconds of silence after a paragraph, a sentence or a clause."""
    if part.endswith("\n"):
        return 0.35
    stripped = part.rstrip().rstrip(_CLOSERS)
    return 0.3 if stripped.endswith(tuple(_ENDS + ".")) else 0.15
