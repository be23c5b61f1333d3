"""Pieces of a text to translate: lines, to keep line breaks, and sentences in them, to allow any length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab.engines._chunks import cut_long, split_sentences, weight

if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE_LIMIT = 150.0
_GROUP_LIMIT = 120.0


def pieces(text: str, *, by_sentence: bool, target: str) -> Iterator[tuple[str, bool]]:
    """Cut a text into pieces to translate (True), and pieces to copy (False), such as line breaks and spaces."""
    joint = " " if target == "en" else ""
    for line in text.splitlines(keepends=True):
        body = line.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")
        inner = body.strip()
        start = body.index(inner) if inner else 0
        if not any(char.isalnum() for char in inner):
            yield line, False
            continue
        if start:
            yield body[:start], False
        first = True
        for sentence in _sentences(inner, by_sentence=by_sentence):
            if not any(char.isalnum() for char in sentence):
                yield sentence, False
                continue
            if not first and joint:
                yield joint, False
            first = False
            yield sentence, True
        trailing = line[start + len(inner) :]
        if trailing:
            yield trailing, False


def _sentences(line: str, *, by_sentence: bool) -> Iterator[str]:
    group = ""
    for sentence in split_sentences(line):
        for sentence_piece in cut_long(sentence, _PIECE_LIMIT):
            if group and (by_sentence or weight(group + sentence_piece) > _GROUP_LIMIT):
                yield group.strip()
                group = ""
            group += sentence_piece
    if group.strip():
        yield group.strip()


def tidy(parts: Iterator[str]) -> Iterator[str]:
    """Remove white space around the whole text; white space is held back until text follows it."""
    held = ""
    begun = False
    for part in parts:
        text = held + part if begun else (held + part).lstrip()
        stripped = text.rstrip()
        held = text[len(stripped) :]
        if stripped:
            begun = True
            yield stripped
