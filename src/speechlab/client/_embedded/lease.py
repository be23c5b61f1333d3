"""A client's use of the embedded service: find it, start it, restart it after a crash.

The service is a separate process, shared by all notebooks of a user, and ends after its last user. A restarted
service has the same address and key, so that clients need no change. A restart does not send again what was sent to
the stopped service.
"""

from __future__ import annotations

import atexit
import json
import os
import queue
import re
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from speechlab._platform import get_package_version, register_after_fork
from speechlab._require import EXTRAS
from speechlab.client._embedded.download import DownloadBar
from speechlab.client._embedded.state import (
    KEY_VARIABLES,
    SERVICE_PREFIX,
    EmbeddedService,
    StateDir,
    is_process_running,
)
from speechlab.client._events import logger
from speechlab.client._secret import Secret, redact
from speechlab.errors import ConfigurationError, ServiceStartError

if TYPE_CHECKING:
    from filelock import FileLock


# Seconds until the service ends after its last user; a restarted kernel finds its models loaded.
IDLE_EXIT_VARIABLE = "SPEECHLAB_IDLE_EXIT_S"
_IDLE_EXIT_S = 20.0
_START_S = 120.0
_LOG_CHARS = 2_000
_LOG_MAX_BYTES = 5 << 20
_MIN_FREE_BYTES = 1 << 20
_MISSING_MODULE = re.compile(r"No module named '([^']+)'")
# The last line of a service that says why it does not start.
_REFUSAL = re.compile(r"^speechlab\.service: (.+)\Z", re.MULTILINE)
_SERVICE_MODULES = ("starlette", "uvicorn", "httptools")


def launch_service(state: StateDir, before: EmbeddedService | None = None) -> EmbeddedService:
    """Start the service, and wait until it accepts requests."""
    command = _build_command(state)
    if before is not None:
        command += ["--port", str(urlsplit(before.base_url).port)]
    if state.log.exists() and state.log.stat().st_size > _LOG_MAX_BYTES:
        with suppress(PermissionError):  # on Windows, while a service that ends has it open
            state.log.replace(state.log.with_suffix(".old.log"))
    problem = None
    log = os.open(state.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        log_start = os.fstat(log).st_size
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env=_build_environment(state, before),
            # An interrupt of the kernel must not reach it. Windows knows no sessions, but groups of processes.
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            cwd=state.path,
        )
    except OSError as error:
        problem = str(error)  # its frames contain the environment, and that may contain the key
    finally:
        os.close(log)
    if problem is not None:
        raise ServiceStartError(f"the embedded service could not be started: {problem}")
    try:
        service = _wait_for_ready_service(process, state, log_start, before)
        service.write(state.service_file)  # without it, no process could find the service
    except BaseException:
        _terminate_process(process)
        raise
    finally:
        # It outlives this process; a thread collects its status if it ends first.
        if process.poll() is None:
            threading.Thread(target=process.wait, name="speechlab-service-wait", daemon=True).start()
        if process.stdout is not None:
            process.stdout.close()
    return service


def _build_environment(state: StateDir, before: EmbeddedService | None) -> dict[str, str]:
    others = {name: value for name, value in os.environ.items() if not name.startswith(SERVICE_PREFIX)}
    key = {} if before is None else {KEY_VARIABLES[0]: before.api_key.reveal()}
    return others | state.settings | key


def _build_command(state: StateDir) -> list[str]:
    absent = [name for name in _SERVICE_MODULES if find_spec(name) is None]
    if absent:
        extra = EXTRAS.get(absent[0], "local")
        raise ServiceStartError(
            f"the embedded service needs {', '.join(absent)}, which is not installed; install it with: "
            f"pip install 'speechlab[{extra}]', or set SPEECHLAB_BASE_URL to a service that runs elsewhere"
        )
    idle = os.environ.get(IDLE_EXIT_VARIABLE) or str(_IDLE_EXIT_S)
    try:
        idle_s = float(idle)
    except ValueError:
        idle_s = -1.0
    if not 0 < idle_s < float("inf"):
        raise ConfigurationError(f"{IDLE_EXIT_VARIABLE} is {idle!r}; give seconds above 0")
    command = [sys.executable, "-P", "-m", "speechlab.service", "--port", "0"]
    command += ["--users-dir", str(state.users), "--data-dir", str(state.data)]
    return [*command, "--idle-exit-s", f"{idle_s:g}"]


def _wait_for_ready_service(
    process: subprocess.Popen[bytes], state: StateDir, log_start: int, before: EmbeddedService | None
) -> EmbeddedService:
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    # A thread, because not every system can wait for a pipe with a timeout.
    reader = threading.Thread(target=_queue_lines_until_ready, args=(process.stdout, lines), daemon=True)
    reader.start()
    deadline = time.monotonic() + _START_S
    downloads = DownloadBar()
    try:
        while (line := lines.get(timeout=max(0.0, deadline - time.monotonic()))) != b"":
            word, _, fields = line.partition(b" ")
            if word == b"progress":
                downloads.show(fields)
                deadline = time.monotonic() + _START_S
            elif word == b"ready":
                ready = json.loads(fields)
                for warning in map(str, ready.get("warnings", ())):
                    logger.warning("the embedded service: %s", redact(warning))
                return EmbeddedService(
                    ready["base_url"],
                    ready["ws_base_url"],
                    Secret(ready["api_key"]) if before is None else before.api_key,
                    process.pid,
                    get_package_version(),
                    sys.prefix,
                )
    except queue.Empty:
        reason = f"it was not ready within {_START_S:.0f} seconds"
    except (ValueError, KeyError) as error:
        reason = f"its ready line is invalid ({type(error).__name__})"
    else:
        reason = f"it ended with status {process.wait(10)}"
    finally:
        downloads.close()
    log = _read_log_tail(state, log_start)
    if refusal := _REFUSAL.search(log):
        raise ServiceStartError(
            f"the embedded service could not be started: {refusal[1]} (its log: {state.log})"
        )
    advice = "set SPEECHLAB_BASE_URL to use a service that runs elsewhere"
    modules = [name.partition(".")[0] for name in _MISSING_MODULE.findall(log)]
    if modules and modules[-1] != "speechlab":  # no extra installs a missing module of speechlab itself
        extra = EXTRAS.get(modules[-1], "local")
        advice = f"install {modules[-1]} with: pip install 'speechlab[{extra}]', or {advice}"
    folder = state.log.parent
    if shutil.disk_usage(folder).free < _MIN_FREE_BYTES:  # its log is then empty
        advice = f"the disk of {folder} is full: free some, or {advice}"
    raise ServiceStartError(
        f"the embedded service could not be started: {reason}; {advice}. The end of its log ({state.log}):\n{log}"
    )


def _queue_lines_until_ready(stdout: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    for line in stdout:
        lines.put(line)
        if line.startswith(b"ready "):
            return
    lines.put(b"")


def _read_log_tail(state: StateDir, start: int) -> str:
    try:
        with state.log.open("rb") as file:
            file.seek(start)
            text = file.read().decode("utf-8", "replace")
    except OSError:
        text = ""
    return redact(text[-_LOG_CHARS:].strip()) or "(empty)"


def _terminate_process(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)


_LOCK_WAIT_S = 180.0
# Minimum time between two starts, so that a service that keeps failing is not restarted without end.
_PAUSE_S = 60.0
_LOOK_S = 2.0


_holds_lock = threading.Lock()
# The locks that mark this process as a user of a service, by its folder; each is taken once for each client.
_holds: dict[Path, FileLock] = {}


@dataclass(eq=False)
class Lease:
    """One client's use of the embedded service."""

    service: EmbeddedService
    state: StateDir
    revived_at: float = field(default=float("-inf"), repr=False)
    trouble: str = field(default="", repr=False)
    _open: bool = field(default=True, repr=False)
    _displaced: bool = field(default=False, repr=False)

    def release(self) -> None:
        """End the lease; the last one of this process also releases the lock."""
        if self._open:
            self._open = False
            _release_hold(self.state)

    def is_listening_or_restarted(self) -> bool:
        """Return whether the service is the one that listens at its port, also after another process restarted it."""
        if self.service.is_listening():
            return True
        restarted = EmbeddedService.read(self.state.service_file)
        if restarted is None or not self._is_same_service(restarted) or not restarted.is_listening():
            return False
        self.service = restarted
        return True

    def _is_same_service(self, other: EmbeddedService) -> bool:
        ours, theirs = self.service, other
        return (ours.base_url, ours.api_key.reveal()) == (theirs.base_url, theirs.api_key.reveal())

    def restart_if_ended(self, pid: int) -> bool:
        """Restart the service if its process has ended; may take as long as a start."""
        if not self._open:
            return False
        from filelock import FileLock, Timeout

        before, state = self.service, self.state
        if before.pid != pid:
            return True  # another call has restarted it meanwhile
        if self._displaced or before.is_listening():
            return False
        try:
            # The start lock: of all calls, threads and notebooks one restarts it, and the others find it running.
            with FileLock(state.start_lock, timeout=_LOCK_WAIT_S, mode=0o600):
                service = _find_running_service(state)
                if service is None:
                    if _is_address_taken(before.base_url):  # its key is never used there again
                        self._displaced, self.trouble = True, "another program has taken its port"
                        return False
                    if time.monotonic() - self.revived_at < _PAUSE_S:
                        return False
                    self.revived_at = time.monotonic()
                    logger.warning(
                        "the embedded service (process %d) has stopped; starting it again (its log: %s)",
                        before.pid,
                        state.log,
                    )
                    service = launch_service(state, before)
                    logger.warning("the embedded service runs again (process %d)", service.pid)
        except (ServiceStartError, Timeout, OSError) as error:
            self.trouble = str(error)
            logger.warning("the embedded service could not be started again: %s", error)
            return False
        if not self._is_same_service(service):
            self.trouble = f"another one runs at {service.base_url}"
            return False
        self.service, self.trouble = service, ""
        return True

    def describe_failure(self) -> str:
        """Return the possible reason for a missing reply, and advice, for error messages."""
        if not self._displaced and is_process_running(self.service.pid):
            return f"the embedded service (process {self.service.pid}) runs; see its log, {self.state.log}"
        why = f" and was not started again: {self.trouble}" if self.trouble else ""
        return (
            f"the embedded service (process {self.service.pid}) has stopped{why}; call connect() for a new one, "
            f"and see {self.state.log} for why"
        )


def _is_address_taken(base_url: str) -> bool:
    address = urlsplit(base_url)
    try:
        socket.create_connection((address.hostname, address.port), timeout=_LOOK_S).close()
    except OSError:
        return False
    return True


def take_lease(engines: str) -> Lease:
    """Find the embedded service of this user with these options of engines and these settings, or start it."""
    from filelock import FileLock, Timeout

    state = StateDir(engines)
    state.create_folders()
    held = False
    try:
        # Before the lookup: a service whose last user is leaving must see that there is a new one.
        with _holds_lock:
            if state.path not in _holds:
                path = state.users / f"{os.getpid()}-{secrets.token_hex(4)}.lock"
                _holds[state.path] = FileLock(path, timeout=10, mode=0o600, thread_local=False)
            _holds[state.path].acquire()
        held = True
        with FileLock(state.start_lock, timeout=_LOCK_WAIT_S, mode=0o600):
            lease = Lease(_find_running_service(state) or launch_service(state), state)
            held = False
            return lease
    except Timeout:
        reason = f"another process has been starting it for {_LOCK_WAIT_S:.0f} seconds; see {state.log}"
        failure = ServiceStartError(f"the embedded service could not be started: {reason}")
    except OSError as error:  # such as a full disk
        failure = ServiceStartError(state.describe_problem(error.strerror or str(error)))
    finally:
        if held:
            _release_hold(state)
    raise failure


def _find_running_service(state: StateDir) -> EmbeddedService | None:
    """Return the running service; an outdated description is deleted. The caller holds the start lock."""
    service = EmbeddedService.read(state.service_file)
    # Another version of speechlab, or one in another environment, may behave differently.
    ours = (get_package_version(), sys.prefix)
    if (
        service is not None
        and (service.version, service.environment) == ours
        and service.is_reachable_with_key()
    ):
        return service
    state.service_file.unlink(missing_ok=True)
    return None


def _release_hold(state: StateDir) -> None:
    with _holds_lock:
        hold = _holds.get(state.path)
        if hold is not None and hold.lock_counter > 1:
            hold.release()
        elif hold is not None:
            del _holds[state.path]
            _delete_and_release_lock(hold)


@atexit.register
def _release_all_holds() -> None:
    with _holds_lock:
        while _holds:
            _delete_and_release_lock(_holds.popitem()[1])


def _delete_and_release_lock(hold: FileLock) -> None:
    with suppress(OSError):
        # Deleted before its release: afterwards another process could have locked the same file.
        Path(hold.lock_file).unlink(missing_ok=True)
    with suppress(OSError, RuntimeError):
        hold.release(force=True)


@register_after_fork
def _drop_holds_after_fork() -> None:
    """Drop the parent's lock in a forked child, which takes its own at its next use of the service."""
    global _holds_lock  # noqa: PLW0603 - a forked child needs its own
    _holds_lock = threading.Lock()
    _holds.clear()
