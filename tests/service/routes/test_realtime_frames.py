"""Frames as no library sends them: split, unmasked, binary, too large, not UTF-8, and pings in between."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import struct

import pytest

from support.clock import eventually

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
LIMIT = 256 * 1024


class Raw:
    """A WebSocket, frame by frame."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.data = b""

    def frame(self, opcode: int, payload: bytes = b"", *, fin=True, mask=True, claim=None, rsv=0) -> None:
        """Send a frame; ``claim`` is the length that its header tells."""
        size = len(payload) if claim is None else claim
        head = bytes([(0x80 if fin else 0) | rsv | opcode])
        bit = 0x80 if mask else 0
        if size < 126:
            head += bytes([bit | size])
        elif size < 65_536:
            head += bytes([bit | 126]) + struct.pack("!H", size)
        else:
            head += bytes([bit | 127]) + struct.pack("!Q", size)
        key = b"\x11\x22\x33\x44" if mask else b""
        if mask:
            repeated = (key * (len(payload) // 4 + 1))[: len(payload)]
            payload = (int.from_bytes(payload) ^ int.from_bytes(repeated)).to_bytes(len(payload))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.sendall(head + key + payload)

    def json(self, **message) -> None:
        self.frame(TEXT, json.dumps(message).encode())

    def _exactly(self, count: int) -> bytes:
        while len(self.data) < count:
            chunk = self.connection.recv(65_536)
            if not chunk:
                raise EOFError
            self.data += chunk
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def read(self) -> tuple[int, bytes]:
        """The next frame of the service, which must be whole and unmasked."""
        first, second = self._exactly(2)
        assert first & 0xF0 == 0x80, "no fragments, no extensions"
        size = second
        if second == 126:
            (size,) = struct.unpack("!H", self._exactly(2))
        elif second == 127:
            (size,) = struct.unpack("!Q", self._exactly(8))
        return first & 0x0F, self._exactly(size)

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
    with socket.create_connection(http.address, timeout=15) as connection:
        key = base64.b64encode(bytes(16)).decode()
        connection.sendall(
            f"GET /ws/tts/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\nAuthorization: Bearer {http.key}\r\n"
            f"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n".encode()
        )
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        assert head.startswith(b"HTTP/1.1 101")
        yield Raw(connection)


@pytest.fixture(params=["connected", "configured", "synthesizing"])
def started(request, staged):
    """A raw connection in each state, and the service behind it."""
    with raw(staged.http) as client:
        if request.param != "connected":
            voice = staged.voice("gated")
            client.json(type="session.update", session={"voice_id": voice, "format": "pcm"})
            assert client.event()["type"] == "session.created"
        if request.param == "synthesizing":
            client.json(type="tts.speak", id="s", text="a")
            assert client.event()["type"] == "tts.audio.start"
            assert isinstance(client.event(), bytes)
        yield client, staged, request.param


@pytest.mark.parametrize(
    ("payload", "options"),
    [(b"", {}), (b"abc", {}), (b'{"type": "tts.speak"}', {}), (b"part", {"fin": False})],
    ids=["empty", "some", "json", "first fragment"],
)
def test_158_any_binary_frame_closes_with_1003(started, payload, options):
    client, staged, state = started
    client.frame(BINARY, payload, **options)
    assert client.close_code() == 1003
    if state == "synthesizing":
        staged.speaker.gate.set()
        assert eventually(lambda: staged.speaker.closed == 1)


def test_159_over_the_read_limit_closes_with_1009(started):
    client, staged, state = started
    client.frame(TEXT, b" " * (LIMIT + 1))
    assert client.close_code() == 1009
    if state == "synthesizing":
        staged.speaker.gate.set()
        assert eventually(lambda: staged.speaker.closed == 1)


@pytest.mark.parametrize("size", [LIMIT + 1, 2**20, 2**40, 2**62])
def test_159_a_header_alone_is_enough_for_1009(staged, size):
    with raw(staged.http) as client:
        client.frame(TEXT, b"x" * 1000, claim=size)
        assert client.close_code() == 1009


def test_159_a_large_message_that_is_still_being_sent_gets_its_1009(staged):
    # The close frame must not be overtaken by a reset, however much the client still sends.
    for _ in range(5):
        with raw(staged.http) as client:
            client.frame(TEXT, b" " * 4_000_000)
            assert client.close_code() == 1009


def test_159_160_fragments_are_joined_and_counted_together(staged):
    with raw(staged.http) as client:
        for size, told in ((LIMIT // 2, "unknown_message_type"), (LIMIT, "tts_control_frame_too_large")):
            message = b'{"type": "x"}'.ljust(size)
            client.frame(TEXT, message[:7], fin=False)
            client.frame(0, message[7:1000], fin=False)
            client.frame(PING, b"between")
            client.frame(0, message[1000:])
            assert client.read() == (PONG, b"between")
            assert client.event()["code"] == told
        client.frame(TEXT, b" " * (LIMIT // 2), fin=False)
        client.frame(0, b" " * (LIMIT // 2 + 1))
        assert client.close_code() == 1009


@pytest.mark.parametrize(
    "payload", [b"\xff", b'{"type": "\xed\xa0\x80"}', b"\xc0\x80", b"\xf4\x90\x80\x80", b"ab\xe3\x81"]
)
def test_160_bad_utf8_closes_with_1007(started, payload):
    client, _, _ = started
    client.frame(TEXT, payload)
    assert client.close_code() == 1007


def test_160_a_character_may_be_split_between_fragments(staged):
    with raw(staged.http) as client:
        message = '{"type": "あ"}'.encode()
        client.frame(TEXT, message[:11], fin=False)
        client.frame(0, message[11:])
        error = client.event()
        assert (error["code"], "あ" in error["message"]) == ("unknown_message_type", True)


@pytest.mark.parametrize(
    ("opcode", "options"),
    [
        (TEXT, {"mask": False}),
        (TEXT, {"rsv": 0x40}),  # as deflate would mark it, which was not negotiated
        (3, {}),
        (11, {}),
        (0, {}),
        (PING, {"fin": False}),
        (PING, {"payload": b"x" * 126}),
    ],
)
def test_160_frames_against_the_protocol_close_with_1002(started, opcode, options):
    client, _, _ = started
    client.frame(opcode, **({"payload": b"{}"} | options))
    assert client.close_code() == 1002


@pytest.mark.parametrize("opcode", [0, TEXT, PING, PONG])
def test_160_a_flood_of_frames_ends_its_connection(started, opcode):
    client, staged, _ = started
    if opcode == 0:
        client.frame(TEXT, fin=False)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        client.connection.sendall((bytes([opcode | (0x80 if opcode else 0), 0x80]) + bytes(4)) * 20_000)
    while (frame := client.read())[0] != CLOSE:
        pass
    reason = b"too many frames in a second" if opcode else b"too many fragments of a message"
    assert frame[1] == struct.pack("!H", 1008) + reason
    staged.speaker.gate.set()
    assert staged.http.request("GET", "/tts/voices").status == 200


def test_160_pings_are_answered_during_synthesis(started):
    client, staged, state = started
    for number in range(3):
        client.frame(PING, bytes([number]))
        assert client.read() == (PONG, bytes([number]))
    if state == "synthesizing":
        staged.speaker.gate.set()
        assert isinstance(client.event(), bytes)
        assert client.event()["type"] == "tts.audio.done"


def test_a_client_that_closes_gets_its_close_frame(started):
    client, staged, state = started
    client.frame(CLOSE, struct.pack("!H", 1000) + b"bye")
    assert client.close_code() == 1000
    if state == "synthesizing":
        staged.speaker.gate.set()
        assert eventually(lambda: staged.speaker.closed == 1)


@pytest.mark.slow
def test_silent_clients_are_pinged_and_those_that_do_not_answer_are_dropped(stage):
    with stage(ws_ping_s=0.3) as service, raw(service.http) as client:
        opcode, payload = client.read()
        assert opcode == PING
        client.frame(PONG, payload)
        assert client.read()[0] == PING
        assert client.read() == (CLOSE, struct.pack("!H", 1011) + b"keepalive ping timeout")


def test_messages_in_one_packet_are_answered_in_their_order(staged):
    with raw(staged.http) as client:
        messages = [b"{", b"{}", b'{"type": "x"}', b'{"type": "tts.speak", "id": "5"}'] * 50
        # The mask of zeros leaves the payload as it is.
        client.connection.sendall(
            b"".join(b"\x81" + bytes([0x80 | len(text)]) + bytes(4) + text for text in messages)
        )
        expected = ["invalid_json", "missing_message_type", "unknown_message_type", "session_not_configured"]
        assert [client.event()["code"] for _ in messages] == expected * 50


def test_a_message_without_end_is_closed_before_its_fragments_fill_the_memory(started):
    client, staged, _ = started
    client.frame(TEXT, b"{", fin=False)
    for _ in range(1_100):
        client.frame(0, b"", fin=False)
    while (frame := client.read())[0] != CLOSE:
        pass
    assert frame[1] == struct.pack("!H", 1008) + b"too many fragments of a message"
    staged.speaker.gate.set()
