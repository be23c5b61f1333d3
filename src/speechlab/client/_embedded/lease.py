"""A client's use of the embedded service: find it, start it, restart it after a crash.

It is a process of its own, shared by all notebooks of a user, and ends when its last user has gone. Started again, it
comes back at the same address and with the same key, so that clients that go on need not know; what was sent to the
one that stopped is not sent again by this.
"""

from __future__ import annotations

import atexit
import os
import secrets
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from speechlab._platform import after_fork
from speechlab.client._embedded.launch import launch
from speechlab.client._embedded.state import EmbeddedService, StateDir, process_runs
from speechlab.client._events import logger
from speechlab.errors import ServiceStartError

if TYPE_CHECKING:
    from pathlib import Path

    from speechlab.client._secret import Secret

_LOCK_WAIT_S = 180.0
_PAUSE_S = 60.0
"""Seconds within which it is not started a second time, so that one that keeps on failing is left alone."""


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

    service: EmbeddedService
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
        return _revived(self, pid)

    def explain(self) -> str:
        """Text for errors: why there may be no answer, and what to do."""
        if process_runs(self.service.pid):
            return f"the embedded service (process {self.service.pid}) runs; see its log, {self.state.log}"
        why = f" and was not started again: {self.trouble}" if self.trouble else ""
        return (
            f"the embedded service (process {self.service.pid}) has stopped{why}; call connect() for a new one, "
            f"and see {self.state.log} for why"
        )


def take_lease(engines: str = "") -> Lease:
    """Find the embedded service of this user, or start it.

    Args:
        engines: Options of its engines, as JSON; nothing for those that are usual.

    Raises:
        ServiceStartError: It could not be started; the text says why and what to do.
    """
    from filelock import FileLock, Timeout

    state = StateDir.of_user(engines)
    state.prepare()
    held = False
    try:
        # Before looking: a service whose last user is leaving must see that there is another one.
        _take_hold(state)
        held = True
        with FileLock(state.start_lock, timeout=_LOCK_WAIT_S, mode=0o600):
            lease = Lease(_running(state) or _started(state), state)
            held = False
            return lease
    except Timeout:
        reason = f"another process has been starting it for {_LOCK_WAIT_S:.0f} seconds; see {state.log}"
        failure = ServiceStartError(f"the embedded service could not be started: {reason}")
    except OSError as error:  # a full disk, say
        failure = ServiceStartError(state.advice(error.strerror or str(error)))
    finally:
        if held:
            _let_go(state)
    raise failure


def _running(state: StateDir) -> EmbeddedService | None:
    """The running service; a stale description is deleted. Call it with the start lock held."""
    service = EmbeddedService.read(state.service_file)
    if service is not None and service.is_ours() and service.answers():
        return service
    state.service_file.unlink(missing_ok=True)
    return None


def _started(state: StateDir) -> EmbeddedService:
    service = launch(state)
    service.keep(state.service_file)
    return service


def _revived(lease: Lease, pid: int) -> bool:
    """Start the service again if its process has ended; may take as long as a start does.

    Args:
        lease: The use of it by a client that could not reach it.
        pid: Its process at that time.

    Returns:
        Whether it is there again, started by this process or by another one. If not, ``lease.trouble`` may say why.
    """
    from filelock import FileLock, Timeout

    before, state = lease.service, lease.state
    if before.pid != pid:
        return True  # another call has seen to it meanwhile
    if process_runs(pid):
        return False
    try:
        # The lock of every start: of many calls, threads and notebooks one starts it, and the others find it.
        with FileLock(state.start_lock, timeout=_LOCK_WAIT_S, mode=0o600):
            service = _running(state)
            if service is None:
                if time.monotonic() - lease.revived_at < _PAUSE_S:
                    return False
                lease.revived_at = time.monotonic()
                logger.warning(
                    "the embedded service (process %d) has stopped; starting it again (its log: %s)",
                    before.pid,
                    state.log,
                )
                service = launch(state, before)
                service.keep(state.service_file)
                logger.warning("the embedded service runs again (process %d)", service.pid)
    except (ServiceStartError, Timeout, OSError) as error:
        lease.trouble = str(error)
        logger.warning("the embedded service could not be started again: %s", error)
        return False
    if service.base_url != before.base_url or service.api_key.reveal() != before.api_key.reveal():
        lease.trouble = f"another one runs at {service.base_url}"
        return False
    lease.service, lease.trouble = service, ""
    return True


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
