"""Rankings: groups in simulations, letters, shares, and the number of utterances that is needed."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.errors import InvalidRequestError
from speechlab.metrics import assign_letters, compute_sign_flip_p, compute_utterances_needed, holm
from speechlab.metrics import rank as rank_by


def rank(rows, **options):
    return rank_by(rows, language="en", normalize=None, **options)


def table(errors, length=10):
    """A table of systems with the given number of errors in each utterance."""
    said = " ".join(f"w{number}" for number in range(length))
    rows = [
        {"voice": name, "text": f"{place} {said}", "hypothesis": f"{place} {said}".replace("w", "x", count)}
        for name, counts in errors.items()
        for place, count in enumerate(counts)
    ]
    return pd.DataFrame(rows)


def test_systems_in_order_with_groups_and_a_sentence():
    many = {"bad": [3] * 12, "good": [0] * 11 + [1], "fair": [1] + [0] * 10 + [1], "poor": [2] * 12}
    found = rank(table(many))
    assert found.systems["system"].tolist() == ["good", "fair", "poor", "bad"]
    assert found.systems["group"].tolist() == ["a", "a", "b", "c"]
    assert found.tied == ["good", "fair"]
    assert found.sentence == (
        "good (0.8%) has the lowest word error rate of 4 on 12 utterances; fair (1.5%) cannot be distinguished from "
        "it, poor (18.2%) and bad (27.3%) have a significantly higher one (exact paired test by utterance, Holm, "
        "0.05 level)."
    )
    assert found.systems["first_share"].sum() == pytest.approx(1)
    assert found.systems["first_share"][0] > found.systems["first_share"][1] > 0.1
    assert found.systems["p_best"].isna().tolist() == [True, False, False, False]
    assert len(found.pairs) == 6
    assert "cannot be distinguished" in found._repr_html_()


def test_rank_says_that_equal_systems_have_one_rate():
    for rows, sentence in [
        (
            {"one": [0, 1, 0, 0], "two": [1, 0, 0, 0]},
            "one and two have the same word error rate (2.3%) on 4 utterances.",
        ),
        (
            {"one": [1, 1]},
            "one (9.1%) has no other to be compared with: its word error rate, on 2 utterances.",
        ),
    ]:
        found = rank(table(rows))
        assert found.sentence == sentence
        assert found.systems["needed"].isna().all()
        assert found.systems["first_share"].tolist() == pytest.approx([1 / len(rows)] * len(rows), abs=0.2)
    assert len(found.pairs) == 0


def test_rank_gives_the_number_of_utterances_needed():
    found = rank(table({"one": [0, 1, 0, 0], "two": [1, 1, 1, 1], "same": [1, 1, 1, 1]}))
    assert found.tied == ["one", "same", "two"]
    assert found.sentence.startswith(
        "None of same (9.1%) and two (9.1%) can be distinguished from one (2.3%), which has"
    )
    needed = found.systems.set_index("system")["needed"]
    assert needed.isna().tolist() == [True, False, False]
    assert 9 <= needed["two"] <= 20
    assert rank(table({"one": [1, 1], "two": [1, 1]})).systems["first_share"].tolist() == [0.5, 0.5]


def test_rank_keeps_takes_and_drops_incomplete_utterances():
    rows = table({"one": [0, 0, 1], "two": [1, 1, 0]})
    found = rank(pd.concat([rows, rows]))
    assert found.systems["errors"].tolist() == [2, 4]
    assert found.pairs["blocks"].tolist() == [3]
    some = rank(rows.assign(hypothesis=rows["hypothesis"].mask(rows.index == 0)))
    assert (some.excluded, some.systems["utterances"].tolist()) == (1, [2, 2])
    more = rank(pd.concat([rows, rows[rows["voice"] == "two"]]))
    pd.testing.assert_frame_equal(more.systems, rank(rows).systems)


@pytest.mark.parametrize(("rate", "worse"), [(0.3, 0.25), (1.0, 0.5), (0.1, 0.2)])
def test_the_needed_number_of_utterances_shows_the_difference(rate, worse):
    """Power of the exact test with the number of utterances that is needed for 80%."""
    random = np.random.default_rng(5)
    one, other = random.poisson(rate, 4_000), random.poisson(rate, 4_000) + random.poisson(worse, 4_000)
    for alpha in (0.05, 0.05 / 6):
        count = compute_utterances_needed(other - one, alpha, 0.8)
        drawn = (random.choice(other - one, count) for _ in range(300))
        assert 0.7 <= np.mean([compute_sign_flip_p(sample) < alpha for sample in drawn]) <= 0.93


@given(st.sets(st.sampled_from(list(combinations("ABCDE", 2)))))
def test_exactly_the_systems_that_differ_share_no_letter(apart):
    found = assign_letters("ABCDE", apart)
    for one, other in combinations("ABCDE", 2):
        assert ((one, other) in apart) == (not set(found[one]) & set(found[other]))
    assert found["A"][0] == "a"
    assert all(found.values())


def test_tables_that_cannot_be_ranked_are_refused():
    rows = table({"one": [0, 1], "two": [1, 1]})
    for wrong, how, hint in [
        (rows.assign(hypothesis=None), {}, "no row has scores"),
        (rows.iloc[[0, 3]], {}, "no utterance has scores of all 2 systems"),
        (
            rows.assign(said_by=rows["voice"]),
            {"groups": "said_by"},
            r"groups='said_by': the utterance '0 w0.* is in several blocks",
        ),
    ]:
        with pytest.raises(InvalidRequestError, match=hint):
            rank(wrong, **how)


def test_conditions_and_names_of_any_type_are_texts():
    rows = table({"a": [0, 1] * 3, "b": [1, 0] * 3})
    parts = [rows.assign(noise=noise) for noise in (5, "5", None)]
    (one,) = rank(pd.concat(parts), by="noise").values()
    pd.testing.assert_frame_equal(one.systems, rank(pd.concat(parts[:2])).systems)
    found = rank(rows.assign(voice=rows["voice"].map({"a": 1, "b": ["2"]})))
    assert found.systems["system"].tolist() == ["1", "['2']"]


def test_rank_corrects_conditions_together():
    # six utterances that are all worse: p = 0.031 alone, which is chance among four such tests
    worse, alike = {"a": [0] * 6, "b": [1] * 6}, {"a": [0, 1] * 3, "b": [1, 0] * 3}
    rows = pd.concat([table(one).assign(noise=name) for name, one in {"some": worse, "none": alike}.items()])
    found, alone = rank(rows, by="noise"), rank(table(worse))
    assert list(found) == ["some", "none"]
    assert alone.systems["group"].tolist() == ["a", "b"]
    assert found["some"].systems["group"].tolist() == ["a", "a"]
    chances = [float(one.pairs["p"].iloc[0]) for one in found.values()]
    assert chances == pytest.approx([2**-5, 1])
    assert [float(one.pairs["p_holm"].iloc[0]) for one in found.values()] == holm(chances).tolist()
    assert "cannot be distinguished" in found["some"].sentence
    assert found["some"].systems["needed"].iloc[1] > alone.systems["needed"].iloc[1]
