"""Lines and their takes: which take is best, whether another is worth it, and what is said of the line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from speechlab.batch._takes.words import WordFault, count_faulty_characters, describe_word_faults

# What a line is after its check.
READY, FAULTY, UNCLEAR = "ready", "faulty", "unclear"
# Ways to another take: the same call again, another temperature, other marks in the text, another voice.
AGAIN, TEMPERATURE, CUT, FALLBACK = "again", "temperature", "cut", "fallback"
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
    sent: str  # the text that was spoken: with the spellings of a lexicon
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
        return "; ".join(filter(None, [*self.faults, *words, self.unjudged]))


@dataclass
class ScriptLine:
    """A row of the table: its text, and the takes that were made of it."""

    position: int
    text: str
    language: str | None
    takes: list[LineTake] = field(default_factory=list)
    ways: list[str] = field(default_factory=list)  # of all takes that were asked for, those that failed too
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

    @property
    def next_cut(self) -> str | None:
        """The text with other marks between or after its clauses than in the takes before."""
        bare = self.text.rstrip()
        end = "。" if _WIDE.search(bare) else "."
        finished = bare.rstrip(_FINAL_MARKS) if bare.endswith((".", "。")) else bare
        if finished == bare and not bare.endswith(tuple(_FINAL_MARKS)):
            finished = bare + end
        cuts = dict.fromkeys((_CLAUSE_END.sub(end if end == "。" else ". ", bare), finished))
        others = [cut for cut in cuts if cut != bare and cut.strip(_FINAL_MARKS)]
        return next(iter(others[self.ways.count(CUT) :]), None)

    def judge(self) -> tuple[str, str]:
        """Return what the line is, and why."""
        best, first = self.best, self.takes[0]
        if best.is_right:
            why = [] if best is first else [f"take {first.number}: {first.describe(self.text)}"]
            why += ["spoken by the fallback voice"] if self.ways[best.number] == FALLBACK else []
            return READY, "; ".join(why)
        what = best.describe(self.text)
        if best.is_unclear:
            return UNCLEAR, f"could not be judged: {what}"
        if self.is_alike_in_every_take:
            return UNCLEAR, f"could not be judged: {what}, in each of {len(self.takes)} takes"
        return FAULTY, "; ".join(filter(None, (what, self.ended)))
