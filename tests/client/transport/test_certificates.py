"""A certificate that is not trusted: said so at once, with what to do, and never waved through."""

from contextlib import closing

import pytest

from speechlab.client import Client
from speechlab.errors import APIConnectionError, ConfigurationError, SpeechLabError
from support.forked import script
from support.sockets import Listener


def test_it_is_refused_at_once_and_the_text_says_what_to_do(secure, certificate, clock, wire, monkeypatch):
    place, came, asked = secure
    for error in ask_both_ways(f"https://{place}", clock=clock, transport=wire):
        assert isinstance(error, APIConnectionError)
        assert "CERTIFICATE_VERIFY_FAILED" in str(error)
        assert "set SSL_CERT_FILE" in str(error)
        assert error.timing.attempts == 1
        assert not error.possibly_metered
    assert len(came) == 2
    assert not asked
    assert not clock.slept
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    with Client(f"https://{place}", transport=wire) as lab:
        assert len(lab.voices()) == 0  # what the text says to do helps
    assert len(asked) == 1


class Plain(Listener):
    def serve(self, connection):
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 400 X\r\nContent-Length: 0\r\n\r\n")


def test_a_service_without_tls_is_told_at_once(clock, wire):
    with closing(Plain()) as server:
        server.listen()
        for error in ask_both_ways(f"https://{server.place}", clock=clock, transport=wire):
            assert isinstance(error, APIConnectionError)
            assert "does not use TLS; the service may be there as http://" in str(error)
    assert not clock.slept


def test_certificates_of_another_name_and_unreadable_ones(secure, certificate, tmp_path, monkeypatch):
    place, _, asked = secure
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    for error in ask_both_ways(f"https://{place.replace('127.0.0.1', 'localhost')}", max_retries=0):
        assert isinstance(error, APIConnectionError)
        assert str(error).endswith("set base_url to the name that it is for")
    assert not asked
    path = str(tmp_path / "none.pem")
    monkeypatch.setenv("SSL_CERT_FILE", path)
    for error in ask_both_ways("https://127.0.0.1:1", max_retries=0):
        assert isinstance(error, ConfigurationError)
        assert str(error).startswith("the certificates to trust cannot be read")
        assert f"SSL_CERT_FILE={path!r}" in str(error)


def ask_both_ways(address, **options):
    """Return the errors of a request and of a handshake."""
    errors = []
    with Client(address, api_key="sl:canary-0f8fad5b", **options) as lab:
        session = lab.realtime(voice="0f8fad5b-d9cb-469f-a165-70867728950e", format="pcm")
        for ask in (lab.voices, session.open):
            with pytest.raises(SpeechLabError) as caught:
                ask()
            errors.append(caught.value)
    return errors


def test_a_proxy_that_cannot_be_used():
    """In a process where two packages are missing."""
    code = """
import os, sys
from speechlab.client import Client
from speechlab.errors import SpeechLabError
sys.modules["socksio"] = sys.modules["python_socks"] = None
for scheme in ("socks5", "odd"):
    os.environ["HTTPS_PROXY"] = f"{scheme}://me:hidden@127.0.0.1:1"
    with Client("https://speech.invalid", api_key="sl:canary-0f8fad5b", max_retries=0) as lab:
        session = lab.realtime(voice="0f8fad5b-d9cb-469f-a165-70867728950e", format="pcm")
        for ask in (lab.voices, session.open):
            try:
                ask()
            except SpeechLabError as error:
                print(type(error).__name__, error)
"""
    done = script(code, env={"PATH": "/usr/bin:/bin"})
    assert not done.stderr
    for line, scheme in zip(done.stdout.splitlines(), ["socks5"] * 2 + ["odd"] * 2, strict=True):
        assert line.startswith("ConfigurationError the proxy of the environment")
        assert "NO_PROXY" in line
        assert "hidden" not in line
        assert ("pip install 'speechlab[socks]'" in line) == (scheme == "socks5")
