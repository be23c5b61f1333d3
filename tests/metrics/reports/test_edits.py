"""Errors of tables, and alignments as HTML."""

import pandas as pd
import pytest

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


@pytest.mark.parametrize("damaged", ["", "nonsense", "unit:word|lang:en", "unit:word|lang:|norm:none"])
@pytest.mark.parametrize("function", [edits, confusions, alignments_html])
def test_an_invalid_signature_is_refused(function, damaged):
    table = score(FRAME.iloc[[0]]).assign(signature=damaged)
    with pytest.raises(InvalidRequestError) as caught:
        function(table)
    assert caught.value.parameter == "signature"


def test_tables_lists_and_rates_have_the_same_errors():
    said, heard = FRAME["text"].iloc[[0, 3]], FRAME["hypothesis"].iloc[[0, 3]]
    of_lists = edits(said, heard, language="de")
    of_rate = edits(error_rate(said, heard, language="de"))
    pd.testing.assert_frame_equal(of_lists, of_rate)
    assert of_lists["utterance"].tolist() == ["u1", "u1"]


def test_unknown_places_are_missing():
    lower = edits(score(FRAME.iloc[[0]], normalize=str.lower))
    assert lower[["reference_start", "hypothesis_end"]].isna().all(axis=None)
    without = score(FRAME.iloc[[0]]).drop(columns=["text", "hypothesis"])
    assert edits(without)["reference_start"].isna().all()
    assert len(edits(score(FRAME.iloc[:0]))) == 0


def test_html_shows_every_token_and_escapes():
    html = alignments_html(["<b> x", "same"], ["<i> x y", "same"], language="de", normalize=None)
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert ">S<" in html
    assert ">I<" in html
    assert "same" not in html
    assert "and 1 more" in alignments_html(["a", "b"], ["c", "d"], language="de", limit=1)
    assert "no errors" in alignments_html(["a"], ["a"], language="de")
    with pytest.raises(ValueError, match="limit"):
        alignments_html(["a"], ["a"], language="de", limit=0)
