"""The folder through which the processes of a user share one embedded service.

Only the user may read the folder:

- ``service.json`` contains the address of the service and its key;
- ``start.lock`` is held during a lookup and a start, so that two notebooks never start two services;
- ``users/<pid>-<random>.lock`` is held by each process that uses the service. The operating system releases a lock
  when its process ends in any way, and the service stops when none is held any more.

A service with other settings than the usual ones has a folder of its own in it: of other engines, other
``SPEECHLAB_SERVICE_*``, or another file of engines, also after it was edited. So no client is given a service that
was started with other settings than its own.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from speechlab._files import write_atomically
from speechlab._platform import ENGINES_FILE_VARIABLE, find_engines_file, get_package_version
from speechlab.client._secret import Secret
from speechlab.contract import VOICES_PATH
from speechlab.errors import ConfigurationError, ServiceStartError

STATE_DIR_VARIABLE = "SPEECHLAB_STATE_DIR"
SERVICE_PREFIX = "SPEECHLAB_SERVICE_"
# A key from the environment would not be on the ready line, and only this process needs one.
KEY_VARIABLES = (f"{SERVICE_PREFIX}API_KEY", f"{SERVICE_PREFIX}API_KEYS")
_PROBE_S = 5.0
_PROBE_BYTES = 8 << 20


@dataclass(frozen=True)
class EmbeddedService:
    """A running embedded service, as ``service.json`` describes it."""

    base_url: str
    ws_base_url: str
    api_key: Secret
    pid: int
    version: str
    environment: str

    @classmethod
    def read(cls, path: Path) -> EmbeddedService | None:
        """Read a description; None if it is missing or invalid."""
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
                str(fields["environment"]),
            )
        except (OSError, ValueError, KeyError, TypeError, ConfigurationError):
            return None

    def write(self, path: Path) -> None:
        """Write the description in one step, readable for the user alone."""
        fields = {**vars(self), "api_key": self.api_key.reveal()}
        with write_atomically(path) as draft:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(fields, file)

    def is_listening(self) -> bool:
        """Return whether its process, of this user, is the one that listens at its port."""
        import psutil

        port = urlsplit(self.base_url).port
        try:
            process = psutil.Process(self.pid)
            if os.name == "posix" and process.uids().real != os.getuid():
                return False
            connections = process.net_connections("tcp")
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:  # of a system that does not show them
            return is_process_running(self.pid)
        return any(one.status == psutil.CONN_LISTEN and one.laddr.port == port for one in connections)

    def is_reachable_with_key(self) -> bool:
        """Return whether it accepts its key; another program may use its port by now, and must not get the key."""
        address = urlsplit(self.base_url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=_PROBE_S)
        try:
            connection.connect()
            if not self.is_listening():
                return False
            headers = {"Authorization": f"Bearer {self.api_key.reveal()}"}
            connection.request("GET", address.path.rstrip("/") + VOICES_PATH, headers=headers)
            reply = connection.getresponse()
            reply.read(_PROBE_BYTES)
        except (TimeoutError, OSError, http.client.HTTPException):
            return False
        else:
            # 429 counts as well: the service runs, and is busy.
            return reply.status in {200, 429}
        finally:
            connection.close()


def is_process_running(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    import psutil

    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


class StateDir:
    """The folder by which the processes of a user find their service: ``SPEECHLAB_STATE_DIR``, or the system's."""

    def __init__(self, engines: str) -> None:
        configured = os.environ.get(STATE_DIR_VARIABLE)
        if configured:
            path = Path(configured).expanduser().absolute()
        else:
            import platformdirs

            # Not the runtime folder: machines without a desktop often have none, and it changes between logins.
            try:
                path = platformdirs.user_state_path("speechlab")
            except RuntimeError as error:
                message = (
                    f"this user has no home folder; set {STATE_DIR_VARIABLE} to a folder of the user's own"
                )
                raise ServiceStartError(message) from error
        self.settings = _collect_settings(engines)
        """The variables of the environment that are settings of the service."""
        if self.settings:
            path = path / f"settings-{_digest_settings(self.settings)}"
        self.path = path
        self.service_file = path / "service.json"
        self.start_lock = path / "start.lock"
        self.log = path / "service.log"
        self.users = path / "users"
        # A service of another version or environment may still run, and nobody else may use its data.
        environment = f"{get_package_version()} {sys.prefix}"
        self.data = path / f"data-{hashlib.sha256(environment.encode()).hexdigest()[:16]}"

    def create_folders(self) -> None:
        """Make the folders, accessible for the user alone."""
        try:
            for folder in (self.path, self.users, self.data):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.name == "posix":
                if self.path.stat().st_uid != os.getuid():
                    raise ServiceStartError(self.describe_problem("it belongs to another user"))
                self.path.chmod(0o700)
        except OSError as error:
            reason = self.describe_problem(error.strerror or str(error))
            raise ServiceStartError(reason) from error

    def describe_problem(self, reason: str) -> str:
        """The reason why the folder cannot be used, and advice, for error messages."""
        return (
            f"the folder {str(self.path)!r} cannot be used: {reason}; set {STATE_DIR_VARIABLE} to a folder of "
            "your own"
        )


def _collect_settings(engines: str) -> dict[str, str]:
    settings = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(SERVICE_PREFIX) and name not in KEY_VARIABLES and value
    }
    if engines:
        settings[f"{SERVICE_PREFIX}ENGINES"] = engines
    if (file := find_engines_file()) is not None:
        settings[ENGINES_FILE_VARIABLE] = str(file)
    return settings


def _digest_settings(settings: Mapping[str, str]) -> str:
    """Return a name for settings and the file of engines that they name; a missing one is refused at the start."""
    try:
        file = Path(settings[ENGINES_FILE_VARIABLE]).read_bytes()
    except (KeyError, OSError):
        file = b""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode() + file).hexdigest()[:16]
