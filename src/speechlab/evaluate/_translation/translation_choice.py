"""Which system to take for each direction of translation, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._arguments import is_missing
from speechlab.display import format_count, format_percent
from speechlab.evaluate._advice.advice import (
    Advice,
    Lead,
    describe_lead,
    describe_margin,
    describe_needed_size,
    describe_tie,
    list_failure_remarks,
)
from speechlab.evaluate._advice.conclusions import build_choice_conclusion
from speechlab.evaluate._advice.evidence import MAX_LACK, list_systems_failing_more
from speechlab.evaluate._advice.no_worse import apply_prices
from speechlab.evaluate._statistics import MIN_PAIRS
from speechlab.evaluate._translation.translation_differences import (
    KEPT_TERMS,
    choose_measure_and_text_columns,
    find_common_positions,
    place_texts,
    run_tests,
)
from speechlab.evaluate._writing.columns import describe_p_value, format_language
from speechlab.evaluate._writing.differences import ENOUGH, describe_rows_and_blocks
from speechlab.evaluate._writing.sentences import join_names, quote_name
from speechlab.metrics import BETTER, WORSE, format_difference, format_value

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.evaluate._translation.translation_measures import Columns
    from speechlab.evaluate._writing.contents import Conclusion

_LEVEL = 0.05
# Share of texts that a system lacks more than another from which on it has no place among the others.
_ABSENT = 0.2
# Share of texts, and number, from which on copies of the source are in the answer.
_COPIED, _FEW_COPIES = 0.1, 2
# Fewest empty translations that the first sentence has.
_FEW_EMPTY = 2
# Share of terms lost from which on a better score is not advised without them.
_TERMS_LOST = 0.05


def build_systems_conclusion(
    differences: pd.DataFrame,
    table: pd.DataFrame,
    columns: Columns,
    margin: float,
    baseline: str,
    no_worse: pd.DataFrame,
) -> Conclusion:
    """Return which system to take for each direction, and a line for each on how sure that is."""
    placed, advice = place_texts(table), {}
    for (source, target), group in placed.groupby([columns.source_lang, columns.target_lang], sort=False):
        own = differences[differences["language"] == f"{source} → {target}"]
        choice = _TranslatorChoice(own, group, columns, margin, baseline)
        tests = no_worse[no_worse["language"] == f"{source} → {target}"]
        found = choice.consider_prices(choice.advise(), tests)
        direction = f"{format_language(str(source))} to {format_language(str(target))}"
        advice[direction] = found.insert_remarks(choice.list_remarks(found))
    return build_choice_conclusion(advice)


class _TranslatorChoice:
    """A choice between the systems of one direction, and the words for it."""

    def __init__(
        self, differences: pd.DataFrame, group: pd.DataFrame, columns: Columns, margin: float, baseline: str
    ) -> None:
        self.columns, self.margin, self.baseline = columns, margin, baseline
        self.measure, self.reference, self.output = choose_measure_and_text_columns(columns)
        self.rows = {
            str(name): part.set_index("_place") for name, part in group.groupby("system", sort=False)
        }
        self.total = int(group["_place"].nunique())
        self.failed = {name: int(part["failed"].sum()) for name, part in self.rows.items()}
        self.empty = {
            name: int(part["empty"].fillna(value=False).sum()) if "empty" in part else 0
            for name, part in self.rows.items()
        }
        self.copied = {
            name: int(part["copied"].fillna(value=False).sum()) if "copied" in part else 0
            for name, part in self.rows.items()
        }
        fewest = min(self.failed.values())
        gone = [name for name, count in self.failed.items() if count - fewest >= _ABSENT * self.total]
        self.absent = gone if len(self.rows) - len(gone) >= 2 else []
        present = {name: part for name, part in self.rows.items() if name not in self.absent}
        self.lacking = list_systems_failing_more(group, "system", "_place")
        scored = differences[differences["measure"] == self.measure]
        whole = scored[scored["condition"] == ""]
        terms = differences[differences["measure"] == KEPT_TERMS]
        kinds = [part for part in (whole, scored, terms) if len(part)]
        self.pairs = kinds[0].to_dict("records") if kinds else []
        self.unit = str(self.pairs[0]["measure"]) if self.pairs else self.measure
        self.differences = differences
        self.scores = _score_systems(self.pairs, present)
        order = sorted(self.scores, key=lambda name: (-self.scores[name], name))
        self.best, self.others = (order[0], order[1:]) if order else (min(self.rows), [])

    def advise(self) -> Advice:
        """Return what to do, and how sure that is."""
        if not self.others:
            lead = Lead(remarks=(f"{join_names(sorted(self.rows))} cannot be compared",))
            return Advice(self.best, lead, ("no text was translated by both",))
        failures = self._advise_on_failures()
        if failures is not None:
            return failures
        verdicts = {name: self._find_verdict(self.best, name) for name in self.others}
        losers = [name for name, verdict in verdicts.items() if verdict == BETTER]
        rivals = [name for name in self.others if name not in losers]
        return self._advise_on_winner() if not rivals else self._advise_on_open_lead(rivals, losers)

    def consider_prices(self, advice: Advice, tests: pd.DataFrame) -> Advice:
        """Return the advice with cheaper systems that are no worse, by their chrF and by the terms that they keep."""
        is_sound = [not self._loses_terms(row["b"], row["a"]) for row in tests.to_dict("records")]
        verdicts = {name: self._find_verdict(self.best, name) for name in self.others}
        tied = [self.best, *(name for name, verdict in verdicts.items() if verdict != BETTER)]
        return apply_prices(advice, tied, tests[np.array(is_sound, dtype=bool)], self.baseline)

    def list_remarks(self, advice: Advice) -> list[str]:
        """Return who failed on texts, whose translations came back empty, and who copied the texts."""
        told = "; ".join([str(advice.lead), *advice.clauses])
        empty = {name: count for name, count in self.empty.items() if count and name not in self.absent}
        totals = dict.fromkeys(self.rows, self.total)
        remarks = list_failure_remarks(self.absent, empty, self.failed, totals, told)
        (name, most), *others = sorted(self.copied.items(), key=lambda item: -item[1])
        if most < max(_FEW_COPIES, _COPIED * self.total):
            return remarks
        also = "".join(f", {quote_name(other)} {count}" for other, count in others[:1] if count)
        return [*remarks, f"{quote_name(name)} copied {most} of {format_count(self.total, 'text')}{also}"]

    def _find_pair(self, one: str, other: str, measure: str = "") -> dict[Any, Any] | None:
        """Return the test of two systems, in whichever order it has them."""
        rows = self.pairs
        if measure:
            rows = self.differences[self.differences["measure"] == measure].to_dict("records")
        return next((row for row in rows if {row["a"], row["b"]} == {one, other}), None)

    def _find_verdict(self, one: str, other: str, measure: str = "") -> str:
        """Return whether the first of two systems is significantly better or worse."""
        pair = self._find_pair(one, other, measure)
        if pair is None or pair["verdict"] not in {BETTER, WORSE}:
            return ""
        return BETTER if (pair["verdict"] == BETTER) == (pair["b"] == one) else WORSE

    def _advise_on_failures(self) -> Advice | None:
        """Return the advice where the system that is ahead lacks more texts than another, in both readings."""
        best = self.best
        rivals = [name for name in self.others if self.failed[name] < self.failed[best]]
        if best not in self.lacking or not rivals:
            return None
        rival, name = rivals[0], quote_name(best)
        failed = f"failed on {self.failed[best]} of {format_count(self.total, 'text')}"
        second = self._test_failures_as_empty(best, rival)
        readings = [f"where both answered, {self._describe_pair(best, rival, brief=True)}"]
        unclear = Lead(remarks=(f"no clear choice: {name} scores higher, but {failed}",))
        if second is None:
            return Advice(best, unclear, tuple(readings))
        values = {str(second["a"]): second["value_a"], str(second["b"]): second["value_b"]}
        score = f"{quote_name(best)} {values[best]:.1f}, {quote_name(rival)} {values[rival]:.1f}"
        readings.append(f"with failures as empty texts {score}")
        if values[rival] > values[best] and second["p"] < _LEVEL and len(self.others) == 1:
            return Advice(rival, Lead("take", (rival,), (f"{name} {failed}",), ": "), tuple(readings))
        ahead = Lead(remarks=(f"{name} is ahead, but {failed}",))
        return Advice(best, unclear if values[rival] > values[best] else ahead, tuple(readings))

    def _test_failures_as_empty(self, best: str, rival: str) -> dict[Any, Any] | None:
        """Return the test of two systems with an empty text for each failure."""
        if self.unit != self.measure:
            return None
        filled = {name: self.rows[name].fillna({self.output: ""}) for name in (best, rival)}
        places = find_common_positions(filled, [self.output, self.reference])
        return next(iter(run_tests(filled, places, self.measure, self.columns)), None)

    def _advise_on_winner(self) -> Advice:
        """Return the advice where one system is significantly better than all others."""
        best, name = self.best, quote_name(self.best)
        second = self.others[0]
        verb = "keep" if best == self.baseline else "take"
        terms = self._describe_terms(best, second)
        brief = self._describe_pair(best, second, brief=True)
        if self._loses_terms(best, second):
            words = f"{name} has the higher score, but keeps fewer terms than {quote_name(second)}"
            return Advice(best, Lead(remarks=(words,)), (terms, brief))
        loss = next((row for row in self._list_split_verdicts(best, second, WORSE)), None)
        if loss is not None:
            values = {str(loss["a"]): loss["value_a"], str(loss["b"]): loss["value_b"]}
            pair = f"in these {values[best]:.1f} against {values[second]:.1f} ({describe_p_value(loss['p_holm'])})"
            words = f"{name} has the higher score, but is worse in {loss['condition']}"
            return Advice(best, Lead(remarks=(words,)), (f"{brief}; {pair}", terms))
        return Advice(
            best, Lead(verb, (best,)), (self._describe_pair(best, second, beside=terms), terms), "settled"
        )

    def _advise_on_open_lead(self, rivals: list[str], losers: list[str]) -> Advice:
        """Return the advice where scores do not decide between the first systems."""
        best, rival, name = self.best, rivals[0], quote_name(self.best)
        terms = self._describe_terms(best, rival)
        clauses = [self._describe_pair(best, rival, beside=terms), terms]
        if losers:
            clauses.insert(1, f"significantly worse: {join_names(losers)} ({self.scores[losers[0]]:.1f})")
        first = self._find_pair(best, rival) or {}
        blocks = int(first.get("blocks", 0))
        few = blocks < MIN_PAIRS
        clauses += [f"too few to show a difference; take {ENOUGH} or more"] if few else []
        level = self._describe_equivalence(rivals)
        lead = describe_tie(
            best,
            rivals,
            losers,
            equals=[other for other in rivals if self.scores[other] == self.scores[best]],
            baseline=self.baseline,
            is_level=bool(level),
            beats=lambda one, other: self._find_verdict(one, other) == BETTER,
            held=[other for other in rivals if self.empty[other] or other in self.lacking],
            most=len(rivals) + 1,
        )
        if lead and self.baseline in [best, *rivals]:
            unshown = [f"{name} is not shown to be better"] if best != self.baseline else []
            return Advice(self.baseline, lead, (*unshown, *clauses))
        if lead and losers:
            return Advice(best, lead, tuple(clauses))
        by_terms = self._advise_by_terms(rivals)
        if by_terms is not None:
            return by_terms
        if lead and level:
            return Advice(best, lead, (level, terms))
        if lead:
            count = describe_rows_and_blocks(first["n"], first["blocks"], "text")
            both = "both have" if len(rivals) == 1 else "all have"
            same = f"{both} {self._format_score(self.scores[best])} on {count}, too few to say there is none"
            return Advice(best, lead, (same, terms))
        clauses += [] if few else ["this may be chance"]
        empty = max((best, *rivals), key=lambda system: self.empty[system])
        if self.empty[empty] >= max(_FEW_EMPTY, MAX_LACK * self.total):
            count = f"{self.empty[empty]} of {format_count(self.total, 'text')}"
            words = f"no difference is shown, but {quote_name(empty)} came back empty on {count}"
            return Advice(best, Lead(remarks=(words,), is_undecided=True), tuple(clauses))
        lead = describe_lead(best, rivals, first.get("p_holm"))
        if few and lead.is_undecided:
            lead = replace(lead, few=describe_needed_size(blocks, "text", ENOUGH))
        return Advice(best, lead, tuple(clauses))

    def _advise_by_terms(self, rivals: list[str]) -> Advice | None:
        """Return the advice where terms kept decide between systems whose scores do not, if they do."""
        best, rival = self.best, rivals[0]
        keeper = self._find_best_keeper([best, *rivals])
        if keeper:
            rest = best if keeper != best else rival
            clauses = (self._describe_terms(keeper, rest), self._describe_pair(keeper, rest, brief=True))
            if self.scores[best] - self.scores[keeper] <= self.margin:
                return Advice(keeper, Lead("take", (keeper,)), clauses, "settled")
            words = f"{quote_name(keeper)} keeps more terms, but {quote_name(best)} has the higher score"
            return Advice(best, Lead(remarks=(words,)), clauses)
        shares = None if self.unit == KEPT_TERMS else self._count_terms(best, rival)
        if shares is None or abs(shares[best] - shares[rival]) < _TERMS_LOST:
            return None
        more, fewer = sorted((best, rival), key=lambda system: -shares[system])
        words = f"{quote_name(more)} keeps more terms than {quote_name(fewer)}, not yet for sure"
        terms = self._describe_terms(more, fewer)
        return Advice(best, Lead(remarks=(words,)), (terms, self._describe_pair(best, rival, beside=terms)))

    def _describe_equivalence(self, rivals: Sequence[str]) -> str:
        """Return that the intervals of all differences from the first lie within the margin, if they do."""
        pairs = [self._find_pair(self.best, rival) for rival in rivals]
        bounds = [
            max(abs(float(row["low"])), abs(float(row["high"])))
            for row in pairs
            if row is not None and not is_missing(row["low"])
        ]
        if (
            self.unit != self.measure
            or len(bounds) < len(rivals)
            or max(bounds) > self.margin
            or self.lacking
        ):
            return ""
        row = pairs[0] or {}
        count = describe_rows_and_blocks(row["n"], row["blocks"], "text")
        scores = [f"{self.scores[name]:.1f}" for name in (self.best, *rivals[:1])]
        return describe_margin(scores, f"{self.unit} on {count}", max(bounds), self.margin)

    def _describe_pair(self, best: str, other: str, *, brief: bool = False, beside: str = "") -> str:
        """Return the scores of two systems, and their difference with its interval and p-value.

        The difference is left out ``beside`` further figures, so that both fit into a line.
        """
        row = self._find_pair(best, other) or {}
        sign = 1 if row["b"] == best else -1
        values = {str(row["a"]): row["value_a"], str(row["b"]): row["value_b"]}
        first, second = (
            f"{quote_name(name)} {format_value(values[name], row['unit'])}" for name in (best, other)
        )
        scores = f"{first} {self.unit}, {second}"
        if brief:
            return scores
        ends = [] if is_missing(row["low"]) else sorted((sign * row["low"], sign * row["high"]))
        interval = [" to ".join(format_difference(end, row["unit"]) for end in ends)] if ends else []
        p = [] if is_missing(row["p_holm"]) else [describe_p_value(row["p_holm"])]
        count = describe_rows_and_blocks(row["n"], row["blocks"], "text").replace(
            ", which count", " that count"
        )
        change = [] if beside else [format_difference(sign * row["difference"], row["unit"]), *interval]
        facts = [*change, *p, count]
        return f"{scores} ({', '.join(facts)})"

    def _format_score(self, score: float) -> str:
        return (
            f"{score:.1f} {self.unit}"
            if self.unit == self.measure
            else f"{format_percent(score)} of terms kept"
        )

    def _describe_terms(self, best: str, other: str) -> str:
        """Return what share of the terms two systems kept, on the texts that both translated."""
        if self.unit == KEPT_TERMS or (shares := self._count_terms(best, other)) is None:
            return ""
        p = self._find_pair(best, other, KEPT_TERMS)
        chance = (
            f" ({describe_p_value(p['p_holm'])})" if p is not None and not is_missing(p["p_holm"]) else ""
        )
        first, second = (format_percent(shares[name]) for name in (best, other))
        return f"{quote_name(best)} kept {first} of terms, {quote_name(other)} {second}{chance}"

    def _loses_terms(self, best: str, other: str) -> bool:
        """Return whether a system keeps fewer terms than another: significantly, or by too much to be passed over."""
        shares = self._count_terms(best, other)
        if shares is None or self.unit == KEPT_TERMS:
            return False
        lost = shares[other] - shares[best]
        return lost >= _TERMS_LOST or (lost > 0 and self._find_verdict(best, other, KEPT_TERMS) == WORSE)

    def _find_best_keeper(self, names: Sequence[str]) -> str:
        """Return the system that keeps significantly more terms than each of the others, and loses nowhere."""
        if self.unit == KEPT_TERMS:
            return ""
        for name in names:
            others = [other for other in names if other != name]
            verdicts = [self._find_verdict(name, other, KEPT_TERMS) for other in others]
            losses = [row for other in others for row in self._list_split_verdicts(name, other, WORSE)]
            if all(verdict == BETTER for verdict in verdicts) and not losses:
                return name
        return ""

    def _list_split_verdicts(self, one: str, other: str, verdict: str) -> list[dict[Any, Any]]:
        """Return the tests on texts with or without terms in which one system is better, or worse, than another."""
        sought = {one: verdict, other: BETTER if verdict == WORSE else WORSE}
        rows = self.differences[
            (self.differences["measure"] == self.measure) & (self.differences["condition"] != "")
        ]
        return [
            row
            for row in rows.to_dict("records")
            if {row["a"], row["b"]} == {one, other} and row["verdict"] == sought[str(row["b"])]
        ]

    def _count_terms(self, one: str, other: str) -> Mapping[str, float] | None:
        """Return the share of the terms that each of two systems kept; None without a glossary."""
        systems = {name: self.rows[name] for name in (one, other)}
        if "terms_expected" not in systems[one]:
            return None
        places = find_common_positions(systems, ["translation"])
        sums = {
            name: rows.loc[places, ["terms_found", "terms_expected"]].sum() for name, rows in systems.items()
        }
        if not sums[one]["terms_expected"]:
            return None
        return {name: float(found["terms_found"] / found["terms_expected"]) for name, found in sums.items()}


def _score_systems(
    pairs: Sequence[Mapping[Any, Any]], present: Mapping[str, pd.DataFrame]
) -> dict[str, float]:
    """Return the mean of each system's scores in its pairs, which are one score where no text is missing."""
    scores: dict[str, list[float]] = {}
    for row in pairs:
        if {row["a"], row["b"]} <= set(present):
            scores.setdefault(str(row["a"]), []).append(float(row["value_a"]))
            scores.setdefault(str(row["b"]), []).append(float(row["value_b"]))
    return {name: sum(values) / len(values) for name, values in scores.items()}
