"""Plain clients of a service, by HTTP and by WebSocket: they send exactly what they are told."""

import base64
import contextlib
import http.client
import json
import socket
import struct
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

KEY = "sl:test-key-of-the-suite"
HANDSHAKE = (
    "GET /ws/tts/realtime HTTP/1.1\nHost: localhost\nAuthorization: Bearer {key}\nConnection: Upgrade\n"
    "Upgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\n"
)
"""The head of a handshake, for ``Http.raw``."""


def masked(
    opcode: int, payload: bytes = b"", *, fin=True, rsv=0, mask=True, claim: int | None = None
) -> bytes:
    """A frame of a client, or a wrong one; ``claim`` is the length that it tells. A mask of zeros changes nothing."""
    size, bit = len(payload) if claim is None else claim, 0x80 if mask else 0
    if size < 126:
        length = bytes([bit | size])
    else:
        length = struct.pack("!BH", bit | 126, size) if size < 65_536 else struct.pack("!BQ", bit | 127, size)
    return bytes([(0x80 if fin else 0) | rsv | opcode]) + length + bytes(4 if mask else 0) + payload


@dataclass
class Reply:
    """What came back: status, headers (lower case), body."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        assert self.headers["content-type"].partition(";")[0] == "application/json", self.headers
        return json.loads(self.body)


@dataclass
class Http:
    """A plain client that sends exactly what it is told."""

    base_url: str
    key: str = KEY

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.base_url.removeprefix("http://").partition(":")
        return host, int(port)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        *,
        key: str | None = "",
    ) -> Reply:
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        sent = dict(headers or {})
        if key is not None:
            sent.setdefault("Authorization", f"Bearer {key or self.key}")
        try:
            connection.request(method, path, body, sent)
            reply = connection.getresponse()
            return Reply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read())
        finally:
            connection.close()

    def post_json(self, path: str, fields: Any, **options: Any) -> Reply:
        body = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
        return self.request("POST", path, body, {"Content-Type": "application/json"}, **options)

    def speak(self, **fields: Any) -> Reply:
        return self.post_json("/tts", fields)

    def recognize(self, audio: Any = None, **fields: Any) -> Reply:
        if isinstance(audio, bytes):
            audio = base64.b64encode(audio).decode()
        return self.post_json("/asr/srt/audio_llm", fields if audio is None else {"audio": audio, **fields})

    def translate(self, *pairs: tuple[str, str], path: str = "/translate/", **fields: str) -> Reply:
        return self.form([*pairs, *fields.items()], path=path)

    def form(self, pairs: list[tuple[str, str]], *, path: str = "/translate/") -> Reply:
        body, kind = form_body(pairs)
        return self.request("POST", path, body, {"Content-Type": kind})

    @contextmanager
    def raw(self, head: str, body: bytes = b""):
        """A socket on which a request has been sent; {key} in the head is filled in."""
        with socket.create_connection(self.address, timeout=30) as connection:
            text = head.replace("{key}", self.key).replace("\n", "\r\n")
            connection.sendall(text.encode("latin-1") + b"\r\n" + body)
            yield connection

    @contextmanager
    def raw_json(self, path: str, fields: Any, headers: str = ""):
        body = json.dumps(fields).encode()
        head = (
            f"POST {path} HTTP/1.1\nHost: 127.0.0.1\nAuthorization: Bearer {{key}}\n"
            f"Content-Length: {len(body)}\nConnection: close\n{headers}"
        )
        with self.raw(head, body) as connection:
            yield connection


def form_body(pairs: list[tuple[str, str]], boundary: str = "b0undary") -> tuple[bytes, str]:
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in pairs
    ]
    return ("".join(parts) + f"--{boundary}--\r\n").encode(), f"multipart/form-data; boundary={boundary}"


class Talk:
    """A client of the realtime endpoint that sends exactly what it is told."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket

    def raw(self, data: str | bytes) -> None:
        self.socket.send(data)

    def send(self, **message: Any) -> None:
        self.raw(json.dumps(message))

    def event(self, seconds: float = 20.0) -> Any:
        """The next message: a dictionary, or bytes of audio."""
        message = self.socket.recv(seconds)
        return message if isinstance(message, bytes) else json.loads(message)

    def silent(self, seconds: float) -> bool:
        try:
            self.socket.recv(seconds)
        except TimeoutError:
            return True
        return False

    def closed(self, seconds: float = 20.0) -> int:
        """Read to the end; returns the close code."""
        deadline = time.monotonic() + seconds
        with contextlib.suppress(ConnectionClosed):
            while True:
                self.socket.recv(max(0.0, deadline - time.monotonic()))
        return self.socket.close_code

    def configure(self, **session: Any) -> Any:
        self.send(type="session.update", id="configuring", session=session)
        created = self.event()
        assert created["type"] == "session.created", created
        return created

    def speak(self, text: str, **fields: Any) -> list[Any]:
        self.send(type="tts.speak", text=text, **fields)
        return self.until_usage()

    def begin(self, text: str, **fields: Any) -> Any:
        """Have a text spoken, up to its start."""
        self.send(type="tts.speak", text=text, **fields)
        start = self.event()
        assert start["type"] == "tts.audio.start", start
        return start

    def refusal(self, text: Any, **fields: Any) -> Any:
        """The error that a text gets."""
        self.send(type="tts.speak", text=text, **fields)
        error = self.event()
        assert (error["type"], error.get("id")) == ("tts.error", fields.get("id")), error
        return error

    def until_usage(self) -> list[Any]:
        events = [self.event()]
        while not (isinstance(events[-1], dict) and events[-1]["type"] == "tts.usage"):
            events.append(self.event())
        return events


@contextmanager
def talking(http: Http, key: str | None = None, *, headers: Any = None, **options: Any):
    """A realtime connection for as long as the block lasts."""
    sent = {"Authorization": f"Bearer {key or http.key}"} | (headers or {})
    address = http.base_url.replace("http", "ws", 1) + "/ws/tts/realtime"
    options = {"proxy": None, "max_size": None, "close_timeout": 2} | options
    with connect(address, additional_headers=sent, **options) as socket:
        yield Talk(socket)
