"""Texts are read in processes of their own: one that crashes or hangs costs a process and its sender an error.

A process that reads Japanese starts in half of the time of one that reads English.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time

import pytest

from speechlab.engines import ReadHere
from speechlab.errors import EngineError, MissingDependencyError
from speechlab.service import ServiceConfig, run_service, voice_uuid
from speechlab.service._engines.engines import Engines, list_served_engines
from speechlab.service._workers.pool import Readers
from support.clients import KEY, Http
from support.clock import eventually
from support.processes import newest_worker, own_workers
from support.staged import NO_ENGINES

CANARY = "kanarienvogel"
MODULE = "speechlab.service._workers.reading_child"
posix = pytest.mark.skipif(os.name != "posix", reason="signals")


@pytest.fixture(scope="module")
def usual():
    one = Readers(ServiceConfig())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPEECHLAB_SERVICE_API_KEY", f"sl:{CANARY}")
        yield one
    one.close()


@pytest.fixture
def readers():
    made: list[Readers] = []

    def make(**settings) -> Readers:
        made.append(Readers(ServiceConfig(**settings)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def failed(call) -> str:
    with pytest.raises(EngineError) as caught:
        call()
    return caught.value.message


@pytest.mark.engines
def test_readings_are_those_of_this_process(usual):
    here = ReadHere()
    english = "The colour of 1,250 trains, and an 𠮷 — \u2028\0!"
    assert usual.english(english) == here.english(english)
    assert usual.english(english, british=True) == here.english(english, british=True)
    assert usual.english("colour", british=True) != ""
    japanese = "東京特許許可局の許可証を3,567円で取得した。🎉\n「はい」"
    assert usual.japanese(japanese) == here.japanese(japanese)
    assert usual.labels(japanese) == here.labels(japanese)
    assert usual.running_count == 2


@pytest.mark.engines
def test_a_long_text_comes_back_whole(usual):
    text = "word " * 20_000
    assert len(usual.english(text)) >= 3 * 20_000


@posix
@pytest.mark.engines
def test_a_reader_that_crashes_is_replaced(usual):
    usual.end_idle_processes(0)  # so that the newest is the one that is asked
    expected = usual.japanese("もう一度。")
    worker, reasons = newest_worker(MODULE), []
    worker.suspend()
    thread = threading.Thread(target=lambda: reasons.append(failed(lambda: usual.japanese(CANARY))))
    thread.start()
    worker.send_signal(signal.SIGSEGV)
    worker.resume()
    thread.join(30)
    assert "cannot be read aloud" in reasons[0]
    assert CANARY not in reasons[0]
    assert usual.japanese("もう一度。") == expected


@posix
@pytest.mark.engines
def test_a_reader_that_hangs_is_ended_in_time(readers):
    one = readers(read_wall_s=1.0)
    assert one.japanese("前。")
    worker = newest_worker(MODULE)
    worker.suspend()
    assert "read_wall_s" in failed(lambda: one.japanese("途中。"))
    assert not worker.is_running()
    assert one.japanese("後。")


@pytest.mark.engines
@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is Linux's here")
def test_a_text_that_takes_too_much_memory_is_refused(readers):
    one = readers(read_memory_bytes=64 * 2**20, read_wall_s=60)
    assert "read_memory_bytes" in failed(lambda: one.english("a b " * 2_000_000))
    assert one.english("After.")


def test_without_a_process_nothing_is_read(readers, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert "cannot be started" in failed(lambda: readers().english("x"))


@pytest.mark.engines
@pytest.mark.skipif(sys.platform != "linux", reason="reads the environment of another process")
def test_a_reader_knows_no_key_and_listens_to_nobody(usual):
    usual.end_idle_processes(0)
    usual.japanese("あ")
    worker = newest_worker(MODULE)
    assert CANARY not in str(worker.environ())
    assert worker.net_connections() == []
    worker.send_signal(signal.SIGINT)
    assert usual.japanese("い")
    assert worker.is_running()


@pytest.mark.engines
def test_what_is_not_installed_is_told_as_such(usual, monkeypatch):
    def missing(*_: object, **__: object) -> tuple[object, bytearray]:
        return {"missing": "pip install it"}, bytearray()

    monkeypatch.setattr("speechlab.service._workers.pool.Worker.send_and_wait", missing)
    with pytest.raises(MissingDependencyError, match="pip install it"):
        usual.japanese("x")


@pytest.mark.engines
def test_idle_readers_end_and_come_back(usual):
    usual.japanese("あ")
    assert not usual.end_idle_processes(60)
    assert usual.end_idle_processes(0)
    assert usual.running_count == 0
    assert not usual.end_idle_processes(0)
    assert usual.japanese("あ")


@posix
@pytest.mark.engines
@pytest.mark.parametrize("workers", [0, 1])
def test_voices_read_where_the_setting_says(error_body, workers):
    engines = {name: {"enabled": False} for name in ("kokoro", "q", "hibari")}
    keys = {"api_keys": (KEY,), "operator_keys": (KEY,)}
    config = ServiceConfig(
        port=0, **keys, engines=engines, recognizer="", translator="", read_workers=workers
    )
    before = len(own_workers(MODULE))
    with run_service(config) as service:
        http = Http(service.base_url)
        fields = {"voice_id": voice_uuid("openjtalk", "mei"), "text": CANARY, "format": "wav"}
        spoken = http.speak(**fields)
        assert spoken.status == 200
        assert len(spoken.body) > 20_000
        assert f"speechlab_readers {workers}.0\n".encode() in http.request("GET", "/metrics").body
        assert len(own_workers(MODULE)) == before + workers
        if workers:
            # A crash is an error for the one whose text it was, which it does not name, and nothing to the next.
            worker, replies = newest_worker(MODULE), []
            worker.suspend()
            thread = threading.Thread(target=lambda: replies.append(http.speak(**fields)))
            thread.start()
            time.sleep(0.3)  # sent or not, the text meets a process that is gone
            worker.send_signal(signal.SIGSEGV)
            worker.resume()
            thread.join(60)
            body = error_body(replies[0], 500, "ErrInternal")
            assert body["error"].startswith("speech synthesis failed: a piece of 13 characters")
            assert CANARY not in body["error"]
            assert http.speak(**fields).body == spoken.body
    assert eventually(lambda: len(own_workers(MODULE)) == before)


@pytest.mark.engines
def test_voices_have_a_reader_for_each_of_their_languages():
    chosen = {**NO_ENGINES, "kokoro": {"enabled": True}}
    engines = Engines(ServiceConfig(api_keys=(KEY,), engines=chosen, recognizer="", translator=""))
    assert engines.readers is not None
    with contextlib.closing(engines.readers):
        engines.start_workers()
        assert engines.readers.running_count == 2


def test_engines_that_do_not_read_get_no_reader():
    reader = ReadHere()
    made = {engine.name: engine.create for engine in list_served_engines(ServiceConfig(), reader)}
    given = {name: create.keywords.get("reader") for name, create in made.items()}
    assert {name for name, got in given.items() if got is reader} == {"kokoro", "q", "hibari", "openjtalk"}
    own = ServiceConfig(engines={"hibari": {"reader": None}})
    made = {engine.name: engine.create for engine in list_served_engines(own, reader)}
    assert made["hibari"].keywords["reader"] is None
