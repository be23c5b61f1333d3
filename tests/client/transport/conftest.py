"""Whatever is sent is sent over both wires."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from contextlib import suppress

import pytest

from speechlab.client import Client


@pytest.fixture(params=["httpx2", "aiohttp"])
def wire(request):
    """The option ``transport`` of each wire."""
    return request.param


@pytest.fixture
def lab(server, clock, http, wire):
    with Client(server.base_url, api_key=http.KEY, clock=clock, rng=http.Half(), transport=wire) as client:
        yield client


REPLY = b'HTTP/1.1 200 X\r\nContent-Length: 13\r\nConnection: close\r\n\r\n{"voices":[]}'


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    folder = tmp_path_factory.mktemp("certificate")
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=x -addext"
    )
    subprocess.run(
        [*command.split(), "subjectAltName=IP:127.0.0.1,DNS:speech.invalid"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture
def secure(certificate):
    """A server with that certificate: its address, and how often somebody came."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    listener = socket.create_server(("127.0.0.1", 0))
    came, asked = [], []

    def serve():
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            came.append(1)
            with plain, suppress(OSError), context.wrap_socket(plain, server_side=True) as connection:
                asked.append(connection.recv(65_536))
                connection.sendall(REPLY)

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"127.0.0.1:{listener.getsockname()[1]}", came, asked
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(10)
