"""What is decided before the upgrade, on raw sockets: always an HTTP reply with a body, never 101 and a close."""

import base64
import contextlib
import json
import socket
import sqlite3

from speechlab.contract import AUTHENTICATION_MESSAGE, HandshakeCode
from speechlab.service import Database, KeyStore
from support.clients import HANDSHAKE, masked
from support.clock import eventually
from support.staged import CANARY

PATH = "/ws/tts/realtime"
KEY_HEADER = "dGhlIHNhbXBsZSBub25jZQ=="
GOOD = {
    "Host": "127.0.0.1",
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": KEY_HEADER,
    "Sec-WebSocket-Version": "13",
}


def shake(http, *, path=PATH, method="GET", key="", body=b"", **headers):
    """Send a handshake as written; returns status, headers and body."""
    fields = GOOD | {"Authorization": f"Bearer {key or http.key}"}
    lines = [f"{method} {path} HTTP/1.1"]
    for name, value in (fields | {n.replace("_", "-"): v for n, v in headers.items()}).items():
        lines += [f"{name}: {item}" for item in ([value] if isinstance(value, str) else value)]
    with socket.create_connection(http.address, timeout=10) as connection:
        connection.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
        reply = b""
        while b"\r\n\r\n" not in reply and (chunk := connection.recv(4096)):
            reply += chunk
        head, _, rest = reply.partition(b"\r\n\r\n")
        names = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n")[1:])
        names = {name.lower(): value for name, value in names.items()}
        while len(rest) < int(names.get("content-length", 0)) and (chunk := connection.recv(4096)):
            rest += chunk
    return int(head.split()[1]), names, rest


def refused(reply, code: str):
    status, headers, body = reply
    assert status == HandshakeCode(code).status, (status, body)
    assert headers["content-type"] == "application/json"
    assert headers["x-request-id"]
    assert "sec-websocket-accept" not in headers
    fields = json.loads(body)
    assert set(fields) == {"context", "code", "name", "error"}
    assert (fields["name"], type(fields["code"])) == (code, int)
    assert fields["context"][0] == "ws"
    assert (fields["code"] == 104) == (status == 401)
    assert (status == 401) == (fields["error"] == AUTHENTICATION_MESSAGE)
    assert (headers.get("www-authenticate") == "Bearer") == (status == 401)
    assert ("retry-after" in headers) == (status in {429, 503})


NO_HANDSHAKES = [
    {"Sec-WebSocket-Key": [KEY_HEADER, KEY_HEADER]},
    {"Upgrade": "h2c"},
    {"method": "POST", "Content_Length": "5", "body": b"hello"},
    {"Content_Length": "5", "body": b"hello"},
    {"Sec_WebSocket_Protocol": "not:a token"},
    {"Origin": ["https://lab.example"] * 2},
    {"X_Long": "a" * 20_000},
    {"X_Many": ["a"] * 150},
]


def test_115_119_what_is_no_handshake(staged, caplog):
    for change in NO_HANDSHAKES:
        refused(shake(staged.http, **change), "invalid_websocket_upgrade")
    refused(shake(staged.http, Authorization=f"Basic {staged.http.key}"), "invalid_token_format")
    assert staged.http.request("GET", "/healthz").status == 200  # after all that the refusals do
    assert "internal error" not in caplog.messages


def test_121_origins(stage):
    with stage(ws_origins=("https://lab.example", "null")) as service:
        for origin in ("https://lab.example", "HTTPS://LAB.example", "null"):
            assert shake(service.http, Origin=origin)[0] == 101
        for origin in ("https://lab.example.evil", "http://lab.example", service.http.base_url):
            refused(shake(service.http, Origin=origin), "ws_origin_denied")


def test_hosts_that_are_not_served(staged):
    refused(shake(staged.http, Host="stranger.example"), "invalid_websocket_upgrade")
    assert shake(staged.http, Host="localhost:1234")[0] == 101


def test_122_connections_of_a_key_are_counted_and_freed(stage, talk, tmp_path):
    with stage(ws_connections=2, data_dir=tmp_path) as service:
        with contextlib.closing(Database(tmp_path)) as database:
            _, other = KeyStore(database).create_key("other")
        with talk(service.http), talk(service.http):
            refused(shake(service.http), "ws_connection_limit_exceeded")
            with talk(service.http, key=other):
                pass
        assert eventually(lambda: shake(service.http)[0] == 101)


def test_122_an_abrupt_loss_frees_the_place(stage):
    with stage(ws_connections=1) as service:
        for speaking in (False, True):
            with service.http.raw(HANDSHAKE) as connection:
                assert connection.recv(4096).startswith(b"HTTP/1.1 101")
                refused(shake(service.http), "ws_connection_limit_exceeded")
                if speaking:
                    session = {"voice_id": service.voice("endless"), "format": "pcm"}
                    for message in (
                        {"type": "session.update", "session": session},
                        {"type": "tts.speak", "text": "a"},
                    ):
                        connection.sendall(masked(1, json.dumps(message).encode()))
                    assert eventually(lambda: len(service.speaker.calls) == 1)
                # An RST, as a machine that lost its process sends it.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            assert eventually(lambda: shake(service.http)[0] == 101)
        assert eventually(lambda: service.speaker.closed == 1)


def test_117_when_keys_cannot_be_checked_nobody_is_let_in(stage, tmp_path):
    with stage(data_dir=tmp_path) as service:
        with contextlib.closing(sqlite3.connect(tmp_path / "service.sqlite")) as database:
            database.execute("ALTER TABLE keys RENAME TO gone")
        reply = shake(service.http, key="sl:some-stored-key")
        refused(reply, "ws_connection_quota_unavailable")
        assert b"sqlite" not in reply[2]


def test_018_no_key_in_any_refusal(staged):
    canary = f"sl:{CANARY}-0123"
    for reply in (
        shake(staged.http, key=canary),
        shake(staged.http, key=canary, path=f"/ws/{canary}"),
        shake(staged.http, key=canary.replace(":", "-")),
        shake(staged.http, key=canary, Sec_WebSocket_Key=base64.b64encode(CANARY.encode()).decode()),
    ):
        assert CANARY not in str(reply)
