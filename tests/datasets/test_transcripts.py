"""Replies of vendors in the forms that they document, and files of transcripts, as columns of a table."""

import json
from pathlib import Path

import pandas as pd
import pytest

import speechlab as sl
from speechlab import datasets, segments
from speechlab.errors import InvalidRequestError

TEXT = "Good morning. Ada."

WORDS = [("Good", 0.1, 0.4), ("morning.", 0.4, 0.9), ("Ada.", 1.0, 1.5)]
REPLIES = json.loads(Path(__file__).with_name("replies.json").read_text("utf-8"))
"""A reply of each vendor that says TEXT in WORDS, and replies without a transcript by what is said of them."""


@pytest.mark.parametrize("vendor", REPLIES["finished"])
def test_replies_of_vendors(vendor):
    reply = REPLIES["finished"][vendor]
    found = datasets.transcript_of(json.loads(json.dumps(reply)))
    assert found["text"] == TEXT
    assert [one["word"] for one in found["words"]] == [word for word, *_ in WORDS]
    assert [one["start"] for one in found["words"]] == pytest.approx([start for _, start, _ in WORDS])
    assert [one["end"] for one in found["words"]] == pytest.approx([end for *_, end in WORDS])
    assert {one["confidence"] for one in found["words"]} <= {0.9, None}
    with sl.system(vendor, transcribe=lambda clip: reply, version="1") as lab:  # a function may return it
        transcript = lab.transcribe(([0.1] * 800, 8_000))
    assert transcript.text == TEXT
    assert transcript.words["word"].tolist() == [word for word, *_ in WORDS]


def test_an_empty_reply_is_an_empty_transcript():
    for empty in (
        {"text": ""},
        {"results": {"channels": [{"alternatives": []}]}},
        {"RecognitionStatus": "NoMatch", "Offset": 1_800_000, "Duration": 3_210_000},  # of silence
        {"totalBilledTime": "15s", "requestId": "1"},
    ):
        assert datasets.transcript_of(empty)["text"] == ""


def test_results_that_are_not_googles():
    def item(content, start, **more):
        return {"start_time": start, "end_time": start + 1, "alternatives": [{"content": content}], **more}

    words = [item("Hello", 0, type="word"), item(".", 1, type="punctuation", attaches_to="previous")]
    reply = datasets.transcript_of({"results": [*words, item("you", 1, type="word")]})
    assert reply["text"] == "Hello. you"
    assert [word["word"] for word in reply["words"]] == ["Hello", "you"]
    interim = [{"alternatives": [{"transcript": "he"}], "final": False}]
    with pytest.raises(InvalidRequestError, match="all of its results are interim ones"):
        datasets.transcript_of({"results": interim})
    final = [{"alternatives": [{"transcript": "hello"}], "final": True}]
    assert datasets.transcript_of({"results": [*final, *interim]}) == {"text": "hello"}


def test_whisper_cpp():
    spans = ((" Good morning.", 0, 900), (" Ada.\n", 1_000, 1_500))
    reply = {
        "result": {"language": "en"},
        "transcription": [{"offsets": {"from": a, "to": b}, "text": text} for text, a, b in spans],
    }
    found = datasets.transcript_of(reply)
    assert (found["text"], found["language"]) == (TEXT, "en")
    assert [(one["start"], one["end"]) for one in found["segments"]] == [(0.0, 0.9), (1.0, 1.5)]


def test_a_job_that_failed_or_is_unfinished_is_no_transcript():
    for reason, reply in REPLIES["unfinished"].items():
        with pytest.raises(InvalidRequestError, match=reason):
            datasets.transcript_of(reply)


def test_what_a_finished_operation_holds_is_read():
    inner = {"results": [{"alternatives": [{"transcript": "hello"}]}]}
    reply = {"name": "operations/1", "done": True, "response": inner}
    assert datasets.transcript_of(reply)["text"] == "hello"


def test_what_a_reply_lacks_is_missing_and_the_text_is_kept():
    words = [{"word": "with", "start": 1.1, "end": 1.2, "score": "0.9"}, {"word": "2266"}]
    reply = {"segments": [{"start": 1, "end": 2, "text": "with 2266", "words": words}]}
    found = datasets.transcript_of(reply)
    assert found["text"] == "with 2266"
    assert found["words"][0] == {"word": "with", "start": 1.1, "end": 1.2, "confidence": 0.9}
    assert found["words"][1] == {"word": "2266", "start": None, "end": None, "confidence": None}
    # of a pipeline, whose last piece may have no end
    chunks = {
        "chunks": [{"timestamp": [0.0, 1.5], "text": " hi"}, {"timestamp": [1.5, None], "text": " you"}]
    }
    with sl.system("pipeline", transcribe=lambda clip: chunks, version="1") as lab:
        transcript = lab.transcribe(([0.1] * 800, 8_000))
    assert transcript.text == "hi you"
    assert transcript.segments[["start", "end", "text"]].values.tolist() == [
        [0.0, 1.5, "hi"],
        [1.5, 1.5, "you"],
    ]
    with pytest.warns(UserWarning, match="1 confidences are not between 0 and 1, and left out: 98"):
        assert "confidence" not in datasets.transcript_of({"text": "a", "confidence": 98})


TIMED = [{"word": w, "startTime": f"{at}s", "endTime": f"{at}.5s"} for at, w in enumerate(("hello", "there"))]
TAGGED = [word | {"speakerTag": 1} for word in TIMED]


def test_words_that_diarization_doubles_are_read_once():
    for alternatives in (
        [
            {"transcript": "hello", "words": TIMED[:1]},
            {"transcript": "there", "words": TIMED[1:]},
            {"words": TAGGED},
        ],
        [{"transcript": "hello there", "words": TIMED}, {"transcript": "hello there", "words": TAGGED}],
    ):
        found = datasets.transcript_of({"results": [{"alternatives": [one]} for one in alternatives]})
        assert found["text"] == "hello there"
        assert [word["word"] for word in found["words"]] == ["hello", "there"]
    said = [{"word": "no", "start": at, "end": at + 0.5} for at in (0.0, 1.0)]
    assert len(datasets.transcript_of({"text": "no no", "words": said})["words"]) == 2


def test_units_are_known_or_asked_for():
    words = [{"text": "a", "start": 100, "end": 300}, {"text": "b", "start": 300, "end": 600}]
    for more in ({}, {"audio_duration": 1}):
        with pytest.raises(InvalidRequestError, match="cannot be seconds; say their unit: unit='ms'"):
            datasets.transcript_of({"text": "a b", "words": words, **more})
    assert datasets.transcript_of({"text": "a b", "words": words}, unit="ms")["words"][1]["end"] == 0.6
    assert datasets.transcript_of({"text": "a b", "words": words, "audio_url": "x"})["words"][1]["end"] == 0.6


@pytest.fixture
def manifest(tmp_path):
    for name in ("a", "b"):
        sl.AudioClip([0.1] * 800, 8_000).save(tmp_path / f"{name}.wav")
    table = pd.DataFrame({"audio": ["a.wav", "b.wav"], "text": ["one two", "three"], "language": "en"})
    table.to_csv(tmp_path / "list.csv", index=False)
    return tmp_path / "list.csv"


def test_transcripts_become_columns(manifest, tmp_path):
    folders = {name: tmp_path / name for name in ("json", "txt", "srt")}
    for folder in folders.values():
        folder.mkdir()
    for name, text in (("a", "one two"), ("b", "tree")):
        (folders["json"] / f"{name}.json").write_text(json.dumps({"text": text}))
        (folders["txt"] / f"{name}.txt").write_text(f"{text}\n")
        segments.write(segments.frame([(0.0, 0.5, text)], file=name), folders["srt"] / f"{name}.srt")
    (tmp_path / "all.ctm").write_text("a 1 0.0 0.1 one\na 1 0.1 0.1 two\nb 1 0.0 0.2 tree\n")
    given = {**folders, "ctm": tmp_path / "all.ctm"}
    table = datasets.read(manifest, transcripts=given)
    for name in given:
        assert table[name].tolist() == ["one two", "tree"], name


def test_transcripts_of_other_recordings_are_told(manifest, tmp_path):
    (tmp_path / "all.ctm").write_text("a 1 0.0 0.1 one\na 1 0.1 0.1 two\n")
    with pytest.warns(UserWarning, match="1 of 2 rows have no transcript of 'old'"):
        assert datasets.read(manifest, transcripts={"old": tmp_path / "all.ctm"})["old"].isna().tolist() == [
            False,
            True,
        ]
    (tmp_path / "all.ctm").write_text("c 1 0.0 0.1 one\n")
    with pytest.raises(InvalidRequestError, match="no transcript of these recordings; its names are c"):
        datasets.read(manifest, transcripts={"old": tmp_path / "all.ctm"})
    with pytest.raises(InvalidRequestError, match="already has a column 'text'"):
        datasets.read(manifest, transcripts={"text": tmp_path / "all.ctm"})


def test_one_bad_file_costs_its_row(manifest, tmp_path):
    folder = tmp_path / "vendor"
    folder.mkdir()
    (folder / "a.json").write_text('{"text": "one two", "confidence": NaN}')
    (folder / "b.json").write_text('{"status": "error", "error": "bad file", "text": null, "audio_url": "x"}')
    with (
        pytest.warns(UserWarning, match=r"b\.json cannot be read as a transcript: .* 'error': bad file"),
        pytest.warns(UserWarning, match="1 of 2 rows have no transcript of 'vendor'"),
    ):
        table = datasets.read(manifest, transcripts={"vendor": folder})
    assert table["vendor"].isna().tolist() == [False, True]
    (folder / "a.json").unlink()
    (folder / "d.json").write_text("[" * 100_000)
    with pytest.raises(InvalidRequestError, match=r"b\.json cannot be read as a transcript"):
        datasets.read(manifest, transcripts={"vendor": folder})


def test_texts_in_other_formats(tmp_path):
    (tmp_path / "labels.txt").write_text("0.0\t1.5\thello\n1.5\t2\tthere\n")
    (tmp_path / "whisper.tsv").write_text("start\tend\ttext\n0\t2500\thello\n2500\t4000\tthere\n")
    (tmp_path / "list.json").write_text(
        '[{"session_id": "list", "start_time": 0, "end_time": 1, "words": "hello there"}]'
    )
    for name in ("labels.txt", "whisper.tsv", "list.json"):
        assert datasets.transcripts_in(tmp_path / name) == {name.partition(".")[0]: "hello there"}


def test_several_files_and_recordings_of_one_name(tmp_path):
    folder = tmp_path / "whisper"
    folder.mkdir()
    (folder / "a.json").write_text('{"text": "one two"}')
    (folder / "a.txt").write_text("one\ntwo\n")
    assert datasets.transcripts_in(folder) == {"a": "one two"}
    (folder / "a.vtt").write_text("WEBVTT\n\n00:00.000 --> 00:01.000\nthree\n")
    with pytest.warns(UserWarning, match=r"a\.vtt has another transcript of 'a'"):
        assert datasets.transcripts_in(folder) == {"a": "one two"}
    (folder / "a.vtt").unlink()
    for place in ("x", "y"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "a.wav").touch()
    (tmp_path / "b.wav").touch()
    (folder / "b.txt").write_text("three")
    (tmp_path / "list.csv").write_text("audio,text\nx/a.wav,one\ny/a.wav,two\nb.wav,three\n")
    with pytest.warns(UserWarning, match="2 of 3 rows have no transcript of 'old'"):
        assert datasets.read(tmp_path / "list.csv", transcripts={"old": folder})["old"].isna().tolist() == [
            True,
            True,
            False,
        ]


def test_a_text_that_holds_rows_is_left_out(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.wav").touch()
    held = '"1\n00:00:01,000 --> 00:00:02,000\nhello"'
    (tmp_path / "list.csv").write_text(f"audio,text\na.wav,{held}\nb.wav,two\n")
    with (
        pytest.warns(
            UserWarning, match="1 of 2 texts are left out, the first in row 1: it holds times of captions"
        ),
        pytest.warns(UserWarning, match="1 of 2 rows have no text"),
    ):
        assert datasets.read(tmp_path / "list.csv")["text"].isna().tolist() == [True, False]
