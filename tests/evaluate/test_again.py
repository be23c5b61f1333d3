"""What a study was asked is in its record: it can be asked again, and compared with the replies that are kept."""

from __future__ import annotations

import os

import pandas as pd
import pytest

from evaluate.test_verify import report_of, sentences
from speechlab import evaluate
from speechlab.errors import InvalidRequestError
from support.clients import KEY
from support.forked import speechlab
from support.studies import serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def staged():
    with serving(languages=("ja", "en")) as service:
        yield service


@pytest.fixture(scope="module")
def spoken(staged, tmp_path_factory):
    """A round trip, one of whose texts stands twice, and its folder."""
    folder = tmp_path_factory.mktemp("spoken")
    texts = pd.DataFrame(
        {"text": ["good morning", "good evening", "good evening"], "language": "en", "set": 1}
    )
    report = evaluate.round_trip(staged.lab, texts, ["low"], store=folder / "store", progress=False)
    report.save(folder / "report")
    report.save(folder / "report.html")
    return report, folder


def test_a_report_asks_the_same_again(staged, spoken):
    report, folder = spoken
    before = len(staged.voice.calls)
    again = evaluate.Report.load(folder / "report").rerun(staged.lab, progress=False)
    assert [call["text"] for call in staged.voice.calls[before:]] == ["good morning", "good evening"]
    assert again.record["asked"] == report.record["asked"]
    assert again.table["text"].tolist() == report.table["text"].tolist()
    asked = again.record["asked"]
    assert (asked["rows"], asked["columns"], asked["arguments"]) == (
        3,
        ["text", "language", "set"],
        {"voices": ["low"]},
    )


def test_recordings_and_outputs_that_exist_are_asked_again(staged, tmp_path):
    clip = staged.lab.synthesize("good morning", voice="low").save(tmp_path / "a.wav")
    rows = pd.DataFrame(
        {"text": ["good morning"], "language": "en", "audio": [clip], "old": ["good mourning"]}
    )
    both, how = {"x": staged.lab, "y": staged.lab}, {"store": tmp_path / "s", "progress": False}
    report = evaluate.recognition(both, rows, hypotheses=["old"], **how)
    noisy = evaluate.recognition(staged.lab, rows, noise_db=[10], **how)
    for one, lab in ((report, both), (noisy, staged.lab)):
        again = one.rerun(lab, progress=False)
        assert again.record["asked"] == one.record["asked"]
        assert again.table["hypothesis"].tolist() == one.table["hypothesis"].tolist()
    assert report.systems == ["x", "y", "old"]


def test_the_command_asks_again_from_a_page_and_compares(staged, spoken):
    _, folder = spoken
    where = {**os.environ, "SPEECHLAB_BASE_URL": staged.base_url, "SPEECHLAB_API_KEY": KEY}
    done = speechlab(
        "study", "--from", folder / "report.html", "--out", folder / "new", env=where, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert "No significant change. “tone: low” in English 33.3% as before" in done.stdout
    assert len(evaluate.Report.load(folder / "new").table) == 3
    assert speechlab("study", "--from", folder / "report.html", env=where, cwd=folder).returncode == 2


def test_what_a_record_does_not_hold_is_given_again_or_refused(tmp_path):
    count = {"words": lambda said, heard: [float(len(one.split())) for one in heard]}
    report = report_of(tmp_path, sentences(4), scorers=count)
    with pytest.raises(InvalidRequestError, match="scorers was a function"):
        report.rerun(None)
    again = report.rerun(None, scorers=count)
    assert again.table["score_words"].tolist() == report.table["score_words"].tolist()
    with pytest.raises(InvalidRequestError, match="does not say what was asked"):
        again.compare(report).rerun(None)


def test_a_report_is_followed_back_to_the_replies_in_the_store(spoken):
    report, folder = spoken
    proof = evaluate.verify(folder / "report", store=folder / "store")
    assert proof, proof
    assert "6 replies of 2 batches were compared with the store." in proof.notes
    other = evaluate.Report.load(folder / "report")
    other.table.loc[0, "hypothesis"] = "never said"
    other.save(folder / "other")
    unequal = evaluate.verify(folder / "other", store=folder / "store").unequal
    assert "never said" in unequal.loc[unequal["place"].str.startswith("store"), "reported"].tolist()
    assert "not in this store" in evaluate.verify(folder / "report", store=folder / "none").answer
    done = speechlab("verify", folder / "report", "--store", folder / "store")
    assert done.returncode == 0, done.stdout
    assert report.record["runs"]
