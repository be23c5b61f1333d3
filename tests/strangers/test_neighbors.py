"""What lies in the folder in which a service starts: modules, files in the place of its socket, old locks."""

import os
import socket
import subprocess
import sys
import time

import pytest

from speechlab import ConfigurationError
from speechlab.audio import encode
from speechlab.service import ServiceConfig, count_users_and_remove_stale, run_until_stopped
from support.staged import staged_service

posix = pytest.mark.skipif(os.name != "posix", reason="sockets in the file system")
KEY = "sl:a-key-of-the-tests"


@pytest.fixture
def hostile_folder(tmp_path, monkeypatch):
    """A working folder with modules that leave a mark where they are imported."""
    folder = tmp_path / "downloaded"
    folder.mkdir()
    for name in ("numpy", "orjson", "psutil", "uvicorn", "rich"):
        (folder / f"{name}.py").write_text(
            f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\nraise SystemExit(1)"
        )
    monkeypatch.chdir(folder)
    return tmp_path


def test_a_worker_imports_nothing_from_the_working_folder(hostile_folder):
    with staged_service() as service:  # which decodes recordings in a process of its own
        assert service.http.recognize(encode([0.0] * 1_600, "wav", 16_000)).status == 200
    assert not (hostile_folder / "ran").exists()


@pytest.mark.slow
def test_a_program_imports_nothing_from_the_working_folder(hostile_folder):
    for program in ("speechlab", "speechlab.service"):
        command = [sys.executable, "-m", program, *(["engines"] if program == "speechlab" else []), "--help"]
        done = subprocess.run(command, check=False, capture_output=True, timeout=60)
        assert (done.returncode, (hostile_folder / "ran").exists()) == (0, False), done.stderr


@posix
@pytest.mark.parametrize("kind", ["file", "folder", "link to a file", "link to nothing"])
def test_a_socket_takes_the_place_of_no_file(kind, tmp_path):
    thesis, path = tmp_path / "thesis.txt", tmp_path / "place"
    thesis.write_text("years of work")
    if kind == "folder":
        path.mkdir()
    elif kind == "file":
        path = thesis
    else:
        path.symlink_to(thesis if kind == "link to a file" else tmp_path / "nothing")
    with pytest.raises(ConfigurationError, match="exists and is no socket"):
        run_until_stopped(ServiceConfig(host=f"unix:{path}", api_keys=(KEY,)))
    assert os.path.lexists(path)
    assert thesis.read_text() == "years of work"


@posix
def test_a_socket_takes_the_place_of_no_busy_service(tmp_path):
    path = tmp_path / "service.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(ConfigurationError, match="another service listens"):
            run_until_stopped(ServiceConfig(host=f"unix:{path}", api_keys=(KEY,)))
        assert path.is_socket()


def test_a_lock_that_nobody_holds_counts_for_moments_only(tmp_path):
    for age_s, count in ((0.0, 1), (10.0, 0), (-3_600.0, 0)):
        lock = tmp_path / "1-a.lock"
        lock.touch()
        os.utime(lock, (time.time() - age_s,) * 2)
        assert count_users_and_remove_stale(tmp_path) == lock.exists() == count
