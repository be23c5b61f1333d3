"""What operators see, what probes without a key see, and what nobody sees."""

from __future__ import annotations

import pytest

from speechlab.service import ServiceConfig, run_service
from support.clients import KEY, Http
from support.staged import CANARY

OPERATOR = "ops:the-key-of-the-operator"


@pytest.fixture
def watched(stage):
    with stage(operator_keys=(OPERATOR,)) as service:
        yield service


def test_metrics_are_for_operators(watched, error_body):
    error_body(watched.http.request("GET", "/metrics"), 403, "ErrPermissionDenied")
    error_body(watched.http.request("GET", "/metrics", key=None), 401, "ErrAuthenticationFailed")
    assert watched.http.request("GET", "/metrics", key=OPERATOR).status == 200


def test_an_operators_key_opens_nothing_else(watched, error_body, talk):
    operator = Http(watched.http.base_url, OPERATOR)
    good = {"voice_id": watched.voice("plain"), "text": "Hi.", "format": "wav"}
    error_body(operator.speak(**good), 403, "ErrPermissionDenied")
    error_body(operator.request("GET", "/tts/voices"), 403, "ErrPermissionDenied")
    with pytest.raises(Exception, match="401"), talk(watched.http, OPERATOR):
        pass


def test_a_key_that_was_made_up_is_an_operators_too():
    with run_service(ServiceConfig(port=0, recognizer="", translator="")) as service:
        http = Http(service.base_url, service.api_key)
        assert http.request("GET", "/metrics").status == http.request("GET", "/tts/voices").status == 200


def test_probes_need_no_key_and_are_told_yes_or_no(watched, stage, error_body):
    for key in (None, "sl:of-nobody-at-all", KEY):
        assert watched.http.request("GET", "/readyz", key=key).json() == {"status": "ready"}
        assert watched.http.request("GET", "/healthz", key=key).json() == {"status": "ok"}
    assert watched.http.request("GET", "/readyz", key=OPERATOR).json()["engine"] == "staged"
    with stage(with_engines=False, operator_keys=(OPERATOR,)) as empty:
        told = error_body(empty.http.request("GET", "/readyz", key=None), 503, "ErrOverloaded")
        assert told["error"] == "the service is not ready"
        reply = empty.http.request("GET", "/readyz", key=OPERATOR)
        assert "engine" in error_body(reply, 503, "ErrOverloaded")["error"]
        assert reply.headers["retry-after"]


@pytest.mark.slow
@pytest.mark.parametrize("key", [None, KEY])
def test_paths_are_in_no_metrics_and_no_log(watched, caplog, key):
    caplog.set_level("DEBUG", logger="speechlab")
    before = len(watched.http.request("GET", "/metrics", key=OPERATOR).body)
    for number in range(40):
        for start in ("/tts/", "/asr/", "/asr/srt/audio_llm/", "/translate/", "/ws/tts/realtime/", "/"):
            reply = watched.http.request("GET", f"{start}{CANARY}{number}", key=key)
            assert reply.status == (401 if key is None else 404)
    after = watched.http.request("GET", "/metrics", key=OPERATOR).body
    assert CANARY not in after.decode()
    assert len(after) < before + 3_000
    assert CANARY not in str([vars(record) for record in caplog.records])
