"""Who is let in, and what they are told otherwise."""

from __future__ import annotations

import json
import threading
import time

import pytest

from speechlab.contract import AUTHENTICATION_MESSAGE
from support.clients import KEY
from support.clock import eventually
from support.sockets import read_all, read_until
from support.staged import CANARY

ROUTES = [
    ("GET", "/tts/voices", "tts"),
    ("POST", "/tts", "tts"),
    ("POST", "/asr/srt/audio_llm", "asr"),
    ("POST", "/translate/", "translate"),
    ("POST", "/translate", "translate"),
    ("GET", "/nothing/here", "router"),
]
TOKENS = {
    "nothing": None,
    "no scheme": "sl:test-key-of-the-suite",
    "basic": "Basic c2w6dGVzdC1rZXktb2YtdGhlLXN1aXRl",
    "empty": "Bearer ",
    "no colon": "Bearer test-key-of-the-suite",
    "other prefix": "Bearer xx:test-key-of-the-suite",
    "no body": "Bearer sl:",
    "unknown": "Bearer sl:another-key-of-nobody",
    "case differs": "Bearer sl:Test-key-of-the-suite",
    "longer": "Bearer sl:test-key-of-the-suite1",
    "shorter": "Bearer sl:test-key-of-the-suit",
    "not ascii": "Bearer sl:schl\u00fcssel-mit-umlaut",
    "two words": "Bearer sl:test-key-of-the-suite x",
}


def test_s1_s3_s4_every_route_needs_a_key_and_says_where(staged, error_body):
    for method, path, where in ROUTES:
        reply = staged.http.request(method, path, b"{}" if method == "POST" else None, key=None)
        assert error_body(reply, 401, "ErrAuthenticationFailed") == {
            "context": [where, "authentication"],
            "code": 104,
            "name": "ErrAuthenticationFailed",
            "error": AUTHENTICATION_MESSAGE,
        }
        assert reply.headers["www-authenticate"] == "Bearer"


def test_s1_s2_s3_s5_each_wrong_token_gets_the_same_401(staged, error_body):
    for what, token in TOKENS.items():
        headers = {} if token is None else {"Authorization": token}
        reply = staged.http.request("GET", "/tts/voices", headers=headers, key=None)
        assert reply.status == 401, what
        assert error_body(reply, 401, "ErrAuthenticationFailed")["error"] == AUTHENTICATION_MESSAGE
    for path, headers in (
        (f"/tts/voices?api_key={KEY}", {}),
        ("/tts/voices", {"X-API-Key": KEY}),
        ("/tts/voices", {"Cookie": f"api_key={KEY}"}),
        ("/tts/voices", {"Sec-WebSocket-Protocol": KEY}),
    ):
        assert staged.http.request("GET", path, headers=headers, key=None).status == 401, headers
    head = "GET /tts/voices HTTP/1.1\nHost: localhost\nAuthorization: Bearer {key}\nAuthorization: Bearer {key}\n"
    with staged.http.raw(head) as connection:
        assert read_until(connection, b"\r\n").startswith(b"HTTP/1.1 401 ")


def test_s6_a_bad_key_comes_before_a_bad_or_huge_body(staged, error_body):
    for path in ("/tts", "/asr/srt/audio_llm", "/translate/"):
        for body in (b"\xff\xfe not json", b"[" * 300_000):
            reply = staged.http.request("POST", path, body, key="sl:wrong-key-here")
            error_body(reply, 401, "ErrAuthenticationFailed")


def test_s13_s19_unknown_paths_and_methods_use_the_error_body(staged, error_body):
    for method, path, status, allow in (
        ("GET", "/x", 404, None),
        ("POST", "/tts/", 404, None),
        ("GET", "/v1/tts/voices", 404, None),
        ("DELETE", "/tts", 405, "POST"),
        ("GET", "/translate/", 405, "POST"),
        ("OPTIONS", "/asr/srt/audio_llm", 405, "POST"),
    ):
        reply = staged.http.request(method, path)
        error_body(reply, status, "ErrNotFound" if status == 404 else "ErrMethodNotAllowed")
        assert reply.headers.get("allow") == allow


def test_s13_an_unhandled_fault_is_a_500_without_details(staged, error_body):
    text = f"secret {CANARY}"
    body = error_body(
        staged.http.speak(voice_id=staged.voice("bug"), text=text, format="wav"), 500, "ErrInternal"
    )
    assert CANARY not in json.dumps(body)
    assert "Traceback" not in json.dumps(body)


def test_liveness_needs_no_key_and_nothing_else_is_open(staged):
    reply = staged.http.request("GET", "/healthz", key=None)
    assert (reply.status, reply.json()) == (200, {"status": "ok"})
    for path in ("/healthz/", "/healthz/../tts/voices", "//healthz", "/docs", "/openapi.json", "/metrics"):
        assert staged.http.request("GET", path, key=None).status == 401


def test_a_page_whose_name_points_here_is_refused(staged):
    for host, status in (
        *((host, 200) for host in ("127.0.0.1:9", "localhost", "LOCALHOST:80", "[::1]:80")),
        *((host, 400) for host in ("evil.example", "127.0.0.1.evil.example:80", "")),
    ):
        with staged.http.raw(f"GET /healthz HTTP/1.1\nHost: {host}\nConnection: close\n") as connection:
            reply = read_all(connection)
        assert reply.startswith(f"HTTP/1.1 {status} ".encode()), host
        assert status == 200 or b'"ErrInvalidRequest"' in reply
    for path in ("/healthz", "/ws/tts/realtime"):
        for hosts in ("", "Host: localhost\nHost: localhost\n"):
            with staged.http.raw(f"GET {path} HTTP/1.1\n{hosts}Connection: close\n") as connection:
                assert read_all(connection).startswith(b"HTTP/1.1 400 "), (path, hosts)


def test_requests_carry_an_id(staged):
    first, second = (staged.http.request("GET", "/tts/voices").headers["x-request-id"] for _ in range(2))
    assert first != second


def test_the_clients_request_id_comes_back_and_is_logged(staged, talk, caplog):
    caplog.set_level("INFO", logger="speechlab")
    for given, taken in (("run-7.row_12", True), ("x" * 65, False), ("with space", False), ("short", False)):
        reply = staged.http.request("GET", "/tts/voices", headers={"X-Request-Id": given})
        found = reply.headers["x-request-id"]
        assert (found == given) == taken
        assert eventually(lambda found=found: found in str([vars(record) for record in caplog.records]))
    with talk(staged.http, headers={"X-Request-Id": "talk-number-1"}) as client:
        assert client.socket.response.headers["x-request-id"] == "talk-number-1"


@pytest.mark.slow
def test_a_body_of_very_many_fields_holds_nobody_up(staged):
    """Reading JSON keeps every other thread of the process waiting to its end."""
    fields = ",".join(f'"{number}":1' for number in range(2_500_000))
    body = f'{{"audio":"",{fields}}}'.encode()
    replies = []
    asking = threading.Thread(
        target=lambda: replies.append(staged.http.request("POST", "/asr/srt/audio_llm", body))
    )
    asking.start()
    waits = []
    while asking.is_alive():
        began = time.monotonic()
        assert staged.http.request("GET", "/healthz").status == 200
        waits.append(time.monotonic() - began)
    assert replies[0].status == 400
    assert b"fields" in replies[0].body


@pytest.mark.slow
def test_pages_of_other_origins_are_let_in_by_name_only(stage):
    asking = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    for settings, origin, allowed in (
        ({}, "https://page.example", False),
        ({"cors_origins": ("https://page.example",)}, "https://page.example", True),
        ({"cors_origins": ("https://page.example",)}, "https://other.example", False),
    ):
        with stage(**settings) as service:
            before = service.http.request("OPTIONS", "/tts", headers=asking | {"Origin": origin}, key=None)
            reply = service.http.request("GET", "/tts/voices", headers={"Origin": origin})
            assert reply.status == 200
            for each in (before, reply):
                assert (each.headers.get("access-control-allow-origin") == origin) == allowed


def test_each_realtime_text_is_a_line_of_the_log(staged, talk, caplog):
    caplog.set_level("INFO", logger="speechlab")
    with talk(staged.http) as client:
        client.configure(voice_id=staged.voice("plain"), format="pcm")
        used = [client.speak(text)[-1] for text in ("One.", "Two.")]
    lines = [record.fields for record in caplog.records if record.getMessage() == "realtime text"]
    assert [line["text_id"] for line in lines] == [usage["request_id"] for usage in used]
    assert {line["status"] for line in lines} == {"completed"}
    assert "One." not in str(lines)
