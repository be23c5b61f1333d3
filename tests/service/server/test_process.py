"""The service as a process: the ready line, refusals to start, users, and the end."""

import contextlib
import io
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest

from speechlab.audio import encode
from speechlab.service import Database, KeyStore, ServiceConfig, run_service, run_until_stopped, voice_uuid
from speechlab.service.__main__ import main
from speechlab.service._server.server import _ProgressLines
from support.backend import answer, wire
from support.clients import KEY, Http
from support.clock import ends_within, eventually
from support.sockets import read_all
from support.staged import CANARY

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="signals and flock"),
    pytest.mark.usefixtures("own_log"),
]

HOLDER = """
import sys, time
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
def test_a_given_key_shows_nowhere_and_typos_are_warned_of(start):
    key = f"sl:{CANARY}-12345"
    process = start(SPEECHLAB_SERVICE_API_KEY=key, SPEECHLAB_SERVICE_PROT="1")
    fields = process.fields
    assert set(fields) == {"base_url", "ws_base_url", "warnings"}
    assert CANARY not in str(fields)
    assert process.http.request("GET", "/tts/voices", key=key).status == 200
    for path in ("/tts", f"/{key}", f"/tts/voices?api_key={key}"):
        wrong = dict.fromkeys(("voice_id", "text", "format"), CANARY)
        assert process.http.post_json(path, wrong, key=key).status >= 400
    process.child.send_signal(signal.SIGINT)
    code, out, err = process.end()
    assert code == 0
    assert CANARY not in out + err
    assert "SPEECHLAB_SERVICE_PROT" in json.loads(err.splitlines()[0])["event"]
    assert json.loads(err.splitlines()[-1])["event"] == "stopped"


def test_what_cannot_start_says_why_and_ends_with_2(capsys, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, words in (
            (["--port", port], (f"port {port} on 127.0.0.1 is in use", "--port")),
            (["--recognizer", "nobody"], ("nobody",)),
            (["--host", "0.0.0.0"], ("SPEECHLAB_SERVICE_API_KEY",)),
            # Whoever comes through a proxy is a stranger.
            (["--host", f"unix:{tmp_path}/other.sock"], ("a key of yours is needed",)),
            (["--api-key", "hunter22-hunter22"], ("sl",)),
            (["--config", "/no/such/file.toml"], ("/no/such/file.toml",)),
            (["--engine", "nonsense"], ("--engine",)),
            (["--engine", "openjtalk.speeed=3"], ("'openjtalk'", "'speeed'")),
            (["--data-dir", str(tmp_path / "file")], ("data folder", "cannot be used")),
            (["--host", "0.0.0.0", "--data-dir", str(tmp_path / "file")], ("data folder",)),
            (["--host", "192.0.2.1", "--api-key", KEY], ("192.0.2.1", "--host")),
            (["--users-dir", str(tmp_path / "absent")], ("users folder",)),
            (["--tts-text-limit", "0"], ("tts_text_limit",)),
        ):
            assert main(["--port", "0", *arguments]) == 2, arguments
            out, err = capsys.readouterr()
            assert out == ""
            assert all(word in err for word in words), err
            assert "hunter22" not in err
            assert "Traceback" not in err


def test_the_log_goes_to_what_stderr_is_at_the_time(capsys, monkeypatch):
    """Of other libraries it has one line a minute, without what comes after the first line of a message."""
    with io.StringIO() as first:
        monkeypatch.setattr(sys, "stderr", first)
        assert main(["--host", "0.0.0.0", "--port", "0"]) == 2
    monkeypatch.undo()
    with run_service(ServiceConfig(port=0, recognizer="", translator="")) as service:
        assert Http(service.base_url, service.api_key).request("GET", "/tts/voices").status == 200
    for _ in range(1_000):
        logging.getLogger("asyncio").error("it failed\nfuture: exception=KeyError('a secret text')")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == ["request", "it failed"]
    assert all(line["time"].endswith("+00:00") for line in lines)


def test_a_stored_key_is_enough_to_let_other_machines_in(capsys, tmp_path):
    data, users = tmp_path / "data", tmp_path / "users"
    users.mkdir()
    with contextlib.closing(Database(data)) as database:
        KeyStore(database).create_key("the other machine")
    none = {"recognizer": "", "translator": "", "users_dir": users, "idle_exit_s": 0.1}
    run_until_stopped(ServiceConfig(host="0.0.0.0", port=0, data_dir=data, **none))
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line.removeprefix("ready ")).keys() == {"base_url", "ws_base_url"}


def test_a_key_can_be_made(capsys):
    assert main(["--make-key"]) == 0
    assert capsys.readouterr().out.startswith("sl:")


@pytest.mark.slow
def test_it_stops_when_its_users_are_gone_even_by_sigkill(start, tmp_path):
    holders = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.lock"
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert holder.stdout.readline() == "held\n"
        holders.append(holder)
        os.utime(path, (1, 1))
    try:
        process = start("--users-dir", str(tmp_path), "--idle-exit-s", "1")
        fields = process.fields
        assert set(fields) == {"base_url", "ws_base_url", "api_key"}
        assert fields["base_url"].replace("http", "ws") == fields["ws_base_url"]
        time.sleep(2)
        holders[0].kill()
        holders[0].wait()
        time.sleep(2)
        assert process.child.poll() is None
        assert eventually(lambda: not (tmp_path / "a.lock").exists())
        assert process.http.request("GET", "/tts/voices").status == 200
        holders[1].kill()
        holders[1].wait()
        with ends_within(10):
            code, out, err = process.end()
        assert (code, out, fields["api_key"] in err) == (0, "", False)
        events = [json.loads(line)["event"] for line in err.splitlines()]
        wanted = ["ready", "request", "no users left", "stopped"]
        assert [event for event in events if event in wanted] == wanted
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()
            holder.stdout.close()


@pytest.mark.slow
@pytest.mark.parametrize("process", [False, True])
def test_running_is_for_everybody(process, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with wire(answer("200 OK", b'{"text": "elsewhere"}')) as backend:
        remote = {"recognizer_url": backend.url, "recognizer_api_key": "vendor:key-of-the-backend"}
        config = ServiceConfig(port=0, tts_text_limit=3, translator="", **remote)
        with run_service(config, process=process) as service:
            files = list(tmp_path.glob("speechlab-service-*/*"))
            assert [file.stat().st_mode & 0o777 for file in files] == [0o600] * 2 * process
            assert service.api_key not in repr(service)
            http = Http(service.base_url, service.api_key)
            assert http.request("GET", "/tts/voices").status == 200
            assert (service.pid == os.getpid()) is not process
            heard = http.recognize(encode(np.zeros(8_000), "wav", 16_000))
            assert heard.json()["text"] == "elsewhere"
    assert "bearer vendor:key-of-the-backend" in backend.heads[0]
    with pytest.raises(OSError, match=r"refused|reset"):
        http.request("GET", "/healthz")


@pytest.mark.slow
def test_a_model_cache_that_cannot_be_used_is_said_plainly(monkeypatch, tmp_path, caplog):
    blocked = tmp_path / "cache"
    blocked.write_text("a file where a folder is needed")
    monkeypatch.setenv("SPEECHLAB_CACHE_DIR", str(blocked))
    with run_service(ServiceConfig(port=0, api_keys=(KEY,), translator="")) as service:
        http = Http(service.base_url)
        fields = {"voice_id": voice_uuid("hibari", "heart"), "text": "This voice needs no cache."}
        wav = http.speak(**fields, format="wav")
        assert wav.status == 200
        reply = http.recognize(wav.body)
        assert (reply.status, reply.json()["error"]) == (500, "Transcription service not available")
        reply = http.speak(voice_id=voice_uuid("kokoro", "jf_alpha"), text="はい。", format="wav")
        assert reply.status == 500
        assert "SPEECHLAB_CACHE_DIR" in reply.json()["error"]
        assert str(tmp_path) not in reply.json()["error"]
    failures = [record.fields for record in caplog.records if "failed" in record.getMessage()]
    assert [failure["error"] for failure in failures] == ["ModelError", "ModelError"]
    assert str(blocked) in failures[0]["detail"]


@pytest.mark.slow
def test_a_socket_for_a_proxy(start, tmp_path, capsys):
    path = tmp_path / "service.sock"
    arguments = ("--host", f"unix:{path}", "--recognizer=", "--translator=")
    process = start(*arguments, SPEECHLAB_SERVICE_API_KEY=KEY)
    assert process.fields == {"base_url": f"unix:{path}", "ws_base_url": f"unix:{path}"}
    assert path.stat().st_mode & 0o777 == 0o660
    for _ in range(2):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            head = f"GET /tts/voices HTTP/1.1\r\nHost: speech.example\r\nAuthorization: Bearer {KEY}\r\n"
            connection.sendall(f"{head}Connection: close\r\n\r\n".encode())
            assert read_all(connection).startswith(b"HTTP/1.1 200 ")
    assert main([*arguments, "--api-key", KEY]) == 2
    assert "another service listens on" in capsys.readouterr().err
    # One that was killed leaves its socket, and the next start takes it over.
    process.child.kill()
    process.child.wait()
    assert main([*arguments, "--api-key", KEY, "--users-dir", str(tmp_path), "--idle-exit-s", "0.1"]) == 0


def test_the_progress_of_downloads_is_a_line_now_and_then(capsys):
    lines = _ProgressLines()
    for done in (0, 3, 5, 10, 10):  # the last ones while the hash is computed
        lines.print_progress("o/n", done, 10)
    lines.print_progress("o/n", 0, 0)
    printed = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in printed] == ["progress", "progress"]
    assert [json.loads(line.partition(" ")[2])["done"] for line in printed] == [0, 10]
