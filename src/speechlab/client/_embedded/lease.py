"""The embedded service: found if it runs, started if it does not, left to end when its last user has gone.

It is a process of its own, shared by all notebooks of a user through a folder that nobody else may read:

- ``service.json`` tells where it is, and its key;
- ``start.lock`` is held while somebody looks or starts, so that two notebooks never start two;
- ``users/<pid>-<random>.lock`` is held by each process that uses it. The operating system gives a lock back however
  its process ends, and the service stops when none is held any more.
"""

from __future__ import annotations

import atexit
import http.client
import json
import os
import secrets
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from speechlab._files import whole_file
from speechlab._platform import after_fork, package_version
from speechlab.client._secret import Secret
from speechlab.client._settings.settings import Settings
from speechlab.contract import VOICES_PATH
from speechlab.errors import ConfigurationError, ServiceStartError

STATE_DIR_VARIABLE = "SPEECHLAB_STATE_DIR"
LOCK_WAIT_S = 180.0
_PROBE_S = 5.0


@dataclass(frozen=True)
class Service:
    """A running embedded service, as ``service.json`` describes it.

    Attributes:
        base_url: HTTP base URL.
        ws_base_url: WebSocket base URL.
        api_key: Its key.
        pid: Its process.
        version: Version of speechlab that runs it.
        python: The interpreter that runs it.
    """

    base_url: str
    ws_base_url: str
    api_key: Secret
    pid: int
    version: str
    python: str

    @classmethod
    def read(cls, path: Path) -> Service | None:
        """Read a description; None if there is none that makes sense."""
        try:
            fields = json.loads(path.read_bytes())
            key = Secret(fields["api_key"])
            key.check()
            return cls(
                str(fields["base_url"]),
                str(fields["ws_base_url"]),
                key,
                int(fields["pid"]),
                str(fields["version"]),
                str(fields["python"]),
            )
        except (OSError, ValueError, KeyError, TypeError, ConfigurationError):
            return None

    def write(self, path: Path) -> None:
        """Write the description, readable for the user alone, all at once."""
        fields = {**vars(self), "api_key": self.api_key.reveal()}
        with whole_file(path) as draft:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(fields, file)

    def keep(self, path: Path) -> None:
        """Write the description of a service that this process has started, or end it."""
        try:
            self.write(path)
        except BaseException:
            # Nobody could find it; its process is our child, so that its number cannot be another's yet.
            os.kill(self.pid, signal.SIGTERM)
            raise

    def is_ours(self) -> bool:
        """Whether it runs the same code: another version, or another environment, may answer otherwise."""
        return self.version == package_version() and self.python == sys.executable

    def answers(self) -> bool:
        """Whether it is there and knows its key; a port may have passed to another program."""
        if not process_runs(self.pid):
            return False
        parts = urlsplit(self.base_url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_PROBE_S)
        try:
            headers = {"Authorization": f"Bearer {self.api_key.reveal()}"}
            connection.request("GET", parts.path.rstrip("/") + VOICES_PATH, headers=headers)
            reply = connection.getresponse()
            reply.read()
        except (TimeoutError, OSError, http.client.HTTPException):
            return False
        else:
            # 429 is an answer as well: it is there, and busy.
            return reply.status in {200, 429}
        finally:
            connection.close()


def process_runs(pid: int) -> bool:
    """Whether a process is there and has not ended; one that nobody has waited for yet has."""
    import psutil

    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


class StateDir:
    """The folder through which processes of a user find their service."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.service_file = path / "service.json"
        self.start_lock = path / "start.lock"
        self.log = path / "service.log"
        self.users = path / "users"
        self.data = path / "data"

    @classmethod
    def of_user(cls) -> StateDir:
        """The folder of this user: that of ``SPEECHLAB_STATE_DIR``, or one of the system."""
        configured = os.environ.get(STATE_DIR_VARIABLE)
        if configured:
            return cls(Path(configured).expanduser().absolute())
        import platformdirs

        # Not the runtime folder: on many machines without a desktop there is none, and it moves between sessions.
        return cls(platformdirs.user_state_path("speechlab"))

    def prepare(self) -> None:
        """Make the folders, closed to everybody else.

        Raises:
            ServiceStartError: They cannot be made, or belong to somebody else.
        """
        try:
            for folder in (self.path, self.users, self.data):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.name == "posix":
                if self.path.stat().st_uid != os.getuid():
                    raise ServiceStartError(self.advice("it belongs to another user"))
                self.path.chmod(0o700)
        except OSError as error:
            reason = self.advice(error.strerror or str(error))
            raise ServiceStartError(reason) from error

    def advice(self, reason: str) -> str:
        """Why the folder is of no use, and what to do."""
        return (
            f"the folder {str(self.path)!r} cannot be used: {reason}; set {STATE_DIR_VARIABLE} to a folder of "
            "your own"
        )


@dataclass(eq=False)
class _Hold:
    """The lock that shows that this process uses a service, and how many clients share it."""

    lock: Any
    path: Path
    clients: int = 0


_holds_lock = threading.Lock()
_holds: dict[Path, _Hold] = {}


@dataclass(eq=False)
class Lease:
    """One client's use of the embedded service.

    Attributes:
        service: The service.
        state: Where its files are.
        revived_at: When it was started again last, in seconds of ``time.monotonic``.
        trouble: Why it could not be started again.
    """

    service: Service
    state: StateDir
    revived_at: float = field(default=float("-inf"), repr=False)
    trouble: str = field(default="", repr=False)
    _open: bool = field(default=True, repr=False)

    @property
    def base_url(self) -> str:
        """HTTP base URL."""
        return self.service.base_url

    @property
    def ws_base_url(self) -> str:
        """WebSocket base URL."""
        return self.service.ws_base_url

    @property
    def api_key(self) -> Secret:
        """Its key."""
        return self.service.api_key

    def release(self) -> None:
        """Give it up; with the last one of this process its lock goes."""
        if self._open:
            self._open = False
            _let_go(self.state)

    def revive(self, pid: int) -> bool:
        """Start the service again if it has stopped.

        Args:
            pid: Its process when it could not be reached.

        Returns:
            Whether it is worth sending again.
        """
        if not self._open:
            return False
        from speechlab.client._embedded.revival import revived

        return revived(self, pid)

    def explain(self) -> str:
        """Why no answer may have come, and what to do."""
        if process_runs(self.service.pid):
            return f"the embedded service (process {self.service.pid}) runs; see its log, {self.state.log}"
        why = f" and was not started again: {self.trouble}" if self.trouble else ""
        return (
            f"the embedded service (process {self.service.pid}) has stopped{why}; call connect() for a new one, "
            f"and see {self.state.log} for why"
        )


def take_lease() -> Lease:
    """Find the embedded service of this user, or start it.

    Raises:
        ServiceStartError: It could not be started; the text says why and what to do.
    """
    from filelock import FileLock, Timeout

    state = StateDir.of_user()
    state.prepare()
    held = False
    try:
        # Before looking: a service whose last user is leaving must see that there is another one.
        _take_hold(state)
        held = True
        with FileLock(state.start_lock, timeout=LOCK_WAIT_S, mode=0o600):
            lease = Lease(found(state) or _started(state), state)
            held = False
            return lease
    except Timeout:
        reason = f"another process has been starting it for {LOCK_WAIT_S:.0f} seconds; see {state.log}"
        failure = ServiceStartError(f"the embedded service could not be started: {reason}")
    except OSError as error:  # a full disk, say
        failure = ServiceStartError(state.advice(error.strerror or str(error)))
    finally:
        if held:
            _let_go(state)
    raise failure


def embedded_settings(options: dict[str, Any]) -> Settings:
    """Settings for a client of the embedded service.

    Args:
        options: Options of the client.

    Raises:
        ServiceStartError: It could not be started.
    """
    lease = take_lease()
    try:
        return Settings(
            base_url=lease.base_url,
            ws_base_url=lease.ws_base_url,
            api_key=lease.api_key,
            lease=lease,
            **options,
        )
    except BaseException:
        lease.release()
        raise


def found(state: StateDir) -> Service | None:
    """The service that runs; a description that is stale is deleted. To be called with the start lock held."""
    service = Service.read(state.service_file)
    if service is not None and service.is_ours() and service.answers():
        return service
    state.service_file.unlink(missing_ok=True)
    return None


def _started(state: StateDir) -> Service:
    from speechlab.client._embedded.launch import launch

    service = launch(state)
    service.keep(state.service_file)
    return service


def _take_hold(state: StateDir) -> None:
    from filelock import FileLock

    with _holds_lock:
        hold = _holds.get(state.path)
        if hold is None:
            hold = _holds[state.path] = _Hold(*_locked_file(state, FileLock))
        hold.clients += 1


def _locked_file(state: StateDir, kind: Any) -> tuple[Any, Path]:
    path = state.users / f"{os.getpid()}-{secrets.token_hex(4)}.lock"
    lock = kind(path, timeout=10, mode=0o600, thread_local=False)
    lock.acquire()
    return lock, path


def _let_go(state: StateDir) -> None:
    with _holds_lock:
        hold = _holds.get(state.path)
        if hold is None:
            return
        hold.clients -= 1
        if hold.clients > 0:
            return
        del _holds[state.path]
        _drop(hold)


def _drop(hold: _Hold) -> None:
    with suppress(OSError):
        # Deleted while it is held: once it is free, another process could have taken it for its own.
        hold.path.unlink(missing_ok=True)
    with suppress(OSError, RuntimeError):
        hold.lock.release()


@atexit.register
def _drop_all() -> None:
    with _holds_lock:
        holds = list(_holds.values())
        _holds.clear()
    for hold in holds:
        _drop(hold)


@after_fork
def _renew_after_fork() -> None:
    """The child uses the service as well, but the lock is its parent's: it takes one of its own on its next need."""
    global _holds_lock  # noqa: PLW0603
    _holds_lock = threading.Lock()
    _holds.clear()
