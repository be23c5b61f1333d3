"""Connecting: how long it may take, and what the error says to do."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from speechlab.client import Client
from speechlab.errors import APITimeoutError


@pytest.fixture
def silent():
    """An address at which nobody answers: the queue of a listener that accepts nobody is full."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.slow
def test_how_long_connecting_may_take_is_an_option(silent, wire):
    with Client(silent, max_retries=0, connect_timeout_s=0.2, transport=wire) as lab:
        with pytest.raises(APITimeoutError, match=r"within 0\.2 s.*connect_timeout_s=") as caught:
            lab.voices()
        assert not caught.value.possibly_metered
        with pytest.raises(APITimeoutError, match=r"within 0\.3 s"):
            lab.with_options(connect_timeout_s=0.3).voices()
        with pytest.raises(
            APITimeoutError, match=r"time of 0\.1 s was up while it waited for a connection.*\(timeout="
        ):
            lab.with_options(timeout=0.1).voices()
