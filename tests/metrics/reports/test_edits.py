"""Errors of rates and tables with their places in the original texts, and alignments as HTML."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.errors import InvalidRequestError
from speechlab.metrics import alignments_html, confusions, edits, error_rate, score

FRAME = pd.DataFrame(
    {
        "text": ["Well, good MORNING!", "精度が、高い", None, "Guten Tag"],
        "hypothesis": ["good evening", "制度が高い", "x", "guten tag"],
        "language": ["de", "ja", "de", "de"],
    },
    index=["u1", "u2", "u3", "u4"],
)


def test_errors_of_a_table_have_their_places():
    table = edits(score(FRAME))
    assert table["utterance"].tolist() == ["u1", "u1", "u2"]
    assert table["unit"].tolist() == ["word", "word", "char"]
    for row in table.itertuples():
        written = FRAME.loc[row.utterance, "text"][row.reference_start : row.reference_end]
        assert written.lower() == row.reference
    assert table["hypothesis"].isna().tolist() == [True, False, False]
    pd.testing.assert_frame_equal(edits(FRAME, language="language"), table)
    assert len(edits(score(FRAME), equal=True)) > len(table)


@pytest.mark.parametrize("damaged", ["", "unit:word|lang:|norm:none"])
def test_an_invalid_signature_is_refused(damaged):
    table = score(FRAME.iloc[[0]]).assign(signature=damaged)
    for function in (edits, confusions, alignments_html):
        with pytest.raises(InvalidRequestError) as caught:
            function(table)
        assert caught.value.parameter == "signature"


def test_unknown_places_are_missing():
    lower = edits(score(FRAME.iloc[[0]], normalize=str.lower))
    assert lower[["reference_start", "hypothesis_end"]].isna().all(axis=None)
    without = score(FRAME.iloc[[0]]).drop(columns=["text", "hypothesis"])
    assert edits(without)["reference_start"].isna().all()
    assert len(edits(score(FRAME.iloc[:0]))) == 0


def test_html_shows_every_token_and_escapes():
    html = alignments_html(["<b> x", "same"], ["<i> x y", "same"], language="de", normalize=None)
    assert [part in html for part in ("&lt;b&gt;", ">S<", ">I<", "<b>", "same")] == [True] * 3 + [False] * 2
    assert "and 1 more" in alignments_html(["a", "b"], ["c", "d"], language="de", limit=1)
    assert "no errors" in alignments_html(["a"], ["a"], language="de")


@pytest.mark.parametrize(
    ("said", "heard", "how", "places"),
    [
        ("Well -- GOOD   morning!", "well, good evening", {"normalize": "basic"}, [("morning", "evening")]),
        ("会議は１０，０００円", "会議は三円", {"unit": "char", "language": "ja"}, [("１０，０００", "三")]),
        ("x FOO", "x bar", {"normalize": str.lower}, [("FOO", "bar")]),
        ("a b", "a", {}, [("b", None)]),
        ("c", "c d", {}, [(None, "d")]),
        ("a", "a", {}, []),
    ],
)
def test_places_are_those_of_the_text_as_written(said, heard, how, places):
    table = edits(error_rate(said, heard, **how))
    assert table["reference_start"].dtype == "Int64"
    found = [
        tuple(
            None
            if pd.isna(getattr(row, f"{side}_start"))
            else text[getattr(row, f"{side}_start") : getattr(row, f"{side}_end")]
            for side, text in (("reference", said), ("hypothesis", heard))
        )
        for row in table.itertuples()
    ]
    assert list(dict.fromkeys(found))[:1] == places


TEXT = st.text("aB .,1é\u3000三ｶﾞか゛ー😀", max_size=15)


@pytest.mark.slow
@settings(max_examples=50)
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


def test_confusions_are_those_of_the_rate():
    result = error_rate(["a b c", "a b b", "x"], ["a d c", "a d", "x y"])
    table = confusions(result)
    assert table["count"].sum() == result.errors
    assert table["share"].sum() == pytest.approx(1)
    first = table.iloc[0]
    assert (first["reference"], first["hypothesis"], first["count"], first["utterances"]) == ("b", "d", 2, 2)
    assert set(table["operation"]) == {"substitute", "delete", "insert"}
    assert table[table["operation"] == "insert"]["reference"].isna().all()


def test_units_are_counted_separately():
    frame = pd.DataFrame({"text": ["a b", "精度"], "hypothesis": ["a c", "制度"], "language": ["en", "ja"]})
    table = confusions(score(frame))
    assert dict(zip(table["unit"], table["share"], strict=True)) == {"char": 1.0, "word": 1.0}
