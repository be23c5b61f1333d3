"""Studies of speech whose engines do what a test needs: ranking, intervals, speed, mixed rows, loops, figures."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab import evaluate, plots
from speechlab.audio import AudioClip
from speechlab.client import Client
from speechlab.errors import InvalidRequestError
from speechlab.metrics import score
from speechlab.store import Store
from speechlab.text import loops
from speechlab.widgets import BatchPreview
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
    several = plots.error_rates(report.summary, "voice", rates=["reading_cer", "tolerant_cer", "cer"])
    assert len(several.legends[0].get_texts()) == 3


def test_intervals_are_given_where_their_coverage_is_sound():
    pairs = [("a b c", "a b x"), ("d e f", "d e f")] * 10
    for rows, more in ((2, 18), (19, 1), (20, 0)):
        report = evaluate.Report.of_scores("few", scored("one", pairs[:rows], "en"))
        row = report.summary.iloc[0]
        assert row["interval_needs"] == more
        for name in ("error_rate_low", "error_rate_high", "ranking_rate_low", "ranking_rate_high"):
            assert pd.isna(row[name]) == (more > 0), name
        words = f"needs {more} more clip".replace(" ", "\N{NO-BREAK SPACE}")
        assert (words in "".join(report.sections())) == (more > 0)
    note = report.plot().axes[0].texts[0].get_text()
    assert not note.endswith("range unknown")
    bare = evaluate.Report.of_scores("few", report.table.drop(columns="loop"))
    assert bare.summary["loops"].tolist() == [0]


def test_speed_is_measured_in_turns_or_not_at_all(staged, lab, store):
    frame = pd.DataFrame({"text": ["One sentence.", "Another."], "language": "en"})
    voices = [staged.voice("plain"), staged.voice("no-model"), staged.voice("plain", "q")]
    first = evaluate.round_trip(lab, frame, [voices[0], voices[2]], store=store, progress=False)
    assert len(first.speed) == 0
    assert not [name for name in [*first.table, *first.summary] if "rtf" in name or "first_" in name]
    staged.speaker.calls.clear()
    staged.q.calls.clear()
    with pytest.warns(UserWarning, match="failed"):
        report = evaluate.round_trip(lab, frame, voices, speed=2, store=store, progress=False)
    assert report.table.query("voice != @voices[1]")["status"].tolist() == ["cached"] * 4
    calls = [call for call in [*staged.speaker.calls, *staged.q.calls] if call["voice"] == "plain"]
    assert len(calls) == 6  # one that warms up and two that count, of each voice
    timed = report.speed
    assert timed["turn"].tolist() == [0, 0, 0, 1, 1, 1]
    assert timed["voice"].tolist() == [*voices, voices[1], voices[2], voices[0]]
    assert timed["concurrency"].eq(1).all()
    done = timed[timed["error"].isna()]
    assert (done["first_byte_s"] <= done["total_s"]).all()
    assert done["duration_s"].tolist() == pytest.approx([1.0] * 4, abs=0.01)
    row = report.summary.set_index("voice").loc[voices[0]]
    assert row["timed_calls"] == 2
    assert row["rtf_low"] <= row["rtf"] <= row["rtf_high"]
    assert any("one at a time, in turns" in view.note for view in report.views)
    assert len(plots.distributions(timed, "first_audible_s", by="voice_name").axes) == 1


def test_columns_are_found_under_usual_names(staged, lab, store):
    how = {"store": store, "progress": False}
    voice, said = staged.voice("plain"), ["One sentence.", "Another."]
    usual = evaluate.round_trip(lab, pd.DataFrame({"text": said, "language": "en"}), voice, **how)
    for table, options in (
        (pd.DataFrame({"Sentence": said, "locale": "en"}), {}),
        (pd.DataFrame({"sentence": said}), {"language": "en"}),
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
    with pytest.raises(InvalidRequestError, match="no column 'said'"):  # what is named is not replaced
        evaluate.round_trip(lab, usual.table[["text", "language"]], voice, text="said", **how)


def test_a_preview_is_told_of_both_halves(staged, lab, store):
    frame, preview = pd.DataFrame({"text": ["One sentence."], "language": "en"}), BatchPreview(rows=2)
    for _ in range(2):
        evaluate.round_trip(lab, frame, staged.voice("plain"), store=store, progress=preview)
    assert (preview.title, preview.running) == ("Recognition", False)
    assert "1 cached" in preview.summary


def test_recordings_are_named_by_their_files(lab, store, recorded):
    paths = recorded("good morning", "good evening")
    frame = pd.DataFrame({"audio": paths, "text": "good morning", "language": "en"})
    report = evaluate.recognition(lab, frame, store=store, progress=False, vad="segments")
    names = ["talk-1.wav", "talk-2.wav"]
    assert report.table[["file", "voice_name"]].to_numpy().T.tolist() == [names] * 2
    assert report.summary["voice_name"].tolist() == ["all recordings"]
    assert report.tables["segments"]["text"].tolist() == ["good morning", "good evening"]
    spoken = evaluate.recognition(lab, frame.assign(speaker=["A", "B"]), store=store, progress=False)
    assert spoken.summary["voice_name"].tolist() == ["A", "B"]
    assert spoken.table["sample_rate"].dtype == "Int64"
    assert "file" in spoken.table


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
    words, both = report.plot().axes
    assert (words.get_xlabel(), both.get_xlabel()) == ("word error rate", "mixed error rate")
    page = report.to_html()
    assert "words and characters" in page
    assert "meetingroom" not in page
    assert 'lang="ja+en"' not in page


def test_loops_are_flagged(lab, store, recorded):
    said = ["it was a cold day in the north", "no no no"]
    frame = pd.DataFrame({"audio": recorded(LOOP, "no no no"), "text": said, "language": "en"})
    report = evaluate.recognition(lab, frame, store=store, progress=False)
    assert report.table["loop"].tolist() == [True, False]
    assert report.summary["loops"].tolist() == [1]
    assert "loop" in [column["name"] for column in report.rows().columns if column["shown"]]


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


def test_a_report_of_translations_draws_itself(lab, store):
    frame = pd.DataFrame({"text": ["eins", "zwei"], "reference": ["one", "two"], "source_lang": "en"})
    report = evaluate.translation(lab, frame.assign(target_lang=["ja", "zh"]), store=store, progress=False)
    (axes,) = report.plot().axes
    assert axes.get_xlabel() == "chrF"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["en, ja", "en, zh"]
    first = str(report.sections(clips=1)[-1])  # the worst
    assert [words in first for words in ("eins", "zwei", "the first 1 of them")] == [False, True, True]


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
