"""A proxy on a real socket that passes everything on, except for one fault."""

import contextlib
import json
import socket
import struct
import threading
from dataclasses import dataclass

from support.sockets import Listener, dechunked, read_exactly, read_head

TEXT, BINARY, CLOSE = 1, 2, 8


@dataclass
class Request:
    method: str
    path: str
    headers: list[list[str]]
    body: bytes

    def json(self):
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def drop(self, name):
        self.headers = [pair for pair in self.headers if pair[0].lower() != name]

    def bytes(self):
        self.drop("content-length")
        lines = [f"{name}: {value}\r\n" for name, value in self.headers]
        length = f"content-length: {len(self.body)}\r\n" if self.method != "GET" or self.body else ""
        head = f"{self.method} {self.path} HTTP/1.1\r\n{''.join(lines)}{length}\r\n"
        return head.encode("latin-1") + self.body


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes
    framing: str = "length"
    final: bool = True
    tail: bytes = b""

    def json(self):
        return json.loads(self.body)

    def set(self, value, status=None):
        self.body = json.dumps(value, ensure_ascii=False).encode()
        self.headers["content-type"] = "application/json"
        self.status = status or self.status

    def bytes(self):
        kept = {k: v for k, v in self.headers.items() if k not in {"content-length", "transfer-encoding"}}
        body = self.body
        if self.framing == "length":
            kept["content-length"] = str(len(body))
        elif self.framing == "chunked":
            kept["transfer-encoding"] = "chunked"
            body = f"{len(body):x}\r\n".encode() + body + b"\r\n" + (b"0\r\n\r\n" if self.final else b"")
        lines = "".join(f"{name}: {value}\r\n" for name, value in kept.items())
        return f"HTTP/1.1 {self.status} OK\r\n{lines}\r\n".encode("latin-1") + body + self.tail


class Fault:
    """Passes everything on; faults override what they spoil."""

    def asked(self, request):
        """Change a request; may answer it with a Reply."""

    def answered(self, request, reply):
        """Change a reply."""

    def opened(self):
        """Messages to the client as soon as the connection is open."""
        return []

    def up(self, kind, data):
        """A client's frame: what goes to the service, and what goes straight back."""
        return [(kind, data)], []

    def down(self, kind, data):
        """A service's frame: what goes to the client."""
        return [(kind, data)]


@dataclass
class Proxy(Listener):
    upstream: tuple[str, int]
    fault: Fault

    def __post_init__(self):
        self.listen()
        self.url = f"http://{self.place}"

    def serve(self, connection):
        head, rest = read_head(connection)
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        headers = [line.split(": ", 1) for line in lines]
        length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
        request = Request(method, path, headers, read_exactly(connection, rest, length))
        reply = self.fault.asked(request)
        if reply is None:
            with socket.create_connection(self.upstream, timeout=60) as upstream:
                reply = self._ask(request, connection, upstream)
        if reply is not None:
            self.fault.answered(request, reply)
            connection.sendall(reply.bytes())

    def _ask(self, request, connection, upstream):
        with contextlib.suppress(OSError):  # refused, and closed, before all of it was sent
            upstream.sendall(request.bytes())
        head, rest = read_head(upstream)
        first, *lines = head.decode("latin-1").split("\r\n")
        status = int(first.split(" ")[1])
        if status == 101:
            connection.sendall(head + b"\r\n\r\n")
            self._relay(connection, upstream, rest)
            return None
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        headers["connection"] = "close"
        body = rest
        while chunk := upstream.recv(65_536):
            body += chunk
        if headers.get("transfer-encoding") == "chunked":
            return Reply(status, headers, dechunked(body), "chunked")
        return Reply(status, headers, body)

    def _relay(self, client, service, rest):
        for kind, data in self.fault.opened():
            client.sendall(frame(kind, data))
        lock = threading.Lock()

        def upwards():
            with contextlib.suppress(OSError, ValueError):
                for fin, kind, data in frames(client, b""):
                    forward, back = self.fault.up(kind, data) if fin and kind else ([(kind, data)], [])
                    for each in forward:
                        service.sendall(frame(*each, masked=True, fin=fin))
                    with lock:
                        for each in back:
                            client.sendall(frame(*each))
            with contextlib.suppress(OSError):
                service.shutdown(socket.SHUT_WR)

        threading.Thread(target=upwards, daemon=True).start()
        with contextlib.suppress(OSError, ValueError):
            for fin, kind, data in frames(service, rest):
                with lock:
                    for each in self.fault.down(kind, data):
                        client.sendall(frame(*each, fin=fin))
        # The other thread still reads from it, so that closing alone would not end the connection.
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


def frames(connection, held):
    while True:
        held = read_exactly(connection, held, 2)
        fin, kind, masked, length = held[0] & 0x80, held[0] & 0x0F, held[1] & 0x80, held[1] & 0x7F
        offset = 2
        if length > 125:
            wide = 2 if length == 126 else 8
            held = read_exactly(connection, held, 2 + wide)
            length, offset = int.from_bytes(held[2 : 2 + wide], "big"), 2 + wide
        mask = bytes(4)
        if masked:
            held = read_exactly(connection, held, offset + 4)
            mask, offset = held[offset : offset + 4], offset + 4
        held = read_exactly(connection, held, offset + length)
        data, held = held[offset : offset + length], held[offset + length :]
        if mask != bytes(4):
            whole = (mask * (length // 4 + 1))[:length]
            data = (int.from_bytes(data, "big") ^ int.from_bytes(whole, "big")).to_bytes(length, "big")
        yield bool(fin), kind, data


def frame(kind, data, *, masked=False, fin=True):
    head = bytes([(0x80 if fin else 0) | kind])
    bit = 0x80 if masked else 0
    if len(data) < 126:
        head += bytes([bit | len(data)])
    elif len(data) < 65_536:
        head += bytes([bit | 126]) + struct.pack(">H", len(data))
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", len(data))
    return head + (bytes(4) if masked else b"") + data
