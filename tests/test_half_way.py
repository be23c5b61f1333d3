"""Messages that meet people half way: each says what was likely meant, or what to do."""

from __future__ import annotations

import pandas as pd
import pytest
from typer.testing import CliRunner

import speechlab as sl
from speechlab.cli import app
from speechlab.cli._commands import lab as lab_command
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
    path = tmp_path / "a.csv"
    path.write_text("text,speaker\na,1\nb, and c,2\n")
    told = "line 3 has 3 cells, and the first line 2 names; put texts with commas into quotes"
    with pytest.raises(InvalidRequestError, match=told):
        sl.batch.translate(path, lab, **options)


def test_speech_without_a_voice_says_to_choose_one():
    lab = sl.system("half", synthesize=lambda text, voice: ([0.0] * 800, 8_000), version="1")
    with pytest.raises(
        InvalidRequestError, match=r"choose a voice: .* lab\.voices\(\)\.find\(language='en'\)\[0\]"
    ):
        lab.synthesize("Hi")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "folder", "passed_on"),
    [(["--", "--port", "8899"], "speechlab-notebooks", ["--port", "8899"]), (["here"], "here", [])],
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
