"""The command line as people use it: a process of its own, real engines, exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import speechlab as sl
from speechlab.client import Client
from support import forked
from support.sockets import nobody

pytestmark = pytest.mark.engines

SPEECHLAB = Path(sys.executable).parent / "speechlab"


def script(*arguments, **environment):
    """Run the installed command, as a user does."""
    return subprocess.run(
        [SPEECHLAB, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "COLUMNS": "100", **environment},
    )


def speechlab(*arguments, **environment):
    return forked.speechlab(*arguments, env={**os.environ, "COLUMNS": "100", **environment}, timeout=240)


@pytest.fixture(scope="module")
def first_run(tmp_path_factory, light_service):
    """One quickstart with one sentence for each language and all voices of the service."""
    root = tmp_path_factory.mktemp("quickstart")
    where = {
        "SPEECHLAB_BASE_URL": light_service.base_url,
        "SPEECHLAB_API_KEY": light_service.api_key,
        "SPEECHLAB_STORE": str(root / "store"),
    }
    done = script("quickstart", "--sentences", 1, "--out", root / "out", **where)
    return done, root / "out", where


def test_quickstart_does_the_main_job(first_run):
    done, out, where = first_run
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("hibari: heart", "kana", "counted in", "chrF"):
        assert words in done.stdout
    assert "speechlab lab" in done.stdout
    table = pd.read_parquet(out / "results.parquet")
    assert set(table["language"]) == {"ja", "en", "zh"}
    with Client(where["SPEECHLAB_BASE_URL"], api_key=where["SPEECHLAB_API_KEY"]) as lab:
        spoken_by = {voice.id for voice in lab.voices()}
    assert set(table.loc[table["language"] != "zh", "voice"]) == spoken_by
    assert len(spoken_by) == 2
    assert (table["status"] != "error").all()
    english = table[table["language"] == "en"]
    assert english["word_errors"].sum() / english["word_length"].sum() < 0.3
    spoken = table["audio"].dropna()
    assert len(spoken) == len(table)
    assert all((out / path).stat().st_size > 1000 for path in spoken)
    assert sl.evaluate.verify(out)
    assert len(pd.read_csv(out / "results.csv")) == len(table)
    assert len(pd.read_csv(out / "translations" / "results.csv")) == 2


def test_a_quickstart_ends_with_its_answer_and_is_reused(first_run):
    done, out, where = first_run
    _, _, end = done.stdout.rpartition("writing the report")
    for report in (out, out / "translations"):
        assert sl.evaluate.Report.load(report).answer in end
        assert f"open {(report / 'report.html').absolute()}\n" in end
    assert "Warning" not in done.stderr
    before = pd.read_parquet(out / "results.parquet")
    done = speechlab("quickstart", "--sentences", 1, "--out", out, **where)
    assert done.returncode == 0, done.stderr
    assert int(re.search(r"(\d+) reused", done.stdout)[1]) == len(before) + 2
    after = pd.read_parquet(out / "results.parquet")
    same = ["voice", "text", "hypothesis", "error_rate", "duration_s", "audio"]
    pd.testing.assert_frame_equal(before[same], after[same])


def test_quickstarts_that_cannot_begin_say_why(tmp_path, live_service):
    wrong = {"SPEECHLAB_BASE_URL": live_service.base_url, "SPEECHLAB_API_KEY": "sl:wrong-key-canary"}
    (tmp_path / "file").write_text("x")
    with nobody() as address:
        away = {"SPEECHLAB_BASE_URL": f"http://{address}", "SPEECHLAB_API_KEY": "sl:any"}
        for out, where, words in (
            ("out", wrong, "Authentication error: Invalid token"),
            ("out", away, address),
            ("file/out", {}, "choose another --out"),
        ):
            done = speechlab("quickstart", "--out", tmp_path / out, **where)
            assert done.returncode == 1
            assert words in done.stderr.replace("\n", " ")
            assert "Traceback" not in done.stderr
            assert "canary" not in done.stdout + done.stderr


def test_serve_says_when_it_is_ready_and_ends_cleanly(tmp_path):
    command = [SPEECHLAB, "serve", "--port", "0", "--data-dir", tmp_path / "data"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        ready = json.loads(line.removeprefix("ready "))
        assert set(ready) == {"base_url", "ws_base_url", "api_key"}
        port = int(ready["base_url"].rpartition(":")[2])
        taken = speechlab("serve", "--port", port)
        assert taken.returncode == 2
        assert str(port) in taken.stderr
        assert "Traceback" not in taken.stderr
        process.send_signal(signal.SIGTERM)
        rest, log = process.communicate(timeout=30)
    assert process.returncode == 0
    assert rest == ""
    assert ready["api_key"] not in log


def test_engines():
    listed = speechlab("engines", "list")
    assert listed.returncode == 0
    for name in ("kokoro", "hibari", "openjtalk", "whisper", "gemma"):
        assert re.search(rf"^{name} +.*ready", listed.stdout, re.MULTILINE), listed.stdout
    checked = speechlab("engines", "check", "hibari", "openjtalk")
    assert checked.returncode == 0, checked.stdout
    assert checked.stdout.count("✓") == 2
    unknown = speechlab("engines", "check", "nobody")
    assert unknown.returncode != 0
    assert "nobody" in unknown.stdout + unknown.stderr
    added = speechlab("engines", "add", "nothing")
    assert added.returncode == 2
    assert "kokoro-voices" in added.stderr


def test_doctor(live_service):
    done = speechlab(
        "doctor", SPEECHLAB_BASE_URL=live_service.base_url, SPEECHLAB_API_KEY=live_service.api_key
    )
    assert done.returncode == 0, done.stdout
    assert live_service.base_url in done.stdout.replace("\n", "")
    broken = speechlab("doctor", SPEECHLAB_BASE_URL="http://127.0.0.1:9", SPEECHLAB_API_KEY="sl:any")
    assert broken.returncode == 1
    assert "✗" in broken.stdout


def test_help_and_version():
    assert script("--version").stdout == "speechlab 0.1.0\n"
