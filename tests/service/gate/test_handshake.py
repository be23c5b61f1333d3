"""What is decided before the upgrade, on raw sockets: always an HTTP reply with a body, never 101 and a close."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import sqlite3
import time

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


def shake(http, *, path=PATH, method="GET", version="1.1", key="", drop=(), body=b"", **headers):
    """Send a handshake as written; returns status, headers and body."""
    fields = {name: value for name, value in GOOD.items() if name not in drop}
    if key is not None:
        fields["Authorization"] = f"Bearer {key or http.key}"
    lines = [f"{method} {path} HTTP/{version}"]
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


def test_a_right_handshake_is_upgraded(staged):
    status, headers, _ = shake(staged.http)
    assert (status, headers["upgrade"]) == (101, "websocket")
    # The example of RFC 6455, section 1.3.
    assert headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    # 005: the scheme in any case.
    assert shake(staged.http, key=None, Authorization=f"bearer {staged.http.key}")[0] == 101


NO_HANDSHAKES = [
    {"drop": ["Connection"]},
    {"drop": ["Sec-WebSocket-Version"]},
    {"drop": ["Upgrade", "Connection", "Sec-WebSocket-Key", "Sec-WebSocket-Version"]},
    {"Sec_WebSocket_Key": "not base64!"},
    {"Sec-WebSocket-Key": [KEY_HEADER, KEY_HEADER]},
    {"Sec_WebSocket_Version": "8, 13"},
    {"Upgrade": "h2c"},
    {"Connection": "keep-alive"},
    {"method": "POST", "Content_Length": "5", "body": b"hello"},
    {"Content_Length": "5", "body": b"hello"},
    {"method": "PUT"},
    {"method": "POST", "drop": ["Upgrade", "Connection"], "Content_Length": "2", "body": b"{}"},
    {"Sec_WebSocket_Protocol": "not:a token"},
    {"Origin": ["https://lab.example"] * 2},
    {"X_Long": "a" * 20_000},
    {"X_Many": ["a"] * 150},
]


def test_115_119_what_is_no_handshake(staged, caplog):
    for change in NO_HANDSHAKES:
        for key in ("", None):  # 118: that comes before the key.
            refused(shake(staged.http, key=key, **change), "invalid_websocket_upgrade")
    assert staged.http.request("GET", "/healthz").status == 200  # after all that the refusals do
    assert "internal error" not in caplog.messages


TOKENS = [
    ({"X_API_Key": "sl:test-key-of-the-suite"}, "auth_token_required"),
    ({"Cookie": "api_key=sl:test-key-of-the-suite"}, "auth_token_required"),
    ({"Sec_WebSocket_Protocol": "speech, test-key-of-the-suite"}, "auth_token_required"),
    ({"Authorization": ""}, "invalid_token_format"),
    ({"Authorization": "Bearer"}, "invalid_token_format"),
    ({"Authorization": "Bearer sl:"}, "invalid_token_format"),
    ({"Authorization": "Bearer :body"}, "invalid_token_format"),
    ({"Authorization": "sl:test-key-of-the-suite"}, "invalid_token_format"),
    ({"Authorization": ["Bearer sl:test-key-of-the-suite"] * 2}, "invalid_token_format"),
    ({"Authorization": "Bearer sl-test-key-of-the-suite"}, "legacy_api_key_rejected"),
    ({"Authorization": "Bearer sl_test-key-of-the-suite"}, "legacy_api_key_rejected"),
    ({"Authorization": "Bearer xx:test-key-of-the-suite"}, "invalid_token"),
    ({"Authorization": "Bearer sl:test-key-of-the-suite1"}, "invalid_token"),
    ({"Authorization": "Bearer sl:schl\u00fcssel"}, "invalid_token"),
]


def test_001_116_120_tokens(staged):
    for headers, code in TOKENS:
        for path in (PATH, PATH + "?api_key=sl:test-key-of-the-suite"):
            refused(shake(staged.http, key=None, path=path, **headers), code)


def test_003_120_keys_that_expired_or_were_revoked(stage, tmp_path):
    with stage(data_dir=tmp_path) as service, contextlib.closing(Database(tmp_path)) as database:
        access = KeyStore(database)
        expiring, short = access.create_key("expiring", expires_in_s=3600)
        stored, revoked = access.create_key("revoked")
        assert shake(service.http, key=short)[0] == shake(service.http, key=revoked)[0] == 101
        access.revoke_key(stored.key_id)
        database.write("UPDATE keys SET expires = ? WHERE id = ?", (time.time(), expiring.key_id))
        for key in (short, revoked):
            refused(shake(service.http, key=key), "invalid_token")


def test_121_origins(stage):
    with stage(ws_origins=("https://lab.example", "null")) as service:
        for origin in ("https://lab.example", "HTTPS://LAB.example", "null"):
            assert shake(service.http, Origin=origin)[0] == 101
        for origin in ("https://lab.example.evil", "http://lab.example", "https://lab.example/"):
            refused(shake(service.http, Origin=origin), "ws_origin_denied")
    with stage() as service:
        for origin in ("null", "http://127.0.0.1", service.http.base_url):
            refused(shake(service.http, Origin=origin), "ws_origin_denied")


def test_117_other_paths(staged):
    for path in ("/ws", "/ws/asr/realtime", PATH + "/", "/", "/tts", PATH.upper()):
        refused(shake(staged.http, path=path), "unknown_service")


def test_hosts_that_are_not_served(staged):
    refused(shake(staged.http, Host="stranger.example"), "invalid_websocket_upgrade")
    assert shake(staged.http, Host="localhost:1234")[0] == 101


def test_118_of_two_faults_the_first_in_order_is_told(stage, talk):
    faults = [
        ({"Sec_WebSocket_Version": "12"}, "invalid_websocket_upgrade"),
        ({"key": None}, "auth_token_required"),
        ({"key": "nocolon"}, "invalid_token_format"),
        ({"key": "sl:unknown-key"}, "invalid_token"),
        ({"key": "sl-legacy-key"}, "legacy_api_key_rejected"),
        ({"Origin": "https://evil.example"}, "ws_origin_denied"),
        ({"path": "/ws/x"}, "unknown_service"),
        ({}, "ws_connection_limit_exceeded"),
    ]
    with stage(ws_connections=1) as service, talk(service.http) as _:
        for number, (first, code) in enumerate(faults):
            for second, _code in faults[number:]:
                refused(shake(service.http, **(second | first)), code)


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
