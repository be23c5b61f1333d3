"""Counts in which words written together or apart are alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.metrics import error_rate, score

WORDS = st.lists(st.sampled_from(["a", "b", "ab", "ba", "aba", "c"]), max_size=7).map(" ".join)


@pytest.mark.parametrize(
    ("reference", "hypothesis", "errors"),
    [  # the counts of kaldialign 0.12.0 with merge_compounds=True
        ("white paper", "whitepaper", 0),
        ("whitepaper", "white paper", 0),
        ("a b c", "abc", 0),
        ("abc", "a b c", 0),
        ("ab cd", "a bcd", 2),
        ("white paper is", "whitepaper was", 1),
    ],
)
def test_known_answers(reference, hypothesis, errors):
    result = error_rate([reference], [hypothesis], counts="compounds")
    assert result.errors == errors
    assert result.reference_length == len(reference.split())
    assert "|counts:compounds|" in result.signature
    row = score([reference], [hypothesis], language="en", counts="compounds").iloc[0]
    assert (row["errors"], row["char_errors"] > 0) == (errors, reference != hypothesis)


@given(WORDS, WORDS)
def test_compounds_never_add_errors(reference, hypothesis):
    plain, merged = (
        error_rate([reference], [hypothesis], counts=counts) for counts in ("levenshtein", "compounds")
    )
    assert merged.errors <= plain.errors
    if reference.replace(" ", "") != hypothesis.replace(" ", ""):
        assert merged.errors > 0


def test_long_texts_are_merged_between_their_equal_words():
    words = [f"w{place}" for place in range(1_000)]
    heard = [*words[:500], "white", "paper", *words[500:]]
    result = error_rate(
        " ".join([*words[:500], "whitepaper", *words[500:]]), " ".join(heard), counts="compounds"
    )
    assert result.errors == 0
