"""Frames as no library sends them: split, unmasked, binary, too large, not UTF-8, and pings in between."""

import contextlib
import json
import socket
import struct

import pytest

from support.clients import HANDSHAKE, masked
from support.clock import eventually
from support.proxy import frames

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
LIMIT = 256 * 1024


class Raw:
    """A WebSocket, frame by frame."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.frames = frames(connection, b"")

    def frame(self, opcode: int, payload: bytes = b"", **how) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.sendall(masked(opcode, payload, **how))

    def json(self, **message) -> None:
        self.frame(TEXT, json.dumps(message).encode())

    def read(self) -> tuple[int, bytes]:
        """The next frame of the service, which must be whole."""
        whole, opcode, payload = next(self.frames)
        assert whole
        return opcode, payload

    def event(self):
        """The next message; pings are answered on the way."""
        while True:
            opcode, payload = self.read()
            if opcode == PING:
                self.frame(PONG, payload)
            elif opcode == TEXT:
                return json.loads(payload)
            elif opcode == BINARY:
                return payload
            else:
                assert opcode == CLOSE, opcode
                return struct.unpack("!H", payload[:2])[0]

    def close_code(self) -> int:
        while not isinstance(event := self.event(), int):
            pass
        return event


@contextlib.contextmanager
def raw(http):
    with http.raw(HANDSHAKE + "Sec-WebSocket-Extensions: permessage-deflate\n") as connection:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        assert head.startswith(b"HTTP/1.1 101")
        yield Raw(connection)


@contextlib.contextmanager
def started(service, state):
    """A raw connection in a state; what it has begun ends with it."""
    closed = service.speaker.closed
    with raw(service.http) as client:
        if state == "synthesizing":
            session = {"voice_id": service.voice("gated"), "format": "pcm"}
            client.json(type="session.update", session=session)
            assert client.event()["type"] == "session.created"
            client.json(type="tts.speak", id="s", text="a")
            assert client.event()["type"] == "tts.audio.start"
            assert isinstance(client.event(), bytes)
        yield client
    if state == "synthesizing":
        service.speaker.gate.set()
        assert eventually(lambda: service.speaker.closed == closed + 1)
        service.speaker.gate.clear()


STATES = ("connected", "synthesizing")
CLOSED = {
    1003: [(BINARY, {"payload": b"abc"}), (BINARY, {"payload": b"part", "fin": False}), (BINARY, {})],
    1007: [
        (TEXT, {"payload": payload})
        for payload in (b"\xff", b'{"type": "\xed\xa0\x80"}', b"\xc0\x80", b"\xf4\x90\x80\x80", b"ab\xe3\x81")
    ],
    1009: [
        (TEXT, {"payload": b" " * (LIMIT + 1)}),
        # A header alone is enough.
        *((TEXT, {"payload": b"x" * 1000, "claim": size}) for size in (LIMIT + 1, 2**20, 2**40, 2**62)),
        # The close frame must not be overtaken by a reset, however much the client still sends.
        *[(TEXT, {"payload": b" " * 4_000_000})] * 3,
    ],
    1002: [
        (TEXT, {"payload": b"{}", "mask": False}),
        (TEXT, {"payload": b"{}", "rsv": 0x40}),  # as deflate would mark it, which was not negotiated
        (3, {"payload": b"{}"}),
        (11, {"payload": b"{}"}),
        (0, {"payload": b"{}"}),
        (PING, {"payload": b"{}", "fin": False}),
        (PING, {"payload": b"x" * 126}),
    ],
    1000: [(CLOSE, {"payload": struct.pack("!H", 1000) + b"bye"})],
}


@pytest.mark.parametrize("code", CLOSED)
def test_158_159_160_a_frame_that_closes_the_connection(staged, code):
    for number, (opcode, options) in enumerate(CLOSED[code]):
        with started(staged, "connected" if number else "synthesizing") as client:
            client.frame(opcode, **options)
            assert client.close_code() == code, (opcode, options)


def test_159_160_fragments_are_joined_and_counted_together(staged):
    with raw(staged.http) as client:
        for size, said in ((LIMIT // 2, "unknown_message_type"), (LIMIT, "tts_control_frame_too_large")):
            message = b'{"type": "x"}'.ljust(size)
            client.frame(TEXT, message[:7], fin=False)
            client.frame(0, message[7:1000], fin=False)
            client.frame(PING, b"between")
            client.frame(0, message[1000:])
            assert client.read() == (PONG, b"between")
            assert client.event()["code"] == said
        split = '{"type": "あ"}'.encode()  # within a character
        client.frame(TEXT, split[:11], fin=False)
        client.frame(0, split[11:])
        assert "あ" in client.event()["message"]
        client.frame(TEXT, b" " * (LIMIT // 2), fin=False)
        client.frame(0, b" " * (LIMIT // 2 + 1))
        assert client.close_code() == 1009


@pytest.mark.parametrize("opcode", [0, TEXT, PING, PONG])
def test_160_a_flood_of_frames_ends_its_connection(staged, opcode):
    for state in STATES if opcode == PING else STATES[:1]:
        with started(staged, state) as client:
            if opcode == 0:
                client.frame(TEXT, fin=False)
            head = bytes([opcode | (0x80 if opcode else 0), 0x80]) + bytes(4)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.connection.sendall(head * 20_000)
            while (frame := client.read())[0] != CLOSE:
                pass
            reason = b"too many frames in a second" if opcode else b"too many fragments of a message"
            assert frame[1] == struct.pack("!H", 1008) + reason
    assert staged.http.request("GET", "/tts/voices").status == 200


@pytest.mark.slow
def test_clients_that_do_not_answer_pings_are_dropped(stage):
    with stage(ws_ping_s=0.3) as service, raw(service.http) as client:
        opcode, payload = client.read()
        assert opcode == PING
        client.frame(PONG, payload)
        assert client.read()[0] == PING
        assert client.read() == (CLOSE, struct.pack("!H", 1011) + b"keepalive ping timeout")


def test_messages_in_one_packet_are_answered_in_their_order(staged):
    with raw(staged.http) as client:
        messages = [b"{", b"{}", b'{"type": "x"}', b'{"type": "tts.speak", "id": "5"}'] * 50
        client.connection.sendall(b"".join(masked(TEXT, text) for text in messages))
        expected = ["invalid_json", "missing_message_type", "unknown_message_type", "session_not_configured"]
        assert [client.event()["code"] for _ in messages] == expected * 50
