"""The files of deploy: they are read by the programs that they are for, where those are installed."""

import contextlib
import gzip
import json
import re
import shutil
import socket
import sqlite3
import ssl
import subprocess
from pathlib import Path

import pytest
from websockets.sync.client import connect

from speechlab.service import Database, KeyStore, load_config
from support.clients import KEY, Http, Talk
from support.clock import eventually
from support.programs import program
from support.sockets import free_port, read_until
from support.staged import used

FILES = Path(__file__).parents[3] / "deploy"


@pytest.fixture(scope="module")
def behind_nginx(stage, tmp_path_factory):
    """A staged service behind nginx with TLS, as of the file; its port, and a context that trusts it."""
    tmp_path = tmp_path_factory.mktemp("nginx")
    nginx, openssl = program("nginx", package="nginx-light"), program("openssl")
    subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    files = ("-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem")
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject, *files]
    subprocess.run(made, check=True, capture_output=True)
    with stage() as service:
        port = free_port()
        text = (FILES / "nginx.conf").read_text()
        for wanted, here in (
            ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
            ("server_name speech.example.org", "server_name localhost"),
            ("/etc/ssl/speech.example.org.crt", str(tmp_path / "cert.pem")),
            ("/etc/ssl/private/speech.example.org.key", str(tmp_path / "key.pem")),
            ("http://127.0.0.1:8100", service.http.base_url),
        ):
            assert wanted in text
            text = text.replace(wanted, here)
        folders = "\n".join(
            f"{kind}_temp_path {tmp_path};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (tmp_path / "nginx.conf").write_text(
            f"pid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{folders}\n{text}}}\n"
        )
        command = [nginx, "-p", tmp_path, "-c", tmp_path / "nginx.conf", "-g", "daemon off; user root;"]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as child:
            try:
                trust = ssl.create_default_context(cafile=tmp_path / "cert.pem")
                assert eventually(lambda: answers(port, trust), 10), child.poll()
                yield service, port, trust
            finally:
                child.terminate()
                child.communicate(timeout=10)


def opened(port: int, trust: ssl.SSLContext) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", port), timeout=20)
    return trust.wrap_socket(plain, server_hostname="localhost")


def answers(port: int, trust: ssl.SSLContext) -> bool:
    try:
        opened(port, trust).close()
    except OSError:
        return False
    return True


def asked(port: int, trust: ssl.SSLContext, head: str, body: bytes = b"") -> bytes:
    with opened(port, trust) as connection:
        lines = f"{head}\nHost: localhost\nContent-Length: {len(body)}\nConnection: close\n\n"
        connection.sendall(lines.replace("\n", "\r\n").encode())
        with contextlib.suppress(OSError):
            connection.sendall(body)
        got = b""
        with contextlib.suppress(OSError):
            while data := connection.recv(65_536):
                got += data
        return got


@pytest.mark.slow
def test_nginx_passes_everything_on(behind_nginx):
    _, port, trust = behind_nginx
    authorization = f"Authorization: Bearer {KEY}"
    assert asked(port, trust, "GET /readyz HTTP/1.1").startswith(b"HTTP/1.1 200 ")
    assert asked(port, trust, f"GET /metrics HTTP/1.1\n{authorization}").startswith(b"HTTP/1.1 404 ")
    listed = asked(port, trust, f"GET /tts/voices HTTP/1.1\n{authorization}")
    assert listed.startswith(b"HTTP/1.1 200 ")
    assert re.search(rb"(?i)x-request-id: [0-9a-f]{32}", listed)
    # An upload of 30 MB, refused by the service, not by the proxy.
    wrong = asked(port, trust, "POST /asr/srt/audio_llm HTTP/1.1", b"x" * 30_000_000)
    assert wrong == b"" or wrong.startswith(b"HTTP/1.1 401 ")
    recording = json.dumps({"audio": "@" * 30_000_000}).encode()
    told = asked(port, trust, f"POST /asr/srt/audio_llm HTTP/1.1\n{authorization}", recording)
    assert told.startswith(b"HTTP/1.1 400 ")
    assert b"Invalid base64 audio data" in told


def test_nginx_holds_no_stream_back(behind_nginx):
    service, port, trust = behind_nginx
    fields = {"voice_id": service.voice("gated"), "text": "Hi.", "format": "pcm", "stream": True}
    body = json.dumps(fields).encode()
    with opened(port, trust) as connection:
        head = f"POST /tts HTTP/1.1\nHost: localhost\nAuthorization: Bearer {KEY}\nContent-Length: {len(body)}\n\n"
        connection.sendall(head.replace("\n", "\r\n").encode() + body)
        # The second piece is not made before the gate is opened.
        assert len(read_until(connection, b"never", limit=10_000)) >= 10_000
        service.speaker.gate.set()


@pytest.mark.slow
def test_nginx_upgrades_websockets(behind_nginx):
    service, port, trust = behind_nginx
    headers = {"Authorization": f"Bearer {KEY}", "X-Request-Id": "from-the-client"}
    address = f"wss://localhost:{port}/ws/tts/realtime"
    with connect(address, additional_headers=headers, ssl=trust, proxy=None, compression=None) as connection:
        talk = Talk(connection)
        talk.configure(voice_id=service.voice("plain"), format="pcm")
        assert talk.speak("Hello.")[-1]["usage"]["status"] == "completed"


def test_systemd_takes_the_unit(tmp_path):
    unit = tmp_path / "speechlab.service"
    text = (FILES / "speechlab.service").read_text()
    unit.write_text(text.replace("/opt/speechlab/bin/speechlab", "/bin/true"))
    command = [program("systemd-analyze", package="systemd"), "verify", unit]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert "speechlab.service" not in done.stderr, done.stderr


def test_logrotate_cuts_a_log_that_goes_on(tmp_path):
    log, settings = tmp_path / "service.log", tmp_path / "logrotate.conf"
    text = (FILES / "logrotate.conf").read_text()
    settings.write_text(text.replace("/var/log/speechlab/service.log", str(log)))
    settings.chmod(0o644)
    command = [program("logrotate"), "--force", "--state", tmp_path / "state", settings]
    with log.open("a") as service:
        for number in range(3):
            service.write(f"line {number}\n")
            service.flush()
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
        service.write("line 3\n")
    assert log.read_text() == "line 3\n"
    assert (tmp_path / "service.log.1").read_text() == "line 2\n"
    assert gzip.decompress((tmp_path / "service.log.2.gz").read_bytes()) == b"line 1\n"


def test_caddy_takes_its_file():
    command = [program("caddy"), "validate", "--adapter", "caddyfile", "--config", FILES / "Caddyfile"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_settings_are_settings():
    config, warnings = load_config(FILES / "service.toml", {}, {})
    assert warnings == []
    assert "speech.example.org" in config.allowed_hosts


def test_the_pages_name_metrics_that_exist(stage, tmp_path):
    with stage(data_dir=tmp_path, service_requests_per_minute={"translate": 1}) as service:
        service.speak()
        for _ in range(2):
            service.translate()
        found = service.http.request("GET", "/metrics").body.decode()
    pages = [(FILES.parent / "docs" / name).read_text("utf-8") for name in ("operations.md", "service.md")]
    names = set(re.findall(r"\bspeechlab_[a-z_]+", "\n".join(pages)))
    assert len(names) >= 5
    assert [name for name in names if f"\n{name}" not in found] == []


def test_a_backup_while_the_service_runs_can_be_restored(stage, tmp_path):
    data, kept = tmp_path / "data", tmp_path / "kept"
    kept.mkdir()
    with stage(data_dir=data) as service, contextlib.closing(Database(data)) as database:
        _, key = KeyStore(database).create_key("somebody")
        http = Http(service.http.base_url, key)
        for _ in range(3):
            assert service.translate(http=http).status == 200
        assert eventually(lambda: len(used(data)) == 3)
        with (
            contextlib.closing(sqlite3.connect(data / "service.sqlite")) as source,
            contextlib.closing(sqlite3.connect(kept / "service.sqlite")) as target,
        ):
            source.backup(target)
        shutil.copy(data / "secret", kept / "secret")
    with stage(data_dir=kept) as service:
        assert Http(service.http.base_url, key).request("GET", "/tts/voices").status == 200
    assert len(used(kept)) == 3
