"""The command in a terminal of 80 columns: what it asks, what it shows, and how it ends when it is interrupted."""

import os
import re
import sys
import threading
import urllib.request
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from rich.console import Console
from typer.testing import CliRunner

from speechlab import batch
from support.clock import eventually
from support.sockets import free_port
from support.studies import serving

pexpect = pytest.importorskip("pexpect", reason="terminals of this kind are those of Unix")

SPEECHLAB = Path(sys.executable).parent / "speechlab"
RING = """
import json, os
from keyring.backend import KeyringBackend

class Keyring(KeyringBackend):
    priority = 1
    path = os.environ["TEST_RING"]

    def _all(self):
        return json.load(open(self.path)) if os.path.exists(self.path) else {}

    def get_password(self, service, name):
        return self._all().get(f"{service} {name}")

    def set_password(self, service, name, password):
        json.dump({**self._all(), f"{service} {name}": password}, open(self.path, "w"))
"""


class Terminal:
    """A command in a terminal; ``shown`` is everything that was seen in it."""

    def __init__(self, *arguments, cwd, **environment):
        self.shown = ""
        where = {"env": {**os.environ, "TERM": "xterm", "NO_COLOR": "1", **environment}, "cwd": str(cwd)}
        how = {"dimensions": (24, 80), "encoding": "utf-8", "timeout": 120}
        self._process = pexpect.spawn(str(SPEECHLAB), list(map(str, arguments)), **where, **how)
        self.pid = self._process.pid

    def until(self, words):
        self._process.expect(words)
        self.shown += self._process.before + self._process.after

    def type(self, text):
        self._process.send(text)

    def asked(self, words):
        """Wait for a question, and until what is typed is not echoed any more."""
        self.until(words)
        self._process.waitnoecho()

    def end(self):
        """Wait for the end; gives the exit code."""
        self._process.expect(pexpect.EOF)
        self.shown += self._process.before
        self._process.close()
        return self._process.exitstatus


@pytest.fixture
def ring(tmp_path):
    """The environment of a machine with a keyring, which is a file here."""
    (tmp_path / "filering.py").write_text(RING)
    return {
        "PYTHON_KEYRING_BACKEND": "filering.Keyring",
        "PYTHONPATH": str(tmp_path),
        "TEST_RING": str(tmp_path / "ring.json"),
        "SPEECHLAB_STATE_DIR": str(tmp_path / "state"),
    }


@pytest.mark.engines
def test_login_asks_and_keeps(tmp_path, ring, live_service):
    url = live_service.base_url
    login = Terminal("login", "--base-url", url, cwd=tmp_path, **ring)
    login.asked("API key: ")
    login.type(f"{live_service.api_key}\n")
    assert login.end() == 0, login.shown
    assert "filering Keyring" in login.shown
    assert live_service.api_key not in login.shown
    assert live_service.api_key in Path(ring["TEST_RING"]).read_text()


def every_command():
    import typer

    from speechlab.cli import app

    def walk(command, path):
        yield path
        for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
            yield from walk(command.get_command(None, name), (*path, name))

    return list(walk(typer.main.get_command(app), ()))


@pytest.mark.slow
def test_help_fits_80_columns_and_is_whole():
    from speechlab.cli import app

    for path in every_command():
        done = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "80", "NO_COLOR": "1"})
        assert done.exit_code == 0, path
        assert max(map(len, done.stdout.splitlines())) <= 80, path
        assert "<bool>" not in done.stdout, path
        assert "…" not in done.stdout.replace('": …', ""), path  # an option that is cut off
        assert not re.search(r"\w\.\.\.$", done.stdout, re.MULTILINE), path  # a text that is cut off


@pytest.mark.slow
def test_interrupting_the_quickstart(tmp_path, monkeypatch):
    """It ends, keeps what was finished, and says so."""
    with serving(languages=("ja", "en")) as staged:
        freed, speak = threading.Event(), staged.voice.synthesize

        def speak_twice_and_wait(*given, **options):
            if len(staged.voice.calls) >= 2:
                freed.wait(60)
            return speak(*given, **options)

        staged.voice.synthesize = speak_twice_and_wait
        store = {"SPEECHLAB_STORE": str(tmp_path / "store")}
        place = {"SPEECHLAB_BASE_URL": staged.base_url, "SPEECHLAB_API_KEY": staged.api_key, **store}
        run = Terminal("quickstart", "--out", tmp_path / "out", cwd=tmp_path, **place)
        run.until(r" [1-9]\d*/\d\d")  # some of the calls for speech are done
        run.type("\x03")
        ended = run.end()
        freed.set()
    assert ended == 130
    assert "stopped; what was finished is kept" in run.shown
    assert "Traceback" not in run.shown
    monkeypatch.setenv("SPEECHLAB_STORE", store["SPEECHLAB_STORE"])
    kept = batch.runs()[["status", "ok"]].to_csv()
    assert re.search(r",interrupted,[1-9]", kept), kept


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_jupyterlab_asks_when_interrupted_and_ends_with_all(tmp_path):
    port = free_port()
    place = {f"JUPYTER_{name}_DIR": str(tmp_path / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    place["PATH"] = str(SPEECHLAB.parent)  # where it finds Node.js, it asks yarn for its settings
    more = ("--allow-root", f"--port={port}", "--ServerApp.token=test", "--ServerApp.disable_check_xsrf=True")
    lab = Terminal("lab", "work", "--no-browser", "--", *more, cwd=tmp_path, **place)
    lab.until("is running at")
    assert (tmp_path / "work" / "01-quickstart.ipynb").is_file()
    kernels = f"http://127.0.0.1:{port}/api/kernels?token=test"
    asked = urllib.request.Request(kernels, b"{}", {"Content-Type": "application/json"})

    def started():
        with suppress(OSError), urllib.request.urlopen(asked) as reply:
            return reply.status == 201
        return False

    assert eventually(started, 60)
    lab.type("\x03")
    lab.until("Shut down this Jupyter server")
    lab.type("n\n")
    lab.until("resuming operation")
    assert "Ctrl-C twice ends it" in lab.shown
    command = psutil.Process(lab.pid)
    those = command.children(recursive=True)
    assert len(those) >= 2  # JupyterLab, and the kernel
    assert Path(those[0].cwd()) == Path(sys.prefix)  # it looks for programs where it is, too
    command.terminate()
    lab.end()
    assert eventually(lambda: not any(one.is_running() for one in those), 30)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is always full is one of Linux")
def test_a_full_disk_is_one_line(tmp_path, monkeypatch, capsys):
    from speechlab.cli import main

    monkeypatch.setattr(sys, "argv", ["speechlab", "keys", "list", "--data-dir", str(tmp_path)])
    with suppress(OSError), Path("/dev/full").open("w", encoding="utf-8") as full:  # closing it fails again
        monkeypatch.setattr("speechlab.cli._commands.keys.console", Console(file=full))
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 1
    assert capsys.readouterr().err == "error: No space left on device\n"
