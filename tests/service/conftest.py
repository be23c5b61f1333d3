"""Services as a user has them, and services whose engines do what a test needs."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from speechlab.service import voice_uuid
from support.clients import Http, Reply, talking
from support.staged import staged_service


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
