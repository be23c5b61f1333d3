"""Recordings are decoded in processes of their own: hostile ones cost a process, and nobody else notices."""

import contextlib
import functools
import http.client
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from speechlab.audio import encode
from speechlab.contract import UNSUPPORTED_AUDIO
from speechlab.service import Fault, ServiceConfig, create_app
from support.clients import KEY
from support.clock import ends_within, eventually
from support.processes import newest_worker, own_workers

RATE = 16_000
CANARY = "kanarienvogel"
MODULE = "speechlab.service._workers.decoding_child"


@functools.cache
def silence(seconds: int) -> bytes:
    """A FLAC file of a few kilobytes."""
    return encode(np.zeros(24_000 * seconds, dtype=np.float32), "flac", 24_000)


def tone(seconds: float = 0.5) -> bytes:
    times = np.arange(round(RATE * seconds)) / RATE
    return encode((0.3 * np.sin(2 * np.pi * 440 * times)).astype(np.float32), "wav", RATE)


def service_with(**settings):
    return create_app(ServiceConfig(api_keys=(KEY,), recognizer="", translator="", **settings)).state.service


@pytest.fixture
def decoders():
    with contextlib.ExitStack() as stack:

        def make(**settings):
            service = service_with(**settings)
            stack.callback(service.close)
            return service

        yield make


@pytest.fixture(scope="module")
def usual():
    with contextlib.closing(service_with()) as service, pytest.MonkeyPatch.context() as patch:
        for name in ("SPEECHLAB_SERVICE_API_KEYS", "SPEECHLAB_API_KEY", "OPENAI_API_KEY", "MY_TOKEN"):
            patch.setenv(name, f"sl:{CANARY}")
        yield service


def decoded(service, data: bytes, rate: int = RATE) -> np.ndarray:
    with (
        contextlib.closing(service.budget.open_held_bytes("key", "asr")) as recording,
        contextlib.closing(service.budget.open_held_bytes("key", "asr")) as samples,
    ):
        recording.write(data)
        service.engines.decoders.decode_into(recording, samples, rate)
        return np.frombuffer(bytes(samples.view()), dtype=np.float32)


def running(service) -> int:
    return service.engines.decoders.running_count


def refused(call) -> Fault:
    with pytest.raises(Fault) as caught:
        call()
    return caught.value


@pytest.mark.slow
def test_samples_are_those_of_the_decoder(usual):
    from speechlab.audio import decode, resample

    stereo = np.random.default_rng(7).uniform(-0.5, 0.5, (24_000, 2)).astype(np.float32)
    for name in ("wav", "flac", "ogg", "mp3"):
        data = encode(stereo, name, 24_000)
        clip = decode(data)
        expected = resample(clip.to_mono().samples, clip.sample_rate, RATE)
        np.testing.assert_array_equal(decoded(usual, data, RATE), expected)
    assert running(usual) == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory and processor time are Linux's here")
def test_s87_bombs_are_refused_within_the_set_limits(decoders):
    limited = decoders(audio_seconds=4_000, decode_memory_bytes=256 * 2**20)
    with ends_within(20):
        fault = refused(lambda: decoded(limited, silence(2_400)))
    assert (fault.status, fault.kind.name) == (413, "ErrTooLarge")
    assert "decode_memory_bytes" in fault.error
    assert len(decoded(limited, tone())) == RATE // 2  # by a new process


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_s61_a_decoder_that_crashes_is_replaced(usual):
    one = usual
    assert len(decoded(one, tone())) == RATE // 2
    worker = newest_worker(MODULE)
    recording = silence(60)
    faults: list[Fault] = []
    thread = threading.Thread(target=lambda: faults.append(refused(lambda: decoded(one, recording))))
    worker.suspend()
    thread.start()
    time.sleep(0.2)
    worker.send_signal(signal.SIGSEGV)
    worker.resume()
    thread.join(20)
    assert (faults[0].status, faults[0].error) == (400, UNSUPPORTED_AUDIO)
    assert len(decoded(one, tone())) == RATE // 2
    # One that the system kills is replaced, and the recording tried once more.
    worker = newest_worker(MODULE)
    lengths: list[int] = []
    thread = threading.Thread(target=lambda: lengths.append(len(decoded(one, recording))))
    worker.suspend()
    thread.start()
    time.sleep(0.2)
    worker.kill()
    thread.join(20)
    assert lengths == [60 * RATE]


def test_s63_without_a_process_recognition_is_not_available(decoders, monkeypatch):
    monkeypatch.setattr(
        "speechlab.service._workers.pool._DECODING_MODULE", "speechlab.service._no_such_module"
    )
    refused(lambda: decoded(decoders(), tone()))
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    fault = refused(lambda: decoded(decoders(), tone()))
    assert (fault.status, fault.error) == (500, "Transcription service not available")


@pytest.mark.skipif(sys.platform != "linux", reason="reads the environment of another process")
def test_a_decoder_knows_no_key_and_listens_to_nobody(usual):
    one = usual
    decoded(one, tone(), RATE)
    worker = newest_worker(MODULE)
    assert CANARY not in str(worker.environ())
    assert worker.net_connections() == []
    # What a terminal or systemd sends reaches the whole group; a decoder leaves it to the service.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        worker.send_signal(number)
    assert len(decoded(one, tone())) == RATE // 2
    assert worker.is_running()


def test_idle_decoders_end_and_come_back(usual):
    decoded(usual, tone())
    end = usual.engines.decoders.end_idle_processes
    assert [end(60), end(0), running(usual), end(0)] == [False, True, 0, False]
    assert len(decoded(usual, tone())) == RATE // 2


@pytest.mark.slow
def test_several_at_once_each_get_their_own(decoders):
    one = decoders(decode_workers=2)

    def use(number: int) -> bool:
        samples = np.full(RATE // 10 + number, number / 100, dtype=np.float32)
        came = [decoded(one, encode(samples, "wav", RATE)) for _ in range(3)]
        return all(len(each) == len(samples) and abs(each[50] - number / 100) < 1e-3 for each in came)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(8)))
    assert running(one) == 2


@pytest.mark.slow
def test_s87_a_bomb_over_http_leaves_the_service_as_it_was(stage, error_body):
    with stage(audio_seconds=4_000, decode_wall_s=0.3) as service:
        before = len(own_workers(MODULE))
        assert service.http.recognize(tone()).status == 200
        body = error_body(service.http.recognize(silence(2_400)), 413, "ErrTooLarge")
        assert "decode_wall_s" in body["error"]
        assert body["context"] == ["asr", "audio"]
        assert len(service.ears.calls) == 1
        assert service.http.recognize(tone()).status == 200
        assert len(own_workers(MODULE)) == before + 1
    assert eventually(lambda: len(own_workers(MODULE)) == before)


@pytest.mark.slow
def test_a_stopping_service_does_not_wait_for_a_decoder(stage):
    with contextlib.ExitStack() as ended, stage(audio_seconds=100_000, drain_s=0.2) as service:
        service.http.recognize(tone())
        worker = newest_worker(MODULE)
        worker.suspend()  # as if it would never come back

        def left_alone() -> None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                assert service.http.recognize(tone()).status == 503

        thread = threading.Thread(target=left_alone)
        thread.start()
        time.sleep(0.3)
        ended.enter_context(ends_within(15))
    thread.join(10)
    assert eventually(lambda: worker not in own_workers(MODULE))
