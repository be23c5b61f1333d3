"""Paired significance, against NIST's sc_stats and against what chance does."""

import math
import random

import numpy as np
import pandas as pd
import pytest

from speechlab.errors import InvalidRequestError
from speechlab.metrics import compare, compare_all, score
from speechlab.metrics._rates.compare import holm
from speechlab.metrics._statistics.mapsswe import mapsswe, segments
from support import adversarial, nist


def corrupt(said, rate, random_, words):
    heard = []
    for word in said:
        draw = random_.random() / rate
        if draw > 1:
            heard.append(word)
        elif draw > 0.5:
            heard.append(random_.choice(words))
        elif draw > 0.25:
            heard += [word, random_.choice(words)]
    return heard


def systems(rates, *, n=200, seed=1, vocabulary=80):
    """References, and what each system makes of them."""
    random_ = random.Random(seed)
    words = [f"w{i}" for i in range(vocabulary)] if isinstance(vocabulary, int) else vocabulary
    said = [random_.choices(words, k=random_.randrange(1, 16)) for _ in range(n)]
    heard = [[" ".join(corrupt(words_, rate, random_, words)) for words_ in said] for rate in rates]
    return [" ".join(words_) for words_ in said], *heard


def scored(references, hypotheses):
    return score(pd.DataFrame({"text": references, "hypothesis": hypotheses}), language="en", normalize=None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rates", "seed", "vocabulary"),
    [
        ((0.1, 0.2), 1, 80),
        ((0.3, 0.31), 2, 6),
        ((0.6, 0.5), 3, 4),
        ((0.05, 0.05), 4, 200),
        ((0.2, 0.3), 5, adversarial.WORDS),
        ((0.7, 0.6), 6, adversarial.WORDS),
    ],
)
def test_sc_stats_agrees(tmp_path, rates, seed, vocabulary):
    nist.need_sctk()
    references, first, second = systems(rates, n=400, seed=seed, vocabulary=vocabulary)
    result = compare(scored(references, first), scored(references, second), n=1).mapsswe
    got = (result.segments, round(result.mean, 3), round(result.deviation, 3), round(result.z, 3))
    assert got == pytest.approx(nist.sc_stats_mapsswe(tmp_path, references, first, second), abs=0.0011)


@pytest.mark.parametrize(
    ("reference", "first", "second", "expected"),
    [
        ("a b c d e f", "a x c d e f", "a b c d e y", [(1, 0), (0, 1)]),
        ("a b c d", "x b c d", "a b y d", [(1, 1)]),
        ("a b c", "a b c", "a b c", []),
        ("", "x", "", [(1, 0)]),
        ("a b c d", "a b q c d", "a b c d", [(1, 0)]),
    ],
)
def test_segments(reference, first, second, expected):
    assert segments(reference.split(), first.split(), second.split()) == expected


def test_a_clear_difference_is_found():
    references, first, second = systems((0.1, 0.25))
    result = compare(scored(references, first), scored(references, second), names=("good", "bad"))
    assert result.difference == pytest.approx(result.rate_b - result.rate_a)
    assert result.significant
    assert result.interval.low > 0
    assert result.p_bootstrap < 0.01
    assert result.better_a > result.better_b
    assert result.hints == []
    assert "bad - good" in repr(result)
    assert "p_mapsswe" in result._repr_html_()


def test_swapping_turns_the_sign():
    references, first, second = systems((0.1, 0.12))
    one = compare(scored(references, first), scored(references, second))
    other = compare(scored(references, second), scored(references, first))
    assert one.difference == -other.difference
    assert one.mapsswe.z == -other.mapsswe.z
    assert one.mapsswe.p == other.mapsswe.p


def test_a_system_is_not_better_than_itself():
    references, first = systems((0.2,))
    result = compare(scored(references, first), scored(references, first))
    assert (result.difference, result.mapsswe.p, result.p_bootstrap) == (0.0, 1.0, 1.0)
    assert not result.significant


@pytest.mark.slow
def test_false_positives_are_as_rare_as_they_should_be():
    found = tried = 0
    found_bootstrap = 0
    for seed in range(150):
        references, first, second = systems((0.15, 0.15), n=120, seed=seed)
        result = compare(scored(references, first), scored(references, second), n=300)
        found += result.significant
        found_bootstrap += result.p_bootstrap < 0.05
        tried += 1
    assert found / tried <= 0.1
    assert found_bootstrap / tried <= 0.1
    assert found + found_bootstrap > 0


def test_rows_are_matched_by_key_and_the_rest_is_counted():
    references, first, second = systems((0.1, 0.2), n=40)
    one, other = scored(references, first), scored(references, [None, *second[1:]])
    one["id"] = other["id"] = range(40)
    one = one.iloc[5:].sample(frac=1, random_state=1)
    result = compare(one, other, on="id")
    assert (result.n, result.n_excluded) == (35, 5)
    assert "left out" in result.hints[-1]
    assert compare(one, other).rate_a == result.rate_a


def test_blocks_widen_the_interval():
    references = ["a"] * 200
    first = ["a"] * 200
    second = ["b" if (i % 10) < 3 else "a" for i in range(200)]
    one, other = scored(references, first), scored(references, second)
    one["speaker"] = [i % 10 for i in range(200)]
    plain, blocked = compare(one, other), compare(one, other, groups="speaker")
    assert blocked.interval.high - blocked.interval.low > 1.5 * (plain.interval.high - plain.interval.low)


def test_all_pairs_with_correction():
    references, *heard = systems((0.1, 0.1, 0.3))
    table = compare_all(
        {name: scored(references, texts) for name, texts in zip("xyz", heard, strict=True)}, n=200
    )
    assert len(table) == 3
    assert (table["p_holm"] >= table["p_mapsswe"]).all()
    assert table["p_holm"].is_monotonic_increasing
    assert table["significant"].tolist() == [True, True, False]


def test_holm():
    assert holm(np.array([0.01, 0.04, 0.03, math.nan])) == pytest.approx(
        [0.03, 0.06, 0.06, math.nan], nan_ok=True
    )
    assert holm(np.array([])).tolist() == []


@pytest.mark.parametrize(
    ("p", "expected"),
    [  # multipletests(p, method="holm") of statsmodels 0.15.0
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.2, 0.01, 0.9, 0.049, 0.001, 0.0004], [0.4, 0.04, 0.9, 0.147, 0.005, 0.0024]),
        ([0.5, 0.5, 0.5], [1, 1, 1]),
        ([0.02], [0.02]),
    ],
)
def test_holm_is_that_of_statsmodels(p, expected):
    assert holm(np.array(p)) == pytest.approx(expected)


def false_positives(n, trials, seed=0):
    """How often the test calls two systems different that err alike, on n segments."""
    random = np.random.default_rng(seed)
    reference = list("abcdef")
    found = 0
    for _ in range(trials):
        errors = random.integers(0, 3, (n, 2))
        errors[(errors == 0).all(axis=1)] = 1  # what neither gets wrong is no segment
        triples = [(reference, ["x"] * a + reference[a:], ["y"] * b + reference[b:]) for a, b in errors]
        result = mapsswe(triples)
        assert result.segments == n
        found += result.p < 0.05
    return found / trials


@pytest.mark.slow
def test_fifty_segments_are_enough_and_five_are_not():
    """Why ``hints`` warns below 50 segments."""
    assert false_positives(5, 1_000) > 0.1
    assert 0.03 < false_positives(50, 1_000) < 0.075


def test_a_difference_that_never_varies_is_said_to_be_untestable():
    references = ["a b c"] * 60
    result = compare(scored(references, ["a x c"] * 60), scored(references, references))
    assert math.isnan(result.mapsswe.p)
    assert not result.significant
    assert any("cannot be computed" in hint for hint in result.hints)
    assert result.interval == (-1 / 3, -1 / 3)
    few = compare(scored(["a b"] * 3, ["a x"] * 3), scored(["a b"] * 3, ["a b"] * 3))
    assert any("only 3 utterances or blocks" in hint for hint in few.hints)
    assert few.blocks == 3


def test_refusals():
    references, first = systems((0.2,), n=5)
    good = scored(references, first)
    for call, hint in [
        (lambda: compare(good[["text"]], good), "no column 'unit'"),
        (lambda: compare(good, good.set_index(good.index + 100)), "in common"),
        (lambda: compare(pd.concat([good, good]), good), "more than once"),
        (lambda: compare(good, scored(["x"] * 5, first)), "two references"),
        (lambda: compare(good, good, level=95), "confidence level"),
        (lambda: compare_all({"x": good}), "two or more"),
        (lambda: compare(good, good.assign(unit="char")), "cannot be compared"),
    ]:
        with pytest.raises(InvalidRequestError, match=hint):
            call()
