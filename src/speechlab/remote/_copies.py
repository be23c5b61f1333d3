"""Copies of files on this machine, as many as fit: each is used again while the original stays the same."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

from speechlab._platform import register_after_fork

# Bytes on disk, and copies, above which those go that were not used for a while.
_MAX_BYTES = 1 << 30
_MAX_COPIES = 20_000
_IDLE_S = 60.0
# Seconds in which a copy is used again without asking whether the original has changed.
_FRESH_S = 5.0
_UNSAFE = re.compile(r"[^\w.-]+")
_MAX_NAME = 100


@dataclass
class _Copy:
    path: Path
    size: int
    stamp: Hashable
    checked: float
    used: float


class Copies:
    """The copies of this process, in a folder that goes with it."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Begin anew, as in the child of a fork, whose parent keeps its folder."""
        self._lock = Lock()
        # A lock is gone with the last thread that holds it or waits for it.
        self._turns: WeakValueDictionary[str, Lock] = WeakValueDictionary()
        self._copies: OrderedDict[str, _Copy] = OrderedDict()
        self._size = 0  # of all copies, in bytes
        self._numbers = count(1)
        self._folder: Path | None = None

    def keep(
        self,
        address: str,
        name: str,
        find_stamp: Callable[[], Hashable],
        fetch: Callable[[Path], None],
        fresh_s: float | None = None,
    ) -> Path:
        """Return the copy of a file, which ``fetch`` writes; a stamp of None says that it may have changed."""
        fresh_s = _FRESH_S if fresh_s is None else fresh_s
        with self._lock:
            turn = self._turns.setdefault(address, Lock())
        with turn:
            now = time.monotonic()
            known = self._copies.get(address)
            stamp: Hashable = None
            if known is not None and now - known.checked >= fresh_s:
                stamp = find_stamp()
                if stamp is not None and stamp == known.stamp:
                    known.checked = now
                else:
                    known = None
            if known is None:
                known = self._fetch(address, name, find_stamp() if stamp is None else stamp, fetch)
            with self._lock:
                known.used = time.monotonic()
                if address in self._copies:
                    self._copies.move_to_end(address)
                self._drop_idle()
            return known.path

    def _fetch(self, address: str, name: str, stamp: Hashable, fetch: Callable[[Path], None]) -> _Copy:
        with self._lock:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="speechlab-remote-"))
                atexit.register(_remove_folder, self._folder, os.getpid())
            # A name of its own: whoever reads the copy before keeps it.
            place = self._folder / str(next(self._numbers))
        place.mkdir()
        path = place / (_UNSAFE.sub("_", name).strip(".")[-_MAX_NAME:] or "file")
        try:
            fetch(path)
            size = path.stat().st_size
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        now = time.monotonic()
        with self._lock:
            if (old := self._copies.pop(address, None)) is not None:
                self._size -= old.size
                shutil.rmtree(old.path.parent, ignore_errors=True)
            self._size += size
            copy = self._copies[address] = _Copy(path, size, stamp, now, now)
        return copy

    def _drop_idle(self) -> None:
        """Remove the copies that were not used for the longest time, as far as there are too many."""
        while self._size > _MAX_BYTES or len(self._copies) > _MAX_COPIES:
            address, copy = next(iter(self._copies.items()))
            if time.monotonic() - copy.used < _IDLE_S:
                return
            self._size -= copy.size
            del self._copies[address]
            shutil.rmtree(copy.path.parent, ignore_errors=True)


def _remove_folder(folder: Path, pid: int) -> None:
    if os.getpid() == pid:  # not in a fork
        with suppress(OSError):
            shutil.rmtree(folder)


COPIES = Copies()
register_after_fork(COPIES.renew)
