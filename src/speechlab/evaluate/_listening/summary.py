"""Answers that count, and tables of systems, of pairs of systems and of listeners from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab._pandas import pd
from speechlab._platform import get_text_dtype
from speechlab.evaluate._listening.statistics import (
    bootstrap_two_way,
    compute_binomial_p,
    compute_detectable_difference,
    compute_detectable_excess,
    count_answers_for_excess,
    count_more_needed,
    estimate_two_way_mean,
    krippendorff_alpha,
)
from speechlab.evaluate._listening.unusual import compute_same_share
from speechlab.listening import HIDDEN_REFERENCE_LEAST, METHODS, to_answers_by_system
from speechlab.metrics import BETTER, POINTS, judge

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Reason of an exclusion that leaves the first answers of a listener.
LATER_SESSION = "a later session of the same listener"
# Listeners or items below which there is no interval.
_MIN_FOR_INTERVAL = 3
# What the session of a simulated listener begins with; the model of the answers follows.
SIMULATED = "simulated: "
_SUMMARY_COLUMNS = (
    "system",
    "role",
    "measure",
    "mean",
    "low",
    "high",
    "median",
    "answers",
    "listeners",
    "items",
)


def select_counted_answers(table: pd.DataFrame) -> pd.DataFrame:
    """Return the answers that are not excluded."""
    return table[(table["excluded"] == "") & (table["role"] != "check")]


def score_sounds(answers: pd.DataFrame, method: str, sounds: pd.DataFrame) -> pd.DataFrame:
    """Return the recordings that were answered: ``item``, ``system``, mean ``score``, ``answers``, ``audio``.

    Of pairs the score is the share of answers in which a sound was preferred, or in which the pair was told apart.
    """
    columns = ["item", "system", "score"]
    given = answers[columns]
    if method in {"ab", "abx"}:
        preferred = (1 + answers["score"]) / 2 if method == "ab" else answers["score"]
        other = 1 - preferred if method == "ab" else preferred
        sides = [("system", preferred), ("other", other)]
        given = pd.concat(
            [answers.assign(system=answers[name], score=share)[columns] for name, share in sides]
        )
    given = given.astype({"item": "string", "system": "string"})
    scores = given.groupby(["item", "system"])["score"].agg(["mean", "size"]).reset_index()
    scores = scores.rename(columns={"mean": "score", "size": "answers"})
    placed = sounds[["item", "system", "audio"]].astype({"item": "string", "system": "string"})
    return placed.merge(scores, on=["item", "system"])[[*columns, "answers", "audio"]]


def describe_simulated_listeners(table: pd.DataFrame) -> list[str]:
    """Say which listeners do not exist, and the model that their answers were drawn from."""
    simulated = table[table["session"].str.startswith(SIMULATED)]
    if not len(simulated):
        return []
    count, total = simulated["listener"].nunique(), table["listener"].nunique()
    models = "; and ".join(model.removeprefix(SIMULATED) for model in simulated["session"].unique())
    return [f"{count} of {total} listeners are simulated, so that nobody heard what they rate ({models})"]


def summarize_systems(table: pd.DataFrame, method: str, draws: int, seed: int) -> pd.DataFrame:
    """Return a row for each system, or for each pair in ABX, with its interval."""
    rows = []
    for system, group in to_answers_by_system(table, method).groupby("system", sort=False):
        values, listeners, items = (
            group["score"].to_numpy(),
            _encode_names(group["listener"]),
            _encode_names(group["item"]),
        )
        if method in {"ab", "abx"}:  # a share has the interval of its pair's test
            mean = values.mean()
            estimate = estimate_two_way_mean(mean, (values - mean) / len(values), listeners, items)
            low, high = max(estimate.low, 0.0), min(estimate.high, 1.0)
        else:
            low, high = bootstrap_two_way(values, listeners, items, draws=draws, seed=seed)
        counts = len(group), group["listener"].nunique(), group["item"].nunique()
        if min(counts[1:]) < _MIN_FOR_INTERVAL:
            low = high = math.nan
        facts = (system, group["role"].iloc[0], METHODS[method].measure, values.mean(), low, high)
        rows.append((*facts, float(np.median(values)), *counts))
    table = pd.DataFrame(rows, columns=list(_SUMMARY_COLUMNS))
    return table.sort_values("mean", ascending=False, kind="stable", ignore_index=True)


def compare_systems(table: pd.DataFrame, method: str, smallest: float) -> pd.DataFrame:
    """Return the difference of each pair of systems; of ABX, of right answers from guesses."""
    more = "told apart" if method == "abx" else BETTER
    return judge(run_pair_tests(table, method, smallest), more=more)


class _Answers(NamedTuple):
    """The answers on a pair of systems, each with the codes of its listener and item."""

    scores: NDArray[np.float64]
    listeners: NDArray[np.int64]
    items: NDArray[np.int64]
    of_first: NDArray[np.bool_]  # whether the first of the pair is rated; of preferences always


def run_pair_tests(table: pd.DataFrame, method: str, smallest: float) -> list[dict[str, Any]]:
    """Test each pair of systems; the p-values are not yet corrected."""
    if method in {"ab", "abx"}:
        names = [table[side].astype(get_text_dtype()) for side in ("system", "other")]
        groups = table.groupby(names, sort=False)
        pairs = {(str(first), str(second)): _encode_answers(part) for (first, second), part in groups}
    else:
        # Names are encoded once for all pairs: the power of a test takes hundreds of such tables.
        tested = table[(table["role"] == "test") & table["system"].notna()]
        answers = _encode_answers(tested)
        codes, systems = pd.factorize(tested["system"].astype(str), sort=True)
        means = np.bincount(codes, answers.scores) / np.bincount(codes)
        pairs = {}
        for first, second in combinations(np.argsort(-means, kind="stable"), 2):
            of_pair = (codes == first) | (codes == second)
            own = answers._replace(of_first=codes == first)
            pairs[systems[first], systems[second]] = _Answers(*(values[of_pair] for values in own))
    measure = {"measure": METHODS[method].measure, "unit": "answer" if method == "abx" else POINTS}
    return [measure | _run_pair_test(*pair, answers, method, smallest) for pair, answers in pairs.items()]


def _encode_answers(table: pd.DataFrame) -> _Answers:
    listeners, items = _encode_names(table["listener"]), _encode_names(table["item"])
    return _Answers(table["score"].to_numpy(np.float64), listeners, items, np.ones(len(table), np.bool_))


def _run_pair_test(
    first: str, second: str, answers: _Answers, method: str, smallest: float
) -> dict[str, Any]:
    """Test how much better the first of two systems is than the second; of ABX, whether they are told apart."""
    score, count = answers.scores, len(answers.scores)
    values: dict[str, Any] = {}
    if method in {"ab", "abx"}:
        mean = float(score.mean())
        shares = (score - mean) / count
    else:
        is_first = answers.of_first
        of_first, of_second = score[is_first].mean(), score[~is_first].mean()
        mean = float(of_first - of_second)
        shares = np.where(
            is_first, (score - of_first) / is_first.sum(), (of_second - score) / (~is_first).sum()
        )
        values = {"value_a": of_second, "value_b": of_first}
    guessed = 0.5 if method == "abx" else 0.0
    estimate = estimate_two_way_mean(mean - guessed, shares, answers.listeners, answers.items)
    largest = METHODS[method].largest
    known = min(estimate.listeners, estimate.items) >= _MIN_FOR_INTERVAL
    facts = {
        "n": count,
        "difference": estimate.mean,
        "low": float(np.maximum(estimate.low, -largest)) if known else math.nan,
        "high": float(np.minimum(estimate.high, largest)) if known else math.nan,
        "listeners": estimate.listeners,
        "items": estimate.items,
    }
    if method != "abx":
        listeners, items = count_more_needed(estimate, smallest)
        outlook = {
            "detectable": compute_detectable_difference(estimate),
            "more_listeners": listeners,
            "more_items": items,
        }
        test = {"p": estimate.p, "test": "Student's t, two-way clustered"}
        return {"a": second, "b": first, **values, **facts, **test, **outlook}
    needed = count_answers_for_excess(smallest)
    outlook = {
        "detectable": compute_detectable_excess(count),
        "more_listeners": max(math.ceil(needed / estimate.items) - estimate.listeners, 0),
        "more_items": max(math.ceil(needed / estimate.listeners) - estimate.items, 0),
    }
    # X is random, so guesses of all listeners are independent, and the test is exact.
    test = {"p": compute_binomial_p(int(score.sum()), count), "test": "exact binomial, one-sided"}
    return {"a": first, "b": second, "value_a": guessed, "value_b": mean, **facts, **test, **outlook}


def summarize_listeners(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each listener: answers, checks, agreement with the others, and the reason of an exclusion."""
    rows = []
    counts = table["excluded"] == ""
    good = table.loc[counts, "listener"].unique()
    # the counted answers of listeners who are not excluded, and all answers of the others
    table = table[counts | ~table["listener"].isin(good)]
    matrix = _build_answer_matrix(table[table["role"] != "check"]).reindex(table["listener"].unique())
    counting = matrix[matrix.index.isin(good)]
    sums, answers = counting.sum(), counting.notna().sum()
    for listener, own_answers in table.groupby("listener", sort=False):
        why, ratings = own_answers["excluded"].iloc[0], matrix.loc[str(listener)]
        mean_ratings = sums / answers if why else (sums - ratings.fillna(0)) / (answers - ratings.notna())
        pairs = pd.concat([ratings, mean_ratings], axis=1).dropna().to_numpy()
        varies = len(pairs) >= 3 and pairs.std(0).min() >= 1e-12
        attention = own_answers["attention"].dropna().astype(bool)
        questions = own_answers[own_answers["role"] != "check"]
        rows.append(
            {
                "listener": listener,
                "excluded": why,
                "answers": len(questions),
                "finished": bool(own_answers["finished"].any()),
                "checks": len(attention),
                "checks_failed": int((~attention).sum()),
                "mean": questions["score"].mean(),
                "agreement": float(np.corrcoef(pairs.T)[0, 1]) if varies else math.nan,
                "same_answer": compute_same_share(questions, str(own_answers["method"].iloc[0])),
                "minutes": own_answers.drop_duplicates("trial")["time_s"].sum() / 60,
            }
        )
    return pd.DataFrame(rows)


def compute_agreement(table: pd.DataFrame, method: str) -> float:
    """Return Krippendorff's alpha of the counted answers."""
    return krippendorff_alpha(_build_answer_matrix(table).to_numpy(), METHODS[method].scale)


def _build_answer_matrix(table: pd.DataFrame) -> pd.DataFrame:
    """Return the answers, shape (listeners, rated units)."""
    seconds = table["other"].astype("object").where(table["other"].notna(), "")
    first = table["score"].groupby([table["listener"], table["item"], table["system"], seconds]).first()
    return first.unstack([1, 2, 3])


def _encode_names(names: Sequence[Any] | pd.Series[Any]) -> NDArray[np.int64]:
    return np.asarray(pd.factorize(pd.Series(names))[0], dtype=np.int64)


# Maximum share of items with a missed hidden reference; source: ITU-R BS.1534-3, 4.1.2 (post-screening).
_MAX_MISSED = 0.15
# Share of listeners above which an anchor counts as not worse than its reference; source: as above.
_TOO_GOOD = 0.25
_MAX_NAMES = 5


def mark_excluded_answers(table: pd.DataFrame, max_failed_checks: int) -> tuple[pd.DataFrame, list[str]]:
    """Return the answers with a column ``excluded`` (the reason, or empty), and sentences about the exclusions."""
    sentences: list[str] = []
    same = [name for name in table.columns if name != "finished"]
    twice = table.duplicated(same)
    if twice.any():
        who = _format_listener_names(table.loc[twice, "listener"])
        sentences.append(f"{int(twice.sum())} of {len(table)} answers were given twice and count once: {who}")
        table = table[~twice].reset_index(drop=True)
    table = table.assign(excluded="")
    _exclude_later_sessions(table, sentences)
    _exclude_inattentive_listeners(table, max_failed_checks, sentences)
    if (table["method"] == "mushra").any():
        _exclude_listeners_by_reference(table, sentences)
        _exclude_listeners_by_anchor(table, sentences)
    finished = table[table["excluded"] == ""].groupby("listener", sort=False)["finished"].any()
    if not finished.all():
        who = _format_listener_names(finished.index[~finished])
        sentences.append(
            f"{(~finished).sum()} of {len(finished)} listeners did not finish; their answers count: {who}"
        )
    return table, sentences


def _set_exclusion_reason(table: pd.DataFrame, rows: pd.Series[bool], why: str) -> None:
    table.loc[rows & (table["excluded"] == ""), "excluded"] = why


def _exclude_later_sessions(table: pd.DataFrame, sentences: list[str]) -> None:
    first = table.groupby("listener")["session"].transform("min")
    later = table["session"] != first
    if later.any():
        _set_exclusion_reason(table, later, LATER_SESSION)
        who = _format_listener_names(table.loc[later, "listener"])
        sentences.append(
            f"later sessions of listeners who had answered before are excluded: {who}; if they are other "
            "people of the same name, give them names of their own in the files"
        )


def _exclude_inattentive_listeners(table: pd.DataFrame, allowed: int, sentences: list[str]) -> None:
    checks = table[(table["role"] == "check") & (table["excluded"] == "")]
    is_failed = ~checks["attention"].fillna(value=True).astype(bool)
    failed = is_failed.groupby(checks["listener"]).agg(["sum", "size"])
    for listener, (failures, count) in failed[failed["sum"] > allowed].iterrows():
        why = f"attention: {int(failures)} of {int(count)} checks failed"
        _set_exclusion_reason(table, table["listener"] == listener, why)
        sentences.append(f"{_format_listener_names([str(listener)])} is excluded: {why}")


def _exclude_listeners_by_reference(table: pd.DataFrame, sentences: list[str]) -> None:
    hidden = table[(table["role"] == "reference") & (table["excluded"] == "")]
    low = hidden["score"] < HIDDEN_REFERENCE_LEAST
    _exclude_listeners_by_misses(
        table, low.groupby(hidden["listener"]).mean(), "hidden reference below", sentences
    )


def _exclude_listeners_by_anchor(table: pd.DataFrame, sentences: list[str]) -> None:
    """Apply the rule of the mid-range anchor, which is the best of the anchors."""
    anchors = table[(table["role"] == "anchor") & (table["excluded"] == "")]
    names = sorted(
        anchors["system"].unique(), key=lambda name: anchors.loc[anchors["system"] == name, "score"].mean()
    )
    if len(names) < 2:
        return
    middle = anchors[anchors["system"] == names[-1]]
    high = middle["score"] > HIDDEN_REFERENCE_LEAST
    undamaged = high.groupby(middle["item"]).mean() > _TOO_GOOD
    if undamaged.any():
        items = _format_listener_names(undamaged[undamaged].index)
        sentences.append(
            f"the anchor {names[-1]!r} is hardly worse than the reference, and excludes nobody, in: {items}"
        )
    judged = ~middle["item"].isin(undamaged[undamaged].index)
    missed = high[judged].groupby(middle.loc[judged, "listener"]).mean()
    _exclude_listeners_by_misses(table, missed, "anchor above", sentences)


def _exclude_listeners_by_misses(
    table: pd.DataFrame, missed: pd.Series[Any], what: str, sentences: list[str]
) -> None:
    """Exclude listeners by their share of items (0 to 1) in which they rated beyond the limit."""
    for listener, share in missed[missed > _MAX_MISSED].items():
        why = f"{what} {HIDDEN_REFERENCE_LEAST:.0f} in {share:.0%} of the items (BS.1534-3)"
        _set_exclusion_reason(table, table["listener"] == listener, why)
        sentences.append(f"{_format_listener_names([str(listener)])} is excluded: {why}")


def _format_listener_names(listeners: Iterable[object]) -> str:
    names = list(dict.fromkeys(str(name)[:60] for name in listeners))
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(map(repr, names[:_MAX_NAMES])) + more
