"""A recognizer elsewhere: a second service behind the first, and backends that misbehave (statement 86)."""

import base64
import json
import logging
import socket

import numpy as np
import pytest

from speechlab.audio import encode
from speechlab.errors import ConfigurationError
from speechlab.service import ServiceConfig, create_app
from support.backend import answer, wire
from support.clients import KEY
from support.clock import eventually
from support.sockets import nobody
from support.staged import CANARY, used

PATH = "/asr/srt/audio_llm"
BACK_KEY = "vendor:key-of-the-backend"
WAV = encode(np.full(8_000, 0.1, dtype=np.float32), "wav", 16_000)


HEARD = answer("200 OK", b'{"text": "elsewhere", "language": "en", "confidence": 1, "more": [1]}')


# A second service behind the first


@pytest.mark.slow
def test_a_second_service_hears_for_the_first(stage):
    with stage() as back, stage(recognizer_url=back.http.base_url + "/", recognizer_api_key=KEY) as front:
        reply = front.http.recognize(WAV, language="ja-JP", hotwords=["駅"], temperature=0, unknown=1)
        assert (reply.status, reply.json()) == (200, {"text": "heard", "language": "ja", "confidence": 0.5})
        assert reply.headers["x-speechlab-provider"] == "remote"
        assert reply.headers["x-speechlab-model"] == "staged-ears"
        assert float(reply.headers["x-speechlab-audio-seconds"]) == 0.5
        assert front.ears.calls == []
        samples, options = back.ears.calls[-1]
        assert len(samples) == 8_000
        assert (options.language, options.hotwords) == ("ja", ("駅",))
        reply = front.http.recognize(WAV, vad="segments", min_silence_gap=7)
        assert reply.json()["segments"] == [{"start": 0.0, "end": 0.5, "text": "heard"}]
        assert back.ears.calls[-1][1].min_silence_gap == 7


def test_what_is_wrong_is_refused_before_it_is_forwarded(stage):
    with wire(HEARD) as backend, stage(recognizer_url=backend.url, asr_body_bytes=100_000) as front:
        for body in ({}, {"audio": "@"}, {"audio": "Zm9v"}):
            assert front.http.post_json(PATH, body).status == 400
        assert front.http.recognize(WAV, vad=9).status == 400
        assert front.http.recognize(bytes(100_000)).status == 413
        assert front.http.request("POST", PATH, b"{}", key="sl:another-key").status == 401
        assert backend.heads == []


def test_the_backend_gets_the_request_and_nothing_of_the_client(stage):
    with wire(HEARD) as backend, stage(recognizer_url=backend.url, recognizer_api_key=BACK_KEY) as front:
        audio = base64.b64encode(WAV).decode()
        body = json.dumps({"audio": audio, "language": "EN", "vad": 0, "session_id": "s", "vad_filter": 1})
        headers = {
            "Content-Type": "application/json",
            "Cookie": f"c={CANARY}",
            "X-Api-Key": CANARY,
            "Proxy-Authorization": CANARY,
            "TE": "trailers",
            "X-Forwarded-For": "192.0.2.7",
        }
        reply = front.http.request("POST", PATH, body.encode(), headers)
    assert reply.status == 200
    (head,), (sent,) = backend.heads, backend.bodies
    assert head.startswith("post /speech/asr/srt/audio_llm http/1.1\r\n")
    assert f"authorization: bearer {BACK_KEY}" in head
    for secret in (KEY, CANARY, "cookie", "x-api-key", "proxy-", "192.0.2.7", "trailers"):
        assert secret not in head
    assert json.loads(sent) == {"audio": audio, "language": "en", "vad": "off", "session_id": "s"}


# What a backend answers


def test_s86_errors_keep_the_status_and_the_body_of_the_backend(stage):
    more = (
        "Retry-After: 17\r\nSet-Cookie: a=b\r\nWWW-Authenticate: Bearer\r\nKeep-Alive: timeout=9\r\n"
        "Server: theirs\r\nConnection: close\r\n"
    )
    replies = (
        ("400 Bad Request", b'{"why": "rules of its own", "n": 1}', "application/problem+json"),
        ("413 Content Too Large", b"", "text/plain"),
        ("500 Internal Server Error", b"\xff\x00", "application/octet-stream"),
    )
    with wire() as backend, stage(recognizer_url=backend.url) as front:
        for status, body, kind in replies:
            backend.reply = answer(status, body, kind, more)
            reply = front.http.recognize(WAV)
            assert (reply.status, reply.body) == (int(status[:3]), body)
            assert (reply.headers["content-type"], reply.headers["retry-after"]) == (kind, "17")
            assert not {"set-cookie", "www-authenticate", "keep-alive", "server"} & set(reply.headers)


def test_cookies_and_keys_that_are_not_set_go_nowhere(stage):
    cookie = answer("200 OK", b'{"text": "elsewhere"}', more="Set-Cookie: a=b; Path=/\r\n")
    with wire(cookie) as backend, stage(recognizer_url=backend.url + PATH) as front:
        assert [front.http.recognize(WAV).json()["text"] for _ in range(2)] == ["elsewhere"] * 2
    for head in backend.heads:
        assert head.startswith(f"post /speech{PATH} ")
        assert "cookie" not in head
        assert "authorization" not in head


NO_ANSWERS = {
    "hangs-up": None,
    "cut": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
    "not-http": b"this is not HTTP at all\r\n\r\n",
    "html": answer("200 OK", b"<html>welcome</html>", "text/html"),
    "gzip": answer("200 OK", b"{}", more="Content-Encoding: gzip\r\n"),
    "302": answer("302 Found", b"", more="Location: http://127.0.0.1:9/\r\n"),
}


def test_s86_answers_that_are_none_are_502(stage, error_body):
    with wire() as backend, stage(recognizer_url=backend.url) as front:
        for what, backend.reply in NO_ANSWERS.items():
            body = error_body(front.http.recognize(WAV), 502, "ErrBackendUnreachable")
            assert body["context"] == ["asr", "backend"], what
            assert "127.0.0.1" not in body["error"], what
            assert (what == "302") == ("302" in body["error"]), what  # which is not followed
            told = front.http.request("GET", "/readyz").json()["recognizer"]["last"]
            assert told == body["error"], what
        assert len(backend.heads) == len(NO_ANSWERS)


def test_s86_a_backend_that_does_not_answer_is_502(stage, error_body, tmp_path):
    with (
        wire(hang=True) as backend,
        stage(recognizer_url=backend.url, recognizer_timeout_s=0.3, data_dir=tmp_path) as front,
    ):
        body = error_body(front.http.recognize(WAV), 502, "ErrBackendUnreachable")
        assert "recognizer_timeout_s" in body["error"]
        assert backend.gone.wait(10)
    with nobody() as address, stage(recognizer_url=f"http://{address}", data_dir=tmp_path) as front:
        body = error_body(front.http.recognize(WAV), 502, "ErrBackendUnreachable")
        assert "cannot be reached" in body["error"]
    assert [row.status for row in used(tmp_path)] == ["backend_error"]


# Places, limits, usage


def test_leaving_cancels_the_forwarded_call(stage, tmp_path):
    with wire(hang=True) as backend, stage(recognizer_url=backend.url, data_dir=tmp_path) as front:
        with front.http.raw_json(PATH, {"audio": base64.b64encode(WAV).decode()}):
            assert eventually(lambda: backend.heads)
        assert backend.gone.wait(10)
    assert [row.status for row in used(tmp_path)] == ["cancelled"]


def test_s17_calls_that_a_backend_refused_are_not_counted(stage, tmp_path):
    with wire() as backend, stage(recognizer_url=backend.url, data_dir=tmp_path) as front:
        for backend.reply in (HEARD, answer("422 No", b"{}"), answer("500 No", b"{}"), None):
            front.http.recognize(WAV)
    assert [row.status for row in used(tmp_path)] == ["completed", "backend_error", "backend_error"]


def test_a_request_that_comes_back_is_not_sent_round_again(stage, error_body):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    round_again = f"http://127.0.0.1:{port}"
    with stage(port=port, recognizer_url=round_again, recognizer_api_key=KEY) as service:
        body = error_body(service.http.recognize(WAV), 502, "ErrBackendUnreachable")
    assert "is this service itself" in body["error"]


# Settings


def test_addresses_that_are_none():
    for url in ("ftp://host", "host:80", "https://host/?q=1", "https://me:kanarienvogel@host"):
        with pytest.raises(ConfigurationError, match="recognizer_url") as caught:
            ServiceConfig.of({"recognizer_url": url})
        assert CANARY not in str(caught.value)


def test_a_key_does_not_travel_in_the_clear():
    far = {"recognizer_url": "http://backend.example", "recognizer_api_key": BACK_KEY}
    with pytest.raises(ConfigurationError, match="recognizer_allow_insecure") as caught:
        ServiceConfig.of(far)
    assert BACK_KEY not in str(caught.value)
    ServiceConfig.of({**far, "recognizer_allow_insecure": True})
    for near in ("http://[::1]:1", "http://localhost", "https://backend.example"):
        ServiceConfig.of({**far, "recognizer_url": near})


def test_the_key_is_shown_nowhere(stage, caplog):
    caplog.set_level(logging.DEBUG)
    with (
        wire(answer("401 No", b"{}")) as backend,
        stage(recognizer_url=backend.url, recognizer_api_key=BACK_KEY) as front,
    ):
        front.http.recognize(WAV)
        shown = front.http.request("GET", "/readyz")
        said = shown.body + front.http.request("GET", "/metrics").body
    assert shown.json()["recognizer"] == {"url": backend.url + PATH, "last": "answered 401"}
    assert BACK_KEY.encode() not in said
    assert BACK_KEY not in caplog.text
    assert any("recognizer_api_key" in str(vars(record)) for record in caplog.records)
    assert all(BACK_KEY not in str(vars(record)) for record in caplog.records)


def test_the_digest_of_what_decides_results_knows_the_backend():
    def identity(**settings) -> str:
        return create_app(ServiceConfig(api_keys=("sl:any-key-will-do",), **settings)).state.service.identity

    assert len({identity(), identity(recognizer_url="http://a"), identity(recognizer_url="http://b")}) == 3
