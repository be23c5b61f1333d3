"""The embedded service: started once, shared, replaced when it is stale, and gone with its last user."""

import asyncio
import json
import os
import pickle
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import urlsplit

import psutil
import pytest

import speechlab
from speechlab.client import AsyncClient, Client, connect
from speechlab.errors import APIConnectionError, ConfigurationError, ServiceStartError
from support.clock import eventually

LEASE = "speechlab.client._embedded.lease."

FAKE = """
import http.server, json, os, sys
given = os.environ.get("SPEECHLAB_SERVICE_API_KEY")
port = int(sys.argv[sys.argv.index("--port") + 1]) if "--port" in sys.argv else 0
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        good = self.headers["Authorization"] == "Bearer " + (given or "sl:fake")
        body = b'{"voices": []}'
        self.send_response(200 if good else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
base = "http://127.0.0.1:%d" % server.server_port
print("loading things", "progress nonsense", "progress []", sep="\\n")
for model, total in ("o/n", 20), ("o/m", 7):
    print("progress", json.dumps({"model": model, "done": 5, "total": total}), flush=True)
told = {"base_url": base, "ws_base_url": "ws" + base[4:]} | ({} if given else {"api_key": "sl:fake"})
if os.environ.get("SPEECHLAB_SERVICE_RECOGNISER"):
    told["warnings"] = ["SPEECHLAB_SERVICE_RECOGNISER is ignored"]
print("ready " + json.dumps(told), flush=True)
server.serve_forever()
"""


@pytest.fixture
def state():
    folder = Path(os.environ["SPEECHLAB_STATE_DIR"])
    yield folder
    pids = {process_of(path) for path in folder.rglob("service*.json")}
    for pid in pids - {0}:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def process_of(path):
    try:
        return int(json.loads(path.read_text())["pid"])
    except (OSError, ValueError, KeyError):
        return 0


@pytest.fixture
def fake(state, monkeypatch):
    """A service that is up in an instant."""
    started = []

    def command(state_dir):
        started.append(state_dir)
        return [sys.executable, "-c", FAKE]

    monkeypatch.setattr(LEASE + "_build_command", command)
    return started


def locks(state):
    return list((state / "users").glob("*.lock"))


def gone(pid):
    return lambda: not is_running(pid)


def test_it_is_started_once_and_shared_within_a_process(fake, state):
    async def main():
        async with await AsyncClient.connect() as one, await AsyncClient.connect() as two:
            return len(await one.voices()) + len(await two.voices())

    with connect() as one, connect(timeout=5) as two:
        assert one.base_url == two.base_url
        assert len(one.voices()) == len(two.voices()) == 0
        assert len(fake) == len(locks(state)) == 1
        assert locks(state)[0].name.startswith(f"{os.getpid()}-")
        two.with_options(timeout=3).close()
        assert len(locks(state)) == 1
        assert isinstance(one, Client)
        data = pickle.dumps(one)
        assert b"sl:fake" not in data
        with pickle.loads(data) as again:
            assert again.base_url == one.base_url
            assert len(again.voices()) == 0
    assert locks(state) == []
    assert asyncio.run(main()) == 0  # and found again while it runs
    assert len(fake) == 1
    assert locks(state) == []


def test_its_files_are_for_the_user_alone(fake, state, monkeypatch):
    bar = Mock()
    monkeypatch.setattr("tqdm.auto.tqdm", bar)
    with connect():
        shown = [(call.kwargs["desc"], call.kwargs["total"]) for call in bar.call_args_list]
        assert shown == [("o/n", 20), ("o/m", 7)]  # the downloads of a start
        assert stat.S_IMODE(state.stat().st_mode) == 0o700
        for name in ("service.json", "service.log"):
            assert stat.S_IMODE((state / name).stat().st_mode) == 0o600
        fields = json.loads((state / "service.json").read_text())
        assert set(fields) == {"base_url", "ws_base_url", "api_key", "pid", "version", "environment"}
        assert fields["environment"] == sys.prefix
        arguments = Path(f"/proc/{fields['pid']}/cmdline")
        if arguments.exists():
            assert fields["api_key"].encode() + b"\0" not in arguments.read_bytes()


def test_other_settings_are_another_service(fake, state, monkeypatch, tmp_path, caplog):
    file = tmp_path / "engines.toml"
    with connect(max_retries=0) as usual:
        addresses = [usual.base_url]
        monkeypatch.setenv("SPEECHLAB_SERVICE_RECOGNISER", "turbo")
        for text in ("", "[engines.turbo]"):
            file.write_text(text)
            monkeypatch.setenv("SPEECHLAB_ENGINES", str(file))
            with connect() as lab, connect() as same:
                assert lab.base_url == same.base_url
                addresses.append(lab.base_url)
        # what a service says of its settings is passed on
        assert "the embedded service: SPEECHLAB_SERVICE_RECOGNISER is ignored" in caplog.text
        assert len(fake) == len(set(addresses)) == 3
        killed(state)
        assert len(usual.voices()) == 0  # a restart keeps the settings of the start
        environment = psutil.Process(process_of(state / "service.json")).environ()
        assert "SPEECHLAB_SERVICE_RECOGNISER" not in environment
        monkeypatch.delenv("SPEECHLAB_SERVICE_RECOGNISER")
        monkeypatch.delenv("SPEECHLAB_ENGINES")
        with connect() as lab:
            assert lab.base_url == usual.base_url


STALE = [{"pid": 2**22 + 1}, {"version": "0.0.1"}, {"environment": "/other"}, {"api_key": "sl:other"}, None]


@pytest.mark.parametrize("change", STALE, ids=str)
def test_a_description_that_is_stale_is_replaced(fake, state, change):
    connect().close()
    path = state / "service.json"
    first = process_of(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}) if change else "{half")
    try:
        with connect() as lab:
            lab.voices()
        assert len(fake) == 2
        assert process_of(path) != first
    finally:
        os.kill(first, signal.SIGKILL)


def killed(state):
    pid = process_of(state / "service.json")
    os.kill(pid, signal.SIGKILL)
    assert eventually(gone(pid), 30)
    return pid


def test_a_service_that_dies_is_started_again_where_it_was(fake, state, caplog):
    with connect(max_retries=0) as lab, connect() as other:
        lab.voices()
        first = killed(state)
        with ThreadPoolExecutor(8) as pool:
            counts = list(
                pool.map(lambda client: len(client.voices()), [lab, other.with_options(timeout=5)] * 4)
            )
        assert counts == [0] * 8
        assert len(fake) == 2
        assert process_of(state / "service.json") != first
        assert len(locks(state)) == 1
        assert other._async._settings.lease.service.base_url == lab.base_url
    texts = [record.getMessage() for record in caplog.records if record.name == "speechlab.client"]
    assert sum(f"(process {first}) has stopped; starting it again" in text for text in texts) == 1
    assert "sl:fake" not in caplog.text


@contextmanager
def taking(port):
    """Listen where a killed service did, as another user of the machine may; what came is yielded."""
    came, listener = [], socket.create_server(("127.0.0.1", port))

    def serve():
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(2)
                    with suppress(OSError):
                        came.append(connection.recv(65_536))
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield came
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(5)


@pytest.mark.parametrize("wire", ["httpx2", "aiohttp"])
def test_a_stranger_on_a_killed_services_port_gets_nothing(wire, fake, state):
    with connect(max_retries=0, transport=wire, timeout=20) as lab:
        voice = "53d1acf3-1ef1-5583-bcf8-dda6184fe486"
        killed(state)
        with taking(urlsplit(lab.base_url).port) as came:
            calls = (
                lab.voices,
                lambda: lab.synthesize("a secret", voice=voice),
                lambda: lab.stream_translation("a secret", source_lang="en", target_lang="ja").collect(),
                lambda: lab.realtime(voice=voice).say("a secret"),
            )
            for call in calls:
                with pytest.raises(APIConnectionError, match=r"has taken|has stopped"):
                    call()
        assert b"".join(came) == b""
        # Nor does the service come back with the key where somebody else has been.
        with pytest.raises(APIConnectionError, match="another program has taken its port"):
            lab.voices()
    assert len(fake) == 1


def test_a_start_again_that_fails_is_told_of(fake, state, monkeypatch, caplog):
    with connect(max_retries=0) as lab:
        child = lab.with_options(timeout=5)
        killed(state)
        command = [sys.executable, "-c", "import sys; sys.exit(3)"]
        monkeypatch.setattr(LEASE + "_build_command", lambda _: command)
        with pytest.raises(APIConnectionError, match="has stopped"):
            lab.voices()
        why = "the embedded service could not be started: it ended with status 3"
        assert f"could not be started again: {why}" in caplog.text
        with pytest.raises(APIConnectionError, match=r"was not started again: .* status 3"):
            lab.voices()
    with pytest.raises(ConfigurationError, match="closed"):
        child.voices()
    assert len(fake) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import sys; print('boom', file=sys.stderr); sys.exit(3)", r"status 3(.|\n)*boom"),
        ("raise ModuleNotFoundError(\"No module named 'starlette'\")", r"pip install 'speechlab\[local\]'"),
        ("__import__('speechlab.service._none')", r"No module named 'speechlab\.service\._none'"),
        ("print('ready nonsense')", "ready line is invalid"),
        ("import time; time.sleep(60)", "not ready within"),
    ],
)
def test_a_start_that_fails_says_why_and_what_to_do(state, monkeypatch, script, message):
    monkeypatch.setattr(LEASE + "_build_command", lambda _: [sys.executable, "-c", script])
    monkeypatch.setattr(LEASE + "_START_S", 1.0 if "sleep" in script else 30.0)
    with pytest.raises(ServiceStartError, match=message) as caught:
        connect()
    assert "SPEECHLAB_BASE_URL" in str(caught.value)
    assert ("pip install" in str(caught.value)) == ("starlette" in script)  # no extra has a module of our own
    assert str(state / "service.log") in str(caught.value)
    assert locks(state) == []
    assert not (state / "service.json").exists()


def test_what_keeps_a_service_from_being_started_is_named(state, monkeypatch, tmp_path, request):
    def refused(match):
        with pytest.raises(ServiceStartError, match=match):
            connect()
        assert locks(state) == []

    with monkeypatch.context() as patch:
        patch.setattr(LEASE + "_SERVICE_MODULES", ("starlette", "no_such_package_at_all"))
        refused(r"pip install 'speechlab\[local\]'")
    request.getfixturevalue("fake")
    with monkeypatch.context() as patch:
        full = OSError(28, "No space left on device")
        patch.setattr("speechlab.client._embedded.state.EmbeddedService.write", Mock(side_effect=full))
        refused("No space left")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPEECHLAB_STATE_DIR", str(tmp_path / "file"))
    refused("SPEECHLAB_STATE_DIR")


USER = textwrap.dedent(
    """
    import sys
    from speechlab.client import connect
    lab = connect()
    print(lab.base_url, len(lab.voices()) > 0, flush=True)
    sys.stdin.readline()
    """
)


def user(**environment):
    return subprocess.Popen(
        [sys.executable, "-c", USER],
        env={**os.environ, "SPEECHLAB_IDLE_EXIT_S": "1", **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.engines
def test_two_notebooks_share_a_service_until_the_last_ends(state):
    # A key for another service must not keep the embedded one from making up its own.
    users = [user(SPEECHLAB_SERVICE_API_KEY="sl:from-outside-0123456789abcdef") for _ in range(2)]
    with users[0], users[1]:
        lines = [one.stdout.readline() for one in users]
        assert lines[0] == lines[1]
        assert lines[0].endswith("True\n")
        pid = process_of(state / "service.json")
        assert json.loads((state / "service.json").read_text())["version"] == speechlab.__version__
        users[0].communicate("\n", timeout=30)
        time.sleep(3)
        assert is_running(pid), "it left although somebody still uses it"
        users[1].kill()  # without a chance to clean up
        users[1].communicate(timeout=30)
    assert eventually(gone(pid), 30)


@pytest.mark.engines
def test_a_real_service_that_is_killed_is_started_again(state):
    with connect() as lab, lab.realtime(voice="mei", format="pcm") as session:
        first = session.say("はい。")
        killed(state)
        assert eventually(lambda: not session.is_open)
        assert lab.synthesize("はい。", voice="mei").duration_s > 0.1
        assert session.say("はい。").frames == pytest.approx(first.frames, rel=0.5)


def is_running(pid):
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def test_what_was_configured_comes_first(fake, state, server, monkeypatch, caplog):
    with pytest.raises(ConfigurationError, match="base_url"):
        connect(api_key="sl:mine")
    monkeypatch.setenv("SPEECHLAB_API_KEY", "sl:mine")
    connect().close()
    assert "using the embedded service" in caplog.text
    with pytest.raises(ConfigurationError, match="no option"):
        connect(retries=3)
    assert locks(state) == []
    monkeypatch.setenv("SPEECHLAB_BASE_URL", server.base_url)
    for given, address in ((None, server.base_url), ("http://127.0.0.1:9", "http://127.0.0.1:9")):
        with connect(given) as lab:
            assert lab.base_url == address
    assert len(fake) == 1
