"""Who is let in, what they are told otherwise, and what those hear who wait."""

import pytest

from support.clients import KEY
from support.clock import eventually
from support.sockets import read_all, read_until
from support.staged import CANARY


def test_s1_s3_s5_the_right_key_in_a_wrong_place_opens_nothing(staged):
    for path, headers in (
        (f"/tts/voices?api_key={KEY}", {}),
        ("/tts/voices", {"X-API-Key": KEY}),
        ("/tts/voices", {"Cookie": f"api_key={KEY}"}),
        ("/tts/voices", {"Sec-WebSocket-Protocol": KEY}),
        *(("/tts/voices", {"Authorization": said}) for said in (KEY, f"Basic {KEY}", f"Bearer x {KEY}")),
    ):
        assert staged.http.request("GET", path, headers=headers, key=None).status == 401, headers
    head = "GET /tts/voices HTTP/1.1\nHost: localhost\nAuthorization: Bearer {key}\nAuthorization: Bearer {key}\n"
    with staged.http.raw(head) as connection:
        assert read_until(connection, b"\r\n").startswith(b"HTTP/1.1 401 ")


def test_s13_an_unhandled_fault_is_a_500_without_details(staged, error_body, caplog):
    fields = {"voice_id": staged.voice("bug"), "text": f"secret {CANARY}", "format": "wav"}
    body = error_body(staged.http.speak(**fields), 500, "ErrInternal")
    assert body["error"] == "speech synthesis failed: KeyError"
    (logged,) = [record.fields for record in caplog.records if "synthesis failed" in record.getMessage()]
    assert logged["error"] == logged["cause"] == "KeyError"
    assert any("staged.py" in place for place in logged["at"])
    assert CANARY not in str(logged)


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


def test_a_body_of_very_many_fields_is_not_parsed(staged):
    """Reading JSON keeps every other thread of the process waiting to its end."""
    body = b'{"audio":"",' + b",".join(b'"%d":1' % number for number in range(150_000)) + b"}"
    told = staged.http.request("POST", "/asr/srt/audio_llm", body)
    assert (told.status, b"fields" in told.body) == (400, True)


def test_the_clients_request_id_comes_back_and_is_logged(staged, caplog):
    caplog.set_level("INFO", logger="speechlab")
    for given, taken in (("run-7.row_12", True), ("x" * 65, False), ("with space", False)):
        reply = staged.http.request("GET", "/tts/voices", headers={"X-Request-Id": given})
        found = reply.headers["x-request-id"]
        assert (found == given) == taken
        assert eventually(lambda found=found: found in str([vars(record) for record in caplog.records]))


@pytest.mark.slow
def test_pages_of_other_origins_are_let_in_by_name_only(stage):
    asking = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    with stage() as closed, stage(cors_origins=("https://page.example",)) as opened:
        for service, origin, allowed in (
            (closed, "https://page.example", False),
            (opened, "https://page.example", True),
            (opened, "https://other.example", False),
        ):
            before = service.http.request("OPTIONS", "/tts", headers=asking | {"Origin": origin}, key=None)
            reply = service.http.request("GET", "/tts/voices", headers={"Origin": origin})
            assert reply.status == 200
            for each in (before, reply):
                assert (each.headers.get("access-control-allow-origin") == origin) == allowed


SAYS = b"HTTP/1.1 100 Continue\r\n\r\n"


def test_every_reply_says_how_much_is_worked_on_at_once(staged):
    for path, key in (("/tts/voices", ""), ("/nothing", ""), ("/tts/voices", "sl:wrong")):
        headers = staged.http.request("GET", path, key=key).headers
        assert (headers.get("x-speechlab-translates") == "ja, en, zh") == (path == "/tts/voices" and not key)
        told = headers["x-speechlab-concurrency"]
        assert dict(one.split("=") for one in told.split(", ")).keys() == {"tts", "asr", "translate"}


@pytest.mark.parametrize("asks", [True, False])
def test_a_client_that_asks_hears_that_its_call_waits(staged, asks, monkeypatch):
    monkeypatch.setattr("speechlab.service._gate.guard._PULSE_S", 0.05)
    fields = {"voice_id": staged.voice("gated"), "text": "x", "format": "pcm"}
    with staged.http.raw_json("/tts", fields, "X-Speechlab-Interim: 100\n" if asks else "") as connection:
        assert eventually(lambda: staged.speaker.calls)
        connection.settimeout(20 if asks else 0.3)
        if asks:
            assert connection.recv(len(SAYS)) == SAYS
        else:
            with pytest.raises(TimeoutError):
                connection.recv(1)
        staged.speaker.gate.set()
        connection.settimeout(20)
        data = b""
        while b"HTTP/1.1 200 " not in data:
            data += connection.recv(65_536)
        assert (SAYS in data) <= asks
