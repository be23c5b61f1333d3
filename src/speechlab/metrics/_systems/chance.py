"""What chance does not explain: errors of many voices at one place, notable patterns, and components of variance.

By chance, each voice errs at each token with its own rate, independently of the other voices. The number of voices
with an error at a token then follows the Poisson binomial distribution (Y. H. Wang, On the number of successes in
independent trials, Statistica Sinica 3, 1993).

Components of variance follow a two-way layout with random effects, by the method of moments: mean squares are set
equal to their expected values, and a negative component becomes zero (S. R. Searle, G. Casella, C. E. McCulloch,
Variance Components, 1992, chapter 4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab.metrics._statistics.significance import holm

if TYPE_CHECKING:
    import pandas as pd

# Language and utterance.
Key = tuple[str, str]


class ErrorPlace(NamedTuple):
    """A token at which several voices err."""

    key: Key  # the utterance
    token: int  # index in the reference
    sound: bool  # whether the errors are of the kind *sound*
    engine: str | None  # the engine of the voices; None for all voices


def compute_chance_probabilities(
    places: Iterable[ErrorPlace],
    faulty: Mapping[Key, Mapping[str, set[tuple[float, bool]]]],
    lengths: Mapping[Key, int],
    engines: Mapping[str, str],
) -> dict[ErrorPlace, float]:
    """The probability that at least as many voices err at a place by chance, corrected by Holm over all places."""
    tokens: Counter[tuple[str, str]] = Counter()
    faulty_counts: Counter[tuple[str, str, bool]] = Counter()
    for key, voices in faulty.items():
        for voice, its in voices.items():
            tokens[key[0], voice] += lengths[key]
            faulty_counts.update(
                (key[0], voice, sound) for place, sound in its if place in range(lengths[key])
            )
    p = {}
    for place in dict.fromkeys(places):
        voices = faulty[place.key]
        compared = [name for name in voices if place.engine in {None, engines[name]}]
        language = place.key[0]
        rates = [
            faulty_counts[language, name, place.sound] / max(tokens[language, name], 1) for name in compared
        ]
        p[place] = compute_tail_probability(
            sum((place.token, place.sound) in voices[name] for name in compared), rates
        )
    # All other places, whose p-values are larger, count too: all tokens, for all voices and for each engine.
    kinds = len({place.sound for place in p})
    several = len(set(engines.values()))
    tests = kinds * sum(lengths.values()) * (1 + several if several > 1 else 1)
    values = np.ones(max(tests, len(p)))
    values[: len(p)] = list(p.values())
    return dict(zip(p, holm(values).tolist(), strict=False))


def compute_tail_probability(count: int, rates: list[float]) -> float:
    """Return the probability of a number of independent events or more, from the probability of each event."""
    numbers = np.ones(1)
    for rate in rates:
        numbers = np.convolve(numbers, [1 - rate, rate])
    return float(min(numbers[count:].sum(), 1.0))


_TEXT = ["language", "utterance"]
_CLOSE = 2  # greatest distance between the starts of two runs at one place, in tokens
_CHANCE = 0.05  # probability by chance below which a pattern is a finding
# Fewest errors for a finding; fewest utterances for a finding, and most places in the findings.
_FEW, _MANY = 3, 5


def list_findings(errors: pd.DataFrame, voices: pd.DataFrame, utterances: pd.DataFrame) -> Iterator[str]:
    """Yield the findings from the tables of an attribution."""
    for row in voices.to_dict("records"):
        yield from _list_voice_findings(row, 2 * len(voices))
    likely = errors[errors["p_holm"] < _CHANCE]
    mine = likely[(likely["cause"] == "engine") & (likely["kind"] == "sound")]
    for (engine, _, utterance), runs in mine.groupby(["engine", *_TEXT], sort=False):
        reference = _quote_most_common_text(runs, "reference")
        yield f"All or most voices of {engine} err at {reference} of {utterance!r:.60}, and most other voices do not."
    count = utterances.set_index(_TEXT)["voices"].to_dict()
    shared = likely[likely["cause"] == "shared"]
    places = [(runs, runs["voice"].nunique(), count[key]) for key, runs in _group_runs_by_place(shared)]
    # If alignments shift an error, it may be shared although few voices have errors at this place.
    frequent = [place for place in places if 2 * place[1] > place[2]]
    for runs, voices_wrong, of in sorted(frequent, key=lambda place: -int(place[0]["errors"].sum()))[:_MANY]:
        first = runs.iloc[0]
        kind = "" if first["kind"] == "sound" else f" (a {first['kind']})"
        hypothesis = _quote_most_common_text(runs, "hypothesis") + (
            " or another" if runs["hypothesis"].nunique() > 1 else ""
        )
        reference = _quote_most_common_text(runs, "reference")
        what = f"{reference} of {first['utterance']!r:.60} becomes {hypothesis}{kind}"
        yield f"Whatever the voice, {what}: {voices_wrong} of {of} voices."


def _group_runs_by_place(shared: pd.DataFrame) -> Iterator[tuple[Hashable, pd.DataFrame]]:
    """Yield the shared runs of errors by utterance and place; runs at one place start close to each other."""
    for key, runs in shared.groupby(_TEXT, sort=False):
        ordered = runs.sort_values("start", kind="stable")
        place = (ordered["start"].diff() > _CLOSE).fillna(value=False).cumsum()
        yield from ((key, place_runs) for _, place_runs in ordered.groupby(place, sort=False))


def _list_voice_findings(row: dict[Hashable, Any], tests: int) -> Iterator[str]:
    """Findings on one voice, which are unlikely even among several tests."""
    name, count, own_errors, endings_lost = (
        row["voice"],
        *(int(row[it]) for it in ("utterances", "own_errors", "endings_lost")),
    )
    if (
        endings_lost >= _FEW
        and 5 * endings_lost >= count
        and tests * compute_tail_probability(endings_lost, [min(row["error_rate"], 1)] * count) < _CHANCE
    ):
        yield f"{name} loses the end of {endings_lost} of {count} utterances, and other voices do not."
    if own_errors < _FEW or count < _MANY or row["worst_share"] <= 0.5:
        return
    if (
        tests
        * count
        * compute_tail_probability(round(row["worst_share"] * own_errors), [1 / count] * own_errors)
        < _CHANCE
    ):
        share = f"{row['worst_share']:.0%} of the errors that {name} alone makes"
        yield f"{share} are in one utterance of {count}: {row['worst_utterance']!r:.60}."


def _quote_most_common_text(part: pd.DataFrame, column: str) -> str:
    text = part[column].mode().iloc[0]
    return repr(text) if text else "nothing"


def compute_variance_components(rates: list[list[list[float]]]) -> dict[str, float] | None:
    """Components of the variance of one take of one utterance by one voice, from the rates by voice and utterance.

    ``both`` is the interaction of voices and utterances; without repeated takes, it includes the variance between
    takes, and ``take`` is NaN. None with fewer than two voices or utterances.
    """
    voices, utterances = len(rates), len(rates[0])
    if voices < 2 or utterances < 2:
        return None
    cells = [cell for row in rates for cell in row]
    means = np.array([[np.mean(cell) for cell in row] for row in rates])
    rows, columns = means.mean(axis=1), means.mean(axis=0)
    residuals = means - rows[:, None] - columns[None, :] + means.mean()
    rest_square = float((residuals**2).sum()) / ((voices - 1) * (utterances - 1))
    row_square = utterances * float(((rows - means.mean()) ** 2).sum()) / (voices - 1)
    column_square = voices * float(((columns - means.mean()) ** 2).sum()) / (utterances - 1)
    spread = [float(np.var(cell, ddof=1)) for cell in cells if len(cell) > 1]
    take = float(np.mean(spread)) if spread else float("nan")
    takes = 1 / float(np.mean([1 / len(cell) for cell in cells]))
    return {
        "voice": max(0.0, (row_square - rest_square) / utterances),
        "utterance": max(0.0, (column_square - rest_square) / voices),
        "both": max(0.0, rest_square - (take / takes if spread else 0.0)),
        "take": take,
    }
