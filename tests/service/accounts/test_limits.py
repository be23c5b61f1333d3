"""Rate limits of keys and of services: their order, and changes while the service runs."""

from __future__ import annotations

import contextlib
import dataclasses
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.audio import encode
from speechlab.contract import RealtimeCode
from speechlab.errors import ConfigurationError, InvalidRequestError
from speechlab.service import (
    Database,
    KeyLimits,
    KeyStore,
    NotAdmitted,
    RateLimiter,
    ServiceConfig,
    StoredLimits,
    load_config,
)
from support.clients import Http
from support.clock import eventually
from support.sockets import read_until


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


def test_a_retry_after_the_time_named_is_let_in():
    clock = Clock()
    limiter = RateLimiter(ServiceConfig(service_requests_per_minute={"tts": 1}), clock=clock)
    limiter.admit_request("service", "tts")
    limiter.admit_request("service", "asr")
    clock.now = 12.5
    with pytest.raises(NotAdmitted) as caught:
        limiter.admit_request("service", "tts")
    assert caught.value.realtime_code is RealtimeCode.SERVICE_RATE_LIMITED
    clock.now += caught.value.retry_after_s
    limiter.admit_request("service", "tts")


def test_places_are_given_back_once():
    limiter = RateLimiter(ServiceConfig(key_concurrent=1, service_concurrent={"asr": 1}))
    for scope, name in (("key", "a"), ("service", "asr")):
        leave = limiter.admit_request(scope, name)
        with pytest.raises(NotAdmitted):
            limiter.admit_request(scope, name)
        leave()
        leave()
        limiter.admit_request(scope, name)
        with pytest.raises(NotAdmitted):
            limiter.admit_request(scope, name)


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


def test_s7_the_order_of_checks(stage, error_body, tmp_path):
    """Pairs of faults: the earlier one is answered."""
    limits = {"key_requests_per_minute": 1, "service_requests_per_minute": {"tts": 1}}
    with stage(data_dir=tmp_path, **limits) as service, contextlib.closing(Database(tmp_path)) as database:
        access, base = KeyStore(database), service.http.base_url

        def fresh(**rights):
            return Http(base, access.create_key("k", **rights)[1])

        good = {"voice_id": service.voice("plain"), "text": "Hi.", "format": "wav"}
        # 429 of the key before 400 of the body; and a 400 counts for the key.
        client = fresh()
        assert client.speak(**{**good, "text": ""}).status == 400
        assert error_body(client.speak(), 429, "ErrRateLimited")["context"] == ["tts", "key_limit"]
        # 401 before 429.
        error_body(
            client.request("POST", "/tts", b"", key="sl:unknown-key-1"), 401, "ErrAuthenticationFailed"
        )
        # 403 of recognition before 429 of the key.
        deaf = fresh(recognition=False)
        assert deaf.speak(**{**good, "text": ""}).status == 400
        assert deaf.recognize(b"x").status == 403
        # 400 of the body before 403 of the voice before 429 of the service.
        assert service.http.speak(**good).status == 200  # takes the service's only place
        error_body(fresh(providers=["q"]).speak(**{**good, "format": "MP3"}), 400, "ErrUnsupportedFormat")
        error_body(fresh(providers=["q"]).speak(**good), 403, "ErrPermissionDenied")
        body = error_body(fresh().speak(**good), 429, "ErrRateLimited")
        assert body["context"] == ["tts", "service_limit"]
        error_body(fresh().speak(**{**good, "format": "MP3"}), 400, "ErrUnsupportedFormat")


def test_s7_s86_the_services_limit_comes_before_a_full_queue(stage, error_body):
    for limit, expected in ((1, "service_limit"), (2, "capacity")):
        with stage(queue_limit=1, service_requests_per_minute={"tts": limit}) as service:
            held = threading.Thread(target=lambda: service.speak("gated"))
            held.start()
            assert eventually(lambda: service.speaker.calls)
            for _ in range(2):  # what a full queue refuses does not count
                reply = service.speak()
                assert error_body(reply, 429, "ErrRateLimited")["context"] == ["tts", expected]
                assert reply.headers["retry-after"]
            service.speaker.gate.set()
            held.join()


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


def test_limits_are_settings(tmp_path):
    path = tmp_path / "service.toml"
    path.write_text("key_requests_per_minute = 5\n[service_requests_per_minute]\ntts = 9\n")
    config, warnings = load_config(path, None, {"SPEECHLAB_SERVICE_SERVICE_CONCURRENT": '{"asr": 2}'})
    assert warnings == []
    assert (config.key_requests_per_minute, config.service_requests_per_minute) == (5, {"tts": 9})
    assert config.service_concurrent == {"asr": 2}
    for wrong in ({"key_concurrent": -1}, {"service_concurrent": {"nobody": 1}}):
        with pytest.raises(ConfigurationError, match=next(iter(wrong))):
            ServiceConfig.of(wrong)
    with pytest.raises(ConfigurationError, match=r'\{"tts": 60\}'):
        load_config(None, None, {"SPEECHLAB_SERVICE_SERVICE_CONCURRENT": "2"})


def test_hosts_that_are_not_this_machine_have_limits_by_default():
    for config, limits in (
        (ServiceConfig(), (0, 0)),
        (ServiceConfig(host="0.0.0.0"), (600, 32)),
        (ServiceConfig(host="unix:/run/speech.sock", key_concurrent=0), (600, 0)),
    ):
        assert (config.key_requests_per_minute, config.key_concurrent) == limits
    limiter = RateLimiter(ServiceConfig(host="192.0.2.7", key_requests_per_minute=0))
    for _ in range(32):
        limiter.admit_request("key", "k")
    with pytest.raises(NotAdmitted):
        limiter.admit_request("key", "k")


@pytest.fixture
def database(tmp_path):
    with contextlib.closing(Database(tmp_path)) as database:
        yield database


LIMIT_NAMES = [field.name for field in dataclasses.fields(KeyLimits)]
some_limits = st.builds(KeyLimits, **dict.fromkeys(LIMIT_NAMES, st.none() | st.integers(0, 9)))


@given(some_limits, some_limits)
def test_a_keys_own_limits_go_before_those_of_every_key(own, every):
    both = own.fill_unset(every)
    for name in LIMIT_NAMES:
        mine = getattr(own, name)
        assert getattr(both, name) == (getattr(every, name) if mine is None else mine)


def test_limits_are_kept_changed_and_taken_back(database):
    limits = StoredLimits(database)
    limits.change_limits("all", {"requests_per_minute": 5, "concurrent": 1})
    limits.change_limits("k", {"concurrent": 0})
    again = StoredLimits(database)
    assert again.read_effective_limits("k") == KeyLimits(requests_per_minute=5, concurrent=0)
    assert again.read_effective_limits("other") == KeyLimits(requests_per_minute=5, concurrent=1)
    limits.change_limits("k", {"concurrent": None})
    assert set(again.read_set_limits()) == {"all"}
    for wrong in ({"words_per_minute": 1}, {"concurrent": -1}, {"concurrent": 10**16}):
        with pytest.raises(InvalidRequestError):
            limits.change_limits("k", wrong)
    assert again.read_effective_limits("k").concurrent == 1


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
            body = error_body(reply, 429, "ErrRateLimited")
            assert body["context"] == ["tts", "key_limit"]
            assert "may make 1 request a minute" in body["error"]
            assert 1 <= int(reply.headers["retry-after"]) <= 60
            assert client.refusal("Hello.")["code"] == "rate_limited"
            assert service.speak().status == 200  # another key
            limits.change_limits(stored.key_id, {"requests_per_minute": 0})
            limits.change_limits("all", {"requests_per_minute": 1})
            assert [service.speak(http=greedy).status for _ in range(2)] == [200, 200]
            assert [service.speak().status for _ in range(2)] == [200, 429]


def test_limits_of_a_service_change_while_it_runs(stage, error_body, tmp_path):
    settings = {"data_dir": tmp_path, "service_requests_per_minute": {"tts": 1}}
    with stage(**settings) as service, contextlib.closing(Database(tmp_path)) as database:
        limits, another = (
            StoredLimits(database),
            Http(service.http.base_url, KeyStore(database).create_key("another")[1]),
        )
        limits.change_limits("service:tts", {"requests_per_minute": 2})
        assert [service.speak(http=http).status for http in (service.http, another)] == [200, 200]
        body = error_body(service.speak(http=another), 429, "ErrRateLimited")
        assert body["context"] == ["tts", "service_limit"]
        assert "may make 2 requests a minute" in body["error"]
        limits.change_limits("service:tts", {"requests_per_minute": 0})
        assert service.speak(http=another).status == 200
        limits.change_limits("service:tts", {"requests_per_minute": None})
        assert (
            "may make 1 request a minute"
            in error_body(service.speak(http=another), 429, "ErrRateLimited")["error"]
        )
        assert service.translate().status == 200
        limits.change_limits("service:translate", {"requests_per_minute": 1})
        assert [service.translate().status for _ in range(2)] == [200, 429]


def test_8_135_a_key_may_use_single_voices(stage, error_body, talk, tmp_path):
    with stage(data_dir=tmp_path) as service, contextlib.closing(Database(tmp_path)) as database:
        access = KeyStore(database)
        stored, key = access.create_key("one voice")
        plain, other = service.voice("plain"), service.voice("picky")
        client = Http(service.http.base_url, key)
        with talk(service.http, key) as socket:
            socket.configure(voice_id=plain, format="pcm")
            access.set_rights(stored.key_id, voices=[other])
            assert access.resolve_key(stored.key_id).voices == {other}
            assert socket.refusal("Hello.")["code"] == "service_access_denied"
            error_body(service.speak(http=client), 403, "ErrPermissionDenied")
            with talk(service.http, key) as second:
                second.send(type="session.update", session={"voice_id": plain, "format": "pcm"})
                assert second.event()["code"] == "service_access_denied"
            access.set_rights(stored.key_id, voices=[plain.upper().lower()])
            assert service.speak(http=client).status == 200
            socket.speak("Hello.")
