"""Bytes as no library sends them, on one service: each ends in a reply of the contract, and harms nobody else.

Slow heads and bodies, floods, handshakes, frames and unread replies are in ``tests/service``.
"""

import json
import re
import socket

import pytest

from support.clients import KEY
from support.sockets import read_all
from support.staged import staged_service

AUTH = f"Authorization: Bearer {KEY}"
SMUGGLED = f"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n{AUTH}\r\n\r\n"
FORM = b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
FIELDS = {b"source_lang": b"en", b"target_lang": b"ja"}
VOICES, ASR = "/tts/voices", "/asr/srt/audio_llm"
CHUNKED, END, MULTIPART = "Transfer-Encoding: chunked", "0\r\n\r\n", "multipart/form-data"
STATUS = re.compile(rb"HTTP/1\.1 ([2-5]\d\d) ")  # 100 asks whether a client is still there


def post(path, body, *lines, kind="application/json"):
    body = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    head = [f"POST {path} HTTP/1.1", "Host: localhost", AUTH, f"Content-Type: {kind}", *lines]
    length = (
        []
        if any(line.lower().startswith(("content-length", "transfer")) for line in lines)
        else [f"Content-Length: {len(body)}"]
    )
    return "\r\n".join([*head, *length, "", ""]).encode("latin-1") + body


def get(path=VOICES, *lines, host="Host: localhost", key=AUTH, version="HTTP/1.1", more=""):
    head = "\r\n".join(filter(None, [f"GET {path} {version}", host, key, *lines]))
    return f"{head}\r\n\r\n{more}".encode("latin-1")


def framed(*lines, body=""):
    """A body whose length is in doubt, with a request in it that nobody sent."""
    return post("/tts", body + SMUGGLED, *lines)


def chunked(body):
    return framed(CHUNKED, body=body)


def form(*pieces, boundary="b", end=b"--b--\r\n"):
    data = b"".join(FORM % pair for pair in FIELDS.items()) + b"".join(pieces) + end
    return post("/translate/", data, kind=f"{MULTIPART}; boundary={boundary}")


def with_line(field, line):
    """A field of a form with another header."""
    return field.replace(b"\r\n\r\n", b"\r\n" + line + b"\r\n\r\n", 1)


def bounded(data, kind):
    """A form with a header of its own."""
    return post("/translate/", data, kind=MULTIPART + kind)


TEXT = FORM % (b"text", b"Hello.")
REFUSED = set(range(400, 500))
FRAMING = {
    "both lengths": framed("Content-Length: 4", "Transfer-Encoding: chunked", body=END),
    "two lengths": framed("Content-Length: 0", "Content-Length: 4"),
    "a negative length": framed("Content-Length: -1"),
    "a length of 5,000 digits": framed("Content-Length: " + "9" * 5_000),
    "a length with a space before the colon": framed("Content-Length : 4"),
    "chunked behind a tab": framed("Transfer-Encoding:\tchunked, identity", body=END),
    "an unknown coding": framed("Transfer-Encoding: xchunked", body=END),
    "chunked on a second line": framed("Transfer-Encoding:\r\n chunked", body=END),
    "chunked in HTTP/1.0": chunked(END).replace(b"HTTP/1.1", b"HTTP/1.0", 1),
    "a chunk of more than 64 bits": chunked("F" * 17 + "\r\n"),
    "a chunk's size with a bare line feed": chunked("0\n\n"),
    "a chunk with an extension": post("/tts", f"0;a={'b' * 100_000}\r\n\r\n", CHUNKED),
    "a key in a trailer": chunked(f"0\r\n{AUTH}\r\n\r\n"),
    "a long trailer": chunked("0\r\nA: " + "b" * 200_000 + "\r\n\r\n"),
    "a body behind a refusal": get(VOICES, f"Content-Length: {len(SMUGGLED)}", key="", more=SMUGGLED),
}
HEADS = {
    "a folded header": get(VOICES, "X-A: a\r\n b"),
    "a bare return in a header": get(VOICES, f"X-A: a\r{AUTH}"),
    "a bare line feed in a header": get(VOICES, f"X-A: a\n{AUTH}", key=""),
    "a NUL in a header": get(VOICES, "X-A: a\0b"),
    "a header before all names": b"GET /tts/voices HTTP/1.1\r\n Host: localhost\r\n\r\n",
    "bare line feeds": get().replace(b"\r\n", b"\n"),
    "HTTP/0.9": b"GET /tts/voices\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(512),
    "a method of 10,000 letters": get().replace(b"GET", b"G" * 10_000),
    "TRACE": get().replace(b"GET", b"TRACE"),
    "OPTIONS of all": get("*").replace(b"GET", b"OPTIONS"),
    "a body of bytes instead of a request": bytes(range(256)) * 40,
    "no host": get(host=""),
    "two hosts": get(VOICES, "Host: localhost"),
    "another host": get(host="Host: strangers.example"),
    "another host in the address": get("http://strangers.example/tts/voices", host="Host: strangers.example"),
    "a forwarded host": get(VOICES, "X-Forwarded-Host: localhost", host="Host: strangers.example"),
    "a path that goes up": get("/tts/../tts/../../etc/passwd"),
    "a path that goes up with a backslash": get("/..\\..\\etc\\passwd"),
    "a path that is not UTF-8": get("/%ff%fe"),
    "a line break in the path": get("/tts%0d%0aX-A:%20b"),
    "a path of 60,000 letters": get("/" + "a" * 60_000),
    "the metrics without an operator's key": get("/metrics", key=""),
    "the key in the address": get(f"/tts/voices?api_key={KEY}&authorization=Bearer%20{KEY}", key=""),
    "the key in a cookie": get(VOICES, f"Cookie: Authorization={KEY}; api_key={KEY}", key=""),
    "the key in X-API-Key": get(VOICES, f"X-API-Key: {KEY}", key=""),
    "the key as Basic": get(key=f"Authorization: Basic {KEY}"),
    "the key twice": get(VOICES, AUTH),
    "two keys in a list": get(key=f"{AUTH}, Bearer {KEY}"),
    "the key in capitals": get(key=f"Authorization: Bearer {KEY.upper()}"),
    "a key that is not ASCII": get(key="Authorization: Bearer sl:\xff\xfe"),
    "a key of 60,000 letters": get(key="Authorization: Bearer sl:" + "a" * 60_000),
    "300 headers": get(VOICES, *["X-A: b"] * 300),
    "a method that is asked for in a header": get(
        "/healthz", "X-HTTP-Method-Override: DELETE", host="Host: evil.example"
    ),
}
JSONS = {
    "nothing": "",
    "100,000 brackets": "[" * 100_000,
    "a number of 100,000 digits": '{"sample_rate":' + "9" * 100_000 + "}",
    "a number without end": '{"temperature": 1e999}',
    "NaN": '{"temperature": NaN}',
    "a byte order mark": "\ufeff{}",
    "half of a pair": '{"text": "\\ud800"}',
    "a NUL": '{"text": "a\0b"}',
    "20,000 names": json.dumps({f"a{number}": 1 for number in range(20_000)}),
    "names of the object": '{"__proto__": {"text": "a"}, "__class__": "a", "constructor": 1}',
    "more than its limit": b'{"text": "' + b"a" * 300_000 + b'"}',
}
BODIES = {
    "UTF-7": post("/tts", "{+AGE-}", kind="application/json; charset=utf-7"),
    "packed": post("/tts", b"\x1f\x8b" + bytes(20), "Content-Encoding: gzip"),
    "a body that ends early": post("/tts", "{}", "Content-Length: 100"),
    "a recognition of nothing": post(ASR, "{}"),
    "a recognition of a path": post(ASR, '{"audio": "/etc/passwd"}'),
    "a recognition of an address": post(
        ASR,
        '{"messages": [{"role": "user", "content": [{"type": "audio_url", "audio_url": {"url": "file:///etc/passwd"}}]}]}',
    ),
    "a recognition of a WAV without end": post(ASR, '{"audio": "UklGRv////9XQVZFZm10IP////8="}'),
}
FORMS = {
    "no boundary": bounded(b"--b--", ""),
    "a boundary with a quote": bounded(b"--b--", '; boundary="b'),
    "another boundary": form(TEXT, boundary="c"),
    "no end": form(TEXT, end=b""),
    "a field without a name": form(TEXT, b"--b\r\nContent-Disposition: form-data\r\n\r\na\r\n"),
    "a field twice": form(TEXT, TEXT),
    "a file": form(TEXT.replace(b'name="text"', b'name="text"; filename="../../etc/passwd"')),
    "a field that is not UTF-8": form(FORM % (b"text", b"\xff\xfe")),
    "20,000 fields": form(TEXT, FORM % (b"a", b"b") * 20_000),
    "a field with 10,000 headers": form(b"--b\r\n" + b"A: b\r\n" * 10_000 + b"\r\na\r\n"),
    "a field with a header of 100,000 letters": form(b"--b\r\nA: " + b"b" * 100_000 + b"\r\n\r\na\r\n"),
    "words before the first field": bounded(b"a" * 200_000 + TEXT, "; boundary=b"),
    "21 words": form(TEXT, FORM % (b"keywords", b"a") * 21),
    "JSON": post("/translate/", b"{}"),
    "a larger form than allowed": form(FORM % (b"text", b"a" * 400_000)),
}
# What asks for more than it gets, or is odd and allowed.
ANSWERED = {
    "a field of another charset": form(
        with_line(FORM % (b"text", b"a\0"), b"Content-Type: text/plain; charset=utf-16")
    ),
    "a form in a form": form(
        with_line(FORM % (b"text", b"--c--"), b"Content-Type: multipart/mixed; boundary=c")
    ),
    "another protocol": get(
        VOICES, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"
    ),
    "the name of a user's address": get(
        "/tts/voices", "X-Forwarded-For: 127.0.0.1", "Forwarded: for=127.0.0.1"
    ),
    "an id with a line break": get(VOICES, "X-Request-ID: a%0d%0ab"),
}
ATTACKS = [
    *((f"framing: {name}", data, REFUSED | {501, 505}) for name, data in FRAMING.items()),
    # Answered before or after its body breaks off: what counts is that the body is no request.
    ("framing: a body of GET", get(VOICES, "Content-Length: 400", more=SMUGGLED), REFUSED | {200}),
    *((f"head: {name}", data, REFUSED | {501, 505}) for name, data in HEADS.items()),
    *((f"JSON: {name}", post("/tts", data), REFUSED) for name, data in JSONS.items()),
    *((f"body: {name}", data, REFUSED) for name, data in BODIES.items()),
    *((f"form: {name}", data, REFUSED) for name, data in FORMS.items()),
    *((f"answered: {name}", data, {200}) for name, data in ANSWERED.items()),
]


@pytest.fixture(scope="module")
def service():
    with staged_service() as service:
        yield service


def exchange(service, data):
    with socket.create_connection(service.http.address, timeout=10) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before the end
        try:
            return read_all(connection)
        except ConnectionResetError:
            return b""


@pytest.mark.slow
def test_an_attack_by_http_is_held(service):
    for name, data, allowed in ATTACKS:
        reply = exchange(service, data)
        statuses = STATUS.findall(reply)
        assert {int(status) for status in statuses} <= allowed, (name, reply[:300])
        assert len(statuses) <= 1, f"{name}: a request that nobody sent was answered"
        assert KEY.encode() not in reply, name
        assert b"Traceback" not in reply, name
        assert service.http.request("GET", "/healthz").status == 200, name
