"""Which voice or recognizer to take, and how sure that is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from speechlab._arguments import is_missing, is_number
from speechlab.display import format_count, format_percent
from speechlab.evaluate._advice.advice import (
    MAX_NAMES,
    UNLIKELY,
    Advice,
    Lead,
    describe_lead,
    describe_margin,
    describe_needed_size,
    describe_tie,
    list_failure_remarks,
)
from speechlab.evaluate._advice.evidence import describe_few
from speechlab.evaluate._advice.starts import (
    describe_earlier_start,
    describe_start_difference,
    summarize_start_times,
)
from speechlab.evaluate._statistics import MIN_PAIRS
from speechlab.evaluate._writing.columns import describe_p_value
from speechlab.evaluate._writing.differences import ENOUGH
from speechlab.evaluate._writing.sentences import (
    LINE_WORDS,
    join_fitting_clauses,
    join_names,
    quote_name,
)
from speechlab.metrics import build_significance_mask

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.evaluate._advice.evidence import AnswerEvidence
    from speechlab.metrics import Ranking

LEVEL = 0.05
# Difference of error rates, in points, within which systems are level, as a default.
MARGIN = 1.0
# Number of items below which nothing is advised.
_MIN_ITEMS = 2
# Share of a system's errors in empty outputs from which on the answer tells them.
_EMPTY_SHARE = 0.1
# Words that a line has before these clauses, for its language.
_LANGUAGE_WORDS = 2
# Number of systems up to which one line has the rates of all.
_MAX_RATES = 4
# Number of further items above which more of them are no practical solution.
FAR = 5_000


def recommend_system(
    evidence: AnswerEvidence,
    speed: pd.DataFrame,
    what: str = "sentence",
    margin: float = MARGIN,
    baseline: str = "",
) -> Advice:
    """Advise on a choice between systems."""
    choice = _Choice(evidence, what, margin, baseline, summarize_start_times(speed))
    advice = choice.advise()
    return advice.insert_remarks(choice.list_failure_remarks(advice))


class _Choice:
    """A choice between systems, and the words for it."""

    def __init__(
        self, evidence: AnswerEvidence, what: str, margin: float, baseline: str, starts: pd.DataFrame
    ) -> None:
        systems = evidence.order.systems
        self.evidence, self.what, self.margin, self.baseline, self.starts = (
            evidence,
            what,
            margin,
            baseline,
            starts,
        )
        self.tied: list[str] = evidence.order.tied
        self.best = _choose_best(systems, self.tied, starts)
        self.rivals = [name for name in self.tied if name != self.best]
        self.losers = [name for name in systems["system"] if name not in self.tied]
        self.rates = _collect_rates(evidence.order)
        self.count = int(systems["utterances"].iloc[0])
        self.blocks, self.block = evidence.blocks if evidence.blocks[0] else (self.count, what)
        shared = " that all have" if evidence.order.excluded else ""
        self.items = f"{format_count(self.count, what)}{shared}{self._describe_units()}"

    def _describe_units(self) -> str:
        """Return of how many speakers or texts the items are, where these are fewer."""
        if self.evidence.about:
            return f" of {self.evidence.about}"
        if self.block == "speaker" and self.blocks < self.count:
            return f" of {format_count(self.blocks, 'speaker')}"
        texts = self.evidence.texts
        return f" of {format_count(texts, 'text')}" if 0 < texts < self.count else ""

    def advise(self) -> Advice:
        """Return what to do, by what decides first: failures, one row, few speakers, errors."""
        if len(self.rates) < 2:
            only = "it had no other to be compared with; give two or more"
            return Advice(self.best, Lead("take", (self.best,)), (only,), "none")
        if self.count < _MIN_ITEMS:
            alone = f"{self.items} cannot tell {join_names([self.best, *self.rivals])} apart; take {ENOUGH} or more"
            return Advice(self.best, Lead("take", (self.best,)), (alone,), "none", ENOUGH - self.count)
        return (
            self._advise_on_failures()
            or self._advise_on_runaway_row()
            or (self._advise_on_winner() if not self.rivals else self._advise_without_winner())
        )

    def list_failure_remarks(self, advice: Advice) -> list[str]:
        """Return what else a reader of the answer has to know: who failed, and whose outputs were empty."""
        evidence, told = self.evidence, "; ".join([str(advice.lead), *advice.clauses])
        empty = {
            name: count
            for name, (count, share) in evidence.empty.items()
            if share > _EMPTY_SHARE and name in self.rates and "came back empty" not in told
        }
        placed = {*self.rates, *evidence.absent}
        failed = {name: count for name, count in evidence.failed.items() if name in placed}
        return list_failure_remarks(evidence.absent, empty, failed, evidence.counts, told)

    def _advise_on_failures(self) -> Advice | None:
        """Return the advice where a system that is ahead lacks more rows than another, in both readings."""
        evidence, best = self.evidence, self.best
        second = evidence.penalized
        if second is None or (best not in evidence.lacking and second.systems["system"].iloc[0] == best):
            return None
        if best not in evidence.lacking and not self.rivals:
            return None
        winner, name = str(second.systems["system"].iloc[0]), quote_name(best)
        failed = (
            f"failed on {evidence.failed.get(best, 0)} of {format_count(evidence.counts[best], self.what)}"
        )
        if not evidence.failed.get(best, 0):
            return None
        rates = _collect_rates(second)
        rival = winner if winner != best else next(other for other in self.rates if other != best)
        readings = (
            f"where all answered, {self._describe_rates(best, rival)}",
            f"with failures as all wrong {_format_pair_rates(best, rival, rates)}",
        )
        if winner == best:
            return Advice(best, Lead(remarks=(f"{name} is ahead, but {failed}",)), readings)
        if best not in second.tied:
            others = [f"{join_names(second.tied[1:])} may be as good"] if second.tied[1:] else []
            lead = Lead("take", (winner,), (f"{name} {failed}",), ": ")
            return Advice(winner, lead, (*readings, *others))
        words = f"no clear choice: {name} makes fewer errors, but {failed}"
        if rival in self.rivals:  # a lead that may be chance is none
            words = f"no difference is shown, but {name} {failed}"
        return Advice(best, Lead(remarks=(words,)), readings)

    def _describe_rates(self, best: str, rival: str) -> str:
        """Return the rates of all systems, if these are few; or of two, with the p-value of their difference."""
        if not 2 < len(self.rates) <= _MAX_RATES:
            return self._describe_pair_rates(best, rival, self.evidence.order)
        return ", ".join(f"{quote_name(name)} {_format_rate(rate)}" for name, rate in self.rates.items())

    def _advise_on_runaway_row(self) -> Advice | None:
        """Return the advice where one row decides, with it and without it."""
        row = self.evidence.runaway
        if row is None or row.order is None or row.order.tied == self.tied:
            return None
        without = str(row.order.systems["system"].iloc[0])
        rest = [name for name in row.order.systems["system"] if name != without]
        share = (
            f"{row.errors:,} of {row.of_errors:,}" if row.errors < row.of_errors else f"all {row.errors:,}"
        )
        makes = f"one {self.what} makes {share} errors of {quote_name(row.system)}"
        only = f"without it {self._describe_pair_rates(without, rest[0], row.order)}"
        within = (
            f"with it {self._describe_pair_rates(self.best, next(n for n in self.rates if n != self.best))}"
        )
        if row.order.tied == [without]:
            words = f"{quote_name(without)} is better but for one {self.what}"
            return Advice(without, Lead(remarks=(words,)), (makes, only, within))
        words = f"one {self.what} decides between {join_names(list(self.rates)[:2])}"
        return Advice(self.best, Lead(remarks=(words,)), (makes, only, within))

    def _advise_on_winner(self) -> Advice:
        """Return the advice where one system is significantly better than all others."""
        best = self.best
        if self.evidence.about:
            lead = f"{quote_name(best)} makes fewer errors with {_add_demonstrative(self.evidence.about)}"
            pair = (
                f"{self._describe_pair_rates(best, self.losers[0])} on {format_count(self.count, self.what)}"
            )
            return Advice(best, Lead(remarks=(lead,)), (pair, describe_few(self.evidence.about)))
        p = _format_p_value(self.evidence.order, self.losers[0])
        clause = (
            f"it makes significantly fewer errors than {join_names(self.losers)} on {self.items}"
            f" ({', '.join(filter(None, [_format_pair_rates(best, self.losers[0], self.rates), p]))})"
        )
        sooner = describe_start_difference(best, self.losers, self.starts)
        verb = "keep" if best == self.baseline else "take"
        return Advice(best, Lead(verb, (best,)), (clause, sooner), "settled")

    def _advise_without_winner(self) -> Advice:
        """Return the advice where errors do not decide between the first systems."""
        best, rivals = self.best, self.rivals
        equals = [name for name in rivals if self.rates[name] == self.rates[best]]
        lead, more = self._describe_undecided_choice(equals), None
        wins = settling = ""
        if self.blocks < MIN_PAIRS:
            first, needed = self._describe_missing_blocks()
            more = max(ENOUGH - self.blocks, 1)
            if lead.is_undecided:
                lead = replace(lead, few=describe_needed_size(self.blocks, self.block, needed))
        elif (level := self._describe_equivalence(rivals)) is not None:
            first = level
        elif len(equals) == len(rivals):
            both = "both" if len(rivals) == 1 else "all"
            first = (
                f"{both} {_format_rate(self.rates[best])} on {self.items}, too few to say that there is none"
            )
        else:
            rival = next(name for name in rivals if name not in equals)
            p = _format_p_value(self.evidence.order, rival)
            pair = self._describe_pair_rates(best, rival, with_p=False)
            first = f"{pair} on {self.items}, which may be chance{f' ({p})' if p else ''}"
            wins = self._describe_rival_wins(rival)
            settling, more = self._describe_blocks_needed(rival)
        losers = self._describe_losers()
        if losers and losers not in join_fitting_clauses([first, losers], LINE_WORDS - _LANGUAGE_WORDS):
            first, losers = self._describe_tie_and_losers(), self.items
        clauses = [first, losers, wins, settling]
        few = describe_few(self.evidence.about) if self.evidence.about else ""
        is_short = few not in join_fitting_clauses([*clauses, few])
        return Advice(best, lead, (*clauses, few.partition(":")[0] if is_short else few), "open", more)

    def _describe_losers(self) -> str:
        if not self.losers:
            return ""
        return f"significantly worse: {join_names(self.losers)} ({_format_rate(self.rates[self.losers[0]])})"

    def _describe_tie_and_losers(self) -> str:
        """Return in few words who may be as good, and who is worse by name."""
        rivals = quote_name(self.rivals[0]) if len(self.rivals) == 1 else f"{len(self.rivals)} others"
        least = _format_rate(self.rates[self.losers[0]])
        worse = f"{join_names(self.losers)} ({least}{' or more' if len(self.losers) > 1 else ''})"
        best = f"{quote_name(self.best)} {_format_rate(self.rates[self.best])}"
        return f"{best}, {rivals} may be as good; worse: {worse}"

    def _describe_undecided_choice(self, equals: list[str]) -> Lead:
        """What to do where errors decide nothing: what starts sooner, or that nothing is decided."""
        best, rivals, name = self.best, self.rivals, quote_name(self.best)
        slower = [words for rival in rivals if (words := describe_earlier_start(best, rival, self.starts))]
        if len(slower) == len(rivals):
            return Lead("take", (best,), (f"which starts {slower[0]}",), ", ")
        if self.losers and self.evidence.about and self.baseline not in [best, *rivals]:
            losers = join_names(self.losers, most=MAX_NAMES)
            words = f"{name} makes fewer errors than {losers} with {_add_demonstrative(self.evidence.about)}"
            return Lead(remarks=(words,))
        is_level = self._describe_equivalence(rivals) is not None
        tie = describe_tie(
            best,
            rivals,
            self.losers,
            equals=equals,
            baseline=self.baseline,
            is_level=is_level,
            beats=self._is_significantly_better,
            held=[rival for rival in rivals if self._is_held_back(rival)],
        )
        is_held = self._is_held_back(best) and best not in self.evidence.lacking
        if tie and not (self.losers and is_held and self.baseline not in [best, *rivals]):
            return tie
        empty, share = self.evidence.empty.get(best, (0, 0.0))
        if share > _EMPTY_SHARE:
            of = format_count(self.evidence.counts[best], self.what)
            return Lead(remarks=(f"{name} is ahead, but came back empty on {empty} of {of}",))
        sooner = next(
            (
                (rival, words)
                for rival in rivals
                if (words := describe_earlier_start(rival, best, self.starts))
            ),
            None,
        )
        if sooner is None:
            rival = next((other for other in rivals if other not in equals), rivals[0])
            p = self.evidence.order.systems.set_index("system")["p_best"].get(rival)
            return describe_lead(best, rivals, p)
        return Lead(remarks=(f"{name} is ahead, but {quote_name(sooner[0])} starts {sooner[1]}",))

    def _is_significantly_better(self, one: str, other: str) -> bool:
        pairs = self.evidence.order.pairs
        shown = pairs.loc[build_significance_mask(pairs), ["a", "b"]].itertuples(index=False)
        return {one, other} in [{*map(str, pair)} for pair in shown] and self.rates[one] < self.rates[other]

    def _is_held_back(self, name: str) -> bool:
        """Return whether a system came back empty, or lacks rows, too often to be advised."""
        _, share = self.evidence.empty.get(name, (0, 0.0))
        return share > _EMPTY_SHARE or name in self.evidence.lacking

    def _describe_equivalence(self, rivals: list[str]) -> str | None:
        """Return that the intervals of all differences from the first lie within the margin, if they do."""
        if self.evidence.about or self.losers:
            return None
        bounds = []
        for rival in rivals:
            pairs = self.evidence.order.pairs.to_dict("records")
            low, high = next(
                (float(row["low"]), float(row["high"]))
                for row in pairs
                if {row["a"], row["b"]} == {self.best, rival}
            )
            if self.blocks < ENOUGH or not max(abs(low), abs(high)) <= self.margin / 100:
                return None
            bounds.append(max(abs(low), abs(high)))
        figures = [_format_rate(self.rates[name]) for name in (self.best, *rivals[:1])]
        return describe_margin(figures, f"on {self.items}", 100 * max(bounds), self.margin)

    def _describe_missing_blocks(self) -> tuple[str, int]:
        """Return that a sample is too small for any verdict, and how many it takes."""
        who = f"{quote_name(self.best)} from {join_names(self.rivals)}"
        few = f"{format_count(self.blocks, self.block)} cannot tell {who}"
        needed = self.evidence.order.systems.set_index("system")["needed"].get(self.rivals[0])
        enough = is_number(needed) and needed <= MIN_PAIRS
        return (
            (f"{few}; {MIN_PAIRS} could", MIN_PAIRS) if enough else (f"{few}; take {ENOUGH} or more", ENOUGH)
        )

    def _describe_blocks_needed(self, rival: str) -> tuple[str, int | None]:
        """Return how many more blocks would show a difference of this size, where the number means something."""
        systems = self.evidence.order.systems.set_index("system")
        needed, p = systems["needed"].get(rival), systems["p_best"].get(rival)
        if self.evidence.about:
            return "", None
        if not is_number(needed) or needed != needed:
            return f"more {self.block}s would hardly settle it", None
        if needed - self.blocks > FAR:
            return f"a difference this small would take thousands of {self.block}s", None
        more = int(needed) - self.blocks
        if more < 1 or (is_number(p) and p > UNLIKELY):
            return "", None
        about = more if more < 100 else round(more, 2 - len(str(more)))  # two significant digits
        return f"about {about:,} more {self.block if more == 1 else f'{self.block}s'} would settle it", more

    def _describe_rival_wins(self, rival: str) -> str:
        """Return that the other system makes fewer errors in most of the blocks, where they are not single rows."""
        wins = self.evidence.wins.get(rival, 0)
        if self.block == self.what or 2 * wins <= self.blocks:
            return ""
        return f"{quote_name(rival)} wins with {wins} of {format_count(self.blocks, self.block)}"

    def _describe_pair_rates(
        self, first: str, second: str, order: Ranking | None = None, *, with_p: bool = True
    ) -> str:
        """Return the rates of two systems in one order, and the p-value of their difference."""
        ranking = self.evidence.order if order is None else order
        rates = _collect_rates(ranking)
        p = _format_p_value(ranking, second) if with_p and ranking.systems["system"].iloc[0] == first else ""
        return f"{_format_pair_rates(first, second, rates)}{f' ({p})' if p else ''}"


def _collect_rates(order: Ranking) -> dict[str, float]:
    """Return the error rate of each system."""
    return dict(zip(order.systems["system"], map(float, order.systems["error_rate"]), strict=True))


def _format_p_value(order: Ranking, name: str) -> str:
    """Return the p-value of a system against the first, for a sentence; empty if there is none."""
    p = order.systems.set_index("system")["p_best"].get(name)
    return "" if is_missing(p) else describe_p_value(p)


def _format_rate(rate: float) -> str:
    """Return an error rate; one with more errors than words, because many were put in, in words."""
    return format_percent(rate) if rate <= 1 else "more errors than words"


def _format_pair_rates(first: str, second: str, rates: dict[str, float]) -> str:
    return f"{quote_name(first)} {_format_rate(rates[first])}, {quote_name(second)} {_format_rate(rates[second])}"


def _add_demonstrative(about: str) -> str:
    return f"{'this' if about.startswith('one ') else 'these'} {about}"


def _choose_best(systems: pd.DataFrame, tied: list[str], starts: pd.DataFrame) -> str:
    """Return the system with the lowest rate; of systems with the same rate, the one that starts first."""
    first = systems.iloc[0]
    equals = systems.loc[systems["error_rate"] == first["error_rate"], "system"]
    timed_names = [name for name in equals if name in starts.index and name in tied]
    if len(timed_names) == len(equals) > 1:
        return str(starts.loc[timed_names, "median"].astype("float64").idxmin())
    return str(first["system"])
