"""Texts are read in processes of their own: one that crashes or hangs costs a process and its sender an error.

A process that reads Japanese starts in half of the time of one that reads English.
"""

import contextlib
import os
import signal
import sys
import threading
import time

import pytest

from speechlab.engines import ReadHere
from speechlab.errors import EngineError, MissingDependencyError
from speechlab.service import ServiceConfig, create_app, run_service, voice_uuid
from support.clients import KEY, Http
from support.clock import eventually
from support.processes import newest_worker, own_workers

CANARY = "kanarienvogel"
MODULE = "speechlab.service._workers.reading_child"
posix = pytest.mark.skipif(os.name != "posix", reason="signals")


def service_with(**settings):
    none = {"recognizer": "", "translator": ""}
    return create_app(ServiceConfig(**{"api_keys": (KEY,), **none, **settings})).state.service


@pytest.fixture(scope="module")
def usual():
    with contextlib.closing(service_with()) as service, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPEECHLAB_SERVICE_API_KEY", f"sl:{CANARY}")
        service.engines.start_workers()  # one for each language
        assert service.engines.readers.running_count == 2
        yield service.engines.readers


@pytest.fixture
def readers():
    with contextlib.ExitStack() as stack:

        def make(**settings):
            service = service_with(**settings)
            stack.callback(service.close)
            return service.engines.readers

        yield make


def failed(call) -> str:
    with pytest.raises(EngineError) as caught:
        call()
    return caught.value.message


@pytest.mark.engines
@pytest.mark.skipif(sys.platform != "linux", reason="reads the environment of another process")
def test_readings_are_those_of_this_process(usual):
    here = ReadHere()
    english = "The colour of 1,250 trains, and an 𠮷 — \u2028\0!"
    assert usual.english(english) == here.english(english)
    assert usual.english(english, british=True) == here.english(english, british=True)
    assert usual.english("colour", british=True) != ""
    japanese = "東京特許許可局の許可証を3,567円で取得した。🎉\n「はい」"
    assert usual.japanese(japanese) == here.japanese(japanese)
    assert usual.labels(japanese) == here.labels(japanese)
    assert len(usual.english("word " * 20_000)) >= 3 * 20_000
    assert usual.running_count == 2
    worker = newest_worker(MODULE)
    assert CANARY not in str(worker.environ())
    assert worker.net_connections() == []


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


def test_without_a_process_nothing_is_read(readers, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert "cannot be started" in failed(lambda: readers().english("x"))


@pytest.mark.engines
def test_what_is_not_installed_is_told_as_such(usual, monkeypatch):
    def missing(*_: object, **__: object) -> tuple[object, bytearray]:
        return {"missing": "pip install it"}, bytearray()

    monkeypatch.setattr("speechlab.service._workers.pool.Worker.send_and_wait", missing)
    with pytest.raises(MissingDependencyError, match="pip install it"):
        usual.japanese("x")


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
