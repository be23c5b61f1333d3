"""Errors and their places in the original texts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.metrics import error_rate

TEXT = st.text("aB .,1é\u3000三ｶﾞか゛ー😀", max_size=15)


def test_places_are_those_of_the_text_as_written():
    said, heard = "Well -- GOOD   morning!", "well, good evening"
    table = error_rate(said, heard, normalize="basic").edits()
    assert len(table) == 1
    row = table.iloc[0]
    assert row["operation"] == "substitute"
    assert said[row["reference_start"] : row["reference_end"]] == "morning"
    assert heard[row["hypothesis_start"] : row["hypothesis_end"]] == "evening"


def test_the_place_of_a_number_is_that_of_its_digits():
    said, heard = "会議は１０，０００円", "会議は三円"
    table = error_rate(said, heard, unit="char", language="ja").edits()
    row = table[table["reference"].notna()].iloc[0]
    assert said[row["reference_start"] : row["reference_end"]] == "１０，０００"


def test_a_side_without_token_has_no_place():
    table = error_rate(["a b", "c"], ["a", "c d"]).edits()
    assert table["operation"].tolist() == ["delete", "insert"]
    assert table["hypothesis_start"].isna().tolist() == [True, False]
    assert table["reference_start"].isna().tolist() == [False, True]
    assert table["utterance"].tolist() == [0, 1]


def test_without_errors_the_table_keeps_its_types():
    table = error_rate("a", "a").edits()
    assert len(table) == 0
    assert table["reference_start"].dtype == "Int64"


def test_places_are_known_with_custom_functions():
    row = error_rate("x FOO", "x bar", normalize=str.lower).edits().iloc[0]
    assert (row["reference_start"], row["reference_end"]) == (2, 5)


@pytest.mark.slow
@settings(deadline=None)
@given(TEXT, TEXT, st.sampled_from(["word", "char"]), st.sampled_from([None, "basic", "ja"]))
def test_every_token_has_a_place_inside_its_text(said, heard, unit, normalize):
    result = error_rate(said, heard, unit=unit, normalize=normalize)
    table = result.edits(equal=True)
    assert (table["operation"] != "equal").sum() == result.errors
    for side, text in (("reference", said), ("hypothesis", heard)):
        rows = table[table[side].notna()]
        assert (rows[f"{side}_start"] <= rows[f"{side}_end"]).all()
        assert (rows[f"{side}_end"] <= len(text)).all()
        if normalize is None:
            for row in rows.itertuples():
                assert text[getattr(row, f"{side}_start") : getattr(row, f"{side}_end")] == getattr(row, side)
