"""Whatever is sent is sent over both wires."""

import shutil
import ssl
import subprocess
from contextlib import closing

import pytest

from speechlab.client import Client
from support.sockets import Listener


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


class Secure(Listener):
    """A server with that certificate, which knows how often somebody came, and what was asked."""

    def __init__(self, folder):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        self.came, self.asked = [], []
        self.listen()

    def serve(self, plain):
        self.came.append(1)
        with self.context.wrap_socket(plain, server_side=True) as connection:
            self.asked.append(connection.recv(65_536))
            connection.sendall(REPLY)


@pytest.fixture
def secure(certificate):
    with closing(Secure(certificate)) as server:
        yield server.place, server.came, server.asked
