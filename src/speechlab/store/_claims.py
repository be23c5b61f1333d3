"""Claims of processes on keys, so that no two processes make the same call.

A claim is a lock on one byte of a file; the key determines the position. The operating system releases the locks of a
process when it ends in any way, so a claim never outlives its process. Nothing is written, and nothing is renewed.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import zlib
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path

from speechlab._platform import register_after_fork

# Number of positions in the file, which stays empty. Two keys with one position wait for each other.
_POSITIONS = 1 << 30
_LOCKED_ERRNOS = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}


class _ClaimFile:
    """The claims of this process on a store; one object, as closing the file anywhere releases all its locks."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._taken: set[int] = set()
        self._file = -1

    def claim_place(self, place: int) -> bool:
        with self._lock:
            if place in self._taken:
                return False
            if self._lock_or_report_refusal(place):
                self._close_if_idle()
                return False
            self._taken.add(place)
            return True

    def _lock_or_report_refusal(self, place: int) -> bool:
        """Lock a place unless another process has locked it. On file systems without locks, this always succeeds."""
        try:
            if self._file < 0:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            return False
        try:
            _lock_byte(self._file, place)
        except OSError as error:
            return error.errno in _LOCKED_ERRNOS
        return False

    def release_places(self, places: Iterable[int]) -> None:
        with self._lock:
            for place in self._taken.intersection(places):
                self._taken.remove(place)
                if self._file >= 0:
                    with suppress(OSError):
                        _unlock_byte(self._file, place)
            self._close_if_idle()

    def _close_if_idle(self) -> None:
        if not self._taken and self._file >= 0:
            os.close(self._file)
            self._file = -1


if sys.platform == "win32":
    import msvcrt

    def _lock_byte(file: int, place: int) -> None:
        os.lseek(file, place, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

    def _unlock_byte(file: int, place: int) -> None:
        os.lseek(file, place, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock_byte(file: int, place: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)

    def _unlock_byte(file: int, place: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, place)


class Claims:
    """The claims of one user of a store. A user is a run; a process may have several runs."""

    def __init__(self, path: Path) -> None:
        with _files_lock:
            self._file = _files.setdefault(path.resolve(), _ClaimFile(path))
        self._taken: dict[str, int] = {}

    def claim_key(self, key: str) -> bool:
        """Claim a key. Return False if another user or process has claimed it."""
        place = zlib.crc32(key.encode()) % _POSITIONS
        if not self._file.claim_place(place):
            return False
        self._taken[key] = place
        return True

    def release_keys(self, keys: Iterable[str]) -> None:
        """Release claims. Keys without a claim of this user are ignored."""
        if places := [self._taken.pop(key) for key in list(keys) if key in self._taken]:
            self._file.release_places(places)

    @property
    def keys(self) -> AbstractSet[str]:
        """The claimed keys."""
        return self._taken.keys()


_files: dict[Path, _ClaimFile] = {}
_files_lock = threading.Lock()


@register_after_fork
def _forget_claims_after_fork() -> None:
    # the locks belong to the parent; the child's copy of the open file stays open, which does not affect them
    global _files_lock  # noqa: PLW0603 - a forked child needs its own
    _files_lock = threading.Lock()
    _files.clear()
