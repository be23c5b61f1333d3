"""The power of a listening test, from tests that are drawn from a stated model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._arguments import build_argument_error, is_number, is_whole_number
from speechlab._brief import shorten_tracebacks
from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._listening.summary import run_pair_tests
from speechlab.evaluate._study_arguments import check_whole_number
from speechlab.listening import METHODS, KeyTrial, ListeningKey, to_listening_key
from speechlab.metrics import BETTER, judge

if TYPE_CHECKING:
    from numpy.typing import NDArray


_MAX_LISTENERS = 1_000
_MAX_TESTS = 2_000


@shorten_tracebacks
def listening_power(
    key: Any,
    scores: Mapping[str, float],
    *,
    listeners: int | Iterable[int] = (8, 12, 16, 24),
    listener_sd: float = 0.4,
    item_sd: float = 0.4,
    answer_sd: float = 0.7,
    tests: int = 200,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the power of a MOS test by the number of listeners, from simulated tests.

    Each rating is the sum of four terms: the true score of the system, the listener's bias for the system, the effect
    of the item on the system, and an error. The last three are drawn from normal distributions. The sum is rounded to
    a whole rating of the scale. This is a linear model with crossed random effects (R. H. Baayen, D. J. Davidson, D.
    M. Bates, Mixed-effects modeling with crossed random effects for subjects and items, Journal of Memory and
    Language 59, 2008). The pairs of each drawn test are tested as in :func:`listening`, including Holm's correction.

    Args:
        key: The planned test, or its key, for its numbers of items and systems.
        scores: The true mean of each system on the scale of 1 to 5, before rounding. The test is to find the
            differences between them.
        listeners: One number of listeners or several.
        listener_sd: Standard deviation of the listeners' biases for a system.
        item_sd: Standard deviation of the items' effects on a system.
        answer_sd: Standard deviation of one listener's ratings of the same sound.
        tests: Number of tests drawn for each number of listeners, 20 to 2,000.
        seed: Seed of the draws.

    Returns:
        One row for each number of listeners and pair of systems: ``listeners``, ``items``, ``a``, ``b``,
        ``difference`` (of the true scores, of ``b`` from ``a``), ``found`` (the share of tests that find it, 0 to 1;
        for a difference of 0, the share of false alarms) and ``tests``. With 200 tests the share has an error of up
        to about 0.07.

    Raises:
        InvalidRequestError: An option is out of range, a system has no score, or the test is not a MOS test.
    """
    plan, means = _check_key_and_scores(key, scores)
    counts = [listeners] if is_whole_number(listeners) else listeners
    if not isinstance(counts, Iterable) or not (counts := list(counts)):
        raise build_argument_error("listeners", listeners, "a number of listeners, or several")
    counts = [check_whole_number("listeners", count, 2, _MAX_LISTENERS) for count in counts]
    tests = check_whole_number("tests", tests, 20, _MAX_TESTS)
    spread = _check_spreads(listener_sd, item_sd, answer_sd)
    random = np.random.default_rng(check_whole_number("seed", seed))
    trials = [trial for trial in plan.trials if trial.role == "test"]
    items = [trial.item for trial in trials]
    systems = [next(iter(trial.sounds.values())) for trial in trials]
    rows = []
    for count in counts:
        names = np.repeat([str(listener) for listener in range(count)], len(trials))
        columns = {"listener": names, "item": items * count, "system": systems * count, "role": "test"}
        table, drawn_pairs = pd.DataFrame(columns), []
        for number in range(tests):
            table["score"] = _simulate_ratings(trials, means, count, spread, random).ravel()
            pairs = run_pair_tests(table, plan.method, METHODS[plan.method].smallest)
            drawn_pairs += [{**pair, "drawn": number} for pair in pairs]
        judged = judge(drawn_pairs, more=BETTER, by="drawn")  # each test is corrected by itself
        shown = judged.loc[judged["verdict"] == BETTER, ["b", "a"]].itertuples(index=False, name=None)
        hits = Counter(frozenset(pair) for pair in shown if means[pair[0]] >= means[pair[1]])
        for better, worse in combinations(sorted(means, key=lambda name: -means[name]), 2):
            share = hits[frozenset((better, worse))] / tests
            rows.append((count, len({*items}), worse, better, means[better] - means[worse], share, tests))
    return pd.DataFrame(rows, columns=["listeners", "items", "a", "b", "difference", "found", "tests"])


def _simulate_ratings(
    trials: list[KeyTrial],
    means: Mapping[str, float],
    count: int,
    spread: tuple[float, float, float],
    random: np.random.Generator,
) -> NDArray[np.float64]:
    """Ratings of a test, shape (listeners, questions)."""
    systems = np.array([list(means).index(next(iter(trial.sounds.values()))) for trial in trials])
    items = pd.factorize(pd.Series([trial.item for trial in trials]))[0]
    by_listener = random.normal(0, spread[0], (count, len(means)))[:, systems]
    by_item = random.normal(0, spread[1], (int(items.max()) + 1, len(means)))[items, systems]
    chance = random.normal(0, spread[2], (count, len(trials)))
    exact = np.array(list(means.values()))[systems] + by_listener + by_item + chance
    low, high = METHODS["mos"].ratings or (1, 5)
    rounded: NDArray[np.float64] = np.clip(np.rint(exact), low, high)
    return rounded


def _check_key_and_scores(key: Any, scores: object) -> tuple[ListeningKey, dict[str, float]]:
    plan = to_listening_key(key)
    if plan is None:
        raise build_argument_error("key", key, "a ListeningTest, or its key")
    if plan.method != "mos":
        message = (
            f"the power is that of MOS tests, and this one is {plan.method!r}; make it with method='mos'"
        )
        raise InvalidRequestError(message, parameter="key")
    if not isinstance(scores, Mapping):
        raise build_argument_error("scores", scores, "a mapping of systems to their true scores")
    absent = [name for name in plan.systems if name not in scores]
    if absent or len(scores) > len(plan.systems):
        message = f"scores are of {list(scores)!r}, and the test has the systems {plan.systems!r}; give one for each"
        raise InvalidRequestError(message, parameter="scores")
    low, high = METHODS["mos"].ratings or (1, 5)
    for name in plan.systems:
        if not is_number(scores[name]) or not low <= scores[name] <= high:
            raise build_argument_error("scores", scores[name], f"for {name!r} a number from {low} to {high}")
    if not any(trial.role == "test" for trial in plan.trials):
        raise InvalidRequestError("the test has no question that counts", parameter="key")
    return plan, {name: float(scores[name]) for name in plan.systems}


def _check_spreads(listener_sd: float, item_sd: float, answer_sd: float) -> tuple[float, float, float]:
    spreads = {"listener_sd": listener_sd, "item_sd": item_sd, "answer_sd": answer_sd}
    for name, value in spreads.items():
        if not is_number(value) or not 0 <= value <= 4:
            raise build_argument_error(name, value, "a number from 0 to 4")
    return float(listener_sd), float(item_sd), float(answer_sd)
