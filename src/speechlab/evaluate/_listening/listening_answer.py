"""The answer of a listening test: what listeners prefer or hear, who was left out, and who answered unusually."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab.display import format_count, write_minus
from speechlab.evaluate._listening.statistics import compute_binomial_p
from speechlab.evaluate._listening.summary import LATER_SESSION, compare_systems, run_pair_tests
from speechlab.evaluate._listening.unusual import (
    count_sides,
    describe_unusual_listeners,
    find_single_hearers,
    select_pair,
)
from speechlab.evaluate._statistics import MIN_PAIRS
from speechlab.evaluate._writing.columns import describe_p_value, format_interval
from speechlab.evaluate._writing.contents import Conclusion
from speechlab.evaluate._writing.sentences import (
    LINE_WORDS,
    capitalize_unless_name,
    join_fitting_clauses,
    join_names,
    quote_name,
)
from speechlab.listening import METHODS
from speechlab.metrics import ALIKE

if TYPE_CHECKING:
    import pandas as pd

# Share of answers without a preference from which on the first sentence has it.
_MOSTLY = 0.5
_LEVEL = 0.05
_SAME_MEAN = "both have the same mean"
# Reasons of exclusions, by what they begin with, and what the answer says of the listeners.
_REASONS = {
    "attention": "failed attention checks",
    "hidden reference": "rated the hidden reference below 90",
    "anchor": "rated an anchor above 90",
}


class _Test(NamedTuple):
    """What is compared: the answers that count, the systems and pairs, and how they are called."""

    answers: pd.DataFrame
    method: str
    summary: pd.DataFrame
    pairs: pd.DataFrame
    noun: str
    smallest: float


def build_listening_conclusion(table: pd.DataFrame, listeners: pd.DataFrame, *facts: Any) -> Conclusion:
    """Return what is preferred or heard, how sure that is, who was left out, and who answered unusually.

    ``facts`` are the answers that count, the method, the tables of systems and of pairs, what a listener is called,
    and the smallest difference that matters.
    """
    test = _Test(*facts)
    first, certainty = _build_main_conclusion(test)
    if not len(test.pairs):
        return Conclusion(first, certainty)
    lines = [certainty, _describe_exclusions(test, table, listeners)]
    unusual, names = describe_unusual_listeners(test.answers, test.method)
    if unusual:
        without = _compare_again(test, test.answers[~test.answers["listener"].isin(names)])
        them = "this one" if len(names) == 1 else "them"
        lines.append(f"{unusual}; without {them}: {without}" if without else f"{unusual}.")
    return Conclusion(first, "\n".join(filter(None, lines)))


def _compare_again(test: _Test, answers: pd.DataFrame) -> str:
    """Return the first sentence of the answer that some of the answers give; empty without any."""
    pairs = compare_systems(answers, test.method, test.smallest) if len(answers) else test.pairs[:0]
    return _build_main_conclusion(test._replace(answers=answers, pairs=pairs))[0] if len(pairs) else ""


def _build_main_conclusion(test: _Test) -> tuple[str, str]:
    """Return the first sentence and the line on how sure it is."""
    if not len(test.pairs):
        return "One system has nothing to be compared with.", "Give two or more."
    if test.method == "abx":
        return _conclude_abx(test)
    best, second, *further = (str(name) for name in test.summary[test.summary["role"] == "test"]["system"])
    pair = _find_pair(test.pairs, best, second)
    if pair is None:  # pairs that no question had together
        words = f"{join_names([best, second])} were not compared with each other."
        return capitalize_unless_name(words, [best, second]), "Their means are in the table."
    first, lines = _conclude_pair(test, pair, best, second, further)
    written = [first, *map(join_fitting_clauses, lines)]
    sentences = [f"{capitalize_unless_name(line, [best, second])}." for line in written if line]
    return sentences[0], "\n".join(sentences[1:])


def _conclude_pair(
    test: _Test, pair: Mapping[Any, Any], best: str, second: str, further: list[str]
) -> tuple[str, list[list[str]]]:
    """Return what is preferred of the first two systems, and lines of clauses on how sure that is."""
    answers = select_pair(test.answers, test.method, best, second)
    winner, loser = quote_name(best), quote_name(second)
    evidence = _describe_evidence(test, pair, answers, best, second)
    neither = float((answers["score"] == 0).mean()) if test.method == "ab" else 0.0
    sides = count_sides(answers, test.method, best, second, "listener")
    if pair["verdict"] != ALIKE:
        open_names = [
            name
            for name in further
            if (row := _find_pair(test.pairs, best, name)) and row["verdict"] == ALIKE
        ]
        beaten = [name for name in (second, *further) if name not in open_names]
        lead = f"{winner} is preferred to {join_names(beaten, most=2)}"
        lead = f"mostly no preference; otherwise {lead}" if neither >= _MOSTLY else lead
        minority = f"{format_count(sides.second, test.noun)} clearly {_agree('prefer', sides.second)} {loser}"
        not_shown = f"not shown against {join_names(open_names)}" if open_names else ""
        return lead, [[evidence, minority if sides.is_split else "", not_shown]]
    few = [
        format_count(int(pair[name]), noun, in_words=True)
        for name, noun in (("listeners", test.noun), ("items", "item"))
        if pair[name] < MIN_PAIRS
    ]
    if few:
        lead = f"{' and '.join(few).lower()} {_agree('be', 1 if few[0].startswith('one ') else 2)} too few to tell "
        more = f"a difference can show from {MIN_PAIRS} listeners and {MIN_PAIRS} items on"
        return f"{lead}{winner} from {loser}", [[evidence, more]]
    if sides.is_split:
        lead = f"listeners disagree: {sides.first} prefer {winner}, {sides.second} prefer {loser}"
        rest = f"{sides.groups - sides.first - sides.second} have no clear preference"
        return lead, [[evidence, rest if not rest.startswith("0 ") else ""]]
    by_item = count_sides(answers, test.method, best, second, "item")
    if by_item.is_split:
        lead = (
            f"it depends on the item: {winner} is preferred in {by_item.first}, {loser} in {by_item.second}"
        )
        return lead, [[evidence]]
    behind = [
        name
        for name in further
        if all(
            (row := _find_pair(test.pairs, one, name)) and row["verdict"] != ALIKE for one in (best, second)
        )
    ]
    needed = _describe_listeners_needed(test, pair)
    if behind:
        lead = f"{winner} and {loser} are preferred to {join_names(behind, 'or', 2)}"
        if test.method == "ab":
            return lead, _split_lines(f"no significant preference between these two: {evidence}", needed)
        tie = _describe_evidence(test, pair, answers, best, second, with_means=False)
        return lead, [[_describe_means(test, [best, second, behind[0]])], [f"the first two: {tie}", needed]]
    none = "mostly no preference" if neither >= _MOSTLY else "no significant preference"
    return f"{none} between {winner} and {loser}", _split_lines(evidence, needed)


def _split_lines(first: str, second: str) -> list[list[str]]:
    """Return two clauses as one line, or as two where they are too long for one."""
    fits = len(f"{first} {second}".split()) <= LINE_WORDS
    return [[first, second]] if fits else [[first], [second]]


def _describe_evidence(
    test: _Test,
    pair: Mapping[Any, Any],
    answers: pd.DataFrame,
    best: str,
    second: str,
    *,
    with_means: bool = True,
) -> str:
    """Return the figures of both systems, or of their difference, with the p-value where there can be one."""
    who = format_count(int(pair["listeners"]), test.noun)
    enough = min(pair["listeners"], pair["items"]) >= MIN_PAIRS and not math.isnan(pair["p_holm"])
    sides = _describe_sides(test.method, pair, answers, best, second, with_means=with_means)
    if sides.startswith(_SAME_MEAN):
        return f"{sides}, {who}"
    return f"{sides} ({', '.join([describe_p_value(pair['p_holm']), who] if enough else [who])})"


def _describe_means(test: _Test, names: list[str]) -> str:
    """Return the means of three systems, and the p-value of the last one against the nearer of the others."""
    means = test.summary.set_index(test.summary["system"].astype(str))["mean"]
    pairs = [_find_pair(test.pairs, name, names[-1]) for name in names[:-1]]
    p = max(float(pair["p_holm"]) for pair in pairs if pair is not None)
    form = f".{METHODS[test.method].digits}f"
    figures = ", ".join(f"{quote_name(name)} {means[name]:{form}}" for name in names)
    return f"{figures} ({describe_p_value(p)})"


def _describe_sides(
    method: str,
    pair: Mapping[Any, Any],
    answers: pd.DataFrame,
    best: str,
    second: str,
    *,
    with_means: bool = True,
) -> str:
    """Return what both systems got: the means and their difference, or how often each was chosen, and neither."""
    winner, loser = quote_name(best), quote_name(second)
    if method == "ab":
        share = answers["score"].where(answers["system"].astype(str) == best, -answers["score"])
        chosen = [f"{float((share == value).mean()):.0%}" for value in (1, -1, 0)]
        neither = f", neither in {chosen[2]}" if (share == 0).any() else ""
        return f"{winner} was chosen in {chosen[0]} of the questions, {loser} in {chosen[1]}{neither}"
    form = f".{METHODS[method].digits}f"
    sign = 1 if pair["b"] == best else -1
    means = {str(pair["a"]): pair["value_a"], str(pair["b"]): pair["value_b"]}
    difference = sign * float(pair["difference"])
    if abs(difference) < 1e-9:
        return f"{_SAME_MEAN} ({means[best]:{form}} points)"
    low, high = sorted((sign * pair["low"], sign * pair["high"]))
    interval = format_interval(low, high, form)
    bounds = "" if interval is None or math.isnan(low) else f", 95% interval {interval}"
    ahead = write_minus(f"{difference:+{form}}")
    both = f"{winner} {means[best]:{form}}, {loser} {means[second]:{form}}: " if with_means else ""
    return f"{both}{ahead} points{bounds}"


def _conclude_abx(test: _Test) -> tuple[str, str]:
    """Return whether a difference is heard."""
    rows = sorted(test.pairs.to_dict("records"), key=lambda row: float(row["p_holm"]))
    first = rows[0]
    names = join_names([first["a"], first["b"]])
    count = int(first["listeners"])
    who = format_count(count, test.noun)
    chance = describe_p_value(first["p_holm"])
    share = f"{0.5 + first['difference']:.0%} right"
    right = f"{share} where guesses are 50% ({chance}, {who})"
    answers = select_pair(test.answers, "abx", first["a"], first["b"])
    hearers = find_single_hearers(answers)
    alone = f"{len(hearers)} of {count} {_agree('hear', len(hearers))} it for sure" if hearers else ""
    if first["verdict"] != ALIKE:
        told_apart = sum(row["verdict"] != ALIKE for row in rows)
        more = f"of {len(rows)} pairs, {told_apart} are told apart" if len(rows) > 1 else ""
        others = answers.loc[~answers["listener"].astype(str).isin(hearers), "score"]
        guessed = len(others) and compute_binomial_p(int(others.sum()), len(others)) >= _LEVEL
        if hearers and guessed:
            lead = f"{len(hearers)} of {who} {_agree('hear', len(hearers))} a difference between {names}."
            return lead, f"{join_fitting_clauses([right, more])}."
        lead = f"{test.noun.capitalize()}s can hear a difference: {share}, where guessing gives 50%."
        facts = join_fitting_clauses([f"{names}: {chance}, {who}", more])
        return lead, f"{capitalize_unless_name(facts, [first['a'], first['b']])}."
    needed = _describe_listeners_needed(test, first)
    return f"No audible difference shown between {names}.", f"{join_fitting_clauses([right, alone, needed])}."


def _describe_listeners_needed(test: _Test, row: Mapping[Any, Any]) -> str:
    """Return how many more listeners it takes for a difference that matters to show."""
    more = row["more_listeners"]
    if math.isnan(more) or math.isinf(more):
        return ""
    if test.method == "mos" or test.method == "mushra":
        sought = f"a difference of {test.smallest:g}"
    else:
        right = " right" if test.method == "abx" else ""
        share = 0.5 + test.smallest / (1 if right else 2)
        sought = f"{share:.0%}{right}" if right else f"{share:.0%} to {1 - share:.0%}"
    if more <= 0:
        return f"{sought} would probably have been found"
    return f"about {format_count(round(more), 'more listener')} would show {sought}"


def _describe_exclusions(test: _Test, table: pd.DataFrame, listeners: pd.DataFrame) -> str:
    """Return how many listeners were left out, why, and what all of them say."""
    reasons = listeners.loc[listeners["excluded"] != "", "excluded"].astype(str)
    if not len(reasons):
        return ""
    kinds = {
        next((words for start, words in _REASONS.items() if why.startswith(start)), "") for why in reasons
    }
    why = kinds.pop() if len(kinds) == 1 else "failed checks or the rules of BS.1534"
    count, total = len(reasons), len(listeners)
    of = format_count(total, "listener")
    left_out = f"{count:,} of {of} {why} and {_agree('be', count)} left out"
    return f"{join_fitting_clauses([left_out, _describe_all(test, table, total)])}."


def _describe_all(test: _Test, table: pd.DataFrame, total: int) -> str:
    """Return the figures of the first pair with the answers of those who were left out."""
    answers = table[(table["role"] != "check") & (table["excluded"] != LATER_SESSION)]
    rows = run_pair_tests(answers, test.method, test.smallest)
    if test.method == "abx":
        row = max(rows, key=lambda row: float(row["difference"]))
        return f"with all {total:,}, {0.5 + row['difference']:.0%} are right"
    best, second = (str(name) for name in test.summary[test.summary["role"] == "test"]["system"][:2])
    pair = next((row for row in rows if {row["a"], row["b"]} == {best, second}), None)
    if pair is None:
        return ""
    if test.method == "ab":
        sides = _describe_sides("ab", pair, select_pair(answers, "ab", best, second), best, second)
        return f"with all {total:,}, {sides}"
    difference = (1 if pair["b"] == best else -1) * float(pair["difference"])
    if abs(difference) < 1e-9:
        return f"with all {total:,}, {_SAME_MEAN}"
    ahead = best if difference > 0 else second
    form = f".{METHODS[test.method].digits}f"
    return f"with all {total:,}, {quote_name(ahead)} is {abs(difference):{form}} points ahead"


def _find_pair(pairs: pd.DataFrame, one: str, other: str) -> dict[Any, Any] | None:
    rows = [row for row in pairs.to_dict("records") if {row["a"], row["b"]} == {one, other}]
    return rows[0] if rows else None


def _agree(verb: str, count: int) -> str:
    """Return a verb in the present tense for one or for several."""
    if verb == "be":
        return "is" if count == 1 else "are"
    return f"{verb}s" if count == 1 else verb
