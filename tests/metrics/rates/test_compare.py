"""Paired significance tests, against what NIST's sc_stats printed and against simulations."""

import math
import random
from functools import partial
from itertools import product
from textwrap import shorten

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.errors import InvalidRequestError
from speechlab.metrics import (
    compare,
    compute_sign_flip_p,
    confusions,
    error_rate,
    holm,
    hotword_scores,
    score,
    summarize,
)
from support import adversarial


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
    """References, and the hypotheses of each system."""
    random_ = random.Random(seed)
    words = [f"w{i}" for i in range(vocabulary)] if isinstance(vocabulary, int) else vocabulary
    said = [random_.choices(words, k=random_.randrange(1, 16)) for _ in range(n)]
    heard = [[" ".join(corrupt(words_, rate, random_, words)) for words_ in said] for rate in rates]
    return [" ".join(words_) for words_ in said], *heard


def scored(references, hypotheses):
    return score(pd.DataFrame({"text": references, "hypothesis": hypotheses}), language="en", normalize=None)


def compute_segments(references, first, second):
    return compare(scored(references, first), scored(references, second), draws=1).mapsswe


@pytest.mark.parametrize(
    ("rates", "seed", "vocabulary", "expected"),
    [
        ((0.1, 0.2), 1, 80, (356, -0.57, 1.122, -9.585)),
        ((0.3, 0.31), 2, 6, (429, 0.026, 1.27, 0.418)),
        ((0.6, 0.5), 3, 4, (399, 0.288, 1.303, 4.418)),
        ((0.7, 0.6), 6, adversarial.WORDS, (307, 0.498, 1.608, 5.432)),
    ],
)
def test_segments_and_z_are_those_of_sc_stats(rates, seed, vocabulary, expected):
    """Against what NIST's ``sc_stats -t mapsswe`` (SCTK 2.4.10) printed for these texts."""
    result = compute_segments(*systems(rates, n=250, seed=seed, vocabulary=vocabulary))
    got = (result.segments, round(result.mean, 3), round(result.deviation, 3), round(result.z, 3))
    assert got == pytest.approx(expected, abs=0.0011)


def test_segments_count_on_the_alignment_of_sclite():
    """Against what NIST's sclite (SCTK 2.4.10) counted; the first pair has 5 errors at least."""
    for reference, hypothesis, errors in [
        ("g b d a f d", "a h f e b d", 6),
        ("d c h a e d h b", "c d b f f g", 8),
        ("c c b", "b d e", 3),
    ]:
        found = compute_segments([reference], [hypothesis], [reference])
        assert found.mean * found.segments == pytest.approx(errors)


def test_a_clear_difference_is_found():
    references, first, second = systems((0.1, 0.25))
    result = compare(scored(references, first), scored(references, second), names=("good", "bad"))
    assert result.difference == pytest.approx(result.error_rate_b - result.error_rate_a)
    assert result.significant
    assert result.interval.low > 0
    assert result.p < 0.001
    assert (result.tested, result.hints) == ("utterance", [])
    assert result.better_a > result.better_b
    other = compare(scored(references, second), scored(references, first), draws=1)
    assert (other.difference, other.mapsswe.z) == (-result.difference, -result.mapsswe.z)
    assert other.mapsswe.p == result.mapsswe.p
    itself = compare(scored(references, first), scored(references, first), draws=1)
    assert (itself.difference, itself.mapsswe.p, itself.p, itself.significant) == (0.0, 1.0, 1.0, False)


@pytest.mark.parametrize("groups", [None, "speaker"])
def test_the_verdict_is_that_of_the_blocks(groups):
    """Several words of an utterance that one noise spoils are one piece of evidence, not several."""
    speakers, said = np.arange(30) // 3, list("abcdef")
    wrong = np.random.default_rng(1).integers(0, [[4], [6]], (2, 30))
    one, other = (
        scored([" ".join(said)] * 30, [" ".join(["x"] * n + said[n:]) for n in counts]).assign(
            speaker=speakers
        )
        for counts in wrong
    )
    first, second = (np.bincount(speakers, counts) if groups else counts for counts in wrong)
    result = compare(one, other, groups=groups, draws=1)
    assert result.p == pytest.approx(compute_sign_flip_p((first - second).astype(np.int64)))
    assert result.p not in (0, 1)
    assert compare({"one": one, "other": other}, groups=groups, draws=1)["p_holm"].tolist() == [result.p]


def test_a_hint_says_where_interval_and_verdict_differ():
    """Five better utterances of 25 have p = 1/16 and an interval without zero; another case is the reverse."""

    def hints(*wrong):
        heard = ([" ".join(["x"] * n + list("abcdefghij")[n:]) for n in counts] for counts in wrong)
        one, other = (scored([" ".join("abcdefghij")] * len(wrong[0]), texts) for texts in heard)
        result = compare(one, other)
        return result.significant, [hint for hint in result.hints if "the difference is" in hint]

    significant, (told,) = hints([1] * 5 + [0] * 20, [0] * 25)
    assert not significant
    assert told.startswith("the interval leaves zero out, and yet the difference is not significant")
    significant, (told,) = hints([2, 2, 3, 1, 0, 2, 1, 0, 1], [4, 3, 4, 2, 3, 0, 3, 2, 3])
    assert significant
    assert told.startswith("the interval holds zero, and yet the difference is significant")
    assert hints([1] * 9 + [0] * 20, [0] * 29)[1] == []


def test_holm_agrees_with_statsmodels():
    for p, expected in [  # multipletests(p, method="holm") of statsmodels 0.15.0
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.2, 0.01, 0.9, 0.049, 0.001, 0.0004], [0.4, 0.04, 0.9, 0.147, 0.005, 0.0024]),
        ([0.5, 0.5, 0.5], [1, 1, 1]),
        ([0.01, 0.04, 0.03, math.nan], [0.03, 0.06, 0.06, math.nan]),
        ([], []),
    ]:
        assert holm(np.array(p)) == pytest.approx(expected, nan_ok=True)


@given(st.lists(st.integers(-5, 5), max_size=8))
def test_the_exact_test_counts_all_ways_to_swap(differences):
    sums = [abs(sum(signs)) for signs in product(*[(one, -one) for one in differences])]
    expected = np.mean(np.array(sums) >= abs(sum(differences)))
    assert compute_sign_flip_p(np.array(differences, dtype=np.int64)) == pytest.approx(expected)


def test_the_exact_test_agrees_with_the_normal_one():
    differences = np.random.default_rng(0).integers(-3, 4, 4_000)
    z = differences.mean() / (differences.std(ddof=1) / math.sqrt(4_000))
    assert compute_sign_flip_p(differences) == pytest.approx(math.erfc(abs(z) / math.sqrt(2)), abs=0.006)
    assert compute_sign_flip_p(np.ones(60, dtype=np.int64)) == pytest.approx(2.0**-59)


def test_compare_finds_a_constant_difference():
    references = ["a b c"] * 60
    result = compare(scored(references, ["a x c"] * 60), scored(references, references))
    assert math.isnan(result.mapsswe.p)
    assert (result.significant, result.interval) == (True, (-1 / 3, -1 / 3))
    assert result.p == pytest.approx(2.0**-59)
    for count, told in ((3, True), (5, True), (6, False)):
        few = compare(scored(["a b"] * count, ["a x"] * count), scored(["a b"] * count, ["a b"] * count))
        assert (few.p, few.significant) == (pytest.approx(2.0 ** (1 - count)), not told)
        assert any(f"only {count} utterances: so few" in hint for hint in few.hints) == told
        assert any(f"only {count} utterances to draw from" in hint for hint in few.hints)


def test_no_difference_has_an_interval_around_zero():
    said = [f"sentence number {number}" for number in range(20)]
    table = score(said, said, language="en")
    low, high = compare(table, table).interval
    assert -low == high == error_rate(said, said, language="en").confidence_interval().high > 0.05


def test_groups_decide_the_verdict():
    """Many utterances of one speaker, for whom the second system is better, are no evidence for other speakers."""
    references = ["a b"] * 200
    one = scored(references, ["a x" if i % 10 == 3 else "a b" for i in range(200)]).assign(
        speaker=[i % 10 for i in range(200)]
    )
    other = scored(references, references)
    plain = compare(one, other)
    assert plain.significant
    blocked = compare(one, other, groups="speaker")
    assert (blocked.p, blocked.significant, blocked.tested, blocked.blocks) == (1.0, False, "speaker", 10)
    assert blocked.interval.high - blocked.interval.low > 1.5 * (plain.interval.high - plain.interval.low)
    assert compare(one, other, groups=one["speaker"]).p == 1.0
    assert compare({"one": one, "other": other}, groups="speaker")["verdict"][0] == "no difference shown"


def test_compare_refuses_other_ways_of_scoring():
    frame = pd.DataFrame({"text": ["A b.", "C"], "hypothesis": ["a b", "c"]})
    basic, raw = score(frame, language="de"), score(frame, language="de", normalize=None)
    with pytest.raises(InvalidRequestError, match=r"normalizer basic-v5#\w+ and none-v1#\w+"):
        compare(basic, raw)
    both = pd.concat([basic.assign(way="basic"), raw.assign(way="raw")])
    for function in (summarize, confusions, lambda table: hotword_scores(table, hotwords=["b"])):
        with pytest.raises(InvalidRequestError, match="normalizer basic"):
            function(both)
    apart = summarize(both, by="way")
    assert apart["signature"].tolist() == [basic["signature"][0], raw["signature"][0]]
    assert compare(basic, basic).frame()["signature"][0] == basic["signature"][0]


def test_signatures_of_several_languages_are_joined():
    frame = pd.DataFrame({"text": ["a b", "A"], "hypothesis": ["a c", "A"], "language": ["de", "fr"]})
    assert "|lang:de+fr|norm:basic-v5#" in summarize(score(frame))["signature"][0]


def test_signatures_of_functions_depend_on_their_values():
    def made(end):
        return lambda text: text[:end] if isinstance(end, int) else text

    for first, same, other in [
        (made(7), made(7), made(8)),
        (partial(shorten, width=7), partial(shorten, width=7), partial(shorten, width=8)),
        (made(math), made(math), made(random)),
    ]:
        tables = [score(["a b"], ["a x"], language="de", normalize=how) for how in (first, same, other)]
        assert compare(*tables[:2], draws=1).difference == 0
        with pytest.raises(InvalidRequestError, match="normalizer custom"):
            compare(*tables[1:])


def test_lists_tables_and_rates_give_the_same_comparison():
    references, first, second = systems((0.1, 0.2), n=40)
    tables = scored(references, first), scored(references, second)
    rates = [error_rate(references, texts, language="en", normalize=None) for texts in (first, second)]
    frames = [pd.DataFrame({"text": references, "hypothesis": texts}) for texts in (first, second)]
    expected = compare(*tables).frame()
    pd.testing.assert_frame_equal(compare(*rates).frame(), expected)
    pd.testing.assert_frame_equal(compare(*frames, language="en", normalize=None).frame(), expected)


def test_compare_takes_utterances_too_long_for_nists_test():
    said = [" ".join(f"w{number % 70}" for number in range(15_000)), "a b"]
    one = scored(said, [said[0].replace("w7 ", "x "), "a b"])
    result = compare(one, scored(said, [said[0], "a c"]), draws=10)
    assert (result.utterances, result.better_b, result.mapsswe.segments) == (2, 1, 0)
    assert math.isnan(result.mapsswe.p)


def test_tables_in_any_order_and_of_any_keys_give_the_same():
    references, *heard = systems((0.1, 0.2, 0.3), n=30)
    tables = {
        name: scored(references, texts).assign(id=range(30)) for name, texts in zip("xyz", heard, strict=True)
    }
    for name, table in tables.items():
        mixed = table.sample(frac=1, random_state=3).iloc[:25]
        pair = compare(tables["x"], mixed, names=("x", name), draws=20)
        assert (pair.utterances, pair.utterances_excluded) == (25, 5)
        assert "left out" in pair.hints[-1]
        assert pair.error_rate_b == summarize(mixed)["error_rate"][0]
    whole = compare(tables, on=["id"], draws=20).set_index(["a", "b"])
    assert len(whole) == 3
    assert whole["p_holm"].is_monotonic_increasing
    assert (whole["p_holm"] >= whole["p"]).all()
    for (a, b), row in whole.iterrows():
        alone = compare(tables[a], tables[b].iloc[::-1], names=(a, b), on="id", draws=20).frame().iloc[0]
        figures = ["p", "low", "z", "better_a"]
        assert row[figures].tolist() == alone[figures].tolist()


def test_an_unknown_argument_is_refused_with_the_known_ones():
    one = scored(["a b"], ["a x"])
    for function, tables in ((summarize, [one]), (compare, [one, one])):
        with pytest.raises(TypeError, match=r"no argument 'group' here or in score, .* groups for blocks"):
            function(*tables, group="speaker")


def test_refusals():
    references, first = systems((0.2,), n=5)
    good = scored(references, first)
    for call, hint in [
        (lambda: compare(good[["text"]], good), "no column 'unit'"),
        (lambda: compare(good, good.set_index(good.index + 100)), "in common"),
        (lambda: compare(pd.concat([good, good]), good), "more than once"),
        (lambda: compare(good, scored(["x"] * 5, first)), "two references"),
        (lambda: compare(good, good.assign(unit="char")), "cannot be compared"),
    ]:
        with pytest.raises(InvalidRequestError, match=hint):
            call()
