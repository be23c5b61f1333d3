"""A recognizer elsewhere that answers whatever a test wants."""

import contextlib
import socket
import threading
from dataclasses import dataclass, field

from support.sockets import Listener, read_exactly, read_head


@dataclass
class Wire(Listener):
    """A backend that answers every request with the same bytes, and remembers what it was sent.

    ``reply`` None hangs up without an answer; ``hang`` keeps the connection and says nothing.
    """

    reply: bytes | None = b""
    hang: bool = False
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    gone: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.listen()
        self.url = f"http://{self.place}/speech"

    def serve(self, connection: socket.socket) -> None:
        head, body = read_head(connection)
        text = head.decode("latin-1").lower()
        length = int(text.partition("content-length: ")[2].partition("\r\n")[0])
        body = read_exactly(connection, body, length)
        self.heads.append(text)
        self.bodies.append(body)
        if self.hang:
            with contextlib.suppress(OSError):
                connection.recv(1)  # returns when the other side is gone
            self.gone.set()
        elif self.reply is not None:
            connection.sendall(self.reply)


def wire(reply: bytes | None = b"", *, hang: bool = False) -> contextlib.closing[Wire]:
    return contextlib.closing(Wire(reply, hang))


def answer(status: str, body: bytes, kind: str = "application/json", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body
