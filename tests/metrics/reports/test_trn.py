"""Transcripts in NIST's format trn."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.errors import InvalidRequestError
from speechlab.metrics import read_trn, write_trn


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.text("ab c(漢é;\n", max_size=12), st.from_regex(r"[a-z]{1,3}-[0-9]{1,3}", fullmatch=True)
        ),
        unique_by=lambda row: row[1],
        max_size=6,
    )
)
def test_transcripts_survive_writing_and_reading(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("trn") / "x.trn"
    frame = pd.DataFrame(rows, columns=["text", "utterance"])
    write_trn(frame, path)
    again = read_trn(path)
    assert again["utterance"].tolist() == frame["utterance"].tolist()
    assert again["text"].tolist() == [" ".join(text.split()) for text in frame["text"]]


def test_names_of_utterances_come_from_the_index_where_no_column_has_them(tmp_path):
    frame = pd.DataFrame({"text": ["a b", "c"], "who": ["x-1", "x-2"]}, index=["s-1", "s-2"])
    write_trn(frame, tmp_path / "index.trn")
    assert read_trn(tmp_path / "index.trn")["utterance"].tolist() == ["s-1", "s-2"]
    write_trn(frame, tmp_path / "column.trn", utterance="who")
    assert read_trn(tmp_path / "column.trn")["utterance"].tolist() == ["x-1", "x-2"]
    with pytest.raises(InvalidRequestError, match="0 cannot name an utterance"):
        write_trn(frame.reset_index(drop=True), tmp_path / "x.trn")


def test_refusals(tmp_path):
    path = tmp_path / "x.trn"
    for names, hint in [(["a b"], "no white space"), (["a", "a"], "twice"), ([None], "cannot name")]:
        frame = pd.DataFrame({"text": "x", "utterance": names})
        with pytest.raises(InvalidRequestError, match=hint):
            write_trn(frame, path)
    path.write_text("no name here\n")
    with pytest.raises(InvalidRequestError, match="line 1"):
        read_trn(path)
    path.write_text(";; comment\n\na (x-1)\nb (x-1)\n")
    with pytest.raises(InvalidRequestError, match=r"line 4.*once more"):
        read_trn(path)
    path.write_bytes("三時 (x-1)\n".encode("euc-jp"))
    with pytest.raises(InvalidRequestError, match="not in UTF-8"):
        read_trn(path)
