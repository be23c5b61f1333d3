"""Keys are found in the environment, `.env`, the keyring and by asking, in that order; TLS; replies as they came."""

from __future__ import annotations

import asyncio
import datetime
import io
import ssl
import sys

import keyring
import pytest
from keyring.backend import KeyringBackend
from typer.testing import CliRunner

from speechlab.cli import app
from speechlab.client import AsyncClient, Client, connect, normalize_url
from speechlab.errors import (
    APIConnectionError,
    BadRequestError,
    ConfigurationError,
    ServiceStartError,
    SpeechLabError,
)
from support.samples import TRANSLATED


class Memory(KeyringBackend):
    priority = 1

    def __init__(self):
        super().__init__()
        self.kept, self.asked = {}, 0

    def get_password(self, service, username):
        self.asked += 1
        return self.kept.get((service, username))

    def set_password(self, service, username, password):
        self.kept[service, username] = password

    def delete_password(self, service, username):
        del self.kept[service, username]


@pytest.fixture
def ring(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    before, memory = keyring.get_keyring(), Memory()
    keyring.set_keyring(memory)
    yield memory
    keyring.set_keyring(before)


def sent(server, **options):
    with Client(server.base_url, **options) as lab:
        lab.translate("a", source_lang="ja", target_lang="en")
    return server.requests[-1].headers.get("authorization", "").removeprefix("Bearer ")


def test_keys_are_taken_from_the_nearest_place(server, http, ring, tmp_path, monkeypatch):
    def answer(request):
        return http.reply(body={"voices": []} if request.method == "GET" else TRANSLATED)

    server.script(answer)
    assert sent(server) == ""
    assert ring.asked == 0  # nobody has logged in: the keyring is left alone
    done = CliRunner().invoke(app, ["login", "--base-url", server.base_url + "/"], input="sl:ring\n")
    assert done.exit_code == 0, done.output
    assert "sl:ring" not in done.output
    assert list(ring.kept) == [("speechlab", normalize_url(server.base_url))]
    assert sent(server) == "sl:ring"
    for line in ("export SPEECHLAB_API_KEY='sl:file' # mine", "SPEECHLAB_API_KEY = sl:file # mine"):
        (tmp_path / ".env").write_text(f"SPEECHLAB_BASE_URL=http://evil.example\n{line}\n")
        assert sent(server) == "sl:file"
    with pytest.raises(ConfigurationError, match="no service is configured"):
        Client()  # an address in .env is not read: it could lure keys away
    monkeypatch.setenv("SPEECHLAB_API_KEY", "sl:environment")
    assert sent(server) == "sl:environment"
    assert sent(server, api_key="sl:argument") == "sl:argument"
    monkeypatch.delenv("SPEECHLAB_API_KEY")
    (tmp_path / ".env").unlink()
    assert CliRunner().invoke(app, ["login", "--base-url", server.base_url, "--forget"]).exit_code == 0
    assert not ring.kept
    assert sent(server) == ""


def test_login_keeps_no_key_that_the_service_refuses(server, http, ring):
    server.script(http.reply(401, {"code": 104, "error": "no"}))
    done = CliRunner().invoke(app, ["login", "--base-url", server.base_url], input="sl:wrong\n")
    assert isinstance(done.exception, SpeechLabError)
    assert not ring.kept
    done = CliRunner().invoke(app, ["login", "--base-url", server.base_url], input="\n")
    assert isinstance(done.exception, ConfigurationError)
    assert isinstance(CliRunner().invoke(app, ["login"]).exception, ConfigurationError)


def test_a_keyring_that_fails_is_no_key(server, http, ring, monkeypatch, caplog):
    server.script(http.reply(body=TRANSLATED))
    CliRunner().invoke(app, ["login", "--base-url", server.base_url, "--no-check"], input="sl:ring\n")

    def broken(*_):
        raise OSError("no desktop, and sl:ring")

    monkeypatch.setattr(ring, "get_password", broken)
    assert sent(server) == ""
    assert "the keyring cannot be read (OSError)" in caplog.text
    monkeypatch.setattr(ring, "set_password", broken)
    done = CliRunner().invoke(app, ["login", "--base-url", server.base_url, "--no-check"], input="sl:ring\n")
    assert isinstance(done.exception, ConfigurationError)
    assert "sl:ring" not in str(done.exception)


def test_connect_asks_where_somebody_can_answer(ring, monkeypatch):
    questions = []

    def answer(question):
        questions.append(question)
        return "sl:typed"

    monkeypatch.setattr("getpass.getpass", answer)
    monkeypatch.delattr(sys, "ps1", raising=False)  # a shell of IPython in an earlier test leaves one
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with connect("https://speech.example") as lab:
        assert "api_key=None" in repr(lab)
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    with connect("https://speech.example/") as lab:
        assert "api_key='***'" in repr(lab)
    with connect("http://127.0.0.1:9") as lab:
        assert "api_key=None" in repr(lab)
    assert questions == ["API key for https://speech.example (empty: none): "]


@pytest.fixture
def certificate(tmp_path):
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    pem = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    form = serialization.PrivateFormat.PKCS8
    pem += key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    path = tmp_path / "pair.pem"
    path.write_bytes(pem)
    return path


def test_tls_that_cannot_be_trusted_is_a_connection_error(server, http, certificate, _server_loop):  # noqa: PT019 - the loop itself is needed
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    async def begin():
        return await asyncio.start_server(server.handle, "127.0.0.1", 0, ssl=context)

    running = asyncio.run_coroutine_threadsafe(begin(), _server_loop).result(10)
    port = running.sockets[0].getsockname()[1]
    server.script(http.reply(body=TRANSLATED))
    try:
        with Client(f"https://localhost:{port}", api_key=http.KEY, max_retries=0) as lab:
            calls = (
                lambda: lab.translate("a", source_lang="ja", target_lang="en"),
                lambda: lab.realtime(voice=http.VOICE_ID).open(),
            )
            for call in calls:
                with pytest.raises(APIConnectionError, match="CERTIFICATE_VERIFY_FAILED") as caught:
                    call()
                assert not caught.value.possibly_metered
    finally:
        _server_loop.call_soon_threadsafe(running.close)
    assert not server.requests


def test_replies_as_they_came(server, http, wav, tmp_path):
    def answer(request):
        if request.path.endswith("/voices"):
            return http.reply(body={"voices": [http.VOICE]}, X_Request_Id="r1")
        if "translate" in request.path:
            return http.reply(400 if b"spoilt" in request.body else 200, TRANSLATED, X_Request_Id="r2")
        return http.reply(body=wav, content_type="audio/wav", X_Request_Id="r3")

    server.script(answer)
    with Client(server.base_url) as lab:
        raw = lab.with_raw_response.translate("a", source_lang="ja", target_lang="en")
        assert (raw.status, raw.headers["x-request-id"], raw.json()) == (200, "r2", TRANSLATED)
        assert raw.parse().text == "Hello"
        assert raw.timing == raw.parse().timing
        spoken = lab.with_raw_response.synthesize("a", voice="Calm")  # asks for the catalogue first
        assert (spoken.headers["x-request-id"], spoken.content) == ("r3", wav)
        assert lab.with_raw_response.voices().headers["x-request-id"] == "r1"
        with pytest.raises(BadRequestError):
            lab.with_raw_response.translate("spoilt", source_lang="ja", target_lang="en")
    for mode in ("auto", "replay"):
        with Client(server.base_url, store=tmp_path / "kept", mode=mode) as lab:
            assert (
                lab.with_raw_response.translate("a", source_lang="ja", target_lang="en").json() == TRANSLATED
            )

    async def main():
        async with AsyncClient(server.base_url) as lab:
            calls = [
                lab.with_raw_response.translate("a", source_lang="ja", target_lang="en") for _ in range(5)
            ]
            return {reply.parse().text for reply in await asyncio.gather(*calls)}

    assert asyncio.run(main()) == {"Hello"}


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX has the table of users")
def test_a_user_without_a_home_needs_none(server, http, monkeypatch):
    def unknown(_):
        raise KeyError("uid not found")

    for name in ("HOME", "XDG_STATE_HOME", "SPEECHLAB_STATE_DIR", "SPEECHLAB_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    server.script(http.reply(body=TRANSLATED))
    with Client(server.base_url) as lab:
        assert lab.translate("a", source_lang="ja", target_lang="en").text == "Hello"
    with pytest.raises(ServiceStartError, match="this user has no home folder; set SPEECHLAB_STATE_DIR"):
        connect()
