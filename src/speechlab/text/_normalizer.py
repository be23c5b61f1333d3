"""Normalizers: tuples of named steps, from which explanations, hashes and offsets are derived.

Scores of differently normalized texts cannot be compared. So a normalizer has an id for people (``ja-v7``) and a hash
of its rules for programs. A test pins the hashes; it fails if a rule changes without a new version.

Offsets come from an alignment of the text before and after each step. This works for any step, also for steps of
other packages, and costs nothing unless offsets are requested.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from speechlab._arguments import check_text
from speechlab.text._tokens import find_differing_runs


@dataclass(frozen=True)
class Step:
    """One rule of a normalizer.

    Attributes:
        name: Name of the step, in one or two words.
        apply: A function from text to text. It must be deterministic.
        content: All rules of the step (patterns, tables, package data) as text, for the hash; or a function that
            returns this text, if it is slow to collect.

    Example:
        >>> Step("shout", str.upper).apply("hello")
        'HELLO'
    """

    name: str
    apply: Callable[[str], str] = field(repr=False)
    content: str | Callable[[], str] = field(repr=False, default="")

    def format_rules(self) -> str:
        """Return the content as text."""
        return self.content if isinstance(self.content, str) else self.content()


class Spans(NamedTuple):
    """A normalized text, and the origin of each of its characters.

    Attributes:
        text: The normalized text.
        spans: For each character of ``text`` the half-open range ``(start, end)`` of characters in the original.
            Ranges never decrease. An inserted character has an empty range.

    Example:
        >>> normalizer("en").spans("It's  3!")
        Spans(text='it is 3', spans=[(0, 1), (1, 2), (2, 3), (2, 3), (3, 4), (4, 5), (6, 7)])
    """

    text: str
    spans: list[tuple[int, int]]


@dataclass(frozen=True)
class Normalizer:
    """A named, versioned pipeline from text to comparable text.

    Example:
        >>> from speechlab.text import normalizer
        >>> ja = normalizer("ja")
        >>> ja("午後３時、１．５倍。")
        '午後三時一点五倍'
        >>> ja.id
        'ja-v7'

    Attributes:
        name: Short name, such as ``"ja"``.
        version: Version number, raised whenever a rule changes.
        steps: The rules, in the order in which they are applied.
    """

    name: str
    version: int
    steps: tuple[Step, ...] = ()

    @property
    def id(self) -> str:
        """Name and version, such as ``"ja-v7"``."""
        return f"{self.name}-v{self.version}"

    @cached_property
    def content_hash(self) -> str:
        """Eight hexadecimal digits of the SHA-256 of all rules."""
        digest = hashlib.sha256()
        for step in self.steps:
            digest.update(f"{step.name}\x00{step.format_rules()}\x01".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:8]

    @property
    def signature(self) -> str:
        """Id and content hash, such as ``"ja-v7#0f3a9c1d"``, to report with a score."""
        return f"{self.id}#{self.content_hash}"

    def __call__(self, text: str) -> str:
        """Normalize one text."""
        check_text(text)
        for step in self.steps:
            text = step.apply(text)
        return text

    def many(self, texts: Iterable[str]) -> list[str]:
        """Normalize many texts. Each distinct text is normalized once.

        Args:
            texts: Any texts.

        Raises:
            InvalidRequestError: A text is not a str.
        """
        normalized: dict[str, str] = {}
        for text in texts:
            check_text(text)
            if text not in normalized:
                normalized[text] = self(text)
        return [normalized[text] for text in texts]

    def explain(self, text: str) -> list[tuple[str, str, str]]:
        """Show what each step does to a text.

        Args:
            text: Any text.

        Returns:
            One ``(step, before, after)`` for each step, in order, including steps that change nothing.
        """
        check_text(text)
        trail = []
        for step in self.steps:
            after = step.apply(text)
            trail.append((step.name, text, after))
            text = after
        return trail

    def spans(self, text: str) -> Spans:
        """Normalize one text and keep the origin of each character.

        Args:
            text: Any text.

        Returns:
            The normalized text, and for each of its characters a range in ``text``. Where a step replaces one run
            of characters by another (``"fifty five"`` by ``"55"``), each new character gets the range of the whole
            run.
        """
        check_text(text)
        spans = [(i, i + 1) for i in range(len(text))]
        for _, before, after in self.explain(text):
            if before != after:
                spans = _carry_spans(before, after, spans, len(text))
            text = after
        return Spans(text, spans)

    def __repr__(self) -> str:
        return f"<Normalizer {self.id}: {', '.join(step.name for step in self.steps) or 'no steps'}>"


def _carry_spans(before: str, after: str, spans: list[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """Return the spans of ``after``, from the spans of ``before`` and the cheapest alignment of both texts."""
    carried: list[tuple[int, int]] = []
    copied = 0
    for i0, i1, j0, j1 in find_differing_runs(before, after):
        carried += spans[copied:i0]
        copied = i1
        if i1 > i0:
            span = (spans[i0][0], spans[i1 - 1][1])
        else:
            at = spans[i0][0] if i0 < len(spans) else length
            at = max(at, carried[-1][1]) if carried and i0 == len(spans) else at
            span = (at, at)
        carried += [span] * (j1 - j0)  # every new character of a run has the whole range of the old one
    return carried + spans[copied:]
