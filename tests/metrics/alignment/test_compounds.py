"""Counts in which words count as one: compounds, and variants of a list."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.errors import InvalidRequestError
from speechlab.metrics import confusions, edits, error_rate, score, summarize
from speechlab.text import normalizer

WORDS = st.lists(st.sampled_from(["a", "b", "ab", "ba", "aba", "c"]), max_size=7).map(" ".join)


def test_known_answers():
    for reference, hypothesis, errors in [  # the counts of kaldialign 0.12.0 with merge_compounds=True
        ("white paper", "whitepaper", 0),
        ("whitepaper", "white paper", 0),
        ("a b c", "abc", 0),
        ("abc", "a b c", 0),
        ("ab cd", "a bcd", 2),
        ("white paper is", "whitepaper was", 1),
    ]:
        result = error_rate([reference], [hypothesis], merge_compounds=True)
        assert result.errors == errors
        assert result.reference_length == len(reference.split())
        assert "|compounds:merged|" in result.signature
        row = score([reference], [hypothesis], language="en", merge_compounds=True).iloc[0]
        assert (row["errors"], row["char_errors"] > 0) == (errors, reference != hypothesis)


@given(WORDS, WORDS)
def test_compounds_never_add_errors(reference, hypothesis):
    plain, merged = (error_rate([reference], [hypothesis], merge_compounds=merge) for merge in (False, True))
    assert merged.errors <= plain.errors
    if reference.replace(" ", "") != hypothesis.replace(" ", ""):
        assert merged.errors > 0


def test_long_texts_are_merged_between_their_equal_words():
    before, after = ("".join(f"w{place} " for place in range(start, start + 500)) for start in (0, 500))
    said, heard = f"{before}whitepaper {after}", f"{before}white paper {after}"
    assert error_rate(said, heard, merge_compounds=True).errors == 0


def test_merged_words_have_no_place():
    table = edits(["the white paper is"], ["the whitepaper was"], language="en", merge_compounds=True)
    assert table[["reference", "reference_start"]].values.tolist() == [["is", 16]]
    assert table["hypothesis_start"].isna().all()


def test_variants_count_as_one_and_stand_in_the_signature():
    variants = [["Jon", "John"], ["lots", "a lot"]]
    said, heard = "John has a lot; Johnny lots.", "Jon has lots; Johnny a lot."
    plain, alike = (error_rate(said, heard, language="en", variants=groups) for groups in ((), variants))
    assert (plain.errors, alike.errors, alike.reference_length) == (5, 0, 5)
    assert f"|norm:{normalizer('en').signature}|" in plain.signature
    assert plain.signature == alike.signature.replace(alike.signature.split("|")[3] + "|", "")
    assert alike.signature.split("|")[3].startswith("variants:")
    assert error_rate("鯖が落ちた", "サーバーが落ちた", "char", "ja", variants=[["サーバー", "鯖"]]).rate == 0
    assert error_rate("JOHN", "Jon", normalize=str.upper, variants=[["jon", "john"]]).rate == 0


def test_variants_reach_tables_and_what_is_made_of_them():
    table = pd.DataFrame({"text": ["John ran", "a b"], "hypothesis": ["Jon run", "a b"]})
    scored = score(table, language="en", variants=[["Jon", "John"]])
    assert scored["errors"].tolist() == [1, 0]
    assert edits(scored)["reference"].tolist() == ["ran"]
    assert confusions(table, language="en", variants=[["Jon", "John"]])["reference"].tolist() == ["ran"]
    assert "variants:" in summarize(scored)["signature"][0]


def test_wrong_variants_are_refused():
    for groups in [["ab"], [["a"]], [["a", ""]], [["a", "b"], ["c", "b"]], [["a", None]]]:
        for call in (error_rate, score):
            with pytest.raises(InvalidRequestError):
                call(["a"], ["a"], language="en", variants=groups)
