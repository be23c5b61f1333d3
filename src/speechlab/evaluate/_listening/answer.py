"""The answer of a listening test: which system is preferred, or whether a difference is heard."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from speechlab.evaluate._writing.columns import interval_text, p_words
from speechlab.evaluate._writing.contents import Conclusion
from speechlab.listening import METHODS
from speechlab.metrics import ALIKE

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    import pandas as pd

_FEWEST = 6
_STRAIGHT = 0.9
"""Share of the commonest answer from which a listener is named, with enough answers."""
_ANSWERS = 8
_NUMBERS = ("no", "one", "two", "three", "four", "five")


def listening_answer(
    method: str,
    summary: pd.DataFrame,
    differences: pd.DataFrame,
    listeners: pd.DataFrame,
    who: str = "listener",
) -> Conclusion:
    """Return what the listeners prefer, with its difference and interval, or that they cannot tell.

    Args:
        method: Method of the test.
        summary: Its systems.
        differences: Their differences.
        listeners: The listeners.
        who: The noun for a listener, such as ``"simulated listener"``.
    """
    if not len(differences):
        return Conclusion("One system has nothing to be compared with.", "Give two or more.")
    odd = _odd(listeners)
    if method == "abx":
        answer = _heard(differences, who)
    else:
        tested = summary[summary["role"] == "test"]["system"].tolist()
        answer = _preferred(method, differences, [str(name) for name in tested], who)
    return Conclusion(answer.text, f"{answer.certainty}{odd}".strip())


def _preferred(method: str, pairs: pd.DataFrame, systems: list[str], noun: str) -> Conclusion:
    """Compare the best system with the next one."""
    best, second = systems[0], systems[1]
    rows = pairs.to_dict("records")
    own = [row for row in rows if {row["a"], row["b"]} == {best, second}]
    if not own:  # pairs that nobody heard in one question
        return Conclusion(
            f"{best} and {second} were not compared with each other.", "Their means are in the table."
        )
    row = own[0]
    who = _who(row, noun)
    sign = 1 if row["b"] == best else -1
    digits = METHODS[method].digits
    points = "of preference" if method == "ab" else "points"
    gap = f"{sign * row['difference']:.{digits}f} {points}"
    ends = sorted((sign * row["low"], sign * row["high"]))
    span = interval_text(ends[0], ends[1], f".{digits}f")
    gap = f"{gap}, {span}" if span else gap
    if row["verdict"] != ALIKE:
        others = pairs[(pairs["a"] == best) | (pairs["b"] == best)]
        rest = int((others["verdict"] == ALIKE).sum())
        more = f" Against {rest} of the others it is not shown to be better." if rest else ""
        return Conclusion(
            f"{best} is preferred to {second} by {who} ({gap}).",
            f"That is beyond chance, {p_words(row['p_holm'])}.{more}",
        )
    few = min(row["listeners"], row["items"]) < _FEWEST
    what = f"{who[:1].upper()}{who[1:]} cannot tell {best} from {second}."
    if few:
        return Conclusion(
            what, f"No difference, however clear, shows with fewer than {_FEWEST} listeners or items."
        )
    return Conclusion(
        what, f"{best} is ahead by {gap}, which may be chance ({p_words(row['p_holm'])}).{_needed(row)}"
    )


def _heard(pairs: pd.DataFrame, noun: str) -> Conclusion:
    rows = sorted(pairs.to_dict("records"), key=lambda row: float(row["p_holm"]))
    first = rows[0]
    names = f"{first['a']} and {first['b']}"
    right = f"{0.5 + first['difference']:.0%} right, {p_words(first['p_holm'])}"
    who = _who(first, noun)
    if first["verdict"] != ALIKE:
        heard = sum(row["verdict"] != ALIKE for row in rows)
        more = f" Of {len(rows)} pairs, {heard} are told apart." if len(rows) > 1 else ""
        return Conclusion(
            f"{who[:1].upper()}{who[1:]} hear a difference between {names} ({right}).", more.strip()
        )
    return Conclusion(
        f"{who[:1].upper()}{who[1:]} are not shown to hear a difference between {names}.",
        f"They were {right}.{_needed(first)}",
    )


def _who(row: Mapping[Hashable, Any], noun: str) -> str:
    count = int(row["listeners"])
    number = _NUMBERS[count] if count < len(_NUMBERS) else f"{count:,}"
    return f"{number} {noun if count == 1 else f'{noun}s'}"


def _needed(row: Mapping[Hashable, Any]) -> str:
    more = row["more_listeners"]
    if math.isnan(more) or math.isinf(more) or more <= 0:
        return ""
    return f" About {more:.0f} more listeners would find a difference that matters."


def _odd(listeners: pd.DataFrame) -> str:
    """Name listeners who gave nearly always the same answer, or turned the scale around."""
    counted = listeners[listeners["excluded"] == ""] if len(listeners) else listeners
    enough = counted[counted["answers"] >= _ANSWERS] if len(counted) else counted
    straight = enough[enough["same_answer"] >= _STRAIGHT]["listener"].tolist() if len(enough) else []
    turned = enough[enough["agreement"] <= -0.5]["listener"].tolist() if len(enough) else []
    told = [f"{_names(straight)} gave nearly always the same answer"] if straight else []
    told += [f"{_names(turned)} answered as if the scale were turned"] if turned else []
    return f" {'; '.join(told)}." if told else ""


def _names(listeners: list[str]) -> str:
    more = f" and {len(listeners) - 3} more" if len(listeners) > 3 else ""
    return ", ".join(map(str, listeners[:3])) + more
