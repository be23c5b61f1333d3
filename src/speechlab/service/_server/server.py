"""The service as a process: binding, the ready line, signals, and the end without users.

The users of an embedded service are counted by their lock files. The operating system releases the locks of a process
when it ends in any way, so a killed user counts as gone. The service tries to take each lock; a lock that it gets has
no user.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from filelock import FileLock, Timeout

from speechlab._platform import is_loopback
from speechlab.contract import WS_READ_MAX_BYTES, to_realtime_url
from speechlab.engines import describe_gpus, list_gpus, send_progress_to
from speechlab.errors import ConfigurationError, ServiceStartError, SpeechLabError, StoreError
from speechlab.service._accounts.database import Database
from speechlab.service._accounts.keys import KeyStore
from speechlab.service._app import create_app
from speechlab.service._config import UNIX, ServiceConfig
from speechlab.service._engines.health import limit_glibc_heaps
from speechlab.service._keys import make_key
from speechlab.service._logs import log, log_to_stderr
from speechlab.service._server.http import HttpProtocol
from speechlab.service._server.websocket import WebSocketProtocol

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from speechlab.service._state import ServiceState

_BACKLOG = 512
_MOST_FILES = 8_192
_MOST_CONNECTIONS = 4_096
_NEW_S = 3.0


@dataclass(frozen=True, slots=True)
class Ready:
    """The addresses and the key of a service."""

    base_url: str
    ws_base_url: str
    api_key: str = field(repr=False)
    key_was_made: bool = False

    def format_line(self, warnings: Sequence[str] = ()) -> str:
        """Return the line for stdout; it contains the key only if the service made the key itself."""
        fields: dict[str, Any] = {"base_url": self.base_url, "ws_base_url": self.ws_base_url}
        if warnings:
            fields["warnings"] = list(warnings)
        if self.key_was_made:
            fields["api_key"] = self.api_key
        return f"ready {json.dumps(fields)}"


class _ProgressLines:
    """Prints the progress of downloads for the program that waits for the ready line, at most twice a second."""

    def __init__(self) -> None:
        self._next = 0.0
        self._done = -1

    def print_progress(self, model: str, done: int, total: int) -> None:
        is_end = done == total != self._done
        if total and (is_end or time.monotonic() >= self._next):
            self._done = done
            self._next = time.monotonic() + 0.5
            sys.stdout.write(f"progress {json.dumps({'model': model, 'done': done, 'total': total})}\n")
            sys.stdout.flush()


class Server(uvicorn.Server):
    """uvicorn's server on a given socket, with a callback when it is ready and a clean exit."""

    def __init__(
        self, app: Starlette, config: ServiceConfig, listener: socket.socket, on_ready: Callable[[], None]
    ) -> None:
        backlog, most = _adjust_connection_limits(config.max_connections)
        http: Any = partial(
            HttpProtocol,
            header_timeout_s=config.header_timeout_s,
            max_connections=most,
            max_per_address=config.address_connections or max(1, most // 2),
        )
        super().__init__(
            uvicorn.Config(
                app,
                http=http,
                ws=WebSocketProtocol,
                backlog=backlog,
                ws_max_size=WS_READ_MAX_BYTES,
                ws_ping_interval=config.ws_ping_s,
                ws_ping_timeout=config.ws_ping_s,
                ws_per_message_deflate=False,
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=max(1, round(config.drain_s)),
            )
        )
        self._service: ServiceState = app.state.service
        self._drain_s, self._preload = config.drain_s, config.preload
        self._listener, self._on_ready = listener, on_ready
        self._loop: asyncio.AbstractEventLoop | None = None

    def run_in_this_thread(self) -> None:
        """Serve in this thread until :meth:`stop` is called."""
        try:
            self.run(sockets=[self._listener])
        finally:
            self._service.close()

    def stop(self) -> None:
        """Ask the server to finish; may be called from any thread."""
        self.should_exit = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended already
                self._loop.call_soon_threadsafe(lambda: None)  # it sleeps for long if its clock was replaced

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets=sockets)
        if self._preload:
            self._preloading = self._loop.create_task(self._service.readiness.preload_models())
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let syntheses under way finish, and then everything else.

        uvicorn closes WebSockets at once, which would lose the messages about to be sent. The port stays open
        meanwhile, so that new connections get the reason for their refusal.
        """
        began = time.monotonic()
        await self._service.in_flight.drain(self._drain_s, lambda: self.force_exit)
        remaining_s = self._drain_s - (time.monotonic() - began)
        self.config.timeout_graceful_shutdown = max(1, round(remaining_s))
        await super().shutdown(sockets=sockets)
        await self._service.disconnect_backend()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGTERM, SIGINT and SIGHUP, and exit with 0; uvicorn's own handler ends with the signal."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handled = [signal.SIGTERM, signal.SIGINT]
        if os.name == "posix" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
            handled.append(signal.SIGHUP)
        before = {number: signal.signal(number, self._on_signal) for number in handled}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: Any) -> None:
        self.force_exit = self.should_exit and number == signal.SIGINT
        self.should_exit = True


def bind_and_make_key(config: ServiceConfig) -> tuple[ServiceConfig, socket.socket, Ready]:
    """Bind the socket, and make a key if the settings have none."""
    is_new_key = not config.api_keys
    if is_new_key:
        if not is_loopback(config.host) and not _has_open_key(config):
            raise ServiceStartError(
                f"listening on {config.host!r} lets other machines in, so a key of yours is needed: give --api-key "
                f"or SPEECHLAB_SERVICE_API_KEY, make one with `speechlab keys create`, or listen on 127.0.0.1"
            )
        # The user who starts the service is its only user and its operator.
        key = make_key()
        config = config.model_copy(update={"api_keys": (key,), "operator_keys": (*config.operator_keys, key)})
    if config.host.startswith(UNIX):
        listener, base_url = _bind_unix(Path(config.host.removeprefix(UNIX))), config.host
        return config, listener, Ready(base_url, base_url, config.api_keys[0])
    listener = _bind_tcp(config.host, config.port)
    host = f"[{config.host}]" if ":" in config.host else config.host
    if config.host in {"0.0.0.0", "::"}:  # noqa: S104 - all addresses, including this machine's
        host = "127.0.0.1"
    base_url = f"http://{host}:{listener.getsockname()[1]}"
    # Print a generated key only on loopback; elsewhere the log may be public.
    prints_key = is_new_key and is_loopback(config.host)
    return config, listener, Ready(base_url, to_realtime_url(base_url), config.api_keys[0], prints_key)


def _has_open_key(config: ServiceConfig) -> bool:
    if config.data_dir is None:
        return False
    try:
        with contextlib.closing(Database(config.data_dir)) as database:
            return KeyStore(database).has_open_key()
    except StoreError as error:
        raise ServiceStartError(error.message) from error


def run_until_stopped(config: ServiceConfig, warnings: Sequence[str] = ()) -> None:
    """Run the service in this process until it is stopped; for a separate process.

    ``warnings`` of the settings are in its ready line, for the program that started it.
    Logs go to stderr. SIGTERM and SIGINT stop it after requests under way have finished, or after
    ``config.drain_s``. If an engine is then still computing, which cannot be interrupted, the process exits at once.
    The status is 0, or 3 if usage could be written neither to the ledger nor to the file next to it.
    """
    # Or it would look like a folder without users.
    if config.users_dir is not None and not config.users_dir.is_dir():
        raise ConfigurationError(
            f"the users folder {config.users_dir} does not exist; create it before the start"
        )
    limit_glibc_heaps()
    log_to_stderr(config.log_level)
    config, listener, ready = bind_and_make_key(config)
    with contextlib.closing(listener):
        try:
            with send_progress_to(_ProgressLines().print_progress):
                app = create_app(config)
        except StoreError as error:
            raise ServiceStartError(error.message) from error

        def on_ready() -> None:
            service = app.state.service
            recognizer, keys = service.engines.describe_recognizer(), service.keyring.ids
            log("ready", base_url=ready.base_url, recognizer=recognizer, keys=keys)
            sys.stdout.write(ready.format_line(warnings) + "\n")
            sys.stdout.flush()
            if list_gpus():  # the libraries that say whether they can use them are slow to import
                threading.Thread(target=lambda: log("gpu", found=describe_gpus()), daemon=True).start()

        server = Server(app, config, listener, on_ready)
        watch = UsersWatch(config.users_dir, config.idle_exit_s, server.stop) if config.users_dir else None
        if watch is not None:
            watch.start()
        server.run_in_this_thread()
        if watch is not None:
            watch.stop()
    database = app.state.service.database
    status = 3 if database is not None and database.lost else 0
    log("stopped")
    if app.state.service.engines.threads.busy:
        # It is not safe to end the interpreter while a thread computes in C.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    if status:
        sys.exit(status)


def _adjust_connection_limits(wanted: int) -> tuple[int, int]:
    """Maximum of connections that wait to be accepted, and of accepted connections.

    Together they stay below the limit of open files: an event loop that cannot accept a connection logs a traceback
    for each, and tries again at once.
    """
    if os.name != "posix":
        return _BACKLOG, wanted or _MOST_CONNECTIONS
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _MOST_FILES and threading.current_thread() is threading.main_thread():
        # Up to the user's own limit; other limits bound the use of the connections.
        soft = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    # Besides connections, a service opens models, workers and the ledger: up to 64 files.
    free = max(16, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 64)
    backlog = max(4, min(_BACKLOG, free // 4))
    return backlog, min(wanted or _MOST_CONNECTIONS, free - backlog)


def _bind_tcp(host: str, port: int) -> socket.socket:
    where = f"port {port} on {host}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ServiceStartError(
            f"{host!r} is not an address of this machine ({error.strerror}); try --host 127.0.0.1"
        ) from error
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            text = f"{where} is in use; stop the program that uses it, or give another --port (0 takes a free one)"
        elif error.errno == errno.EACCES:
            text = f"{where} may not be used by this user; choose a port above 1023 with --port"
        else:
            text = f"{where} cannot be used: {error.strerror}; choose others with --host and --port"
        raise ServiceStartError(text) from error
    listener.set_inheritable(False)
    return listener


def _bind_unix(path: Path) -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise ConfigurationError(f"Python has no {UNIX!r} sockets on this system; give an address and a port")
    listener = socket.socket(socket.AF_UNIX)
    try:
        if os.path.lexists(path):
            _remove_dead_socket(path, listener)
        listener.bind(str(path))
        path.chmod(0o660)  # for a proxy of the same group
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise ServiceStartError(f"the socket {path} cannot be made: {error.strerror or error}") from error
    except SpeechLabError:
        listener.close()
        raise
    return listener


def _remove_dead_socket(path: Path, probe: socket.socket) -> None:
    """Remove the socket of a service that was killed, and nothing else."""
    if not stat.S_ISSOCK(path.lstat().st_mode):
        raise ConfigurationError(f"{path} exists and is no socket; give the path of a socket after {UNIX!r}")
    if probe.connect_ex(str(path)) != errno.ECONNREFUSED:
        raise ServiceStartError(f"another service listens on {path}; stop it, or choose another path")
    path.unlink()


def count_users_and_remove_stale(folder: Path) -> int:
    """Count the lock files that are held, and delete the others."""
    return sum(_is_user_alive_else_remove(path) for path in folder.glob("*.lock"))


def _is_user_alive_else_remove(path: Path) -> bool:
    try:
        # A file this new may belong to a process that is about to lock it; one of the future is from another clock.
        if 0.0 <= time.time() - path.stat().st_mtime < _NEW_S:
            return True
        lock = FileLock(path, timeout=0)
        with lock:
            path.unlink(missing_ok=True)
    except Timeout:
        return True
    except FileNotFoundError:
        return False
    except OSError as error:
        # On Windows an open file cannot be deleted: it stays, and counts as gone.
        log("a user's lock file cannot be checked", level="warning", error=type(error).__name__)
        return not isinstance(error, PermissionError)
    return False


class UsersWatch:
    """Counts the users every second, and calls back after a time without users."""

    def __init__(self, folder: Path, idle_s: float, on_idle: Callable[[], None]) -> None:
        self._folder = folder
        self._idle_s = idle_s
        self._on_idle = on_idle
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch_users, name="speechlab-users", daemon=True)

    def start(self) -> None:
        """Start; the time without users counts from now."""
        logging.getLogger("filelock").setLevel(logging.WARNING)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(timeout=5)

    def _watch_users(self) -> None:
        used_at = time.monotonic()
        while not self._stop.wait(min(1.0, self._idle_s / 2)):
            with contextlib.suppress(OSError):
                if count_users_and_remove_stale(self._folder):
                    used_at = time.monotonic()
            if time.monotonic() - used_at >= self._idle_s:
                log("no users left", seconds=self._idle_s)
                self._on_idle()
                return
