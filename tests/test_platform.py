"""What the ground knows of this machine and this process."""

import multiprocessing
import os
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

import speechlab
from speechlab._platform import find_installed_version, is_loopback, register_after_fork


@pytest.mark.parametrize("host", ["localhost", "LocalHost", "api.localhost", "127.0.0.1", "127.4.5.6", "::1"])
def test_addresses_of_this_machine(host):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "example.org", "localhost.example.org", "notlocalhost", "0.0.0.0", "10.0.0.1", "2001:db8::1"]
)
def test_addresses_of_other_machines(host):
    assert not is_loopback(host)


def test_installed_versions():
    assert find_installed_version("speechlab") == version("speechlab")
    assert find_installed_version("speechlab-that-nobody-has-made") is None


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_child_calls_what_was_registered_not_its_parent():
    called = []
    assert register_after_fork(lambda: called.append(os.getpid())) is not None
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=lambda: answers.put(called))
    child.start()
    assert answers.get() == [child.pid]
    child.join(30)
    assert called == []


def test_the_package_can_be_imported_from_a_zip(tmp_path):
    package = Path(speechlab.__file__).parent
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        for name in ("__init__.py", "__init__.pyi", "_hooks.py"):
            archive.write(package / name, f"speechlab/{name}")
    command = "import speechlab; print('connect' in speechlab.__all__, speechlab.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", command],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "app.zip")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == ["True", str(tmp_path / "app.zip" / "speechlab" / "__init__.py")]
