"""HTTP/1.1 on a bare socket: exactly the bytes of a check, and exactly the bytes of the reply.

A library would repair or hide faults, follow redirects, and decode bodies.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import time
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from speechlab.conform._probe.findings import ExpectationUnmet

# Placeholder for an empty reply.
EMPTY_REPLY = b"the connection ended"
_HTTP_PREFIX = b"HTTP/"
_MAX_BYTES = 512 * 1024 * 1024


def shorten_middle(text: str, max_chars: int = 400) -> str:
    """Return a text, with its middle cut out if it is long."""
    if len(text) <= max_chars:
        return text
    return f"{text[: max_chars - 60]} … [{len(text):,} characters] … {text[-40:]}"


@dataclass(frozen=True, slots=True)
class Address:
    """Host, port and path of a base URL."""

    host: str
    port: int
    tls: bool
    path: str

    @classmethod
    def parse_url(cls, url: str) -> Address:
        """Read a base URL; its path may end in slashes."""
        address = urlsplit(url)
        if address.scheme not in {"http", "https", "ws", "wss"} or not address.hostname:
            raise ValueError(f"{url!r} is not a URL like https://host/path")
        tls = address.scheme in {"https", "wss"}
        return cls(address.hostname, address.port or (443 if tls else 80), tls, address.path.rstrip("/"))

    @property
    def host_header(self) -> str:
        """Value of the ``Host`` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    def open_socket(self, timeout_s: float) -> socket.socket:
        connection = socket.create_connection((self.host, self.port), timeout=timeout_s)
        if not self.tls:
            return connection
        return ssl.create_default_context().wrap_socket(connection, server_hostname=self.host)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request, shortened and without its key, and its reply; times in seconds from the request on."""

    sent: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    framing: str
    complete: bool
    trailing: bytes = b""
    chunks: int = 0
    first_s: float = 0.0
    seconds: float = 0.0

    def find_header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    @property
    def media_type(self) -> str:
        """Content type without its parameters, in lower case."""
        return (self.find_header("content-type") or "").partition(";")[0].strip().lower()

    @property
    def came(self) -> str:
        """The reply, shortened."""
        head = f"{self.status} {self.find_header('content-type') or 'without Content-Type'}, {self.framing}"
        if not self.complete:
            head += ", cut short"
        if self.trailing:
            head += f", then {self.trailing[:80]!r}"
        if self.media_type.startswith("audio/"):
            return f"{head}: {len(self.body):,} bytes, beginning {self.body[:12].hex(' ')}"
        return f"{head}: {shorten_middle(self.body.decode('utf-8', 'replace'), 600)}"

    def parse_json(self) -> Any:
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise ExpectationUnmet("the body is JSON", self) from None


class NotHTTP(ExpectationUnmet):
    """The reply is not HTTP."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__("the reply is HTTP", exchange)
        self.exchange = exchange


@dataclass(slots=True)
class SocketReader:
    """Reads from a socket with one deadline for all reads."""

    connection: socket.socket
    deadline: float
    held: bytes = b""
    ended: bool = False

    def read_more(self) -> bool:
        """Read the available bytes; False at the end."""
        if self.ended:
            return False
        remaining_s = self.deadline - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError
        self.connection.settimeout(remaining_s)
        try:
            data = self.connection.recv(65_536)
        except (ConnectionError, ssl.SSLError):
            data = b""
        self.ended = not data
        self.held += data
        return bool(data)

    def wait_for_bytes(self) -> None:
        """Read until bytes are available, or to the end."""
        while not self.held and self.read_more():
            pass

    def read_line(self) -> bytes | None:
        """Return a line without its line end, or None at the end of the stream."""
        while b"\r\n" not in self.held:
            if not self.read_more():
                return None
        line, _, self.held = self.held.partition(b"\r\n")
        return line

    def read_at_most(self, count: int) -> bytes:
        """Return this number of bytes, or fewer at the end."""
        blocks, have = [self.held], len(self.held)
        self.held = b""
        while have < count and self.read_more():
            blocks.append(self.held)
            have += len(self.held)
            self.held = b""
        data = b"".join(blocks)
        self.held = data[count:]
        return data[:count]

    def read_rest(self) -> bytes:
        return self.read_at_most(_MAX_BYTES)


def send_request(
    address: Address, request: bytes, shown: str, timeout_s: float, *, first_only: bool = False
) -> Exchange:
    """Send a request on a new connection, and read its reply."""
    started = time.monotonic()
    connection = address.open_socket(timeout_s)
    with contextlib.closing(connection):
        # A refusal may arrive, and the connection end, before the body is sent completely.
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            connection.sendall(request)
        reader = SocketReader(connection, started + timeout_s)
        status, headers = _read_final_head(reader, shown)
        reply = Exchange(shown, status, headers, b"", "length", complete=True)
        if first_only:
            reader.wait_for_bytes()
            framing, seconds = "chunked" if _is_chunked(reply) else "close", time.monotonic() - started
            return replace(
                reply, body=reader.held, framing=framing, complete=False, first_s=seconds, seconds=seconds
            )
        return _read_and_attach_body(reader, reply, started, head_only=request.startswith(b"HEAD "))


def _read_final_head(reader: SocketReader, shown: str) -> tuple[int, tuple[tuple[str, str], ...]]:
    status = 100
    headers: list[tuple[str, str]] = []
    while status in {100, 102, 103}:
        # A banner of another protocol may have no line end, and its sender may wait without limit.
        while len(reader.held) < len(_HTTP_PREFIX) and reader.read_more():
            pass
        first = (
            reader.read_line()
            if reader.held.startswith(_HTTP_PREFIX)
            else reader.held.partition(b"\n")[0].rstrip()
        )
        words = (first or b"").split(b" ", 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
            raise NotHTTP(Exchange(shown, 0, (), (first or EMPTY_REPLY)[:200], "close", complete=False))
        status, headers = int(words[1]), []
        while line := reader.read_line():
            name, _, value = line.decode("latin-1").partition(":")
            headers.append((name.strip().lower(), value.strip()))
    return status, tuple(headers)


def _is_chunked(reply: Exchange) -> bool:
    return "chunked" in (reply.find_header("transfer-encoding") or "").lower()


def _read_and_attach_body(
    reader: SocketReader, reply: Exchange, started: float, *, head_only: bool
) -> Exchange:
    if head_only or reply.status in {101, 204, 304}:
        return reply
    reader.wait_for_bytes()
    first_s = time.monotonic() - started
    framing, chunks, complete = "close", 1, True
    if _is_chunked(reply):
        framing = "chunked"
        body, chunks, complete = _read_chunked_body(reader)
    elif (length := reply.find_header("content-length")) is not None and length.isdigit():
        framing, body = "length", reader.read_at_most(int(length))
        complete = len(body) == int(length)
    else:
        body = reader.read_rest()
    seconds = time.monotonic() - started
    reader.deadline = time.monotonic() + 1.0
    trailing = b""
    with contextlib.suppress(TimeoutError):
        trailing = reader.read_rest()
    return replace(
        reply,
        body=body,
        framing=framing,
        complete=complete,
        trailing=trailing,
        chunks=chunks,
        first_s=first_s,
        seconds=seconds,
    )


def _read_chunked_body(reader: SocketReader) -> tuple[bytes, int, bool]:
    chunks: list[bytes] = []
    while True:
        size = (reader.read_line() or b"").partition(b";")[0].strip()
        try:
            count = int(size, 16)
        except ValueError:
            return b"".join(chunks), len(chunks), False
        if count == 0:
            while reader.read_line():
                pass
            return b"".join(chunks), len(chunks), True
        data = reader.read_at_most(count)
        chunks.append(data)
        if len(data) < count or reader.read_line() != b"":
            return b"".join(chunks), len(chunks), False
