"""uvicorn's internals that the service builds on. They are no promise of uvicorn's: an upper bound holds them."""

from __future__ import annotations

import importlib.metadata
import inspect
import re
import tomllib
from pathlib import Path

import pytest
import uvicorn
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.websockets import websockets_sansio_impl

HTTP = httptools_impl.HttpToolsProtocol
CYCLE = httptools_impl.RequestResponseCycle
SOCKET = websockets_sansio_impl.WebSocketsSansIOProtocol
USED = {
    HTTP: {
        "methods": (
            "connection_made connection_lost data_received on_url on_header on_body on_message_begin "
            "on_message_complete on_headers_complete on_response_complete _should_upgrade send_400_response "
            "timeout_keep_alive_handler"
        ),
        "attributes": "connections transport flow cycle pipeline parser url client loop timeout_keep_alive "
        "timeout_keep_alive_task",
    },
    CYCLE: {"methods": "send", "attributes": "scope transport keep_alive more_body response_complete"},
    SOCKET: {
        "methods": (
            "connection_made data_received handle_connect handle_bytes handle_ping handle_pong resume_writing "
            "send_keepalive_ping keepalive_timeout handle_parser_exception handle_events send stop_keepalive "
            "send_receive_event_to_app"
        ),
        "attributes": (
            "conn transport queue frames curr_msg_data_type pending_ping_payload pong_timer ping_timeout writable "
            "close_sent close_timer close_timeout handshake_initiated handshake_complete read_paused request scope"
        ),
    },
    uvicorn.Server: {
        "methods": "startup shutdown capture_signals run",
        "attributes": "should_exit force_exit config",
    },
}


def told(what: str) -> str:
    version = importlib.metadata.version("uvicorn")
    return (
        f"uvicorn {version} has no {what} any more. src/speechlab/service/_server builds on it: read what changed, "
        f"mend it there, and raise the upper bound in pyproject.toml"
    )


@pytest.mark.parametrize("cls", USED, ids=lambda cls: cls.__name__)
def test_what_we_override_and_use_is_there(cls):
    for name in USED[cls]["methods"].split():
        assert callable(getattr(cls, name, None)), told(f"{cls.__name__}.{name}()")
    source = inspect.getsource(cls)
    for name in USED[cls]["attributes"].split():
        assert re.search(rf"self\.{name}\b", source), told(f"{cls.__name__}.{name}")


def test_an_asgi_message_goes_through_the_methods_that_we_replace():
    source = inspect.getsource(CYCLE.run_asgi)
    assert "self.send" in source, told("RequestResponseCycle.run_asgi() that looks send up on the instance")
    assert "transport.close()" in inspect.getsource(CYCLE.send), told("close of the transport after a reply")


def test_uvicorn_has_an_upper_bound():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    (bound,) = [each for each in project["optional-dependencies"]["local"] if each.startswith("uvicorn")]
    assert re.search(r"<\d", bound), "uvicorn needs an upper bound: the service builds on its internals"
