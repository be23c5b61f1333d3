"""The service as a process: the ready line, refusals to start, users, and the end."""

from __future__ import annotations

import io
import json
import logging
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import pytest

from speechlab.service import ServiceConfig, run_service, voice_uuid
from speechlab.service.__main__ import main
from speechlab.service._server.server import _ProgressLines
from support.clients import KEY, Http
from support.clock import ends_within, eventually
from support.sockets import read_all
from support.staged import CANARY

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and flock")

HOLDER = """
import sys, time
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


class Process:
    """A service started by hand."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.child = subprocess.Popen(
            [sys.executable, "-m", "speechlab.service", *arguments],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ready(self) -> dict[str, str]:
        lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=lambda: lines.put(self.child.stdout.readline()), daemon=True).start()
        word, _, rest = lines.get(timeout=40).partition(" ")
        assert word == "ready"
        return json.loads(rest)

    def end(self) -> tuple[int, str, str]:
        out, err = self.child.communicate(timeout=40)
        return self.child.returncode, out, err


@pytest.fixture
def start():
    started: list[Process] = []

    def start(*arguments: str, **environment: str) -> Process:
        started.append(Process(*arguments, **environment))
        return started[-1]

    yield start
    for process in started:
        process.child.kill()
        process.child.communicate()


def get(url: str, key: str) -> int:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})
    with urllib.request.urlopen(request, timeout=10) as reply:
        return reply.status


@pytest.mark.slow
def test_one_line_when_ready_and_a_clean_end_when_no_user_comes(start, tmp_path):
    process = start("--port", "0", "--users-dir", str(tmp_path), "--idle-exit-s", "1.5")
    fields = process.ready()
    assert set(fields) == {"base_url", "ws_base_url", "api_key"}
    assert fields["base_url"].replace("http", "ws") == fields["ws_base_url"]
    assert get(fields["base_url"] + "/tts/voices", fields["api_key"]) == 200
    code, out, err = process.end()
    assert (code, out) == (0, "")
    assert fields["api_key"] not in err
    events = [json.loads(line)["event"] for line in err.splitlines()]
    assert [event for event in events if event in {"ready", "request", "stopped"}] == [
        "ready",
        "request",
        "stopped",
    ]


@pytest.mark.slow
def test_a_given_key_shows_nowhere_and_typos_are_warned_of(start):
    key = f"sl:{CANARY}-12345"
    process = start("--port", "0", SPEECHLAB_SERVICE_API_KEY=key, SPEECHLAB_SERVICE_PROT="1")
    fields = process.ready()
    assert set(fields) == {"base_url", "ws_base_url", "warnings"}
    assert CANARY not in str(fields)
    base = fields["base_url"]
    assert get(base + "/tts/voices", key) == 200
    for path in ("/tts", f"/{key}", f"/tts/voices?api_key={key}"):
        body = json.dumps({"voice_id": CANARY, "text": CANARY, "format": CANARY}).encode()
        request = urllib.request.Request(base + path, body, {"Authorization": f"Bearer {key}"})
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(request, timeout=10)
    process.child.send_signal(signal.SIGINT)
    code, out, err = process.end()
    assert code == 0
    assert CANARY not in out + err
    assert "SPEECHLAB_SERVICE_PROT" in json.loads(err.splitlines()[0])["event"]
    assert json.loads(err.splitlines()[-1])["event"] == "stopped"


@pytest.mark.usefixtures("own_log")
def test_what_cannot_start_says_why_and_ends_with_2(capsys, tmp_path):
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
            (["--tts-text-limit", "0"], ("tts_text_limit",)),
        ):
            assert main(["--port", "0", *arguments]) == 2, arguments
            out, err = capsys.readouterr()
            assert out == ""
            assert all(word in err for word in words), err
            assert "hunter22" not in err
            assert "Traceback" not in err


@pytest.mark.usefixtures("own_log")
def test_the_log_goes_to_what_stderr_is_at_the_time(capsys, monkeypatch):
    """Of other libraries it has one line a minute, without what comes after the first line of a message."""
    with io.StringIO() as first:
        monkeypatch.setattr(sys, "stderr", first)
        assert main(["--host", "0.0.0.0", "--port", "0"]) == 2
    monkeypatch.undo()
    with run_service(ServiceConfig(port=0, recognizer="", translator="")) as service:
        assert get(service.base_url + "/tts/voices", service.api_key) == 200
    for _ in range(1_000):
        logging.getLogger("asyncio").error("it failed\nfuture: exception=KeyError('a secret text')")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == ["request", "it failed"]
    assert all(line["time"].endswith("+00:00") for line in lines)


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
        process = start("--port", "0", "--users-dir", str(tmp_path), "--idle-exit-s", "1.5")
        fields = process.ready()
        time.sleep(3)
        holders[0].kill()
        holders[0].wait()
        time.sleep(3)
        assert process.child.poll() is None
        assert eventually(lambda: not (tmp_path / "a.lock").exists())
        assert get(fields["base_url"] + "/tts/voices", fields["api_key"]) == 200
        holders[1].kill()
        holders[1].wait()
        with ends_within(10):
            code, _, err = process.end()
        assert code == 0
        assert "no users left" in err
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()
            holder.stdout.close()


@pytest.mark.slow
@pytest.mark.parametrize("process", [False, True])
def test_running_is_for_everybody(process, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with run_service(ServiceConfig(port=0, tts_text_limit=3), process=process) as service:
        files = list(tmp_path.glob("speechlab-service-*/*"))
        assert [file.stat().st_mode & 0o777 for file in files] == [0o600] * 2 * process
        assert service.api_key not in repr(service)
        assert get(service.base_url + "/tts/voices", service.api_key) == 200
        assert (service.pid == os.getpid()) is not process
    with pytest.raises(OSError, match=r"refused|reset"):
        get(service.base_url + "/healthz", service.api_key)


def test_importing_the_door_loads_no_server():
    heavy = "('starlette', 'uvicorn', 'pydantic')"
    code = f"import sys, speechlab.service as s; s.__all__; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_the_door_holds_what_it_names():
    import speechlab.service as door

    assert door.__all__ == sorted(door.__all__)
    assert set(door.__all__) <= set(door._WHERE)
    for name in door._WHERE:
        assert getattr(door, name) is not None


@pytest.mark.slow
def test_a_model_cache_that_cannot_be_used_is_said_plainly(start, tmp_path):
    blocked = tmp_path / "cache"
    blocked.write_text("a file where a folder is needed")
    process = start("--port", "0", SPEECHLAB_CACHE_DIR=str(blocked), SPEECHLAB_SERVICE_API_KEY=KEY)
    http = Http(process.ready()["base_url"])
    wav = http.speak(voice_id=voice_uuid("hibari", "heart"), text="This voice needs no cache.", format="wav")
    assert wav.status == 200
    reply = http.recognize(wav.body)
    assert (reply.status, reply.json()["error"]) == (500, "Transcription service not available")
    reply = http.speak(voice_id=voice_uuid("kokoro", "jf_alpha"), text="はい。", format="wav")
    assert reply.status == 500
    assert "SPEECHLAB_CACHE_DIR" in reply.json()["error"]
    assert str(tmp_path) not in reply.json()["error"]
    process.child.send_signal(signal.SIGHUP)
    code, _, err = process.end()
    assert (code, json.loads(err.splitlines()[-1])["event"]) == (0, "stopped")
    failures = [json.loads(line) for line in err.splitlines() if "failed" in line]
    assert [failure["error"] for failure in failures] == ["ModelError", "ModelError"]
    assert str(blocked) in failures[0]["detail"]


@pytest.mark.slow
def test_a_socket_for_a_proxy(start, tmp_path, capsys):
    path = tmp_path / "service.sock"
    arguments = ("--host", f"unix:{path}", "--recognizer=", "--translator=")
    process = start(*arguments, SPEECHLAB_SERVICE_API_KEY=KEY)
    assert process.ready() == {"base_url": f"unix:{path}", "ws_base_url": f"unix:{path}"}
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
    assert start(*arguments, SPEECHLAB_SERVICE_API_KEY=KEY).ready()


def test_the_progress_of_downloads_is_a_line_now_and_then(capsys):
    lines = _ProgressLines()
    for done in (0, 3, 5, 10, 10):  # the last ones while the hash is computed
        lines.print_progress("o/n", done, 10)
    lines.print_progress("o/n", 0, 0)
    printed = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in printed] == ["progress", "progress"]
    assert [json.loads(line.partition(" ")[2])["done"] for line in printed] == [0, 10]
