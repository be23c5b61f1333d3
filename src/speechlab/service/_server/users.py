"""Users of an embedded service, counted by their lock files.

The operating system releases the locks of a process when it ends in any way, so a killed user counts as gone. The
service tries to take each lock; a lock that it gets has no user.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from speechlab.service._logs import log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_PERIOD_S = 1.0
# A file this new may belong to a process that is about to lock it.
_GRACE_S = 3.0


def living_users(folder: Path) -> int:
    """Count the lock files that are held, and delete the others."""
    return sum(_is_held(path) for path in folder.glob("*.lock"))


def _is_held(path: Path) -> bool:
    try:
        if time.time() - path.stat().st_mtime < _GRACE_S:
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
        self._thread = threading.Thread(target=self._watch, name="speechlab-users", daemon=True)

    def start(self) -> None:
        """Start; the time without users counts from now."""
        logging.getLogger("filelock").setLevel(logging.WARNING)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(timeout=5)

    def _watch(self) -> None:
        used_at = time.monotonic()
        while not self._stop.wait(min(_PERIOD_S, self._idle_s / 2)):
            with suppress(OSError):
                if living_users(self._folder):
                    used_at = time.monotonic()
            if time.monotonic() - used_at >= self._idle_s:
                log("no users left", seconds=self._idle_s)
                self._on_idle()
                return
