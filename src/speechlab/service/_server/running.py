"""A service for the duration of a ``with`` block, for tests, examples and programs with their own service."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from speechlab.errors import ServiceStartError
from speechlab.service._app import create_app
from speechlab.service._config import ENVIRONMENT_PREFIX, SECRET_SETTINGS, ServiceConfig, list_setting_names
from speechlab.service._server.server import Server, bind_and_make_key

_START_S = 60.0
_STOP_S = 30.0


@dataclass(frozen=True, slots=True)
class RunningService:
    """A running service.

    Attributes:
        base_url: Base URL for HTTP.
        ws_base_url: Base URL for WebSockets.
        api_key: An accepted key.
        pid: Process id of the service, or of the caller if it runs in a thread.
    """

    base_url: str
    ws_base_url: str
    api_key: str = field(repr=False)
    pid: int = 0


@contextlib.contextmanager
def run_service(config: ServiceConfig | None = None, *, process: bool = False) -> Iterator[RunningService]:
    """Run a service until the block ends, on a free port unless the settings name one.

    Args:
        config: Settings; default port 0 on loopback.
        process: True for a separate process, as ``speechlab serve`` runs it; False for a thread, which also accepts
            engines given as objects.

    Raises:
        ServiceStartError: The service cannot start; the message contains the reason.
    """
    config = config or ServiceConfig(port=0)
    with _run_service_in_process(config) if process else _run_service_in_thread(config) as service:
        yield service


@contextlib.contextmanager
def _run_service_in_thread(config: ServiceConfig) -> Iterator[RunningService]:
    config, listener, ready = bind_and_make_key(config)
    with contextlib.closing(listener):
        started = threading.Event()
        server = Server(create_app(config), config, listener, started.set)
        thread = threading.Thread(target=server.run_in_this_thread, name="speechlab-service", daemon=True)
        thread.start()
        if not started.wait(_START_S):
            raise ServiceStartError(f"the service did not answer within {_START_S:.0f} seconds")
        try:
            yield RunningService(ready.base_url, ready.ws_base_url, ready.api_key, os.getpid())
        finally:
            server.stop()
            thread.join(_STOP_S)


@contextlib.contextmanager
def _run_service_in_process(config: ServiceConfig) -> Iterator[RunningService]:
    if config.extra_engines:
        raise ServiceStartError("engines given as objects cannot go to another process; use process=False")
    settings = config.model_dump(
        mode="json", include=set(list_setting_names()) - SECRET_SETTINGS, exclude_none=True
    )
    # Keys are passed by the environment, which other users cannot read, unlike arguments and files.
    environment = {**os.environ, ENVIRONMENT_PREFIX + "API_KEYS": ",".join(config.api_keys)}
    environment[ENVIRONMENT_PREFIX + "OPERATOR_KEYS"] = ",".join(config.operator_keys)
    environment[ENVIRONMENT_PREFIX + "RECOGNIZER_API_KEY"] = config.recognizer_api_key
    with tempfile.TemporaryDirectory(prefix="speechlab-service-") as folder, contextlib.ExitStack() as stack:
        path, log_path = Path(folder) / "config.json", Path(folder) / "stderr"
        for file in (path, log_path):
            file.touch(0o600)
        path.write_text(json.dumps(settings), encoding="utf-8")
        errors = stack.enter_context(log_path.open("w+", encoding="utf-8"))
        command = [sys.executable, "-P", "-m", "speechlab.service", "--config", str(path)]
        child = stack.enter_context(
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
        )
        stack.callback(_end_process, child)
        fields = _read_ready_fields(child, errors)
        key = fields.get("api_key") or config.api_keys[0]
        yield RunningService(fields["base_url"], fields["ws_base_url"], key, child.pid)


def _read_ready_fields(child: subprocess.Popen[str], errors: TextIO) -> dict[str, str]:
    assert child.stdout is not None
    late = threading.Timer(_START_S, child.kill)  # which ends the reading on every system
    late.start()
    word, _, fields_text = child.stdout.readline().partition(" ")
    late.cancel()
    if word == "ready":
        fields: dict[str, str] = json.loads(fields_text)
        return fields
    child.kill()
    child.wait()
    errors.seek(0)
    last = " ".join(errors.read()[-2_000:].split())
    raise ServiceStartError(f"the service process did not start (status {child.returncode}): {last}")


def _end_process(child: subprocess.Popen[str]) -> None:
    child.terminate()
    try:
        child.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
