"""The table of sound as Python sees it: what it takes, what it answers, what it keeps and what it leaves behind."""

import base64
import hashlib
import json
import random
import re

import numpy as np
import orjson
import pandas as pd
import polars as pl
import pytest

import speechlab as sl
from speechlab.audio import AudioClip, decode
from speechlab.errors import InvalidRequestError
from speechlab.widgets import AudioTable
from support.samples import tone

HOSTILE = "<img src=x onerror=alert(1)></script><!-- $5 and $6 \u2028 \u202e"


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "id": [f"utt-{one}" for one in range(6)],
            "audio": [tone(0.3 + 0.1 * one) for one in range(6)],
            "language": ["en", "ja", "en", "ja", "en", "en"],
            "text": ["this is a test", "明日の精度", HOSTILE, "会議は三時です", None, "the same text"],
            "hypothesis": ["this was test", "あすの制度", "another", "会議は四時です", "x", "the same text"],
            "rate": [0.5, 0.25, 1.0, float("nan"), 0.0, 0.125],
        },
        index=list("abcdef"),
    )


def answers_of(table, **asked):
    sent = []
    table.send = lambda content, buffers=(): sent.append((content, list(buffers)))
    table._answer_message(table, {"revision": table.revision, **asked}, [])
    return sent


def test_columns_are_told_apart_by_what_they_hold(frame):
    for table in (AudioTable(frame), sl.show(frame), frame.speech.show()):
        assert table.count == 6
    kinds = {column["name"]: column["kind"] for column in table.columns}
    texts = {"text": "text", "hypothesis": "text"}
    assert kinds == {"id": "label", "language": "category", "rate": "number", **texts}
    assert table.reference == "text"
    assert [column["name"] for column in table.columns if column["compared"]] == ["hypothesis"]
    assert AudioTable(pl.DataFrame({"audio": ["a.wav"]})).count == 1
    chosen = AudioTable(frame, columns=["text", "rate"], reference="hypothesis", hypotheses="text")
    assert [column["name"] for column in chosen.columns if column["shown"]] == ["text", "rate"]
    assert chosen.reference == "hypothesis"


@pytest.mark.parametrize("way", ["clip", "path"])
def test_sound_comes_as_it_is_in_clips_and_files(tmp_path, way):
    clip = tone()
    cell = clip if way == "clip" else clip.save(tmp_path / "a.flac")
    table = AudioTable(pd.DataFrame({"what": [cell, cell], "n": [1, 2]}))
    ((told, (data,)),) = answers_of(table, type="sound", row=1)
    assert (told["content_type"].startswith("audio/"), told["note"]) == (True, "")
    assert np.abs(decode(data).samples - clip.samples).max() <= 1 / 32_767
    ((told, (peaks,)),) = answers_of(table, type="outlines", rows=[0], bins=10)
    assert (told["facts"], len(peaks)) == ([[0.5, "", 20]], 20)


def test_large_sound_comes_as_a_preview(monkeypatch, frame):
    monkeypatch.setattr("speechlab.widgets._shared.sounds._MAX_EXACT_BYTES", 4_000)
    ((told, (data,)),) = answers_of(AudioTable(frame), type="sound", row=0)
    assert (told["note"], told["content_type"]) == ("preview", "audio/ogg")
    assert len(data) < 4_000


def test_a_row_without_sound_says_why():
    for cell, said in [
        (None, "no sound"),
        ("gone.wav", "the file is gone"),
        (b"RIFF", "unsupported audio"),
        (AudioClip(np.zeros(0), 16_000), "empty"),
    ]:
        table = AudioTable(pd.DataFrame({"audio": [tone(), cell]}), audio="audio")
        ((told, _),) = answers_of(table, type="sound", row=1)
        assert re.search(said, told["error"])
        assert re.search(said, table.static_html())
    table = AudioTable(pd.DataFrame({"audio": [AudioClip([0.0], 8_000), AudioClip(np.zeros(8_000), 8_000)]}))
    for row in (0, 1):  # one sample and silence are sound
        ((told, _),) = answers_of(table, type="sound", row=row)
        assert "error" not in told
    assert table.static_html().count("<audio") == 2


def pieces_of(table, row, column="hypothesis"):
    ((_, (data,)),) = answers_of(
        table, type="differences", rows=[row], reference=table.reference, columns=[column]
    )
    return orjson.loads(data)[0]["pieces"]


def test_differences_are_in_the_spelling_as_written(frame):
    table = AudioTable(frame)
    assert pieces_of(table, 0) == [
        ["equal", "this ", ""], ["delete", "is a", "recognition"], ["insert", "was", "recognition"],
        ["equal", " test", ""],
    ]  # fmt: skip
    kinds = {(kind, text): name for kind, text, name in pieces_of(table, 3)}
    assert kinds["delete", "三"] == kinds["insert", "四"] == "recognition"
    assert {name for *_, name in pieces_of(table, 1)} == {"", "notation", "homophone"}
    assert pieces_of(table, 4) is None
    assert pieces_of(table, 5) == [["equal", "the same text", ""]]
    cells = (
        ["The bus at 10:35 p.m. there", "the e-mail desk"],
        ["The bus at 10.35 pm their", "the email tesk"],
    )
    table = AudioTable(frame.head(2).assign(text=cells[0], hypothesis=cells[1], language="en"))
    classes = [[name for kind, _, name in pieces_of(table, row) if kind != "equal"] for row in (0, 1)]
    assert classes == [["homophone"] * 2, ["recognition"] * 2]  # of neighbors the worst


def test_differences_give_back_the_whole_hypothesis():
    for language, said, heard, expected in [
        ("en", "a b c", "a b", "=a b|- c"),
        ("en", "a b c", "a c", "=a |-b |=c"),
        ("en", "", "hello", "+hello"),
        ("en", "Hello, world.", "hello world", "=hello world"),
        ("en", "costs $5", "costs $6!", "=costs |-$5|+$6|=!"),
        ("ja", "11月20日", "地1月2地日", "-11|+地1|=月|-20|+2地|=日"),
        ("ja", "合計は47ドル99セントです", "合計は$47.99です", "=合計は$|-47ドル99セント|+47.99|=です"),
        ("zh", "气温是34.5度", "气温是3是.5度", "=气温是|-34.5|+3是.5|=度"),
    ]:
        frame = pd.DataFrame({"audio": [tone()], "text": [said], "hyp": [heard]})
        table = AudioTable(frame, reference="text", hypotheses=["hyp"], language=language)
        pieces = pieces_of(table, 0, "hyp")
        signs = {"equal": "=", "delete": "-", "insert": "+"}
        assert "|".join(signs[kind] + text for kind, text, _ in pieces) == expected
        assert "".join(text for kind, text, _ in pieces if kind != "delete") == heard


@pytest.mark.slow
@pytest.mark.parametrize("language", ["ja", "zh", "en", "de"])
def test_pieces_of_any_text_give_back_the_hypothesis(language):
    chance = random.Random(language)
    signs = "0123456789.,-$円月日三十百あ字。"
    said, heard = (
        ["".join(chance.choices(signs, k=chance.randrange(1, 11))) for _ in range(20)] for _ in range(2)
    )
    rows = pd.DataFrame({"audio": [tone()] * 20, "text": said, "hypothesis": heard})
    table = sl.show(rows, reference="text", language=language)
    for row, hypothesis in enumerate(heard):
        pieces = pieces_of(table, row)
        assert "".join(text for kind, text, _ in pieces if kind != "delete") == hypothesis, said[row]
        assert all(text for _, text, _ in pieces)


def test_what_the_browser_notes_lands_in_columns(frame):
    table = AudioTable(frame)
    kept = (1, "mark", True), (1, "rating", 4), (2, "note", HOSTILE)
    for row, name, value in (*kept, (9, "mark", True), (0, "id", 1)):
        answers_of(table, type="noted", row=row, name=name, value=value)
    noted = table.frame
    assert table.marked == ["b"]
    assert noted["mark"].tolist() == [False, True, False, False, False, False]
    assert noted["rating"].dropna().to_dict() == {"b": 4}
    assert noted["note"].dropna().to_dict() == {"c": HOSTILE}
    assert noted.drop(columns=["mark", "rating", "note"]).equals(frame)
    again = AudioTable(noted)
    assert (again.marked, again.frame.loc["b", "rating"]) == (["b"], 4)
    # each other view of the table learns of it
    sent = answers_of(table, type="noted", row=1, name="rating", value=4)
    assert sent == [({"type": "noted", "row": 1, "name": "rating", "value": 4}, []), ({"ask": None}, [])]


def test_what_python_changes_is_told_to_the_browser(frame):
    table = AudioTable(frame)
    sent = []
    table.send = lambda content, buffers=(): sent.append(content)
    table.rate("a", 5)
    table.selected = "d"
    assert [(told["row"], told["name"], told["value"]) for told in sent] == [(0, "rating", 5)]
    assert (table.chosen, table.selected) == (3, "d")
    table.frame = frame.head(2)
    assert (table.count, table.revision, table.selected, table.marked) == (2, 1, None, [])
    assert answers_of(table, type="rows", start=0, revision=0) == []
    repeated = AudioTable(pd.concat([frame, frame]))  # labels that repeat: by position
    repeated.marked, repeated.selected = [7], 11
    assert (repeated.marked, repeated.selected) == ([7], 11)


def cells_of(table):
    ((_, (data,)),) = answers_of(table, type="rows", start=0)
    return {name[2:]: cells for name, cells in orjson.loads(data).items() if name.startswith("c:")}


def test_cells_of_every_type_are_shown(tmp_path):
    frame = pd.DataFrame(
        {
            "audio": [tone(), None],
            3: [float("inf"), float("-inf")],
            "large": [10**20, 2],
            "exact": [2**53, 1],
            "missing": pd.array([None, 1], dtype="Int64"),
            "small": [1e-9, 0.0],
            "time": pd.to_datetime(["2024-01-01 10:00", None]),
            "objects": [{"a": 1}, (1, 2)],
        }
    )
    table = AudioTable(frame)
    cells = cells_of(table)
    assert cells["3"] == ["∞", "-∞"]
    assert cells["large"] == [str(10**20), "2"]  # a browser would lose its digits
    assert (cells["exact"], cells["missing"]) == ([2**53, 1], [None, 1])
    assert cells["time"] == ["2024-01-01 10:00:00", None]
    html = table.static_html()
    for name, shown in (("3", "∞"), ("Small", "1e−09"), ("Exact", str(2**53))):
        assert f">{name} </span>{shown}</span>" in html
    assert table.save(tmp_path / "page.html").stat().st_size > 10_000


def test_tables_without_sound_and_without_rows_are_tables(frame):
    table = AudioTable(pd.DataFrame({"audio": [tone(), 3, b"junk", "/nope.wav"], "text": list("abcd")}))
    assert table.sound
    assert [column["name"] for column in table.columns] == ["text"]
    for none in (frame.head(0), frame.assign(audio=None)):
        table = AudioTable(none)
        assert (table.sound, table.count) == (True, len(none))
    assert "audio" not in cells_of(table)


def test_static_html_has_the_first_rows_with_sound(frame):
    html = AudioTable(frame, static_rows=3)._repr_mimebundle_()["text/html"]
    assert html.count("<audio") == 3
    assert "the first 3 of them here" in html
    assert html.count("<del") >= 3
    assert html.count("<img") == html.count('<img src="data:image/png;base64,') == 3
    assert "<script" not in html
    alike = {"text": ["目前的经济"], "hypothesis": ["目前地经济"], "language": "zh", "audio": [tone()]}
    html = AudioTable(pd.DataFrame(alike)).static_html()
    assert (
        html.count("background:rgba(222,160,30,.32)") == 3
    )  # both words, as in the live table, and the legend


def test_too_many_rows_for_a_page_are_refused(monkeypatch, tmp_path):
    monkeypatch.setattr("speechlab.widgets._table.shown._MAX_BYTES", 2_000_000)
    frame = pd.DataFrame({"audio": [tone(1)] * 1_200})
    with pytest.raises(InvalidRequestError, match=r"1,200 rows take about \d+ MB, and a page holds 2 MB"):
        AudioTable(frame).save(tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_of_too_many_marks_the_first_stay(tmp_path):
    frame = pd.DataFrame({"audio": [None] * 60_000})
    table = AudioTable(frame.assign(mark=True, note=["the first note", *[None] * 59_999]))
    html = table.static_html()
    (kept,) = re.findall(r"notes of ([\d,]+) rows", html)
    (left,) = re.findall(r"; ([\d,]+) further rows", html)
    assert int(kept.replace(",", "")) + int(left.replace(",", "")) == 60_000
    (tmp_path / "marks.csv").write_text(re.findall(r"<pre[^>]*>([^<]+)<", html)[0], encoding="utf-8")
    again = sl.show(frame, marks=tmp_path / "marks.csv")
    assert again.marked == list(range(int(kept.replace(",", ""))))


def test_save_writes_a_page_whose_policy_stops_the_rest(frame, tmp_path):
    page = AudioTable(frame).save(tmp_path / "page.html").read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    assert "unsafe" not in policy
    script = re.search(r'<script type="module" async>(.*?)</script>', page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert data["rows"]["c:text"][2] == HOSTILE
    sounds = json.loads(re.search(r'id="sounds">(.*?)</script>', page, re.DOTALL)[1])
    assert decode(base64.b64decode(sounds[0][0])).duration_s == pytest.approx(0.3, abs=0.05)


def test_a_table_of_a_batch_begins_with_what_failed():
    clip = AudioClip(np.zeros(800), 8_000)
    frame = pd.DataFrame({"text": [f"row {n}" for n in range(20)], "audio": [clip] * 20})
    frame = frame.assign(status="ok", error_type=None, error=None, asr_status="ok", asr_error_type=None)
    assert AudioTable(frame).title == "Sounds"
    frame.loc[17, ["status", "error_type", "error"]] = "error", "InvalidRequestError", "text is empty"
    table = AudioTable(frame, static_rows=2)
    assert table.title == "Sounds: 1 of 20 rows failed, sl.batch.failures(table) lists why"
    still = str(table.static_html())
    assert still.index("row 17") < still.index("row 0")
    assert "row 1<" not in still
