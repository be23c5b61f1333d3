"""Reports prove themselves, their references are corrected and scored anew, and they are asked again."""

import os
import re
import shutil

import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.errors import InvalidRequestError, StoreError
from support.clients import KEY
from support.forked import speechlab
from support.studies import serving

pytestmark = pytest.mark.slow

WORDS = "the old clock on north tower strikes twice before every market opens at dawn".split()  # noqa: SIM905


def sentences(count=24, wrong=()):
    """Sentences with a wrong word in the references of some; two systems that err in other rows, one more often."""
    rows = []
    for row in range(count):
        words = [WORDS[(row * step + row) % len(WORDS)] for step in range(1, 9)]
        said = " ".join(words)
        reference = said.replace(words[4], "lantern") if row in wrong else said
        one = said.replace(words[2], "shadow") if row % 4 == 0 else said
        other = said.replace(words[6], "window") if row % 2 == 0 else said
        rows.append((f"s{row}", reference, one, other, "en", 3.0))
    return pd.DataFrame(rows, columns=["id", "text", "one", "other", "language", "duration_s"])


def report_of(folder, frame=None, **options):
    frame = sentences() if frame is None else frame
    names = {"one": "one", "other": "other"}
    return evaluate.recognition(None, frame, hypotheses=names, store=folder / "store", **options)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    shutil.copy(report_of(folder).save(folder / "report") / "report.html", folder / "page.html")
    return folder


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    """A report in which three references are wrong."""
    return report_of(tmp_path_factory.mktemp("faulty"), sentences(wrong=(3, 11, 17)))


def test_every_number_follows_from_the_rows(saved):
    verified = evaluate.verify(saved / "page.html")
    assert verified
    assert verified.numbers > 300
    with pytest.raises(InvalidRequestError, match=r"verify what report\.save"):
        evaluate.verify(evaluate.Report.load(saved / "report"))


def test_changed_rows_and_tables_are_found(saved, tmp_path):
    """What else a page holds is in strangers/test_reports, with changed figures."""
    report = evaluate.Report.load(saved / "report")
    report.table.loc[3, "hypothesis"] = "something else"
    report.summary.loc[0, "error_rate"] += 0.001
    verified = evaluate.verify(report.save(tmp_path / "rows"))
    assert {"rows, row 3, errors", "summary, row 0, error_rate"} <= set(verified.unequal["place"])
    assert len(verified.answer) < 300


def test_the_command_says_in_one_line_what_is_so(saved, tmp_path):
    def verify(place):
        done = speechlab("verify", str(place))
        return done.returncode, done.stdout

    status, said = verify(saved / "report")
    assert (status, said.count("\n")) == (0, 1)
    assert said.strip().endswith("numbers recomputed, all equal.")
    page = (saved / "page.html").read_text("utf-8")
    (tmp_path / "page.html").write_text(page.replace("24 ", "25 ", 1), "utf-8")
    status, said = verify(tmp_path / "page.html")
    assert status == 1
    assert "25 reported, 24 recomputed" in said.replace("\n", " ")


def test_a_page_without_rows_or_with_damaged_ones_is_told(saved, tmp_path):
    page = (saved / "page.html").read_text("utf-8")
    (tmp_path / "old.html").write_text(
        re.sub(r'<script type="application/json" id="report">.*?</script>', "", page)
    )
    with pytest.raises(InvalidRequestError, match="lacks its rows as data"):
        evaluate.verify(tmp_path / "old.html")
    (tmp_path / "damaged.html").write_text(page.replace('"frames":"', '"frames":"A'))
    with pytest.raises(StoreError, match="damaged"):
        evaluate.verify(tmp_path / "damaged.html")
    with pytest.raises(StoreError):
        evaluate.verify(tmp_path / "nothing.html")


def test_verify_notes_another_version(saved, tmp_path):
    folder = shutil.copytree(saved / "report", tmp_path / "report")
    record = (folder / "record.json").read_text("utf-8")
    (folder / "record.json").write_text(re.sub(r'("speechlab": ?)"[^"]+"', r'\1"99.0"', record), "utf-8")
    proof = evaluate.verify(folder)
    assert not proof
    assert re.match(
        r"The report was made by speechlab 99\.0; this is .*, whose rules may differ\.", proof.notes[0]
    )


def test_wrong_references_are_suspected_and_corrected(saved, faulty, tmp_path):
    report, suspects = faulty, faulty.suspects()
    assert set(suspects["row"]) == {"s3", "s11", "s17"}
    fixes = pd.DataFrame({"row": suspects["row"], "old": suspects["text"], "new": suspects["suggestion"]})
    fixes.to_csv(tmp_path / "fixes.csv", index=False)
    corrected = evaluate.correct_references(report, tmp_path / "fixes.csv")
    before, after = (int(one.table["errors"].sum()) for one in (report, corrected))
    assert before - after == 6  # of both systems
    assert str(corrected.findings[0]).startswith(f"3 references were corrected; 6 of {before} errors (")
    right = evaluate.Report.load(saved / "report").summary
    assert corrected.summary["error_rate"].tolist() == right["error_rate"].tolist()
    assert report.table["text"].tolist() == sentences(wrong=(3, 11, 17))["text"].tolist() * 2
    assert evaluate.verify(corrected.save(tmp_path / "corrected.html"))
    references = corrected.tables["references"].set_index("system")
    assert references["reference_errors"].to_dict() == {"one": 3, "other": 3}
    assert (references["errors_before"] - references["reference_errors"]).eq(references["errors_after"]).all()


def test_references_decide_who_is_first(tmp_path):
    rows = sentences(8)
    rows["text"] = rows["one"]  # references that were taken from one of the systems
    report = report_of(tmp_path, rows)
    fixes = pd.DataFrame({"row": rows["id"], "old": rows["one"], "new": rows["other"]})
    corrected = evaluate.correct_references(report, fixes)
    assert str(corrected.findings[0]).endswith("The order is another one now: in English other and one.")


def test_suspects_are_accepted_dismissed_or_given_another_text(faulty):
    review, suspects = faulty.review(), faulty.suspects()
    first, second, third = suspects.index
    review.accept(first)
    review.dismiss(second)
    review.accept(third, "what was said")
    fixes = review.corrections(by="Ada")
    assert fixes["new"].tolist() == [
        suspects["suggestion"].iloc[0],
        suspects["text"].iloc[1],
        "what was said",
    ]
    assert fixes["by"].tolist() == ["Ada"] * 3
    assert fixes["when"].str.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ").all()
    review.note(first, "")
    assert len(review.corrections()) == 2
    with pytest.raises(InvalidRequestError, match="the text is empty"):
        review.accept(first, " ")


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


def test_recordings_and_outputs_that_exist_are_asked_again(staged, tmp_path):
    clip = staged.lab.synthesize("good morning", voice="low").save(tmp_path / "a.wav")
    rows = pd.DataFrame(
        {"text": ["good morning"], "language": "en", "audio": [clip], "old": ["good mourning"]}
    )
    both, how = {"x": staged.lab, "y": staged.lab}, {"store": tmp_path / "s", "progress": False}
    report = evaluate.recognition(both, rows, hypotheses=["old"], **how)
    again = report.rerun(both, progress=False)
    assert again.record["asked"] == report.record["asked"]
    assert again.table["hypothesis"].tolist() == report.table["hypothesis"].tolist()
    assert report.systems == ["x", "y", "old"]
    report.save(tmp_path / "saved")
    loaded = evaluate.Report.load(tmp_path / "saved").rerun(both, progress=False)
    assert loaded.record["asked"] == report.record["asked"]
    assert loaded.table["file"].unique().tolist() == ["a.wav"]
    assert len(loaded.compare(report).table) == len(report.table)
    for other in ({}, {"file": "mine"}):  # one system, and names of the user's own
        alone = evaluate.recognition(staged.lab, rows.assign(**other), **how)
        alone.save(tmp_path / "saved")
        loaded = evaluate.Report.load(tmp_path / "saved").rerun(staged.lab, progress=False)
        assert loaded.compare(alone).paired


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
    _, folder = spoken
    proof = evaluate.verify(folder / "report", store=folder / "store")
    assert proof, proof
    assert "6 replies of 2 batches were compared with the store." in proof.notes
    assert not [file for file in (folder / "report").rglob("*.*") if KEY.encode() in file.read_bytes()]
    other = evaluate.Report.load(folder / "report")
    other.table.loc[0, "hypothesis"] = "never said"
    other.save(folder / "other")
    unequal = evaluate.verify(folder / "other", store=folder / "store").unequal
    assert "never said" in unequal.loc[unequal["place"].str.startswith("store"), "reported"].tolist()
    assert "not in this store" in evaluate.verify(folder / "report", store=folder / "none").answer
