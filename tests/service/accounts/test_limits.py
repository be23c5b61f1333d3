"""Rate limits: of keys and of services, and in which order they are asked."""

from __future__ import annotations

import contextlib
import threading

import pytest

from speechlab.contract import RealtimeCode
from speechlab.errors import ConfigurationError
from speechlab.service import Database, KeyStore, ServiceConfig, load_config
from speechlab.service._accounts.ledger import Counters
from speechlab.service._accounts.limits import NotAdmitted, RateLimiter
from speechlab.service._accounts.metering import Metering
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


def test_s152_a_limiter_that_fails_lets_nobody_in():
    class Broken:
        def admit_request(self, scope, name):
            raise ConnectionError("the store of the counters is gone")

    metering = Metering(ServiceConfig(), Counters(), None)
    metering.limiter = Broken()
    codes = {}
    for scope in ("key", "service"):
        with pytest.raises(NotAdmitted) as caught:
            metering.admit_request(scope, "x")
        codes[scope] = caught.value.realtime_code
        assert caught.value.to_fault("tts").status == 503
        assert "counters" not in caught.value.to_fault("tts").error
    assert codes == {
        "key": RealtimeCode.RATE_LIMITER_UNAVAILABLE,
        "service": RealtimeCode.SERVICE_RATE_LIMITER_UNAVAILABLE,
    }


def test_a_failing_limiter_is_a_503_over_http(stage, error_body, monkeypatch):
    class Broken(RateLimiter):
        def admit_request(self, scope, name):
            raise ConnectionError("gone")

    monkeypatch.setattr("speechlab.service._accounts.metering.RateLimiter", Broken)
    with stage() as service:
        reply = service.http.translate(text="Hi.", source_lang="en", target_lang="ja")
        error_body(reply, 503, "ErrOverloaded")
        assert int(reply.headers["retry-after"]) >= 1
        assert service.translator.jobs == []


@pytest.mark.slow
@pytest.mark.parametrize("where", ["key_limit", "service_limit"])
def test_s16_s86_limit_one_two_calls(stage, error_body, tmp_path, where):
    from speechlab.audio import encode

    each = {"tts": 1, "asr": 1, "translate": 1}
    limit = {"key_requests_per_minute": 1} if where == "key_limit" else {"service_requests_per_minute": each}
    with stage(data_dir=tmp_path, **limit) as service, contextlib.closing(Database(tmp_path)) as database:
        speech = {"voice_id": service.voice("plain"), "text": "Hi.", "format": "wav"}
        form = {"text": "Hi.", "source_lang": "en", "target_lang": "ja"}
        wav = encode([0.0] * 1600, "wav", 16_000)
        for operation, call in (
            ("tts", lambda http: http.speak(**speech)),
            ("asr", lambda http: http.recognize(wav)),
            ("translate", lambda http: http.translate(**form)),
        ):
            client = Http(service.http.base_url, KeyStore(database).create_key(operation)[1])
            assert call(client).status == 200
            reply = call(client)
            assert error_body(reply, 429, "ErrRateLimited")["context"] == [operation, where]
            assert 1 <= int(reply.headers["retry-after"]) <= 60
            # What is not an operation is not counted.
            assert client.request("GET", "/tts/voices").status == 200


@pytest.mark.slow
def test_s16_keys_do_not_take_from_each_other(stage, tmp_path):
    settings = {"data_dir": tmp_path, "key_requests_per_minute": 2}
    with stage(**settings) as service, contextlib.closing(Database(tmp_path)) as database:
        other = Http(service.http.base_url, KeyStore(database).create_key("other")[1])
        form = {"text": "Hi.", "source_lang": "en", "target_lang": "ja"}
        assert [service.http.translate(**form).status for _ in range(3)] == [200, 200, 429]
        assert [other.translate(**form).status for _ in range(3)] == [200, 200, 429]


@pytest.mark.parametrize("settings", [{"key_concurrent": 1}, {"service_concurrent": {"tts": 1}}])
def test_s16_s50_running_requests_count_until_they_are_over(stage, error_body, settings):
    with stage(**settings) as service:
        fields = {"text": "Hi.", "format": "pcm"}
        endless = {"voice_id": service.voice("endless"), "stream": True, **fields}
        with service.http.raw_json("/tts", endless) as connection:
            read_until(connection, b"200 OK")
            reply = service.http.speak(voice_id=service.voice("plain"), **fields)
            error_body(reply, 429, "ErrRateLimited")
            assert reply.headers["retry-after"] == "1"
        # Its client is gone: the place is free.
        assert eventually(lambda: service.http.speak(voice_id=service.voice("plain"), **fields).status == 200)
        assert service.http.speak(voice_id=service.voice("broken"), **fields).status == 500
        assert service.http.speak(voice_id=service.voice("plain"), **fields).status == 200


def test_s7_the_order_of_checks(stage, error_body, tmp_path):
    """Pairs of faults: the earlier one is answered."""
    limits = {"key_requests_per_minute": 1, "service_requests_per_minute": {"tts": 1}}
    with (
        stage(data_dir=tmp_path, **limits) as service,
        contextlib.closing(Database(tmp_path)) as database,
    ):
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


def test_s7_a_missing_service_comes_before_its_limits(stage, error_body):
    with stage(with_engines=False, key_requests_per_minute=1) as service:
        for _ in range(2):
            error_body(service.http.speak(), 404, "ErrServiceNotFound")
            error_body(service.http.recognize(b"x"), 404, "ErrServiceNotFound")


def test_s7_s86_the_services_limit_comes_before_a_full_queue(stage, error_body):
    for limit, expected in ((1, "service_limit"), (2, "capacity")):
        with stage(queue_limit=1, service_requests_per_minute={"tts": limit}) as service:
            held = held_speech(service)
            for _ in range(2):  # what a full queue refuses does not count
                reply = service.http.speak(voice_id=service.voice("plain"), text="Hi.", format="pcm")
                assert error_body(reply, 429, "ErrRateLimited")["context"] == ["tts", expected]
                assert reply.headers["retry-after"]
            service.speaker.gate.set()
            held.join()


def test_refusals_of_one_limit_leave_the_others_unused(stage, error_body, tmp_path):
    settings = {"key_requests_per_minute": 3, "service_requests_per_minute": {"tts": 1}}
    with stage(data_dir=tmp_path, **settings) as service:
        good = {"voice_id": service.voice("plain"), "text": "Hi.", "format": "wav"}
        assert service.http.speak(**good).status == 200
        for _ in range(5):
            body = error_body(service.http.speak(**good), 429, "ErrRateLimited")
            assert body["context"] == ["tts", "service_limit"]
        form = {"text": "Hi.", "source_lang": "en", "target_lang": "ja"}
        assert [service.http.translate(**form).status for _ in range(3)] == [200, 200, 429]


def test_refusals_over_a_websocket_leave_them_unused_too(stage, talk):
    with (
        stage(key_requests_per_minute=2, service_requests_per_minute={"tts": 1}) as service,
        talk(service.http) as client,
    ):
        client.configure(voice_id=service.voice("plain"), format="pcm")
        client.speak("Hi.")
        for _ in range(3):
            client.send(type="tts.speak", text="Hi.")
            assert client.event()["code"] == "service_rate_limited"
        form = {"text": "Hi.", "source_lang": "en", "target_lang": "ja"}
        assert [service.http.translate(**form).status for _ in range(2)] == [200, 429]


def held_speech(service):
    """A text that an engine speaks until its gate is opened."""
    fields = {"voice_id": service.voice("gated"), "text": "Hi.", "format": "pcm"}
    held = threading.Thread(target=service.http.speak, kwargs=fields)
    held.start()
    assert eventually(lambda: service.speaker.calls)
    return held


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
