"""A recognizer elsewhere that answers whatever a test wants."""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import dataclass, field


@dataclass
class Wire:
    """A backend that answers every request with the same bytes, and remembers what it was sent.

    ``reply`` None hangs up without an answer; ``hang`` keeps the connection and says nothing.
    """

    reply: bytes | None = b""
    hang: bool = False
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    gone: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def answer(self, connection: socket.socket) -> None:
        with connection:
            data = b""
            while b"\r\n\r\n" not in data:
                chunk = connection.recv(65_536)
                if not chunk:
                    return
                data += chunk
            head, _, body = data.partition(b"\r\n\r\n")
            text = head.decode("latin-1").lower()
            length = int(text.partition("content-length: ")[2].partition("\r\n")[0])
            while len(body) < length:
                if not (chunk := connection.recv(65_536)):
                    return
                body += chunk
            self.heads.append(text)
            self.bodies.append(body)
            if self.hang:
                with contextlib.suppress(OSError):
                    connection.recv(1)  # returns when the other side is gone
                self.gone.set()
            elif self.reply is not None:
                connection.sendall(self.reply)


@contextlib.contextmanager
def wire(reply: bytes | None = b"", *, hang: bool = False):
    backend = Wire(reply, hang)
    listener = socket.create_server(("127.0.0.1", 0))
    backend.url = f"http://127.0.0.1:{listener.getsockname()[1]}/speech"

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=backend.answer, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield backend
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def answer(status: str, body: bytes, kind: str = "application/json", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body
