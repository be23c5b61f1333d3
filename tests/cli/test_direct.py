"""``say``, ``transcribe``, ``translate`` and ``voices``, with real engines, as people use them."""

import json
import os
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

import speechlab as sl
from support.forked import speechlab

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def run(live_service, tmp_path_factory):
    root = tmp_path_factory.mktemp("direct")
    where = {
        "SPEECHLAB_BASE_URL": live_service.base_url,
        "SPEECHLAB_API_KEY": live_service.api_key,
        "SPEECHLAB_STORE": str(root / "store"),
        "COLUMNS": "120",
    }

    def run_command(*arguments):
        return speechlab(*arguments, env={**os.environ, **where}, cwd=root, timeout=240)

    run_command.root = root
    return run_command


@pytest.fixture(scope="module")
def spoken(run):
    """A folder with one sentence, said twice."""
    (run.root / "mine").mkdir()
    said = run("say", "The train leaves at ten, and you are late.", "-o", "mine/a.wav", "--voice", "heart")
    assert said.returncode == 0, said.stderr
    assert re.search(r"mine/a\.wav: \d\.\d s, voice .*heart", said.stderr)
    again = run("say", "The train leaves at ten, and you are late.", "-o", "mine/b.flac", "--voice", "heart")
    assert again.returncode == 0
    return run.root / "mine"


def test_one_recording_is_printed_and_several_become_files(run, spoken):
    done = run("transcribe", "mine/a.wav", "--language", "en")
    assert done.returncode == 0, done.stderr
    assert "train" in done.stdout.lower()
    assert done.stdout.count("\n") == 1
    done = run("transcribe", "mine", "--to", "srt", "--language", "en")
    assert done.returncode == 0, done.stderr
    assert "folder transcripts: 2 files written" in done.stderr
    assert sorted(path.name for path in (run.root / "transcripts").iterdir()) == ["a.srt", "b.srt"]
    assert "train" in (run.root / "transcripts" / "a.srt").read_text("utf-8").lower()
    assert sl.segments.read(run.root / "transcripts" / "b.srt")["end"].max() < 10


def test_a_model_is_named_in_one_line(run, spoken):
    done = run("transcribe", "mine/a.wav", "--model", "smal")
    assert done.returncode != 0
    assert "did you mean 'small'?" in done.stderr
    done = run("transcribe", "mine/a.wav", "--model", "sherpa=nowhere")
    assert "the engine 'sherpa' cannot be used" in done.stderr


def test_a_recording_that_fails_is_reported_and_stops_no_other(run, spoken):
    (run.root / "bad.wav").write_bytes(b"no sound")
    arguments = ("transcribe", "bad.wav", "mine/a.wav", "--language", "en")
    done = run(*arguments, "--to", "csv", "-o", "all.csv")
    assert done.returncode == 1
    assert "bad.wav: " in done.stderr
    table = pd.read_csv(run.root / "all.csv")
    assert table["status"].isin(["ok", "cached"]).tolist() == [False, True]
    assert "train" in table["text"][1].lower()
    assert table["model"].fillna("").tolist() == ["", "whisper-base"]
    assert run(*arguments, "--to", "txt", "-o", "texts").returncode == 1
    file = run.root / "texts" / "a.txt"
    assert "train" in file.read_text("utf-8").lower()
    file.write_text("mine", "utf-8")
    done = run("transcribe", "mine/a.wav", "--language", "en", "--to", "txt", "-o", "texts")
    assert done.returncode == 1
    assert "exists with another content; --replace replaces it" in done.stderr
    assert file.read_text("utf-8") == "mine"


def test_texts_are_translated_line_by_line(run):
    done = run("translate", "今日は良い天気です。", "こんにちは。", "--to", "en")
    assert done.returncode == 0, done.stderr
    assert "from ja, by the text; --from says another language" in done.stderr
    assert len(done.stdout.splitlines()) == 2
    done = run("translate", "Guten Tag", "--to", "en")
    assert done.returncode == 2
    assert "--from" in done.stderr


def test_voices_are_listed(run):
    done = run("voices", "--language", "ja")
    assert done.returncode == 0, done.stderr
    assert "name" in done.stdout
    ids = [line.split()[-1] for line in done.stdout.splitlines()[2:]]
    lines = run("voices", "--json").stdout.splitlines()
    voices = [json.loads(line) for line in lines]
    assert len({voice["id"] for voice in voices}) == len(lines) > 2
    assert ids == [voice["id"] for voice in voices if "ja" in voice["language"]]


def test_the_commands_of_the_readme(run, spoken):
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    (block,) = re.findall(r"```bash\nsource .venv/bin/activate\n(.*?)```", readme, re.DOTALL)
    spoken.with_name("recordings").symlink_to(spoken)
    for line in block.splitlines():
        command, *arguments = shlex.split(line)
        assert command == "speechlab"
        done = run(*arguments)
        assert (done.returncode, line) == (0, line), done.stderr


def test_a_file_of_another_kind_is_refused_before_the_work(run):
    done = run("say", "Hello", "-o", "a.txt")
    assert done.returncode == 2
    assert "a.txt has no ending of a recording; give one of .wav" in done.stderr
