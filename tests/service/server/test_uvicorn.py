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

HTTP = httptools_impl.HttpToolsProtocol
CYCLE = httptools_impl.RequestResponseCycle
USED = {
    HTTP: {
        "methods": (
            "connection_made connection_lost data_received on_url on_header on_body on_message_begin "
            "on_message_complete on_headers_complete on_response_complete _should_upgrade send_400_response "
            "handle_websocket_upgrade"
        ),
        "attributes": "connections transport cycle parser url client loop scope",
    },
    CYCLE: {"methods": "send", "attributes": "scope keep_alive response_started response_complete"},
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


def test_a_websocket_protocol_is_made_and_served_as_ours_is():
    made = inspect.getsource(HTTP.handle_websocket_upgrade)
    for part in (
        "config=",
        "server_state=",
        "app_state=",
        "connection_made(",
        "data_received(",
        "set_protocol(",
    ):
        assert part in made, told(f"handle_websocket_upgrade() with {part}")
    assert "connection.shutdown()" in inspect.getsource(uvicorn.Server.shutdown), told(
        "shutdown of connections"
    )


def test_uvicorn_has_an_upper_bound():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    (bound,) = [each for each in project["optional-dependencies"]["local"] if each.startswith("uvicorn")]
    assert re.search(r"<\d", bound), "uvicorn needs an upper bound: the service builds on its internals"
