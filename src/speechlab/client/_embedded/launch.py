"""Start of the service process; waits for its ready line, with a timeout."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from speechlab._platform import package_version
from speechlab._require import EXTRAS
from speechlab.client._embedded.state import EmbeddedService
from speechlab.client._secret import Secret, redact
from speechlab.errors import ConfigurationError, ServiceStartError

if TYPE_CHECKING:
    from speechlab.client._embedded.state import StateDir

IDLE_EXIT_VARIABLE = "SPEECHLAB_IDLE_EXIT_S"
"""Seconds until the service ends after its last user; a restarted kernel finds its models loaded."""
_IDLE_EXIT_S = 20.0
_START_S = 120.0
_LOG_CHARS = 2_000
_LOG_MAX_BYTES = 5 << 20
_MISSING = re.compile(r"No module named '([^']+)'")
_NEEDED = ("starlette", "uvicorn", "httptools")
# A key from the environment would not be on the ready line, and only this process needs one.
_OWN_VARIABLES = ("SPEECHLAB_SERVICE_API_KEY", "SPEECHLAB_SERVICE_API_KEYS")


def launch(state: StateDir, before: EmbeddedService | None = None) -> EmbeddedService:
    """Start the service, and wait until it accepts requests."""
    _check_installed()
    _cut_log(state)
    command = _command(state)
    if before is not None:
        command += ["--port", str(urlsplit(before.base_url).port)]
    problem = None
    log = os.open(state.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        log_start = os.fstat(log).st_size
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env=_environment(state, before),
            start_new_session=True,  # an interrupt of the kernel must not reach it
            cwd=state.path,
        )
    except OSError as error:
        problem = str(error)  # its frames contain the environment, and that may contain the key
    finally:
        os.close(log)
    if problem is not None:
        raise ServiceStartError(f"the embedded service could not be started: {problem}")
    try:
        return _wait_ready(process, state, log_start, before)
    except BaseException:
        _end(process)
        raise
    finally:
        _leave_alone(process)


def _environment(state: StateDir, before: EmbeddedService | None) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in _OWN_VARIABLES}
    if state.engines:
        environment["SPEECHLAB_SERVICE_ENGINES"] = state.engines
    if before is not None:
        environment[_OWN_VARIABLES[0]] = before.api_key.reveal()
    return environment


def _command(state: StateDir) -> list[str]:
    idle = os.environ.get(IDLE_EXIT_VARIABLE) or str(_IDLE_EXIT_S)
    try:
        idle_s = float(idle)
    except ValueError:
        idle_s = -1.0
    if not 0 < idle_s < float("inf"):
        raise ConfigurationError(f"{IDLE_EXIT_VARIABLE} is {idle!r}; give seconds above 0")
    command = [sys.executable, "-m", "speechlab.service", "--port", "0", "--users-dir", str(state.users)]
    return [*command, "--idle-exit-s", f"{idle_s:g}", "--data-dir", str(state.data)]


def _check_installed() -> None:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        extra = EXTRAS.get(missing[0], "local")
        raise ServiceStartError(
            f"the embedded service needs {', '.join(missing)}, which is not installed; install it with: "
            f"pip install 'speechlab[{extra}]', or set SPEECHLAB_BASE_URL to a service that runs elsewhere"
        )


def _cut_log(state: StateDir) -> None:
    if state.log.exists() and state.log.stat().st_size > _LOG_MAX_BYTES:
        state.log.replace(state.log.with_suffix(".old.log"))


def _wait_ready(
    process: subprocess.Popen[bytes], state: StateDir, log_start: int, before: EmbeddedService | None
) -> EmbeddedService:
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    # A thread, because not every system can wait for a pipe with a timeout.
    reader = threading.Thread(target=_read_lines, args=(process.stdout, lines), daemon=True)
    reader.start()
    deadline = time.monotonic() + _START_S
    try:
        while (line := lines.get(timeout=max(0.0, deadline - time.monotonic()))) != b"":
            word, _, rest = line.partition(b" ")
            if word == b"ready":
                return _service(json.loads(rest), process.pid, before)
    except queue.Empty:
        reason = f"it was not ready within {_START_S:.0f} seconds"
    except (ValueError, KeyError) as error:
        reason = f"its ready line is invalid ({type(error).__name__})"
    else:
        reason = f"it ended with status {process.wait(10)}"
    log = _log_tail(state, log_start)
    advice = "set SPEECHLAB_BASE_URL to use a service that runs elsewhere"
    missing = [name.partition(".")[0] for name in _MISSING.findall(log)]
    if missing and missing[-1] != "speechlab":  # no extra installs a missing module of speechlab itself
        extra = EXTRAS.get(missing[-1], "local")
        advice = f"install {missing[-1]} with: pip install 'speechlab[{extra}]', or {advice}"
    raise ServiceStartError(
        f"the embedded service could not be started: {reason}; {advice}. The end of its log ({state.log}):\n{log}"
    )


def _read_lines(stdout: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    for line in stdout:
        lines.put(line)
        if line.startswith(b"ready "):
            return
    lines.put(b"")


def _service(fields: dict[str, str], pid: int, before: EmbeddedService | None) -> EmbeddedService:
    return EmbeddedService(
        fields["base_url"],
        fields["ws_base_url"],
        Secret(fields["api_key"]) if before is None else before.api_key,
        pid,
        package_version(),
        sys.executable,
    )


def _log_tail(state: StateDir, start: int) -> str:
    try:
        with state.log.open("rb") as file:
            file.seek(start)
            text = file.read().decode("utf-8", "replace")
    except OSError:
        text = ""
    return redact(text[-_LOG_CHARS:].strip()) or "(empty)"


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)


def _leave_alone(process: subprocess.Popen[bytes]) -> None:
    """Detach from a process that outlives this one; a thread collects its status if it ends first."""
    if process.poll() is None:
        threading.Thread(target=process.wait, name="speechlab-service-wait", daemon=True).start()
    if process.stdout is not None:
        process.stdout.close()
