"""Keys are found in the environment, `.env`, the keyring and by asking, in that order; replies as they came."""

import io
import sys

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring
from typer.testing import CliRunner

from speechlab.cli import app
from speechlab.client import Client, connect, normalize_url
from speechlab.errors import BadRequestError, ConfigurationError, ServiceStartError, SpeechLabError
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


def login(*arguments, key=None):
    return CliRunner().invoke(app, ["login", *arguments], input=key and f"{key}\n")


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
    done = login("--base-url", server.base_url + "/", key="sl:ring")
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
    assert login("--base-url", server.base_url, "--forget").exit_code == 0
    assert not ring.kept
    assert sent(server) == ""


def test_login_keeps_no_key_that_the_service_refuses(server, http, ring):
    server.script(http.reply(401, {"code": 104, "error": "no"}))
    where = ("--base-url", server.base_url)
    for done, kind in (
        (login(*where, key="sl:wrong"), SpeechLabError),
        (login(*where, key=" "), ConfigurationError),
        (login("--base-url", "http://speech.example", key="sl:any"), ConfigurationError),  # in the clear
        (login(), ConfigurationError),
    ):
        assert isinstance(done.exception, kind)
        assert not ring.kept
    keyring.set_keyring(Keyring())
    with pytest.raises(ConfigurationError, match=r"no keyring that keeps keys .* \.env"):
        raise login(*where, key="sl:any").exception


def test_a_keyring_that_fails_is_no_key(server, http, ring, monkeypatch, caplog):
    server.script(http.reply(body=TRANSLATED))
    login("--base-url", server.base_url, "--no-check", key="sl:ring")

    def broken(*_):
        raise OSError("no desktop, and sl:ring")

    monkeypatch.setattr(ring, "get_password", broken)
    assert sent(server) == ""
    assert "the keyring cannot be read (OSError)" in caplog.text
    assert "sl:ring" not in caplog.text


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


def test_replies_as_they_came(server, http, wav, tmp_path):
    def answer(request):
        if request.path.endswith("/voices"):
            return http.reply(body={"voices": [http.VOICE]}, X_Request_Id="r1")
        if "translate" in request.path:
            return http.reply(400 if b"spoilt" in request.body else 200, TRANSLATED, X_Request_Id="r2")
        return http.reply(body=wav, content_type="audio/wav", X_Request_Id="r3")

    server.script(answer)
    meant = {"source_lang": "ja", "target_lang": "en"}
    with Client(server.base_url) as lab:
        raw = lab.with_raw_response.translate("a", **meant)
        assert (raw.status, raw.headers["x-request-id"], raw.json()) == (200, "r2", TRANSLATED)
        assert raw.parse().text == "Hello"
        spoken = lab.with_raw_response.synthesize("a", voice="Calm")  # asks for the catalogue first
        assert (spoken.headers["x-request-id"], spoken.content) == ("r3", wav)
        with pytest.raises(BadRequestError):
            lab.with_raw_response.translate("spoilt", **meant)
    for mode in ("auto", "replay"):
        with Client(server.base_url, store=tmp_path / "kept", mode=mode) as lab:
            assert lab.with_raw_response.translate("a", **meant).json() == TRANSLATED


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
