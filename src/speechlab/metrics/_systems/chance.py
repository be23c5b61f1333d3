"""Whether as many voices err at one place as happens by chance.

By chance, each voice errs at each token with its own rate, independently of the other voices. The number of voices
with an error at a token then follows the Poisson binomial distribution (Y. H. Wang, On the number of successes in
independent trials, Statistica Sinica 3, 1993).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from speechlab.metrics._statistics.randomization import holm

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Key = tuple[str, str]
"""Language and utterance."""


class ErrorPlace(NamedTuple):
    """A token at which several voices err."""

    key: Key  # the utterance
    token: int  # index in the reference
    sound: bool  # whether the errors are of the kind *sound*
    engine: str | None  # the engine of the voices; None for all voices


def chances(
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
        p[place] = at_least(sum((place.token, place.sound) in voices[name] for name in compared), rates)
    # All other places, whose p-values are larger, count too: all tokens, for all voices and for each engine.
    kinds = len({place.sound for place in p})
    several = len(set(engines.values()))
    tests = kinds * sum(lengths.values()) * (1 + several if several > 1 else 1)
    values = np.ones(max(tests, len(p)))
    values[: len(p)] = list(p.values())
    return dict(zip(p, holm(values).tolist(), strict=False))


def at_least(count: int, rates: list[float]) -> float:
    """The probability of a number of independent events or more, from the probability of each event."""
    numbers = np.ones(1)
    for rate in rates:
        numbers = np.convolve(numbers, [1 - rate, rate])
    return float(min(numbers[count:].sum(), 1.0))
