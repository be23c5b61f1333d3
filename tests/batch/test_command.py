"""``speechlab batch`` as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from speechlab import segments

SPEECHLAB = Path(sys.executable).parent / "speechlab"


@pytest.fixture
def command(translator, tmp_path):
    started = []

    def start(*arguments):
        given = [SPEECHLAB, "batch", *map(str, arguments)]
        env = {**os.environ, "SPEECHLAB_BASE_URL": translator.base_url, "COLUMNS": "100"}
        process = subprocess.Popen(
            given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=tmp_path
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def ended(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_a_file_goes_in_and_a_file_comes_out(command, translator, tmp_path):
    frame = pd.DataFrame({"text": [f"text {n}" for n in range(300)], "mine": range(300)})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    job = ("translate", "rows.csv", "--out", "run", "--from", "en", "--to", "ja")
    code, out, _ = ended(command(*job, "--dry-run"))
    assert code == 0
    assert "300 rows, 0 invalid, 300 calls, 0 cached" in out
    translator.delay_s = 0.02
    stopped = command(*job)
    while sum(translator.calls.values()) < 40:
        assert stopped.poll() is None
        time.sleep(0.01)
    stopped.send_signal(signal.SIGTERM)
    code, _, err = ended(stopped)
    assert code == 130
    assert "the same command again goes on" in err
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


def test_a_budget_ends_with_its_own_code(command, tmp_path):
    pd.DataFrame({"text": ["a", "b", "c"]}).to_parquet(tmp_path / "rows.parquet")
    job = ("translate", "rows.parquet", "--out", "run", "--from", "en", "--to", "ja", "--max-calls", 2)
    bad = command("translate", "gone.csv", "--out", "run2", "--from", "en", "--to", "ja")
    code, _, err = ended(command(*job))
    assert code == 3
    assert "the budget of 2 calls is used up" in err
    code, _, err = ended(bad)
    assert code == 2
    assert "gone.csv does not exist" in err


def test_the_commonest_errors_are_named(command, translator, tmp_path):
    pd.DataFrame({"text": ["bad 1", None, "fine", "bad 2", "bad 3"]}).to_parquet(tmp_path / "rows.parquet")
    translator.faults = {"bad": 400}
    code, _, err = ended(command("translate", "rows.parquet", "--out", "run", "--from", "en", "--to", "ja"))
    assert code == 1
    lines = err.splitlines()
    assert "no: 400" in lines[-2]
    assert lines[-2].endswith("and 2 more such")
    assert lines[-1].endswith("column 'text' is empty in this row")


@pytest.mark.engines
def test_there_and_back_on_the_real_service(live_service, tmp_path):
    env = {
        **os.environ,
        "SPEECHLAB_BASE_URL": live_service.base_url,
        "SPEECHLAB_API_KEY": live_service.api_key,
    }
    frame = pd.DataFrame({"text": ["The quick brown fox.", "Good morning."], "voice": "heart"})
    frame.to_parquet(tmp_path / "rows.parquet")
    jobs = [
        ("tts", "rows.parquet", "--out", "said", "--format", "wav"),
        (
            "asr",
            "said/results.parquet",
            "--out",
            "heard",
            "--language",
            "en",
            "--vad",
            "segments",
            "--prefix",
            "asr_",
        ),
    ]
    jobs[1] += ("--prefix", "asr_")
    for job in jobs:
        subprocess.run([SPEECHLAB, "batch", *job], env=env, cwd=tmp_path, check=True, timeout=120)
    heard = pd.read_parquet(tmp_path / "heard" / "results.parquet")
    assert "fox" in heard["asr_hypothesis"].iloc[0].lower()
    job = [*jobs[1], "--segments", "heard/{file}.srt"]
    subprocess.run([SPEECHLAB, "batch", *job], env=env, cwd=tmp_path, check=True, timeout=120)
    subtitles = [segments.read(path) for path in sorted((tmp_path / "heard").glob("*.srt"))]
    job[-1] = "heard/all.csv.gz"
    subprocess.run([SPEECHLAB, "batch", *job], env=env, cwd=tmp_path, check=True, timeout=120)
    job[-1] = "heard/all.srt"
    refused = subprocess.run([SPEECHLAB, "batch", *job], env=env, cwd=tmp_path, check=False, timeout=120)
    assert refused.returncode not in {0, 1, 3}
    pieces = pd.read_parquet(tmp_path / "heard" / "segments.parquet")
    table = segments.read(tmp_path / "heard" / "all.csv.gz")
    assert segments.equal(table[["file", "start", "end", "text"]], pieces[["file", "start", "end", "text"]])
    assert len(subtitles) == 2
    assert sorted(" ".join(one["text"]) for one in subtitles) == sorted(
        pieces.groupby("file")["text"].agg(" ".join)
    )
    assert set(pieces["position"]) == {0, 1}
    assert (pieces["end"] > pieces["start"]).all()
