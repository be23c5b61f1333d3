"""Lines and their takes: which words are wrong, which take is best, whether another is worth it, and what is said."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from speechlab.display import format_count
from speechlab.metrics import Difference, choose_unit, classify_differences, has_difference_classes
from speechlab.text import characters, find_differing_runs, language_code, normalizer, words

# What a line is after its check.
READY, FAULTY, UNCLEAR = "ready", "faulty", "unclear"
# Ways to another take: another reading by the same voice, other marks in the text, another voice.
AGAIN, CUT, FALLBACK = "again", "cut", "fallback"
_CLAUSE_END = re.compile(r"(?<=\w)\s*[,;:、，；：]\s*(?=\w)")
_FINAL_MARKS = ".。!！?？"
_WIDE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
# Classes of differences that can be heard.
_AUDIBLE = frozenset({"recognition", "tone"})
_MAX_SHOWN, _MAX_PART = 3, 60


def find_word_faults(text: str, hypothesis: str, language: str) -> tuple[Difference, ...]:
    """Return where a hypothesis differs from a text by more than notation and words that sound alike."""
    code = language_code(language)
    if has_difference_classes(code):
        differences = classify_differences(text, hypothesis, code).differences
        return tuple(each for each in differences if each.kind in _AUDIBLE)
    split, blank = (characters, "") if choose_unit(code) == "char" else (words, " ")
    ours, theirs = (split(normalizer(code)(side)) for side in (text, hypothesis))
    runs = find_differing_runs(ours, theirs)
    return tuple(
        Difference("recognition", blank.join(ours[a:b]), blank.join(theirs[c:d]), a) for a, b, c, d in runs
    )


def _describe_fault(fault: Difference, text: str) -> str:
    lost, new = fault.reference.strip()[:_MAX_PART], fault.hypothesis.strip()[:_MAX_PART]
    if lost:
        return f"“{new}” for “{lost}”" if new else f"lost “{lost}”"
    whole, part = ("".join(filter(str.isalnum, side.casefold())) for side in (text, new))
    return f"{'repeated' if part in whole else 'added'} “{new}”"


def count_faulty_characters(faults: tuple[Difference, ...]) -> int:
    """Return how much of the words is wrong, to compare takes."""
    return sum(max(len(fault.reference), len(fault.hypothesis)) for fault in faults)


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
    words: tuple[Difference, ...] = ()
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
        shown = [_describe_fault(fault, text) for fault in self.words[:_MAX_SHOWN]]
        if self.words and not (self.transcript or "").strip():
            shown = ["no word was recognized"]
        elif more := len(self.words) - len(shown):
            shown.append(format_count(more, "more difference"))
        return "; ".join(filter(None, [*self.faults, *shown, self.unjudged]))


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
