"""Messages that meet people half way: each says what was likely meant, or what to do."""

from __future__ import annotations

import pandas as pd
import pytest
from typer.testing import CliRunner

import speechlab as sl
from speechlab._arguments import find_likely_column
from speechlab.batch._plan.steps import SynthesisStep
from speechlab.cli import app
from speechlab.cli._commands import lab as lab_command
from speechlab.client import VoiceCatalogue, get_service
from speechlab.errors import InvalidRequestError
from support.notebooks import NOTEBOOKS

FRAME = pd.DataFrame(
    {
        "row": ["1", "2"],
        "file": ["a/1.wav", "a/2.wav"],
        "said": ["The train is late.", "Two cats sat there."],
        "lg": ["en", "en"],
    }
)


@pytest.mark.parametrize(
    ("name", "likely"),
    [
        ("text", "said"),
        ("reference", "said"),
        ("audio", "file"),
        ("language", "lg"),
        ("Said", "said"),
        ("rwo", None),
        ("files", "file"),
        ("speaker", None),
    ],
)
def test_a_missing_column_is_found_by_its_cells_or_its_name(name, likely):
    assert find_likely_column(list(FRAME.columns), name, FRAME) == likely


@pytest.mark.parametrize(
    "cell",
    ["2026-11-29T09:57:05.123Z", "2026-11-29 09:57:05", "9f86d081884c7d65", "heart", "ok", "7 / 9 + 3"],
)
def test_times_codes_and_remarks_are_not_proposed_as_texts(cell):
    frame = pd.DataFrame({"answered_at": [cell], "error": "the voice has no name", "why": "lost a word"})
    assert find_likely_column(list(frame.columns), "transcript", frame) is None


def test_each_door_proposes_the_likely_column():
    lab = sl.system("half", transcribe=lambda clip: "yes", translate=lambda text, **_: text, version="1")
    doors = [
        lambda: sl.evaluate.recognition(lab, FRAME, progress=False),
        lambda: sl.batch.translate(FRAME, lab, source_lang="en", target_lang="ja", progress=False),
        lambda: sl.metrics.error_rate(FRAME, reference="text", hypothesis="row"),
        lambda: sl.datasets.apply_corrections(FRAME, pd.DataFrame()),
    ]
    for door in doors:
        with pytest.raises(InvalidRequestError, match=r"'said' for 'text'|text='said'"):
            door()


def test_an_unquoted_comma_says_so(tmp_path):
    lab = sl.system("half", translate=lambda text, **_: text, version="1")
    options = {"source_lang": "en", "target_lang": "ja", "progress": False}
    path, what_to_do = tmp_path / "a.csv", "put texts with commas into quotes"
    path.write_text("text,speaker\na,1\nb, and c,2\n")
    with pytest.warns(UserWarning, match=f"line 3: it has 3 cells, and the first line names 2; {what_to_do}"):
        assert len(sl.datasets.read(path)) == 1
    with pytest.raises(
        InvalidRequestError, match=f"line 3 has 3 cells, and the first line 2 names; {what_to_do}"
    ):
        sl.batch.translate(path, lab, **options)
    path.write_text("text,speaker\nb, and c,2\nd, e,3\n")
    with pytest.raises(InvalidRequestError, match=what_to_do):
        sl.datasets.read(path)
    with pytest.raises(InvalidRequestError, match=what_to_do):
        sl.batch.translate(path, lab, **options)


def test_speech_without_a_voice_says_to_choose_one():
    lab = sl.system("half", synthesize=lambda text, voice: ([0.0] * 800, 8_000), version="1")
    with pytest.raises(
        InvalidRequestError, match=r"choose a voice: .* lab\.voices\(\)\.find\(language='en'\)\[0\]"
    ):
        lab.synthesize("Hi")


def test_systems_in_a_list_are_to_be_named():
    lab = sl.system("half", transcribe=lambda clip: "yes", version="1")
    with pytest.raises(InvalidRequestError, match=r"give each a name for the report: \{'a': …, 'b': …\}"):
        sl.evaluate.recognition([lab, lab], FRAME, progress=False)


def test_times_of_unspaced_texts_need_a_language():
    said = sl.segments.frame([(0.0, 2.0, "今日は良い天気ですね"), (2.0, 4.0, "明日も晴れるでしょう")])
    with pytest.raises(InvalidRequestError, match="name the language and count characters"):
        sl.metrics.timed_error_rate(said, said)
    assert sl.metrics.timed_error_rate(said, said, language="ja", unit="char").rate == 0.0
    assert sl.metrics.timed_error_rate(said, said, normalize=None).rate == 0.0


@pytest.mark.parametrize(
    ("formats", "format_"),
    [((), "flac"), (("mp3", "wav"), "wav"), (("mp3", "pcm"), "mp3"), (("wav", "flac"), "flac")],
)
def test_a_batch_asks_for_a_format_that_the_voice_has(formats, format_):
    voice = sl.Voice(id="53d1acf3-1ef1-5583-bcf8-dda6184fe486", description="Calm", formats=formats)
    given = {"text": "text", "voice": voice, "repeat": 0, "format": None, "respell": None}
    step = SynthesisStep(
        given, ["text"], "service", VoiceCatalogue([voice]), get_service(sl.Client("http://127.0.0.1:9"))
    )
    assert step.build_call({"text": "Hi"}).operation.format == format_


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "folder", "passed_on"),
    [
        (["--", "--port", "8899"], "speechlab-notebooks", ["--port", "8899"]),
        (["here", "--no-browser", "--", "--port", "8899"], "here", ["--port", "8899"]),
        (["here"], "here", []),
    ],
)
def test_what_stands_behind_the_dashes_is_passed_to_jupyterlab(
    words, folder, passed_on, tmp_path, monkeypatch
):
    started = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lab_command, "_run_jupyterlab", lambda command: started.append(command) or 0)
    assert CliRunner().invoke(app, ["lab", *words]).exit_code == 0
    (command,) = started
    brought = sorted(path.name for path in (tmp_path / folder).glob("*.ipynb"))
    assert brought == [path.name for path in NOTEBOOKS]
    if passed_on:
        at = command.index(passed_on[0])
        assert command[at : at + len(passed_on)] == passed_on
