"""Proxies as a network has them, on real sockets: one that speaks HTTP, one that speaks SOCKS 5."""

import contextlib
import socket
import threading
from dataclasses import dataclass, field

from support.sockets import Listener, read_exactly, read_head


@dataclass
class ForwardProxy(Listener):
    """Passes everything on to one place, whichever host is asked for.

    Attributes:
        upstream: That place.
        authorization: What the header Proxy-Authorization has to be, if it has to be there.
        refusal: A status to answer tunnels with.
        asked: First line and headers of each request.
    """

    upstream: tuple[str, int]
    authorization: str = ""
    refusal: str = ""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def __post_init__(self):
        self.listen()

    def serve(self, connection):
        head, rest = read_head(connection)
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        self.asked.append((first, headers))
        if self.authorization and headers.get("proxy-authorization") != self.authorization:
            connection.sendall(b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        method, target, _ = first.split(" ")
        if method == "CONNECT" and self.refusal:
            connection.sendall(f"HTTP/1.1 {self.refusal}\r\nContent-Length: 0\r\n\r\n".encode())
            return
        with socket.create_connection(self.upstream, timeout=60) as upstream:
            if method == "CONNECT":
                connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            else:
                path = "/" + target.split("/", 3)[3]
                upstream.sendall(head.replace(target.encode(), path.encode(), 1) + b"\r\n\r\n")
            upstream.sendall(rest)
            relay(connection, upstream)


class SocksProxy(ForwardProxy):
    """The same in SOCKS 5; ``asked`` holds the hosts."""

    def serve(self, connection):
        hello = read_exactly(connection, b"", 2)
        methods = read_exactly(connection, hello, 2 + hello[1])[2:]
        wanted = 2 if self.authorization else 0
        if wanted not in methods:
            connection.sendall(b"\x05\xff")
            return
        connection.sendall(bytes([5, wanted]))
        if wanted and not self._knows(connection):
            return
        request = read_exactly(connection, b"", 5)
        assert request[3] == 3, "hosts are looked up by the proxy"
        request = read_exactly(connection, request, 5 + request[4] + 2)
        self.asked.append((request[5 : 5 + request[4]].decode(), {}))
        connection.sendall(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
        with socket.create_connection(self.upstream, timeout=60) as upstream:
            relay(connection, upstream)

    def _knows(self, connection):
        data = read_exactly(connection, b"", 2)
        end = 2 + data[1]
        data = read_exactly(connection, data, end + 1)
        data = read_exactly(connection, data, end + 1 + data[end])
        good = f"{data[2:end].decode()}:{data[end + 1 :].decode()}" == self.authorization
        connection.sendall(b"\x01\x00" if good else b"\x01\x01")
        return good


def relay(one, other):
    def pass_on(source, target):
        with contextlib.suppress(OSError):
            while chunk := source.recv(65_536):
                target.sendall(chunk)
            target.shutdown(socket.SHUT_WR)

    back = threading.Thread(target=pass_on, args=(other, one), daemon=True)
    back.start()
    pass_on(one, other)
    back.join(60)
