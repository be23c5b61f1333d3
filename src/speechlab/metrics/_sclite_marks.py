"""sclite's markings in transcripts: alternates ``{ a / b / @ }``, optionally deletable ``(word)``, fragments.

A marked transcript is not a row of words but a network: every way through it is a transcript that counts as right.
sclite aligns two networks, and the cheapest pair of ways is the result. Costs: a substitution 4, an insertion or a
deletion 3, of an optionally deletable word 2, of the empty word ``@`` 0.001. Sums are kept in single precision, and
of equally cheap steps the first found wins, so that the order in which arcs are visited is part of the definition.

Source: the behaviour of sclite in NIST's Scoring Toolkit (SCTK) 2.4.10 with its options ``-s -D`` (and ``-F`` for
fragments), documented there and confirmed by running it on random transcripts. This is an implementation of its own.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["MarkedAlignment", "Place", "Word", "align_marked", "is_marked"]

Place: TypeAlias = tuple[int, int] | None
_GAP, _OPTIONAL_GAP, _NULL_GAP = np.float32(3), np.float32(2), np.float32(0.001)
_SUBSTITUTION, _NULL_PAIR = np.float32(4), np.float32(1)
_NULL = "@"
_MOST_CELLS = 20_000_000  # about 12 bytes each
_BRACES = re.compile(r"[{}]")
# What makes a transcript more than a row of words: braces, words in parentheses, a lone @; and three characters that
# sclite gives a meaning in any word (`;` begins a tag, `\` escapes, `*` at the end is dropped).
_MARKS = re.compile(r"[{};\\]|(?<!\S)\(\S*\)(?!\S)|(?<!\S)@(?!\S)|\*(?!\S)")
_FRAGMENT = re.compile(r"(?<!\S)(?:-\S|\S*[^\s-]-(?!\S))")
_TOKEN = re.compile(r"\S+")
_OPTIONAL_TOKEN = re.compile(r"\((\S*)\)")
_FRAGMENT_TOKEN = re.compile(r"(-?)([^\s-](?:\S*[^\s-])?)(-?)")


class Word(NamedTuple):
    """One word of a marked transcript.

    Attributes:
        text: As it is shown, with parentheses if it may be left out.
        sound: What is compared: the same without them.
        optional: May be left out without an error.
        place: Where it stands in the text as it was written, half open.
    """

    text: str
    sound: str
    optional: bool
    place: Place


@dataclass(frozen=True)
class MarkedAlignment:
    """The cheapest way through two networks.

    Attributes:
        reference: Words of the way through the reference; ``""`` where an optional word was inserted.
        hypothesis: Words of the way through the hypothesis; ``""`` where an optional word was left out.
        correct: For each pair whether it counts as correct; only for pairs with words on both sides, or one
            optional word.
        places: Where the words stand in the two texts as they were written.
    """

    reference: tuple[str | None, ...]
    hypothesis: tuple[str | None, ...]
    correct: tuple[bool, ...]
    places: tuple[tuple[Place, ...], tuple[Place, ...]]


def is_marked(text: str, *, fragments: bool = False) -> bool:
    """Whether sclite would see more in a text than words between white space."""
    return bool(_MARKS.search(text) or (fragments and _FRAGMENT.search(text)))


# -- from a text to a network


class _Arc:
    __slots__ = ("end", "start", "word")

    def __init__(self, word: Word | None, start: _Node, end: _Node) -> None:
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
"""From a text without markings to its normalised words, each with its place in that text."""


class _Reader:
    """Reads one marked transcript."""

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
        items = list(self._items(start, end)) or [Word(_NULL, _NULL, False, None)]
        node = first
        for number, item in enumerate(items, start=1):
            following = last if number == len(items) else _Node()
            if isinstance(item, Word):
                _Arc(item, node, following)
            else:
                for low, high in item:
                    self._chain(low, high, node, following)
            node = following

    def _items(self, start: int, end: int) -> Iterator[Word | list[tuple[int, int]]]:
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
        # sclite passes over empty alternatives; what may be absent is written @.
        kept = [(low, high) for low, high in ranges if self.text[low:high].strip()]
        if not kept:
            self._refuse("braces with no alternative in them", start - 1)
        return kept

    def _words(self, start: int, end: int) -> Iterator[Word]:
        stray = self.text.find("}", start, end)
        if stray >= 0:
            self._refuse("a } without its {", stray)
        if self.normal is None:
            for token in _TOKEN.finditer(self.text, start, end):
                optional = _OPTIONAL_TOKEN.fullmatch(_plain(token[0]))
                yield from _word(token[0], optional is not None, token.span())
            return
        # Markings are kept from the normaliser, which would take them for punctuation.
        at = start
        for token in _TOKEN.finditer(self.text, start, end):
            optional = _OPTIONAL_TOKEN.fullmatch(token[0])
            part = _FRAGMENT_TOKEN.fullmatch(token[0]) if self.fragments else None
            if optional is None and token[0] != _NULL and not (part and (part[1] or part[3])):
                continue
            yield from self._normalized(at, token.start())
            at = token.end()
            if token[0] == _NULL:
                yield Word(_NULL, _NULL, False, token.span())
            elif optional is not None:
                yield from self._normalized(token.start() + 1, token.end() - 1, optional=True)
            elif part is not None:
                yield from self._fragment(part, *token.span())
        yield from self._normalized(at, end)

    def _normalized(self, start: int, end: int, *, optional: bool = False) -> Iterator[Word]:
        assert self.normal is not None
        for text, low, high in self.normal(self.text[start:end]):
            shown = f"({text})" if optional else text
            yield from _word(shown, optional, (start + low, start + high))

    def _fragment(self, part: re.Match[str], start: int, end: int) -> Iterator[Word]:
        words = list(self._normalized(start, end))
        for number, word in enumerate(words):
            head = part[1] if number == 0 else ""
            tail = part[3] if number == len(words) - 1 else ""
            text = f"{head}{word.text}{tail}"
            yield Word(text, text, False, word.place)

    def _refuse(self, what: str, place: int) -> int:
        around = self.text[max(0, place - 20) : place + 20]
        message = (
            f"{what} at character {place}, in {around!r}, cannot be scored as sclite does; write alternates as "
            "'{ a / b / @ }', with white space before the brace, or use counts='levenshtein'"
        )
        raise InvalidRequestError(message, parameter="counts")


def _plain(token: str) -> str:
    """A word without the parts that sclite does not compare.

    A semicolon that no backslash escapes begins a tag, backslashes go, and so does one asterisk at the end.
    """
    at = token.find(";")
    while at >= 0:
        if token[at - 1] != "\\" or at == 0:
            token = token[:at]
            break
        at = token.find(";", at + 1)
    token = token.replace("\\", "")
    return token[:-1] if len(token) > 1 and token.endswith("*") else token


def _word(token: str, optional: bool, place: tuple[int, int]) -> Iterator[Word]:
    text = _plain(token)
    yield Word(text, text[1:-1] if optional else text, optional, place)


# -- from two networks to an alignment


def _arcs(first: _Node) -> list[_Arc]:
    """The arcs in sclite's order: breadth first, a node after all that lead to it."""
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


def _same(one: Word, other: Word, *, fragments: bool) -> bool:
    a, b = one.sound, other.sound
    if a == b and not fragments:
        return True
    if fragments:
        for left, right in ((a, b), (b, a)):
            if len(left) > 1 and left[0] == "-":
                return right.endswith(left[1:])
            if len(left) > 1 and left[-1] == "-":
                return right.startswith(left[:-1])
    return a == b


def _gap(word: Word) -> np.float32:
    if word.text == _NULL:
        return _NULL_GAP
    return _OPTIONAL_GAP if word.optional else _GAP


class _Side:
    """Arcs of a network, with the numbers of the arcs that lead to each."""

    def __init__(self, first: _Node, last: _Node) -> None:
        arcs = _arcs(first)
        number = {id(arc): index for index, arc in enumerate(arcs)}
        self.words = [arc.word for arc in arcs]
        self.before = [[number[id(arc)] for arc in entered.start.entering] for entered in arcs]
        self.ends = [number[id(arc)] for arc in last.entering]

    def __len__(self) -> int:
        return len(self.words)

    def word(self, index: int) -> Word:
        word = self.words[index]
        assert word is not None
        return word


def align_marked(
    reference: str,
    hypothesis: str,
    normal: Normal | None = None,
    *,
    fragments: bool = False,
) -> MarkedAlignment:
    """Align two transcripts with sclite's markings.

    Args:
        reference: Text as it was written.
        hypothesis: The same of the other side; sclite understands its markings there too.
        normal: Normalises what stands between the markings; None to take words as they are.
        fragments: Count a word that fits the fragment ``wor-`` or ``-ord`` as correct (sclite's ``-F``).

    Raises:
        InvalidRequestError: Braces that do not match, or texts that are too long.
    """
    one = _Side(*_Reader(reference, normal, fragments=fragments).network())
    other = _Side(*_Reader(hypothesis, normal, fragments=fragments).network())
    if len(one) * len(other) > _MOST_CELLS:
        message = (
            f"marked transcripts of {len(one)} and {len(other)} words need a table of more than {_MOST_CELLS} "
            "cells; cut them into utterances"
        )
        raise InvalidRequestError(message, parameter="counts")
    costs, back = _fill(one, other, fragments=fragments)
    return _trace(one, other, costs, back, fragments=fragments)


def _fill(one: _Side, other: _Side, *, fragments: bool) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Lowest cost of each cell (pair of arcs), and the cell before it."""
    rows, columns = len(one), len(other)
    costs = np.zeros((rows, columns), dtype=np.float32)
    back = np.zeros((rows, columns, 2), dtype=np.int32)
    gaps = [np.float32(0), *(_gap(other.word(b)) for b in range(1, columns))]
    for b in range(1, columns):
        before = min(other.before[b], key=lambda c: costs[0, c])
        costs[0, b] = costs[0, before] + gaps[b]
        back[0, b] = 0, before
    for a in range(1, rows):
        word = one.word(a)
        above = one.before[a]
        nearest = np.array(above)[costs[above].argmin(axis=0)]
        lowest = costs[nearest, np.arange(columns)]
        deleted = lowest + _gap(word)
        row = costs[a]
        row[0] = deleted[0]
        back[a, 0] = nearest[0], 0
        for b in range(1, columns):
            least, i, j = _diagonal(costs, lowest, nearest, above, other.before[b])
            paired = least + _pair(word, other.word(b), fragments=fragments)
            before = min(other.before[b], key=row.__getitem__)
            inserted = row[before] + gaps[b]
            if paired <= deleted[b] and paired <= inserted:
                row[b], back[a, b] = paired, (i, j)
            elif deleted[b] < inserted:
                row[b], back[a, b] = deleted[b], (nearest[b], b)
            else:
                row[b], back[a, b] = inserted, (a, before)
    return costs, back


def _diagonal(
    costs: NDArray[np.float32],
    lowest: NDArray[np.float32],
    nearest: NDArray[np.int64],
    above: Sequence[int],
    before: Sequence[int],
) -> tuple[np.float32, int, int]:
    """The cheapest pair of arcs before a pair; of equal ones that with the first arc of the reference."""
    if len(before) == 1:
        return lowest[before[0]], int(nearest[before[0]]), before[0]
    i, j = min(((i, j) for i in above for j in before), key=lambda cell: costs[cell])
    return costs[i, j], i, j


def _pair(one: Word, other: Word, *, fragments: bool) -> np.float32:
    if one.text == _NULL and other.text == _NULL:
        return _NULL_PAIR
    return np.float32(0) if _same(one, other, fragments=fragments) else _SUBSTITUTION


def _trace(
    one: _Side,
    other: _Side,
    costs: NDArray[np.float32],
    back: NDArray[np.int32],
    *,
    fragments: bool,
) -> MarkedAlignment:
    a, b = min(((a, b) for a in one.ends for b in other.ends), key=lambda cell: costs[cell])
    steps: list[tuple[Word | None, Word | None, bool]] = []
    while a or b:
        i, j = (int(number) for number in back[a, b])
        said = one.word(a) if i != a else None
        heard = other.word(b) if i == a or j != b else None
        if said and heard:
            steps.append((said, heard, _same(said, heard, fragments=fragments)))
        elif (word := said or heard) and word.text != _NULL:
            steps.append((said, heard, word.optional))
        a, b = i, j
    steps.reverse()
    return MarkedAlignment(
        tuple(said.text if said else ("" if right else None) for said, _, right in steps),
        tuple(heard.text if heard else ("" if right else None) for _, heard, right in steps),
        tuple(right for _, _, right in steps),
        (
            tuple(said.place if said else None for said, _, right in steps if said or right),
            tuple(heard.place if heard else None for _, heard, right in steps if heard or right),
        ),
    )
