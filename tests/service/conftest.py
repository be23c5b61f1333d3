"""Services as a user has them, and services whose engines do what a test needs."""

import contextlib
import json
import logging
import os
import subprocess
import sys
import tempfile
from typing import Any

import pytest

from speechlab.service import voice_uuid
from support.clients import KEY, Http, Reply, talking
from support.staged import staged_service


class Process:
    """A service as a process of its own, from when it is ready."""

    def __init__(self, *arguments: str, before: tuple[str, ...] = (), **environment: str) -> None:
        command = [*before, sys.executable, "-m", "speechlab.service", "--port", "0", *arguments]
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed with the process
        how = {"stdout": subprocess.PIPE, "stderr": self._log, "text": True, "start_new_session": True}
        self.child = subprocess.Popen(command, env=os.environ | environment, **how)
        word, _, fields = self.child.stdout.readline().partition(" ")
        assert word == "ready", self.end()
        self.fields = json.loads(fields)
        self.http = Http(self.fields["base_url"], self.fields.get("api_key", KEY))

    def end(self) -> tuple[int, str, str]:
        """Its status, what it printed after it was ready, and its log."""
        out, _ = self.child.communicate(timeout=40)
        self._log.seek(0)
        return self.child.returncode, out, self._log.read()

    def close(self) -> None:
        self.child.kill()
        self.child.communicate()
        self._log.close()


@pytest.fixture
def start():
    """Starts services as processes."""
    with contextlib.ExitStack() as stack:
        yield lambda *how, **more: stack.enter_context(contextlib.closing(Process(*how, **more)))


@pytest.fixture(scope="session")
def live(live_service):
    """The service as a user has it, with all its engines, in its own process."""
    return Http(live_service.base_url, live_service.api_key)


@pytest.fixture(scope="session")
def _shared_stage():
    with staged_service() as service:
        yield service


@pytest.fixture
def staged(_shared_stage):
    """A service whose engines do what a test needs: one for all tests, each of which finds it as new."""
    yield _shared_stage
    _shared_stage.reset()


@pytest.fixture(scope="session")
def stage():
    """Makes staged services with settings: ``with stage(queue_limit=1) as service``."""
    return staged_service


@pytest.fixture(scope="session")
def talk():
    """Opens realtime connections: ``with talk(service.http) as client``."""
    return talking


@pytest.fixture(scope="session")
def hibari() -> str:
    return voice_uuid("hibari", "heart")


@pytest.fixture(scope="session")
def error_body():
    """Checks the long error body (statement 9) and returns it."""

    def check(reply: Reply, status: int, name: str) -> dict[str, Any]:
        body = reply.json()
        assert reply.status == status, body
        assert set(body) == {"context", "code", "name", "error"}
        assert isinstance(body["context"], list)
        assert body["context"]
        assert all(isinstance(item, str) for item in body["context"])
        assert type(body["code"]) is int
        assert (body["name"], bool(body["error"])) == (name, True)
        assert (body["code"] == 104) == (name == "ErrAuthenticationFailed")
        return body

    return check


@pytest.fixture
def own_log():
    """Lets a test call what sends the log of this process to its stderr."""
    loggers = [logging.getLogger(name) for name in ("speechlab", "uvicorn", "asyncio")]
    before = [(logger, logger.handlers, logger.level, logger.propagate) for logger in loggers]
    yield
    for logger, logger.handlers, level, logger.propagate in before:
        logger.setLevel(level)
