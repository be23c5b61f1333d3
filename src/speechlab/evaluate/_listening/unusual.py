"""Listeners by themselves: who pressed one button, turned the scale, disagrees with others, or hears alone."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from speechlab.evaluate._listening.statistics import compute_binomial_p
from speechlab.evaluate._statistics import compute_sign_p
from speechlab.evaluate._writing.sentences import join_names
from speechlab.listening import METHODS

if TYPE_CHECKING:
    import pandas as pd

# Share of the questions with the same button or rating from which on a listener is named, with enough answers.
_MONOTONOUS_SHARE, _MIN_ANSWERS = 0.9, 8
# Such a share of most listeners from which on it is the sounds that are alike, and not the listener.
_USUAL_SHARE = 0.75
# Correlation with the others at which a scale may have been turned, and the number of systems from which it can tell.
_TURNED, _MIN_SYSTEMS = -0.5, 3
_LEVEL = 0.05
# Fewest listeners or items, and their share, that have to prefer either system before it is a disagreement.
_FEWEST_SPLIT, _SPLIT_SHARE = 2, 1 / 6


class Sides(NamedTuple):
    """Listeners, or items, by the system that they clearly prefer: by a sign test of each one's answers."""

    first: int
    second: int
    groups: int

    @property
    def is_split(self) -> bool:
        """Whether so many clearly prefer either system that it is no chance."""
        return min(self.first, self.second) >= max(_FEWEST_SPLIT, self.groups * _SPLIT_SHARE)


def select_pair(answers: pd.DataFrame, method: str, one: str, other: str) -> pd.DataFrame:
    """Return the answers about two systems."""
    is_one = answers["system"].astype(str).isin([one, other])
    if method in {"ab", "abx"}:
        return answers[is_one & answers["other"].astype(str).isin([one, other])]
    return answers[is_one & (answers["role"] == "test")]


def count_sides(answers: pd.DataFrame, method: str, first: str, second: str, by: str) -> Sides:
    """Return how many listeners, or items, clearly prefer the first of two systems, and how many the second."""
    if method == "ab":
        signs = answers["score"].where(answers["system"].astype(str) == first, -answers["score"])
        by_group = signs.groupby(answers[by])
    else:
        keys = [answers["listener"], answers["item"], answers["system"].astype(str)]
        wide = answers.groupby(keys)["score"].mean().unstack(-1).reindex(columns=[first, second]).dropna()
        by_group = (wide[first] - wide[second]).groupby(level=by)
    sides = [_find_side(int((own > 0).sum()), int((own < 0).sum())) for _, own in by_group]
    return Sides(sides.count(1), sides.count(-1), len(sides))


def _find_side(wins: int, losses: int) -> int:
    """Return 1 or -1 if one of two systems won more often than by chance, else 0."""
    return 0 if compute_sign_p(wins, losses) >= _LEVEL else 1 if wins > losses else -1


def find_single_hearers(answers: pd.DataFrame) -> list[str]:
    """Return the listeners of ABX whose own answers are right beyond chance, as one of so many listeners."""
    found = answers.groupby("listener", sort=False)["score"].agg(["sum", "size"])
    limit = _LEVEL / max(len(found), 1)
    return [
        str(name)
        for name, (right, count) in found.iterrows()
        if compute_binomial_p(int(right), int(count)) < limit
    ]


def compute_same_share(own: pd.DataFrame, method: str) -> float:
    """Return the share of a listener's questions with the same button, or with the same rating."""
    if not len(own):
        return math.nan
    if METHODS[method].ratings is None:
        pressed = own.loc[own["position"] > 0, "position"].value_counts()
        return float(pressed.max()) / len(own) if len(pressed) else 0.0
    return float(own["score"].value_counts(normalize=True).max())


def describe_unusual_listeners(answers: pd.DataFrame, method: str) -> tuple[str, list[str]]:
    """Return who nearly always pressed one button or gave one rating, or turned the scale; and their names."""
    straight = _find_straight_listeners(answers, method)
    clauses = []
    if straight:
        did = "pressed the same button" if METHODS[method].ratings is None else "gave the same rating"
        least = "" if len(set(straight.values())) == 1 else "at least "
        clauses.append(
            f"{_join_listeners([*straight])} {did} in {least}{min(straight.values()):.0%} of the questions"
        )
    turned = [name for name in _find_turned_listeners(answers, method) if name not in straight]
    if turned:
        clauses.append(f"{_join_listeners(turned)} answered as if the scale were turned")
    words = "; ".join(clauses)
    return (words, [*straight, *turned])


def _join_listeners(names: list[str]) -> str:
    return join_names(names, most=2)


def _find_straight_listeners(answers: pd.DataFrame, method: str) -> dict[str, float]:
    """Return the listeners who nearly always pressed the same button or gave the same rating, with the share.

    A button counts only where the systems changed places: who prefers a system, or is right, is no straight-liner.
    """
    by_listener = [(str(name), own) for name, own in answers.groupby("listener", sort=False)]
    shares = {name: compute_same_share(own, method) for name, own in by_listener if len(own) >= _MIN_ANSWERS}
    found = {name: share for name, share in shares.items() if share >= _MONOTONOUS_SHARE}
    if METHODS[method].ratings is not None:
        middle = sorted(shares.values())[len(shares) // 2] if shares else 1.0
        return found if middle < _USUAL_SHARE and len(shares) > 2 else {}
    if answers.loc[answers["position"] > 0, "position"].nunique() < 2:
        return {}  # where sounds were is not known
    accused = {}
    for name, own in by_listener:
        if name not in found:
            continue
        pressed = own.loc[own["position"] > 0, "position"].value_counts()
        same, others = int(pressed.max()), int(pressed.sum() - pressed.max())
        by_chance = compute_sign_p(same, others) >= _LEVEL / len(by_listener)
        if not by_chance and _compute_same_system_share(own) < _MONOTONOUS_SHARE:
            accused[name] = found[name]
    return accused


def _compute_same_system_share(own: pd.DataFrame) -> float:
    """Return the largest share of a listener's answers with one score in one pair: the same system, or right."""
    pairs = own.groupby([own["system"].astype(str), own["other"].astype(str)])["score"]
    return float(pairs.value_counts().groupby(level=[0, 1]).max().sum() / len(own))


def _find_turned_listeners(answers: pd.DataFrame, method: str) -> list[str]:
    """Return the listeners whose ratings run against those of the others by more than chance or a taste.

    With two systems, someone who rates the other one higher has another taste.
    """
    if METHODS[method].ratings is None or answers["system"].nunique() < _MIN_SYSTEMS:
        return []
    ratings = (
        answers.groupby(["listener", "item", "system"], observed=True)["score"].mean().unstack("listener")
    )
    limit, found = NormalDist().inv_cdf(1 - _LEVEL / max(ratings.shape[1], 1)), []
    for name in ratings.columns:
        pairs = ratings[name].to_frame("own").assign(others=ratings.drop(columns=name).mean(axis=1)).dropna()
        if len(pairs) <= _MIN_ANSWERS or pairs.std().min() < 1e-12:
            continue
        agreement = float(pairs["own"].corr(pairs["others"]))
        if (
            agreement <= _TURNED
            and -math.atanh(max(agreement, -0.999999)) * math.sqrt(len(pairs) - 3) > limit
        ):
            found.append(str(name))
    return found
