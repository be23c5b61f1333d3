"""Who follows references that are likely wrong: words of them against which most other systems agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab._pandas import pd
from speechlab.display import format_count
from speechlab.evaluate._writing.contents import Finding
from speechlab.evaluate._writing.sentences import join_names, quote_name
from speechlab.metrics import (
    Alignment,
    classify_differences,
    compute_share_interval,
    has_difference_classes,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEVEL = 0.05
# Fewest systems that agree against a reference, and fewest such places of which anything is said.
_MIN_AGREEING, MIN_PLACES = 2, 50
# How many times as often as the others a follower has the words of the reference, and how often at least.
_TIMES, _LEAST = 2.0, 0.02
# Most places from which it is estimated how often slips coincide.
_MOST_PLACES = 5_000
# Share of the slips of one or two systems from which on these are relatives, if both made them; and fewest of these.
_RELATED, _LEAST_SHARED = 0.5, 5
# Slips with which it is estimated how much better a system is than others, before any are seen.
_PRIOR_SLIPS = 10
_PLACE = ["utterance", "start", "end", "reference", "others"]


class Followers(NamedTuple):
    """How often each system has words of references against which most others agree; these places, and findings."""

    systems: pd.DataFrame
    places: pd.DataFrame
    findings: list[Finding]


def find_followers(rows: pd.DataFrame, block: str) -> Followers:
    """Find the words of references against which most systems agree, and the systems that have them all the same."""
    names, language = rows["system"].unique().tolist(), rows["language"].iloc[0]
    edits, places = _list_suspected_places(rows, len(names), language)
    agrees, differs = _mark_agreement(places, edits, names)
    chances, odds, families = _measure_shared_slips(edits, places, names)
    members = [np.flatnonzero(families == one) for one in range(max(families) + 1)]
    by_family = np.column_stack([agrees[:, some].any(axis=1) for some in members])
    agreeing = by_family.sum(axis=1, keepdims=True) - by_family[:, families]  # of the other families
    suspected = (agreeing >= _MIN_AGREEING) & (2 * agreeing > len(members) - 1)
    blocks = rows.drop_duplicates("utterance").set_index("utterance", drop=False)[block]
    of_block = pd.factorize(blocks[places["utterance"]])[0]
    cases, follows = agrees | ~differs, ~differs
    facts, findings = [], []
    for own, name in enumerate(names):
        here = suspected[:, own]
        hits, counts = (np.bincount(of_block, marks[:, own] & here) for marks in (follows, cases))
        others = [int(np.delete(marks[here], own, axis=1).sum()) for marks in (follows, cases)]
        usual, count = others[0] / max(others[1], 1), int(counts.sum())
        # As often as others would have them that are as good where a single other one slips.
        better = min(1.0, float(odds[own] / np.delete(odds, own).mean()))
        expected = usual / (usual + better * (1 - usual))
        # Only the lower end decides: each end has the whole level, divided among the systems.
        low, high = compute_share_interval(hits, counts, 1 - 2 * _LEVEL / len(names))
        is_frequent = low > max(_TIMES * max(expected, chances[own]), _LEAST)
        is_follower = count >= MIN_PLACES and is_frequent
        share = float(hits.sum()) / count if count else np.nan
        ends = {"followed_low": low, "followed_high": high, "usual": usual, "chance": chances[own]}
        facts.append({"system": name, "suspects": count, "followed": share, **ends, "follows": is_follower})
        if is_follower:
            example = places.iloc[np.flatnonzero(here & follows[:, own])[0]]
            findings.append(_describe_follower(facts[-1], example, language))
        elif is_frequent:
            words = (
                f"{quote_name(name)} has {int(hits.sum()):,} of {format_count(count, 'place')} where references are "
                f"likely wrong, more often than the others; it takes {MIN_PLACES} to say that it follows them."
            )
            findings.append(Finding(words, language, systems=(name,), numbers={"suspects": count}))
    for some in members:
        if len(some) > 1:
            alike = [names[own] for own in some]
            words = f"{join_names(alike)} make mostly the same errors: they may be one system, and are judged as one."
            findings.append(Finding(words, language, systems=tuple(alike)))
    systems = pd.DataFrame(facts).astype({"system": "string"})
    return Followers(systems, places[suspected.any(axis=1)], findings)


def _mark_agreement(
    places: pd.DataFrame, edits: pd.DataFrame, names: list[str]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return by place and system whether it has the other words of that place, and whether it has any others."""
    pairs = places.reset_index(drop=True).reset_index(names="place")
    pairs = pairs.merge(edits, on="utterance", suffixes=("", "_of"))
    near = pairs[(pairs["start_of"] <= pairs["end"]) & (pairs["end_of"] >= pairs["start"])]
    is_same = near[[f"{name}_of" for name in _PLACE[1:]]].to_numpy() == near[_PLACE[1:]].to_numpy()
    agrees, differs = np.zeros((2, len(places), len(names)), dtype=bool)
    for marks, found in ((agrees, near[is_same.all(axis=1)]), (differs, near)):
        marks[found["place"], pd.Index(names).get_indexer(pd.Index(found["system"]))] = True
    return agrees, differs


def _measure_shared_slips(
    edits: pd.DataFrame, suspected: pd.DataFrame, names: list[str]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return how often each system makes the error that one other alone makes, the odds of that, and its family.

    Two systems that alone make many of their errors alike are relatives, or one system under two names. They count as
    one where others contradict a reference.
    """
    places = edits[_PLACE].drop_duplicates()
    places = places.sample(min(len(places), _MOST_PLACES), random_state=0)
    agrees, differs = _mark_agreement(places, edits, names)
    is_known = pd.MultiIndex.from_frame(places).isin(pd.MultiIndex.from_frame(suspected[_PLACE]))
    alone = (agrees.sum(axis=1, keepdims=True) - agrees == 1) & ~is_known[:, np.newaxis]
    hits, cases = (alone & agrees).sum(axis=0), (alone & (agrees | ~differs)).sum(axis=0)
    # Odds of such a slip; few are taken as if they were those of all, with the weight of some slips.
    usual = (hits.sum() + 0.5) / (cases.sum() + 1)
    smoothed = (hits + _PRIOR_SLIPS) / (cases + _PRIOR_SLIPS / usual)
    makers = agrees.sum(axis=1)
    single, pairs = agrees[makers == 1].sum(axis=0), agrees[makers == 2].astype(np.int64)
    shared = pairs.T @ pairs
    alike = shared / np.maximum(shared + single[:, np.newaxis] + single, 1)
    # Of hard words all systems make the same slips, relatives many more of them.
    usual_pair = float(np.quantile(alike[np.triu_indices(len(names), 1)], 0.4))
    families = np.arange(len(names))
    for one, other in np.argwhere((shared >= _LEAST_SHARED) & (alike > max(_RELATED, _TIMES * usual_pair))):
        families[families == families[other]] = families[one]
    families = np.unique(families, return_inverse=True)[1]
    return hits / np.maximum(cases, 1), smoothed / (1 - smoothed), families


def _list_suspected_places(
    rows: pd.DataFrame, systems: int, language: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return all places where systems differ from a reference, and those where most of the others agree."""
    compared = ["system", "utterance", "reference_normalized", "hypothesis_normalized"]
    wrong = rows.loc[rows["errors"] > 0, compared]
    separator = " " if rows["unit"].iloc[0] == "word" else ""
    cells = [
        (system, utterance, *span)
        for system, utterance, said, recognized in wrong.itertuples(index=False)
        for span in _list_spans(said, recognized, separator)
    ]
    edits = pd.DataFrame(cells, columns=["system", *_PLACE])
    places = edits.groupby(_PLACE, sort=False)["system"].nunique().reset_index(name="agreeing")
    places = places[(places["agreeing"] >= _MIN_AGREEING) & (2 * places["agreeing"] > systems - 1)]
    if has_difference_classes(language):  # without differences of notation alone
        texts = zip(places["reference"], places["others"], strict=True)
        is_wrong = [classify_differences(*pair, language).tolerant_errors > 0 for pair in texts]
        places = places[np.array(is_wrong, dtype=bool)]
    return edits, places.reset_index(drop=True)


def _list_spans(said: str, recognized: str, separator: str) -> Iterator[tuple[int, int, str, str]]:
    """Yield the places of a reference where a transcript has other words, with both texts."""
    reference, hypothesis = (text.split() if separator else text for text in (said, recognized))
    i, j, sizes = 0, 0, (len(reference), len(hypothesis))
    runs = (run for run in Alignment(reference, hypothesis).blocks if run[0] == "equal")
    for _, i0, i1, j0, j1 in (*runs, ("equal", sizes[0], sizes[0], sizes[1], sizes[1])):
        if (i, j) != (i0, j0):
            yield i, i0, separator.join(reference[i:i0]), separator.join(hypothesis[j:j0])
        i, j = i1, j1


def _describe_follower(facts: Mapping[str, Any], example: Any, language: str) -> Finding:
    said, others = (f"“{text}”" if text else "nothing" for text in (example["reference"], example["others"]))
    words = (
        f"{quote_name(facts['system'])} agrees with references that are likely wrong: it has {facts['followed']:.0%} "
        f"of {facts['suspects']:,} places against which most others agree ({facts['followed_low']:.0%} to "
        f"{facts['followed_high']:.0%}), where the others have {facts['usual']:.0%} and slips like its own make "
        f"{facts['chance']:.0%}; such as {said}, where they have {others}. Or it alone hears them right: listen."
    )
    numbers = {name: facts[name] for name in ("followed", "suspects", "usual", "chance")}
    return Finding(words, language, systems=(str(facts["system"]),), numbers=numbers)
