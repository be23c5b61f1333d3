"""What a service has around it and in it: a working folder, files in the place of its socket, engines that raise."""

import asyncio
import math
import os
import socket
import subprocess
import sys
import time

import numpy as np
import orjson
import pytest

from speechlab import ConfigurationError
from speechlab.audio import encode
from speechlab.engines import EngineVoice, Recognition, RecognitionSegment, TranslationDelta
from speechlab.service import (
    OnceAMinuteFilter,
    Provider,
    ServedEngine,
    ServiceConfig,
    count_users_and_remove_stale,
    run_service,
    run_until_stopped,
    voice_uuid,
)
from support.clients import Http
from support.clock import eventually
from support.staged import staged_config, staged_service

posix = pytest.mark.skipif(os.name != "posix", reason="sockets in the file system")
KEY = "sl:a-key-of-the-tests"


@pytest.fixture
def hostile_folder(tmp_path, monkeypatch):
    """A working folder with modules that leave a mark where they are imported."""
    folder = tmp_path / "downloaded"
    folder.mkdir()
    for name in ("numpy", "orjson", "psutil", "uvicorn", "rich"):
        (folder / f"{name}.py").write_text(
            f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\nraise SystemExit(1)"
        )
    monkeypatch.chdir(folder)
    return tmp_path


def test_a_worker_imports_nothing_from_the_working_folder(hostile_folder):
    with staged_service() as service:  # which decodes recordings in a process of its own
        assert service.http.recognize(RECORDING).status == 200
    assert not (hostile_folder / "ran").exists()


@pytest.mark.slow
def test_a_program_imports_nothing_from_the_working_folder(hostile_folder):
    for program in ("speechlab", "speechlab.service"):
        command = [sys.executable, "-m", program, *(["engines"] if program == "speechlab" else []), "--help"]
        done = subprocess.run(command, check=False, capture_output=True, timeout=60)
        assert (done.returncode, (hostile_folder / "ran").exists()) == (0, False), done.stderr


@posix
@pytest.mark.parametrize("kind", ["file", "folder", "link to a file", "link to nothing"])
def test_a_socket_takes_the_place_of_no_file(kind, tmp_path):
    thesis, path = tmp_path / "thesis.txt", tmp_path / "place"
    thesis.write_text("years of work")
    if kind == "folder":
        path.mkdir()
    elif kind == "file":
        path = thesis
    else:
        path.symlink_to(thesis if kind == "link to a file" else tmp_path / "nothing")
    with pytest.raises(ConfigurationError, match="exists and is no socket"):
        run_until_stopped(ServiceConfig(host=f"unix:{path}", api_keys=(KEY,)))
    assert os.path.lexists(path)
    assert thesis.read_text() == "years of work"


@posix
def test_a_socket_takes_the_place_of_no_busy_service(tmp_path):
    path = tmp_path / "service.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(ConfigurationError, match="another service listens"):
            run_until_stopped(ServiceConfig(host=f"unix:{path}", api_keys=(KEY,)))
        assert path.is_socket()


def test_a_lock_that_nobody_holds_counts_for_moments_only(tmp_path):
    for age_s, count in ((0.0, 1), (10.0, 0), (-3_600.0, 0)):
        lock = tmp_path / "1-a.lock"
        lock.touch()
        os.utime(lock, (time.time() - age_s,) * 2)
        assert count_users_and_remove_stale(tmp_path) == lock.exists() == count


RECORDING = encode(np.zeros(1_600, np.float32), "wav", 16_000)
RAISES = [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError(), StopIteration()]
RAISES += [MemoryError()]


class Wild:
    """An engine of every kind that raises what a test wants, or returns it."""

    model, sample_rate, languages = "wild", 24_000, ("en", "ja")
    voices = (EngineVoice("wild", ("en",), "Neutral", "raises"),)

    def __init__(self):
        self.error = None
        self.recognition = Recognition("", "en", 0.5, ())

    def synthesize(self, text, voice, *, temperature=None):
        if self.error is not None:
            raise self.error
        return iter([np.zeros(2_400, np.float32)])

    def translate(self, job):
        if self.error is not None:
            raise self.error
        yield TranslationDelta("ok")

    def recognize(self, samples, options):
        if self.error is not None:
            raise self.error
        return self.recognition


@pytest.fixture(scope="module")
def wild():
    engine = Wild()
    engines = (
        ServedEngine("wild", "synthesizer", lambda: engine, Provider("wild", heavy=False)),
        ServedEngine("ears", "recognizer", lambda: engine, heavy=False),
        ServedEngine("echo", "translator", lambda: engine, heavy=False),
    )
    with run_service(staged_config(*engines)) as service:
        yield engine, Http(service.base_url)


@pytest.mark.parametrize("error", RAISES, ids=lambda error: type(error).__name__)
def test_what_an_engine_raises_is_a_500_of_its_request(error, wild):
    engine, http = wild
    voice = voice_uuid("wild", "wild")
    engine.error = error
    replies = [
        http.speak(voice_id=voice, text="Hello.", format="wav"),
        http.speak(voice_id=voice, text="Hello.", format="wav", stream=True),
        http.recognize(RECORDING),
        http.translate(text="Hello.", source_lang="en", target_lang="ja"),
    ]
    engine.error = None
    assert [reply.status for reply in replies] == [500] * 4
    assert http.speak(voice_id=voice, text="Hello.", format="wav").status == 200


def test_a_confidence_is_a_number_and_a_segment_has_times(wild):
    engine, http = wild
    for confidence, reported in ((math.nan, 0.0), (math.inf, 1.0), (-1.0, 0.0), (0.5, 0.5)):
        engine.recognition = Recognition("ten cats", "en", confidence, ())
        assert orjson.loads(http.recognize(RECORDING).body)["confidence"] == reported
    for end_s in (math.nan, math.inf):
        engine.recognition = Recognition("ten", "en", 0.5, (RecognitionSegment(0.0, end_s, "ten"),))
        assert http.recognize(RECORDING, vad="segments").status == 500


def test_refusals_are_logged_once_a_minute(wild, caplog):
    _, http = wild
    caplog.set_level("INFO", logger="speechlab.service")
    passing = OnceAMinuteFilter()
    stranger = Http(http.base_url, "sl:no-key-of-this-service")
    for _ in range(20):
        assert stranger.request("GET", "/tts/voices").status == 401
        assert http.speak(text=5).status == 400
    for _ in range(2):
        assert http.request("GET", "/tts/voices").status == 200

    def find_requests():
        return [record for record in caplog.records if record.msg == "request"]

    eventually(lambda: len(find_requests()) >= 42)  # a line is logged once its reply is on its way
    passed = [record.fields["status"] for record in find_requests() if passing.filter(record)]
    assert sorted(status for status in passed if status != 401) == [200, 200, 400]
    assert passed.count(401) <= 1  # none after another request without a key in the same minute
