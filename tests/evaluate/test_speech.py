"""Studies of speech whose engines do what a test needs: ranking, intervals, speed, mixed rows, loops, figures."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab import evaluate
from speechlab.audio import AudioClip
from speechlab.client import Client
from speechlab.errors import InvalidRequestError
from speechlab.metrics import score
from speechlab.store import Store
from speechlab.text import loops
from support.staged import staged_service

pytestmark = pytest.mark.slow

LOOP = "it was a cold day in the north, " * 4


@pytest.fixture(scope="module")
def staged():
    with staged_service() as service:
        yield service


@pytest.fixture(scope="module")
def lab(staged):
    with Client(base_url=staged.http.base_url, api_key=staged.http.key) as client:
        yield client


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def recorded(staged, tmp_path):
    """Recordings that the recognizer hears as it is told: by their lengths in tenths of a second."""

    def make(*heard):
        paths = []
        for number, _ in enumerate(heard, start=1):
            samples = np.full(1_600 * number, 0.1, dtype=np.float32)
            paths.append(str(AudioClip(samples, 16_000).save(tmp_path / f"talk-{number}.wav")))
        staged.ears.hears = lambda duration_s: heard[round(10 * duration_s) - 1]
        return paths

    yield make
    staged.ears.hears = lambda duration_s: "heard"


def scored(voice, pairs, language="ja"):
    said, heard = zip(*pairs, strict=True)
    frame = pd.DataFrame({"text": said, "hypothesis": heard, "language": language})
    return score(frame).assign(
        voice=voice, voice_name=voice, gender="f", audio=None, duration_s=1.0, status="ok", error=None,
        loop=pd.array([False] * len(frame), dtype="boolean"),
    )  # fmt: skip


SPELLED = ("午後から精度を測る", "午後から制度を計る")
MISHEARD = ("午後から精度を測る", "午後から精度が測る")


def test_japanese_is_ranked_by_readings():
    pytest.importorskip("pyopenjtalk")
    rows = pd.concat([scored("speller", [SPELLED] * 20), scored("mumbler", [MISHEARD] * 20)])
    report = evaluate.Report.of_scores("two", rows.reset_index(drop=True))
    summary = report.summary
    ranks = [["speller", "reading_cer"], ["mumbler", "reading_cer"]]
    assert summary[["voice", "ranked_by"]].to_numpy().tolist() == ranks
    assert summary["ranking_rate"].tolist() == summary["reading_cer"].tolist()
    assert summary["cer"][0] > summary["cer"][1]  # by characters the order is the other one
    assert summary[["tolerant_cer", "ranking_rate_low"]].notna().all(axis=None)
    shown = report._repr_html_()
    worst = shown[shown.index("the first 3 of them") :]
    assert ("mumbler" in worst, "speller" in worst) == (True, False)
    written = next(column for column in report.views[0].columns if column.head == "with notation")
    assert written.texts == ("22.2% by character", "11.1% by character")  # beside a rate in kana
    assert report.rows().frame["voice"].tolist() == ["mumbler"] * 20 + ["speller"] * 20
    (axes,) = report.plot().axes
    assert axes.get_xlabel() == "reading error rate"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["speller, ja", "mumbler, ja"]


def test_intervals_are_given_where_their_coverage_is_sound():
    pairs = [("a b c", "a b x"), ("d e f", "d e f")] * 10
    for rows, more in ((19, 1), (20, 0)):
        report = evaluate.Report.of_scores("few", scored("one", pairs[:rows], "en"))
        row = report.summary.iloc[0]
        assert row["interval_needs"] == more
        for name in ("error_rate_low", "error_rate_high", "ranking_rate_low", "ranking_rate_high"):
            assert pd.isna(row[name]) == (more > 0), name
        words = f"needs {more} more clip".replace(" ", "\N{NO-BREAK SPACE}")
        assert (words in "".join(report.sections())) == (more > 0)


def test_columns_are_found_under_usual_names(staged, lab, store):
    how = {"store": store, "progress": False}
    voice, said = staged.voice("plain"), ["One sentence.", "Another."]
    usual = evaluate.round_trip(lab, pd.DataFrame({"text": said, "language": "en"}), voice, **how)
    for table, options in (
        (pd.DataFrame({"Sentence": said, "locale": "en"}), {}),
        (pd.DataFrame({"text": said, "language": "ja", "en": "ja"}), {"language": "en"}),
    ):
        found = evaluate.round_trip(lab, table, voice, **options, **how)
        pd.testing.assert_frame_equal(found.summary, usual.summary)
        assert found.table[found.columns["text"]].tolist() == said
        assert set(table) <= set(found.table)
    other = pd.DataFrame({"satz": said, "sprache": "en"})
    with pytest.raises(InvalidRequestError) as caught:
        evaluate.round_trip(lab, other, voice, **how)
    told = str(caught.value)
    assert "no column 'text', 'language'; it has 'satz', 'sprache'" in told
    assert "as in text='satz', language='sprache'" in told
    assert "language='en' is for all rows" in told


def test_rows_of_two_languages_keep_their_words_apart(staged, lab, store, recorded):
    said = "今日の meeting room は 3階です"
    paths = recorded("きのうの meeting rome は三階です。", "good morning")
    frame = pd.DataFrame(
        {"audio": paths, "text": [said, "good morning"], "language": ["ja+en", "en"]}, index=[7, 7]
    )
    report = evaluate.recognition(lab, frame, store=store, progress=False)
    assert report.table["status"].tolist() == ["ok", "ok"]
    assert [options.language for _, options in staged.ears.calls[-2:]].count(None) == 1
    mixed = report.table.iloc[0]
    assert mixed["unit"] == "word"
    assert mixed["reference_normalized"] == "今 日 の meeting room は 三 階 で す"
    assert (mixed["substitutions"], mixed["insertions"], mixed["reference_length"]) == (3, 1, 10)
    assert pd.isna(mixed["cer"])
    assert report.table.iloc[1]["error_rate"] == 0
    assert report.summary["language"].tolist() == ["en", "ja+en"]
    assert report.summary["voice_name"].tolist() == ["all recordings"] * 2
    page = report.to_html()
    assert "words and characters" in page
    assert "meetingroom" not in page
    assert 'lang="ja+en"' not in page


def test_the_rule_of_loops():
    for heard, said, yes in (
        (LOOP, "", True),
        (LOOP, LOOP, False),
        ("ありがとうございました。" * 3, "ありがとうございました。", True),
        ("Thank you for watching. Thank you for watching.", "", True),
        ("ha ha ha", "ha ha ha", False),
        ("very, very, very good", "very very very good", False),
        ("1000000", "1000000", False),
        ("", "", False),
    ):
        assert loops(heard, said) is yes, heard


@given(st.text(alphabet="ab cd。、今日は-'", max_size=40))
def test_no_text_loops_beside_itself(text):
    assert not loops(text, text)


def test_pages_on_studies(staged, lab, monkeypatch, tmp_path):
    """Their examples run, one after the other, here on engines that are quick."""
    staged.speaker.gate.set()
    monkeypatch.setattr(staged.speaker, "piece_s", 0.57)  # eight times as long, it just fills DNSMOS' window
    monkeypatch.setattr("speechlab.connect", lambda: lab)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "recordings"
    folder.mkdir()
    AudioClip(np.full(16_000, 0.1, dtype=np.float32), 16_000).save(folder / "a.wav")
    (folder / "a.txt").write_text("good morning", "utf-8")
    pages = (
        "evaluate choose-a-voice compare-recognizers compare-translators listening-test subtitles ci openai"
    )
    known = {}
    for page in pages.split():
        text = (Path(__file__).parents[2] / "docs" / f"{page}.md").read_text("utf-8")
        known[page] = {}
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            exec(compile(block, f"{page}.md", "exec"), known[page])
    assert known["evaluate"]["report"].summary["timed_calls"].tolist() == [2, 2]
    assert known["evaluate"]["recognized"].tables["segments"]["text"].tolist() == ["heard"] * 6
    assert known["compare-recognizers"]["report"].summary["system"].tolist() == ["mine", "here"]
    assert (tmp_path / "a.srt").read_text("utf-8").count("heard") == 1
