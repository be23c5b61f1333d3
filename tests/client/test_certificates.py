"""A certificate that is not trusted: said so at once, with what to do, and never waved through."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from speechlab.client import Client
from speechlab.errors import APIConnectionError

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
REPLY = b'HTTP/1.1 200 X\r\nContent-Length: 13\r\nConnection: close\r\n\r\n{"voices":[]}'


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificate")
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=x -addext"
    )
    subprocess.run(
        [*command.split(), "subjectAltName=IP:127.0.0.1"], cwd=folder, check=True, capture_output=True
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


@pytest.mark.parametrize("transport", [None, "aiohttp"])
def test_it_is_refused_at_once_and_the_text_says_what_to_do(secure, http, clock, transport):
    place, came, asked = secure
    with Client(f"https://{place}", api_key=http.KEY, clock=clock, transport=transport) as lab:
        with pytest.raises(
            APIConnectionError, match=r"CERTIFICATE_VERIFY_FAILED.*set SSL_CERT_FILE"
        ) as caught:
            lab.voices()
        assert caught.value.timing.attempts == len(came) == 1
        with pytest.raises(APIConnectionError, match="set SSL_CERT_FILE"):
            lab.realtime(voice=http.VOICE_ID, format="pcm").open()
        assert len(came) == 2
    assert not asked
    assert not clock.slept


@pytest.mark.parametrize("transport", [None, "aiohttp"])
def test_what_the_text_says_to_do_helps(secure, certificate, transport):
    place, _, asked = secure
    code = f"""
from speechlab.client import Client
with Client("https://{place}", transport={transport!r}) as lab:
    print(len(lab.voices()))
"""
    environment = {"SSL_CERT_FILE": str(certificate / "cert.pem"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, timeout=60, capture_output=True, text=True, check=False
    )
    assert done.stdout == "0\n", done.stderr
    assert len(asked) == 1
