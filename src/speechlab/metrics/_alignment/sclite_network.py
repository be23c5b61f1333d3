"""Networks of words, read from transcripts with sclite's markings.

Alternates ``{ a / b / @ }`` become parallel paths, an optionally deletable ``(word)`` becomes an optional word, and a
fragment keeps its hyphen. Invalid markings are refused, with their place in the text.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Place: TypeAlias = tuple[int, int] | None
NULL = "@"
_BRACES = re.compile(r"[{}]")
# Markings: braces, words in parentheses, a lone @, and three characters with a meaning in any word (`;` begins a tag,
# `\` escapes, `*` at the end is dropped).
_MARKS = re.compile(r"[{};\\]|(?<!\S)\(\S*\)(?!\S)|(?<!\S)@(?!\S)|\*(?!\S)")
_FRAGMENT = re.compile(r"(?<!\S)(?:-\S|\S*[^\s-]-(?!\S))")
_TOKEN = re.compile(r"\S+")
_OPTIONAL_TOKEN = re.compile(r"\((\S*)\)")
_FRAGMENT_TOKEN = re.compile(r"(-?)([^\s-](?:\S*[^\s-])?)(-?)")


class MarkedWord(NamedTuple):
    """One word of a marked transcript."""

    text: str  # the word for display, in parentheses if it is optional
    sound: str  # the word for comparison, without parentheses
    optional: bool  # whether the word may be left out without an error
    place: Place  # place in the text as written, half open; None for an empty alternative


def is_marked(text: str, *, fragments: bool = False) -> bool:
    """Whether a text has markings of sclite."""
    return bool(_MARKS.search(text) or (fragments and _FRAGMENT.search(text)))


class _Arc:
    __slots__ = ("end", "start", "word")

    def __init__(self, word: MarkedWord | None, start: _Node, end: _Node) -> None:
        self.word = word
        self.start = start
        self.end = end
        start.leaving.append(self)
        end.entering.append(self)


class _Node:
    __slots__ = ("entering", "leaving")

    def __init__(self) -> None:
        self.entering: list[_Arc] = []
        self.leaving: list[_Arc] = []


Normal: TypeAlias = "Callable[[str], list[tuple[str, int, int]]]"
"""A function from a text without markings to its normalised words, each with its place in that text."""


class _Reader:
    """The reader of one marked transcript."""

    def __init__(self, text: str, normal: Normal | None, *, fragments: bool) -> None:
        self.text = text
        self.normal = normal
        self.fragments = fragments

    def network(self) -> tuple[_Node, _Node]:
        """First and last node; from the first one leads a single arc without a word, as in sclite."""
        first, second, last = _Node(), _Node(), _Node()
        if not any(True for _ in self._items(0, len(self.text))):
            _Arc(None, first, last)
            return first, last
        _Arc(None, first, second)
        self._chain(0, len(self.text), second, last)
        return first, last

    def _chain(self, start: int, end: int, first: _Node, last: _Node) -> None:
        items = list(self._items(start, end)) or [MarkedWord(NULL, NULL, False, None)]
        node = first
        for number, item in enumerate(items, start=1):
            following = last if number == len(items) else _Node()
            if isinstance(item, MarkedWord):
                _Arc(item, node, following)
            else:
                for low, high in item:
                    self._chain(low, high, node, following)
            node = following

    def _items(self, start: int, end: int) -> Iterator[MarkedWord | list[tuple[int, int]]]:
        """Words, and alternations as the ranges of their alternatives."""
        at = start
        while at < end:
            brace = self.text.find("{", at, end)
            stop = end if brace < 0 else brace
            yield from self._words(at, stop)
            if brace < 0:
                return
            if brace > start and not self.text[brace - 1].isspace() and self.text[brace - 1] != "}":
                self._refuse("a brace inside a word", brace)
            close = self._close(brace, end)
            yield self._alternatives(brace + 1, close)
            at = close + 1

    def _close(self, brace: int, end: int) -> int:
        depth = 0
        for found in _BRACES.finditer(self.text, brace, end):
            depth += 1 if found[0] == "{" else -1
            if depth == 0:
                return found.start()
        return self._refuse("a { without its }", brace)

    def _alternatives(self, start: int, end: int) -> list[tuple[int, int]]:
        ranges, depth, low = [], 0, start
        for at in range(start, end):
            depth += {"{": 1, "}": -1}.get(self.text[at], 0)
            if self.text[at] == "/" and depth == 0:
                ranges.append((low, at))
                low = at + 1
        ranges.append((low, end))
        # sclite ignores empty alternatives; a word that may be absent has the alternative @.
        kept = [(low, high) for low, high in ranges if self.text[low:high].strip()]
        if not kept:
            self._refuse("braces with no alternative in them", start - 1)
        return kept

    def _words(self, start: int, end: int) -> Iterator[MarkedWord]:
        stray = self.text.find("}", start, end)
        if stray >= 0:
            self._refuse("a } without its {", stray)
        if self.normal is None:
            for token in _TOKEN.finditer(self.text, start, end):
                optional = _OPTIONAL_TOKEN.fullmatch(_plain(token[0]))
                yield from _word(token[0], optional is not None, token.span())
            return
        # Markings bypass the normaliser, which would treat them as punctuation.
        at = start
        for token in _TOKEN.finditer(self.text, start, end):
            optional = _OPTIONAL_TOKEN.fullmatch(token[0])
            part = _FRAGMENT_TOKEN.fullmatch(token[0]) if self.fragments else None
            if optional is None and token[0] != NULL and not (part and (part[1] or part[3])):
                continue
            yield from self._normalized(at, token.start())
            at = token.end()
            if token[0] == NULL:
                yield MarkedWord(NULL, NULL, False, token.span())
            elif optional is not None:
                yield from self._normalized(token.start() + 1, token.end() - 1, optional=True)
            elif part is not None:
                yield from self._fragment(part, *token.span())
        yield from self._normalized(at, end)

    def _normalized(self, start: int, end: int, *, optional: bool = False) -> Iterator[MarkedWord]:
        assert self.normal is not None
        for text, low, high in self.normal(self.text[start:end]):
            shown = f"({text})" if optional else text
            yield from _word(shown, optional, (start + low, start + high))

    def _fragment(self, part: re.Match[str], start: int, end: int) -> Iterator[MarkedWord]:
        # The normaliser gets the fragment without hyphens, since it may keep or remove them. They are added again
        # below.
        words = list(self._normalized(start + len(part[1]), end - len(part[3])))
        for number, word in enumerate(words):
            head = part[1] if number == 0 else ""
            tail = part[3] if number == len(words) - 1 else ""
            text = f"{head}{word.text}{tail}"
            yield MarkedWord(text, text, False, word.place)

    def _refuse(self, what: str, place: int) -> int:
        around = self.text[max(0, place - 20) : place + 20]
        message = (
            f"{what} at character {place}, in {around!r}, cannot be scored as sclite does; write alternates as "
            "'{ a / b / @ }', with white space before the brace, or use counts='levenshtein'"
        )
        raise InvalidRequestError(message, parameter="counts")


def _plain(token: str) -> str:
    """A word without the parts that sclite does not compare.

    These are the tag after an unescaped semicolon, backslashes, and one asterisk at the end.
    """
    at = token.find(";")
    while at >= 0:
        if token[at - 1] != "\\" or at == 0:
            token = token[:at]
            break
        at = token.find(";", at + 1)
    token = token.replace("\\", "")
    return token[:-1] if len(token) > 1 and token.endswith("*") else token


def _word(token: str, optional: bool, place: tuple[int, int]) -> Iterator[MarkedWord]:
    text = _plain(token)
    yield MarkedWord(text, text[1:-1] if optional else text, optional, place)


def _arcs(first: _Node) -> list[_Arc]:
    """The arcs in sclite's order: breadth first, each node after all arcs that lead to it."""
    waiting: dict[int, int] = {}
    fringe = deque([first])
    arcs = []
    while fringe:
        node = fringe.popleft()
        for arc in node.leaving:
            arcs.append(arc)
            left = waiting.get(id(arc.end), len(arc.end.entering)) - 1
            waiting[id(arc.end)] = left
            if left == 0:
                fringe.append(arc.end)
    return arcs


class Side:
    """The arcs of a network, each with the numbers of the arcs before it."""

    def __init__(self, first: _Node, last: _Node) -> None:
        arcs = _arcs(first)
        number = {id(arc): index for index, arc in enumerate(arcs)}
        self.words = [arc.word for arc in arcs]
        self.before = [[number[id(arc)] for arc in entered.start.entering] for entered in arcs]
        self.ends = [number[id(arc)] for arc in last.entering]

    def __len__(self) -> int:
        return len(self.words)

    def word(self, index: int) -> MarkedWord:
        word = self.words[index]
        assert word is not None
        return word


def read_side(text: str, normal: Normal | None, *, fragments: bool) -> Side:
    """The network of one transcript."""
    return Side(*_Reader(text, normal, fragments=fragments).network())
