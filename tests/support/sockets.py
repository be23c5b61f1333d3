"""Sockets, and what is read from them."""

import socket
import threading
from contextlib import contextmanager, suppress


class Listener:
    """Serves each connection in a thread of its own; a class that is one has ``serve``."""

    def listen(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, suppress(OSError, ValueError):
            connection.settimeout(60)
            self.serve(connection)


def read_all(connection: socket.socket) -> bytes:
    data = b""
    while chunk := connection.recv(65_536):
        data += chunk
    return data


def read_until(connection: socket.socket, mark: bytes, limit: int = 1_000_000) -> bytes:
    data = b""
    while mark not in data and len(data) < limit:
        chunk = connection.recv(4096)
        if not chunk:
            break
        data += chunk
    return data


def read_head(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(65_536)
        if not chunk:
            raise ValueError("the connection ended")
        data += chunk
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def read_exactly(connection, have, count):
    while len(have) < count:
        chunk = connection.recv(65_536)
        if not chunk:
            raise ValueError("the connection ended")
        have += chunk
    return have


def dechunked(data):
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        count = int(size, 16)
        if not count:
            break
        body, data = body + data[:count], data[count + 2 :]
    return body


@contextmanager
def nobody():
    """An address at which nobody listens, and nobody can begin to as long as the block lasts."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def free_port() -> int:
    """A port that a process may take at once; nobody had it a moment ago."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
