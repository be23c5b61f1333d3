"""What the ground knows of this machine and this process."""

from __future__ import annotations

import multiprocessing
import os
from importlib.metadata import version

import pytest

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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_child_calls_what_was_registered_and_the_parent_does_not():
    called = []
    assert register_after_fork(lambda: called.append(os.getpid())) is not None
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=lambda: answers.put(called))
    child.start()
    assert answers.get() == [child.pid]
    child.join(30)
    assert called == []
