"""``speechlab batch`` as a process of its own."""

import os
import re
import signal
import time

import numpy as np
import pandas as pd
import pytest

from speechlab import segments
from speechlab.audio import AudioClip
from support.ears import Ears, ears
from support.forked import Speechlab, speechlab

__all__ = ["ears"]  # a fixture


@pytest.fixture
def command(translator, tmp_path):
    started = []

    def start(*arguments):
        env = {**os.environ, "SPEECHLAB_BASE_URL": translator.base_url, "COLUMNS": "100"}
        process = Speechlab("batch", *arguments, env=env, cwd=tmp_path)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()


def ended(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@pytest.mark.slow
def test_a_file_goes_in_and_a_file_comes_out(command, translator, tmp_path):
    frame = pd.DataFrame({"text": [f"text {n}" for n in range(300)], "mine": range(300)})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    job = ("translate", "rows.csv", "--out", "run", "--from", "en", "--to", "ja")
    code, out, _ = ended(command(*job, "--dry-run"))
    assert code == 0
    assert "300 rows, 0 invalid, 300 calls, 0 cached" in out
    price = ("--price", "calls=1/2", "--price", "characters=0")
    code, out, _ = ended(command(*job, "--dry-run", *price))
    assert "cost, estimated: 150" in out
    code, out, err = ended(command(*job[:3], "few", *job[4:], *price, "--max-cost", "2", "--max-calls", "9"))
    assert (code, "the budget of 2 (cost) is used up" in err) == (3, True)
    assert "4 calls" in out
    assert "cost 2" in out
    code, _, err = ended(command("translate", "gone.csv", *job[2:]))
    assert (code, "there is no file or folder 'gone.csv' in " in err) == (2, True)
    translator.calls.clear()
    translator.delay_s = 0.02
    stopped = command(*job)
    while sum(translator.calls.values()) < 40:
        assert stopped.poll() is None
        time.sleep(0.01)
    stopped.send_signal(signal.SIGTERM)
    code, _, err = ended(stopped)
    assert code == 130
    assert "was interrupted: " in err
    assert "run the same command again to continue" in err
    before = sum(translator.calls.values())
    assert before < 300
    translator.faults = {"text 299": 400}
    code, out, err = ended(command(*job))
    assert code == 1, err
    assert re.search(r"Error: HTTP 400 .*no: 400", err)
    assert sum(translator.calls.values()) == 300
    table = pd.read_parquet(tmp_path / "run" / "results.parquet")
    assert table["translation"].tolist()[:299] == [text[::-1] for text in frame["text"]][:299]
    assert table["mine"].tolist() == frame["mine"].tolist()
    assert re.search(rf"cached +{before}\b", out)


@pytest.mark.slow
def test_segments_of_any_format(ears, tmp_path):
    for number in range(3):
        AudioClip(np.full(32_000, 0.1 * (number + 1), np.float32), 16_000).save(tmp_path / f"r{number}.wav")
    pd.DataFrame({"audio": [f"r{number}.wav" for number in range(3)]}).to_csv(tmp_path / "rows.csv")
    env = {**os.environ, "SPEECHLAB_BASE_URL": ears, "SPEECHLAB_API_KEY": "key"}
    job = ["batch", "asr", "rows.csv", "--out", "heard", "--vad", "segments", "--concurrency", "1"]
    Ears.backwards = {2}

    def command(*more):
        return speechlab(*job, *more, env=env, cwd=tmp_path)

    found = []
    names = {"nemo": "nemo.jsonl", "seglst": "all.json.gz", "rttm": "all"}
    for form, name in names.items():
        done = command("--segments", name, "--segments-format", form)
        assert done.returncode == 0, done.stderr
        assert "no segments of 1 rows: r1.wav" in done.stderr
        found.append(segments.read(tmp_path / name, form))
    assert [table["file"].tolist() for table in found] == [["r0.wav", "r2.wav"]] * 3
    assert command("--segments", "heard/{file}.srt").returncode == command().returncode == 0
    captions = [segments.read(tmp_path / "heard" / f"{name}.srt") for name in ("r0", "r2")]
    assert [" ".join(one["text"]) for one in captions] == ["word"] * 2
    pieces = pd.read_parquet(tmp_path / "heard" / "segments.parquet")
    same = ["file", "start", "end", "text"]
    assert segments.equal(pieces[same], found[1][same])
    assert Ears.asked == 3
    done = command("--segments", "a.jsonl")
    assert done.returncode not in {0, 1, 3}
    assert "--segments-format" in " ".join(done.stderr.split())
