"""A text that is rewritten by regular expressions and knows where each character came from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Token(NamedTuple):
    """A word of a rewritten text, and its range in the text as written."""

    text: str
    start: int
    end: int


class Traced:
    """A text and, for each of its characters, the range of the original that it stands for."""

    def __init__(self, original: str, character: Callable[[str], str]) -> None:
        """Begin with a text in which each character of the original has been replaced by some or none."""
        parts = list(map(character, original))
        self.text = "".join(parts)
        self._starts = [place for place, part in enumerate(parts) for _ in part]
        self._ends = [place + 1 for place in self._starts]

    def sub(self, pattern: re.Pattern[str], replacement: str | Callable[[re.Match[str]], str]) -> None:
        """Replace all matches; each new character stands for the match without the blanks at its ends."""
        parts: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        done = 0
        for match in pattern.finditer(self.text):
            new = match.expand(replacement) if isinstance(replacement, str) else replacement(match)
            first, last = match.span()
            if new == match[0]:
                continue
            inside = [place for place in range(first, last) if not self.text[place].isspace()]
            low = self._starts[inside[0]] if inside else self._place(first)
            high = self._ends[inside[-1]] if inside else low
            parts += self.text[done:first], new
            starts += [*self._starts[done:first], *[low] * len(new)]
            ends += [*self._ends[done:first], *[high] * len(new)]
            done = last
        if done or parts:
            parts.append(self.text[done:])
            self._starts, self._ends = starts + self._starts[done:], ends + self._ends[done:]
            self.text = "".join(parts)

    def _place(self, index: int) -> int:
        return self._starts[index] if index < len(self._starts) else max(self._ends, default=0)

    def tokens(self) -> list[Token]:
        """The words between blanks."""
        return [
            Token(word[0], self._starts[word.start()], max(self._ends[word.start() : word.end()]))
            for word in re.finditer(r"\S+", self.text)
        ]
