"""Print-outs and files, against those of NIST's sclite."""

import random
import subprocess

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.errors import InvalidRequestError
from speechlab.metrics import compare, read_sclite, read_trn, sclite_report, score, summarize, write_trn
from support import nist

PAIRS = pd.DataFrame(
    [
        ("s1-u1", "the cat sat on the mat", "the hat sat on mat now"),
        ("s1-u2", "a dog ran", "a dog ran"),
        ("speaker2-u1", "birds sing loudly at dawn", "birds sang at the dawn"),
        ("speaker2-u2", "", "uh"),
        ("c_1", "one two three", ""),
    ],
    columns=["utterance", "text", "hypothesis"],
)


def scored(pairs=PAIRS):
    return score(pairs, language="en", normalize=None, counts="sclite")


def sclite(folder, *reports):
    inputs = ["-s", "-e", "utf-8", "-r", "r.trn", "trn", "-h", "h.trn", "trn", "-i", "rm"]
    command = [nist.sctk(), "sclite", *inputs, "-o", *reports, "-n", "out"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def random_pairs(words, n, seed):
    random_ = random.Random(seed)
    texts = [[" ".join(random_.choices(words, k=random_.randrange(8))) for _ in range(n)] for _ in range(2)]
    names = [f"s-{number:04d}" for number in range(n)]
    return pd.DataFrame({"utterance": names, "text": texts[0], "hypothesis": texts[1]})


@pytest.mark.slow
@pytest.mark.parametrize(
    "pairs",
    [
        PAIRS,
        random_pairs(["the", "The", "a", "é", "Zoo", "b-", "x'y", "漢字"], 300, 1),
        random_pairs([f"w{number}" for number in range(400)], 300, 2),
        pd.DataFrame({"utterance": ["a-1"], "text": ["so"], "hypothesis": ["so"]}),
        pd.DataFrame({"utterance": ["a-1"], "text": [""], "hypothesis": ["uh"]}),
    ],
)
def test_the_detailed_report_agrees_with_sclite(tmp_path, pairs):
    nist.sctk()
    write_trn(pairs, tmp_path / "r.trn")
    write_trn(pairs, tmp_path / "h.trn", text="hypothesis")
    sclite(tmp_path, "dtl")
    theirs = (tmp_path / "out.dtl").read_text("utf-8")
    assert sclite_report(scored(pairs), report="dtl", utterance="utterance", name="h.trn") == theirs


@pytest.mark.slow
def test_print_outs_agree_with_sclite(tmp_path):
    nist.sctk()
    write_trn(PAIRS, tmp_path / "r.trn")
    write_trn(PAIRS, tmp_path / "h.trn", text="hypothesis")
    sclite(tmp_path, "pra", "sum", "rsum")
    for report, ending in (("pra", "pra"), ("sum", "sys"), ("rsum", "raw")):
        theirs = (tmp_path / f"out.{ending}").read_text("utf-8")
        ours = sclite_report(scored(), report=report, utterance="utterance", name="h.trn")
        assert ours.strip() == theirs.strip(), report
    again = read_sclite(tmp_path / "out.pra")
    columns = ["errors", "hits", "substitutions", "deletions", "insertions", "reference_length"]
    assert (
        again[["utterance", *columns]].to_numpy().tolist()
        == scored()[["utterance", *columns]].to_numpy().tolist()
    )


def test_print_outs_are_read_as_scores(tmp_path):
    path = tmp_path / "x.pra"
    path.write_text(sclite_report(scored(), utterance="utterance"), encoding="utf-8")
    again = read_sclite(path)
    assert again["errors"].tolist() == scored()["errors"].tolist()
    assert again["speaker"].tolist() == ["s1", "s1", "speaker2", "speaker2", "c"]
    assert summarize(again, by="speaker")["errors"].sum() == summarize(scored())["errors"][0]
    assert compare(again, again, on="utterance", groups="speaker").p == 1.0


OF_SEGMENTS = """
System name:   ./hyp.ctm

Speakers:
    0:  2347-a
    1:  2347-b

Speaker sentences   0:  2347-a   #utts: 2
id: (2347-a-000)
Labels: <o,wa>
File: 2347
Channel: a
Scores: (#C #S #D #I) 0 0 0 0

id: (2347-a-001)
Labels: <o,wa>
File: 2347
Channel: a
Scores: (#C #S #D #I) 1 1 0 1
REF:  **** i WENT
HYP:  THEY i WANT
Eval: I      S

Speaker sentences   1:  2347-b   #utts: 1
id: (2347-b-000)
File: 2347
Channel: b
Scores: (#C #S #D #I) 0 0 1 0
REF:  UM
HYP:  **
Eval: D
"""


def test_alignments_of_segments_are_read(tmp_path):
    """With references in STM, sclite prints more lines for each utterance, and no texts if both are empty."""
    path = tmp_path / "x.pra"
    path.write_text(OF_SEGMENTS)
    again = read_sclite(path)
    assert again[["utterance", "speaker", "text", "hypothesis"]].to_numpy().tolist() == [
        ["2347-a-000", "2347-a", "", ""],
        ["2347-a-001", "2347-a", "i WENT", "THEY i WANT"],
        ["2347-b-000", "2347-b", "UM", ""],
    ]
    assert again["errors"].tolist() == [0, 2, 1]


def test_wide_characters_are_aligned_in_columns():
    text = sclite_report(["三時 に x"], ["四時 x"], language="en", normalize=None)
    lines = text.split("REF:  ")[1].split("\n")
    assert lines[0] == "三時 に x "
    assert lines[1] == "HYP:  四時 ** x "
    assert lines[2] == "Eval: S    D    "


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


def test_rows_that_were_scored_in_different_ways_are_not_added_up():
    other = score(PAIRS, language="en", normalize="basic")
    for report in ("pra", "sum", "rsum", "dtl"):
        with pytest.raises(InvalidRequestError, match="normaliser"):
            sclite_report(pd.concat([scored(), other]), report=report)
        with pytest.raises(InvalidRequestError, match="by char and by word"):
            sclite_report(pd.concat([scored(), score(["三時"], ["四時"], language="zh")]), report=report)


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
    with pytest.raises(InvalidRequestError, match="no alignment"):
        read_sclite(path)
    path.write_bytes("三時 (x-1)\n".encode("euc-jp"))
    for read in (read_trn, read_sclite):
        with pytest.raises(InvalidRequestError, match="not in UTF-8"):
            read(path)
    with pytest.raises(InvalidRequestError, match="'prf'"):
        sclite_report(scored(), report="prf")
