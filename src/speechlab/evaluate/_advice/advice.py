"""Advice on a choice between systems as a value, and its words, whatever is measured."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from speechlab._arguments import is_number
from speechlab.display import format_count
from speechlab.evaluate._writing.sentences import (
    TITLE_WORDS,
    count_words,
    join_fitting_clauses,
    join_names,
    quote_name,
)

# Maximum number of systems that the first sentence names; of more systems it gives the number.
MAX_NAMES = 2
# P-value above which a lead is none, and a number of further items would promise too much.
UNLIKELY = 0.5


@dataclass(frozen=True)
class Lead:
    """What to do.

    Attributes:
        verb: *take* or *keep*; empty where no system is advised.
        systems: Those that are taken, the first one first; any of several.
        remarks: What else the title says, in the order of its weight: the second remark may be left out.
        separator: What stands between the choice and the remarks.
        is_provisional: Whether others may be as good.
        is_undecided: Whether nothing is known but that no difference is shown.
        few: Where a sample is too small to show a difference, its size and that which is needed.
    """

    verb: str = ""
    systems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    separator: str = "; "
    is_provisional: bool = False
    is_undecided: bool = False
    few: str = ""

    @property
    def names(self) -> str:
        """The systems that are taken, for a sentence."""
        return join_names(self.systems, "or", MAX_NAMES)

    @property
    def is_plain(self) -> bool:
        """Whether nothing is to be said but whom to take."""
        return bool(self.verb) and not self.remarks

    def describe(self, most: int = TITLE_WORDS) -> str:
        """Return the part of a sentence, with as many remarks as so many words allow; the first one stays."""
        choice = f"{self.verb} {self.names}{self.separator}" if self.verb else ""
        words = "".join([choice, *self.remarks[:1]])
        for remark in self.remarks[1:]:
            words = longer if count_words(longer := f"{words}, {remark}") <= most else words
        return words if self.remarks else words.removesuffix(self.separator)

    def __str__(self) -> str:
        return self.describe()


@dataclass(frozen=True)
class Advice:
    """What to do, and how sure that is.

    Attributes:
        name: The first system; empty where nothing could be compared.
        lead: What to do.
        clauses: How sure that is, in the order of their weight.
        certainty: *settled* (significantly better than all others), *open*, or *none* (nothing to choose from).
        more: Further blocks that would settle it, if a practical number does.
    """

    name: str
    lead: Lead
    clauses: tuple[str, ...]
    certainty: str = "open"
    more: int | None = None

    @property
    def words(self) -> str:
        """How sure it is, as far as a line has room."""
        return join_fitting_clauses(self.clauses)

    def insert_remarks(self, remarks: Sequence[str]) -> Advice:
        """Return this advice with remarks behind its first clause."""
        return replace(self, clauses=(*self.clauses[:1], *remarks, *self.clauses[1:]))


def describe_tie(
    best: str,
    rivals: Sequence[str],
    losers: Sequence[str],
    *,
    equals: Collection[str],
    baseline: str,
    is_level: bool,
    beats: Callable[[str, str], bool],
    held: Collection[str] = (),
    most: int = MAX_NAMES,
) -> Lead | None:
    """Return what to do where the first system is not significantly better than its rivals.

    None where nothing but its lead can be told. ``beats`` tells whether one system is significantly better than
    another; rivals that are ``held`` back, because of what failed or came back empty, are not advised.
    """
    if baseline in [best, *rivals]:
        return Lead("keep", (baseline,))
    if losers:
        return _describe_choice_without_losers(best, rivals, losers, equals, beats, held)
    if is_level:
        return Lead(remarks=(f"{join_names([best, *rivals], most=most)} are level",))
    if len(equals) == len(rivals):
        return Lead(remarks=(f"no difference seen between {join_names([best, *rivals], most=most)}",))
    return None


def _describe_choice_without_losers(
    best: str,
    rivals: Sequence[str],
    losers: Sequence[str],
    equals: Collection[str],
    beats: Callable[[str, str], bool],
    held: Collection[str],
) -> Lead:
    """Return whom to take, who may be as good, and who is worse."""
    others = [name for name in rivals if name not in held]
    if not others:
        return Lead("take", (best,), (f"not {join_names(losers, 'or', MAX_NAMES)}",), ", ")
    same = [name for name in others if name in equals and all(beats(name, loser) for loser in losers)]
    rest = [name for name in others if name not in same]
    worse = _list_phrasings(losers, "is worse", "are worse")
    unknown = _list_phrasings(rest, "may be as good") if rest else ["no difference seen between them"]
    leads = [
        Lead("take", (best, *same), words, is_provisional=bool(rest)) for words in product(unknown, worse)
    ]
    fits = (lead for lead in leads if count_words(lead.describe(2 * TITLE_WORDS)) <= TITLE_WORDS)
    return next(fits, leads[-1])


def _list_phrasings(names: Sequence[str], one: str, several: str = "") -> list[str]:
    """Return what is said of systems, from long to short: of few by name, of others by their number."""
    named = f"{join_names(names)} {one if len(names) == 1 else several or one}"
    if len(names) == 1:
        return [named]
    counted = [f"{len(names)} others {several or one}", f"{len(names)} {several or one}"]
    return [*([named] if len(names) <= MAX_NAMES else []), *counted]


def describe_lead(best: str, rivals: Sequence[str], p: object = None) -> Lead:
    """Return that a system is ahead of others, which may be chance; or that it cannot be told from them."""
    if is_number(p) and p > UNLIKELY:
        words = f"no difference shown between {join_names([best, *rivals], most=MAX_NAMES)}"
    else:
        words = f"{quote_name(best)} is ahead of {join_names(rivals, most=MAX_NAMES)}, not yet for sure"
    return Lead(remarks=(words,), is_undecided=True)


def describe_needed_size(size: int, block: str, needed: int) -> str:
    """Return the size of a sample, and that which is needed."""
    return f"{format_count(size, block)}, and {needed} are needed"


def describe_margin(figures: Sequence[str], where: str, bound: float, margin: float) -> str:
    """Return that systems differ by no more than a margin: both in points, the bound with 95% confidence."""
    points = "1 point" if margin == 1 else f"{margin:g} points"
    both = " and ".join(dict.fromkeys(figures))
    return f"{both} {where}; with 95% confidence at most {bound:.1f} points apart (margin {points})"


def list_failure_remarks(
    absent: Sequence[str],
    empty: Mapping[str, int],
    failed: Mapping[str, int],
    counts: Mapping[str, int],
    told: str,
) -> list[str]:
    """Return who answered too little to have a place, whose outputs were empty, and who failed, if it is not told."""
    remarks = [
        f"{quote_name(name)} answered {counts.get(name, 0) - failed.get(name, 0)} of {counts.get(name, 0)}"
        for name in absent
    ]
    remarks += [
        f"{quote_name(name)} came back empty on {count} of {counts[name]}"
        for name, count in empty.items()
        if f"{quote_name(name)} came back empty" not in told
    ]
    return remarks + [
        f"{quote_name(name)} failed on {count} of {counts[name]}"
        for name, count in failed.items()
        if count and name not in absent and f"{quote_name(name)} failed" not in told
    ]
