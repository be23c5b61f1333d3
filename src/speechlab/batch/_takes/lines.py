"""Lines and their takes: which take is best, whether another is worth it, and what is said of the line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from speechlab.batch._takes.words import WordFault, count_faulty_characters, describe_word_faults

# What a line is after its check.
READY, FAULTY, UNCLEAR = "ready", "faulty", "unclear"
_CLAUSE_END = re.compile(r"(?<=\w)\s*[,;:、，；：]\s*(?=\w)")
_FINAL_MARKS = ".。!！?？"
_WIDE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")


@dataclass(frozen=True)
class LineTake:
    """One take of a line, as it was judged."""

    place: int  # among all rows that were spoken
    number: int  # among the takes of its line, from 0
    audio: str
    voice: str
    sent: str = ""  # the text that was spoken: with the spellings of a lexicon
    transcript: str | None = None
    faults: tuple[str, ...] = ()  # of the sound
    words: tuple[WordFault, ...] = ()
    unjudged: str = ""  # why nothing can be said of it

    @property
    def is_right(self) -> bool:
        """Whether nothing is wrong with it."""
        return not (self.faults or self.words or self.unjudged)

    @property
    def is_unclear(self) -> bool:
        """Whether nothing is known of its words, and nothing wrong with its sound."""
        return bool(self.unjudged) and not self.faults

    @property
    def rank(self) -> tuple[bool, int, int, int]:
        """The order of takes, the best first."""
        return bool(self.unjudged), len(self.faults), count_faulty_characters(self.words), self.number

    @property
    def misheard_places(self) -> frozenset[tuple[str, int]]:
        """Where the recognized words differ from the text."""
        return frozenset((fault.reference, fault.start) for fault in self.words)

    def describe(self, text: str) -> str:
        """Return what is wrong with it."""
        words = describe_word_faults(self.words, text, self.transcript or "") if self.words else []
        return "; ".join([*self.faults, *words]) or self.unjudged


@dataclass
class ScriptLine:
    """A row of the table: its text, and the takes that were made of it."""

    position: int
    text: str
    language: str | None
    problem: str = ""  # why no take of it can be judged
    takes: list[LineTake] = field(default_factory=list)
    spoken: int = 0  # takes that were asked for, those that failed too
    sent: set[str] = field(default_factory=set)  # other cuts of its text
    fell_back: set[int] = field(default_factory=set)  # numbers of the takes of the other voice
    ended: str = ""  # why no other take is made

    @property
    def best(self) -> LineTake:
        """The best take."""
        return min(self.takes, key=lambda take: take.rank)

    @property
    def is_alike_in_every_take(self) -> bool:
        """Whether the best take has nothing wrong but words that are misheard in every take, in different sounds."""
        if len({take.audio for take in self.takes}) < 2 or self.best.faults:
            return False
        shared = frozenset.intersection(*(take.misheard_places for take in self.takes))
        return bool(shared) and self.best.misheard_places <= shared

    @property
    def needs_take(self) -> bool:
        """Whether another take is worth it."""
        return bool(self.takes) and not (self.ended or self.best.is_right or self.best.is_unclear)

    def to_cells(self) -> dict[str, Any]:
        """Return what the table says of the line."""
        if not self.takes:
            return {}
        best, first = self.best, self.takes[0]
        cells = {"transcript": best.transcript, "take": best.number, "takes": self.spoken}
        if best.is_right:
            why = [] if best is first else [f"take {first.number}: {first.describe(self.text)}"]
            why += ["spoken by the fallback voice"] if best.number in self.fell_back else []
            return {**cells, "check": READY, "why": "; ".join(why) or None}
        if best.is_unclear:
            return {**cells, "check": UNCLEAR, "why": f"could not be judged: {best.unjudged}"}
        if self.is_alike_in_every_take:
            why = [f"could not be judged: {best.describe(self.text)}, in each of {len(self.takes)} takes"]
            return {**cells, "check": UNCLEAR, "why": why[0]}
        why = [best.describe(self.text), *([self.ended] if self.ended else [])]
        return {**cells, "check": FAULTY, "why": "; ".join(why)}


def iter_other_cuts(text: str) -> Iterator[str]:
    """Yield a text with other marks between and after its clauses, for voices that read a text in one way only."""
    bare = text.rstrip()
    end = "。" if _WIDE.search(bare) else "."
    cut = _CLAUSE_END.sub(end if end == "。" else ". ", bare)
    finished = bare.rstrip(_FINAL_MARKS) if bare.endswith((".", "。")) else bare
    finished = bare + end if finished == bare and not bare.endswith(tuple(_FINAL_MARKS)) else finished
    yield from dict.fromkeys(
        other for other in (cut, finished) if other != bare and other.strip(_FINAL_MARKS)
    )
