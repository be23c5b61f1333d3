"""The folder through which processes of a user share one embedded service.

The folder is closed to everybody else:

- ``service.json`` tells where the service is, and its key;
- ``start.lock`` is held while somebody looks or starts, so that two notebooks never start two;
- ``users/<pid>-<random>.lock`` is held by each process that uses it. The operating system gives a lock back however
  its process ends, and the service stops when none is held any more.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from speechlab._files import whole_file
from speechlab._platform import package_version
from speechlab.client._secret import Secret
from speechlab.contract import VOICES_PATH
from speechlab.errors import ConfigurationError, ServiceStartError

STATE_DIR_VARIABLE = "SPEECHLAB_STATE_DIR"
_PROBE_S = 5.0


@dataclass(frozen=True)
class EmbeddedService:
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
    def read(cls, path: Path) -> EmbeddedService | None:
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
        """True if it runs this version of speechlab in this environment; others may answer otherwise."""
        return self.version == package_version() and self.python == sys.executable

    def answers(self) -> bool:
        """True if it answers to its key; its port may have passed to another program."""
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
    """True if a process runs; a zombie does not."""
    import psutil

    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


class StateDir:
    """The folder through which processes of a user find their service.

    Args:
        path: The folder.
        engines: Options of the engines, as JSON; nothing for those that are usual.
    """

    def __init__(self, path: Path, engines: str = "") -> None:
        self.path = path
        self.engines = engines
        self.service_file = path / "service.json"
        self.start_lock = path / "start.lock"
        self.log = path / "service.log"
        self.users = path / "users"
        self.data = path / "data"

    @classmethod
    def of_user(cls, engines: str = "") -> StateDir:
        """The folder of this user: that of ``SPEECHLAB_STATE_DIR``, or one of the system.

        Args:
            engines: Options of the engines, as JSON; a service with such options has a folder within that folder.
        """
        configured = os.environ.get(STATE_DIR_VARIABLE)
        if configured:
            path = Path(configured).expanduser().absolute()
        else:
            import platformdirs

            # Not the runtime folder: on many machines without a desktop there is none, and it moves between sessions.
            path = platformdirs.user_state_path("speechlab")
        if engines:
            path = path / f"engines-{hashlib.sha256(engines.encode()).hexdigest()[:16]}"
        return cls(path, engines)

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
        """Text for errors: why the folder cannot be used, and what to do."""
        return (
            f"the folder {str(self.path)!r} cannot be used: {reason}; set {STATE_DIR_VARIABLE} to a folder of "
            "your own"
        )
