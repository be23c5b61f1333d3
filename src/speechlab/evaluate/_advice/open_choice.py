"""The words for a choice between systems, whatever is measured: who leads, who is level, who failed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from speechlab._arguments import is_number
from speechlab.evaluate._writing.sentences import join_names, quote_name

# Maximum number of systems that the first sentence names; of more systems it gives the number.
MAX_NAMES = 2
# P-value above which a lead is none, and a number of further items would promise too much.
UNLIKELY = 0.5


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
) -> str:
    """Return what to do where the first system is not significantly better than its rivals.

    Empty where nothing but its lead can be told. ``beats`` tells whether one system is significantly better than
    another; rivals that are ``held`` back, because of what failed or came back empty, are not advised.
    """
    if baseline in [best, *rivals]:
        return f"keep {quote_name(baseline)}"
    if losers:
        taken = [best, *(name for name in rivals if name not in held)]
        dropped = [loser for loser in losers if all(beats(name, loser) for name in [best, *rivals])]
        if dropped:
            return f"take {join_names(taken, 'or', MAX_NAMES)}, not {join_names(dropped, 'or', MAX_NAMES)}"
        is_plain = len(rivals) == len(losers) == 1
        others = f"{join_names(rivals, most=MAX_NAMES)} {'is' if len(rivals) == 1 else 'are'}"
        rest = f"{others} not shown to differ{' from either' if is_plain else ''}"
        return f"take {quote_name(best)} over {join_names(losers, most=MAX_NAMES)}; {rest}"
    if is_level:
        return f"{join_names([best, *rivals], most=most)} are level"
    if len(equals) == len(rivals):
        return f"no difference seen between {join_names([best, *rivals], most=most)}"
    return ""


def describe_lead(best: str, rivals: Sequence[str], p: object = None) -> str:
    """Return that a system is ahead of others, which may be chance; or that it cannot be told from them."""
    if is_number(p) and p > UNLIKELY:
        return f"no difference shown between {join_names([best, *rivals], most=MAX_NAMES)}"
    return f"{quote_name(best)} is ahead of {join_names(rivals, most=MAX_NAMES)}, not yet for sure"


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
        f"{quote_name(name)} came back empty on {count} of {counts[name]}" for name, count in empty.items()
    ]
    return remarks + [
        f"{quote_name(name)} failed on {count} of {counts[name]}"
        for name, count in failed.items()
        if count and name not in absent and f"{quote_name(name)} failed" not in told
    ]
