"""Rate limits of keys and of services: their order, and changes while the service runs."""

import contextlib
import dataclasses
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.audio import encode
from speechlab.contract import RealtimeCode
from speechlab.service import (
    Database,
    KeyLimits,
    KeyStore,
    NotAdmitted,
    RateLimiter,
    ServiceConfig,
    StoredLimits,
)
from support.clients import Http
from support.clock import eventually
from support.sockets import read_until
from support.staged import used


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_no_minute_ever_holds_more_than_the_limit():
    clock = Clock()
    limiter = RateLimiter(ServiceConfig(key_requests_per_minute=3), clock=clock)
    admitted = []
    for clock.now in range(0, 300, 7):
        try:
            limiter.admit_request("key", "a")()
            admitted.append(clock.now)
        except NotAdmitted as refusal:
            oldest = admitted[-3]
            assert refusal.retry_after_s == pytest.approx(oldest + 60 - clock.now)
            assert refusal.realtime_code is RealtimeCode.RATE_LIMITED
    assert all(later - earlier >= 60 for earlier, later in zip(admitted, admitted[3:], strict=False))
    assert len(admitted) >= 12
    limiter.admit_request("key", "b")
    limiter.admit_request("service", "tts")


def test_places_are_given_back_once():
    limiter = RateLimiter(ServiceConfig(key_concurrent=1))
    leave = limiter.admit_request("key", "a")
    leave()
    leave()
    limiter.admit_request("key", "a")
    with pytest.raises(NotAdmitted):
        limiter.admit_request("key", "a")


@pytest.mark.parametrize("broken", ["key", "service"])
def test_s152_a_limiter_that_fails_lets_nobody_in(stage, error_body, talk, monkeypatch, broken):
    admit = RateLimiter.admit_request

    def fail(self, scope, name, *own):
        if scope == broken:
            raise ConnectionError("the store of the counters is gone")
        return admit(self, scope, name, *own)

    monkeypatch.setattr(RateLimiter, "admit_request", fail)
    with stage() as service, talk(service.http) as client:
        reply = service.translate()
        assert "counters" not in error_body(reply, 503, "ErrOverloaded")["error"]
        assert int(reply.headers["retry-after"]) >= 1
        client.configure(voice_id=service.voice("plain"), format="pcm")
        told = client.refusal("Hi.", id="s")
        code = "rate_limiter_unavailable" if broken == "key" else "service_rate_limiter_unavailable"
        assert (told["code"], "counters" in told["message"]) == (code, False)
        assert service.translator.jobs == service.speaker.calls == []


@pytest.mark.slow
@pytest.mark.parametrize("where", ["key_limit", "service_limit"])
def test_s16_s86_limit_one_two_calls(stage, error_body, tmp_path, where):
    each = {"tts": 1, "asr": 1, "translate": 1}
    limit = {"key_requests_per_minute": 1} if where == "key_limit" else {"service_requests_per_minute": each}
    with stage(data_dir=tmp_path, **limit) as service, contextlib.closing(Database(tmp_path)) as database:
        wav = encode([0.0] * 1600, "wav", 16_000)
        for operation, call in (
            ("tts", lambda http: service.speak(http=http)),
            ("asr", lambda http: http.recognize(wav)),
            ("translate", lambda http: service.translate(http=http)),
        ):
            client = Http(service.http.base_url, KeyStore(database).create_key(operation)[1])
            assert call(client).status == 200
            reply = call(client)
            assert error_body(reply, 429, "ErrRateLimited")["context"] == [operation, where]
            assert 1 <= int(reply.headers["retry-after"]) <= 60
            # What is not an operation is not counted.
            assert client.request("GET", "/tts/voices").status == 200


@pytest.mark.parametrize("settings", [{"key_concurrent": 1}, {"service_concurrent": {"tts": 1}}])
def test_s16_s50_running_requests_count_until_they_are_over(stage, error_body, settings):
    with stage(**settings) as service:
        with service.asking("endless", stream=True) as connection:
            read_until(connection, b"200 OK")
            reply = service.speak()
            error_body(reply, 429, "ErrRateLimited")
            assert reply.headers["retry-after"] == "1"
        # Its client is gone: the place is free.
        assert eventually(lambda: service.speak().status == 200)
        assert [service.speak(voice).status for voice in ("broken", "plain")] == [500, 200]


def test_s7_s86_what_a_full_queue_refuses_does_not_count(stage, error_body, tmp_path):
    limits = {"queue_limit": 1, "service_requests_per_minute": {"tts": 2}}
    with stage(data_dir=tmp_path, **limits) as service:
        held = threading.Thread(target=lambda: service.speak("gated"))
        held.start()
        assert eventually(lambda: service.speaker.calls)
        for _ in range(2):
            body = error_body(service.speak(), 429, "ErrRateLimited")
            assert body["context"] == ["tts", "capacity"]
        service.speaker.gate.set()
        held.join()
    assert len(used(tmp_path)) == 1


def test_refusals_of_one_limit_leave_the_others_unused(stage, error_body, talk):
    with (
        stage(key_requests_per_minute=3, service_requests_per_minute={"tts": 1}) as service,
        talk(service.http) as client,
    ):
        good = {"voice_id": service.voice("plain"), "text": "Hi.", "format": "wav"}
        client.configure(voice_id=good["voice_id"], format="pcm")
        client.speak("Hi.")
        for _ in range(3):
            assert client.refusal("Hi.")["code"] == "service_rate_limited"
            body = error_body(service.http.speak(**good), 429, "ErrRateLimited")
            assert body["context"] == ["tts", "service_limit"]
        assert [service.translate().status for _ in range(3)] == [200, 200, 429]


def test_hosts_that_are_not_this_machine_have_limits_by_default():
    for config, limits in (
        (ServiceConfig(), (0, 0)),
        (ServiceConfig(host="0.0.0.0"), (600, 32)),
        (ServiceConfig(host="unix:/run/speech.sock", key_concurrent=0), (600, 0)),
    ):
        assert (config.key_requests_per_minute, config.key_concurrent) == limits


LIMIT_NAMES = [field.name for field in dataclasses.fields(KeyLimits)]
some_limits = st.builds(KeyLimits, **dict.fromkeys(LIMIT_NAMES, st.none() | st.integers(0, 9)))


@given(some_limits, some_limits)
def test_a_keys_own_limits_go_before_those_of_every_key(own, every):
    both = own.fill_unset(every)
    for name in LIMIT_NAMES:
        mine = getattr(own, name)
        assert getattr(both, name) == (getattr(every, name) if mine is None else mine)


def test_a_change_holds_at_once_in_a_service_that_runs(stage, error_body, tmp_path):
    with stage(data_dir=tmp_path) as service, contextlib.closing(Database(tmp_path)) as database:
        stored, key = KeyStore(database).create_key("greedy")
        limits, greedy = StoredLimits(database), Http(service.http.base_url, key)
        with service.talk(key=key) as client:
            assert service.speak(http=greedy).status == 200
            client.speak("Hello.")
            limits.change_limits(stored.key_id, {"requests_per_minute": 1})
            assert service.speak(http=greedy).status == 200
            reply = service.speak(http=greedy)
            assert "may make 1 request a minute" in error_body(reply, 429, "ErrRateLimited")["error"]
            assert client.refusal("Hello.")["code"] == "rate_limited"
            assert service.speak().status == 200  # another key
            limits.change_limits(stored.key_id, {"requests_per_minute": 0})
            limits.change_limits("all", {"requests_per_minute": 1})
            assert [service.speak(http=greedy).status for _ in range(2)] == [200, 200]
            assert [service.speak().status for _ in range(2)] == [200, 429]


def test_limits_of_a_service_change_while_it_runs(stage, error_body, tmp_path):
    settings = {"data_dir": tmp_path, "service_requests_per_minute": {"tts": 1}}
    with stage(**settings) as service, contextlib.closing(Database(tmp_path)) as database:
        limits = StoredLimits(database)
        another = Http(service.http.base_url, KeyStore(database).create_key("another")[1])
        for limit, said in ((2, "may make 2 requests a minute"), (None, "may make 1 request a minute")):
            limits.change_limits("service:tts", {"requests_per_minute": limit})
            if limit:
                assert [service.speak(http=http).status for http in (service.http, another)] == [200, 200]
            assert said in error_body(service.speak(http=another), 429, "ErrRateLimited")["error"]
        assert service.translate().status == 200


def test_s8_a_key_may_use_single_voices(stage, error_body, tmp_path):
    with stage(data_dir=tmp_path) as service, contextlib.closing(Database(tmp_path)) as database:
        access = KeyStore(database)
        stored, key = access.create_key("one voice")
        plain, other = service.voice("plain"), service.voice("picky")
        client = Http(service.http.base_url, key)
        access.set_rights(stored.key_id, voices=[other])
        error_body(service.speak(http=client), 403, "ErrPermissionDenied")
        access.set_rights(stored.key_id, voices=[plain])
        assert service.speak(http=client).status == 200
