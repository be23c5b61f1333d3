"""What the service holds for its peers: bytes in one budget, and the pace of those who send and read.

Bodies under way, decoded recordings and replies that wait for their readers count in the budget, with a share for
each key. Beyond a mebibyte they are in a file without a name, so that a slow peer costs disk, not memory; a killed
service leaves nothing. A pace is measured over the last seconds: a fast start is no credit for a trickle.
"""

from __future__ import annotations

import asyncio
import mmap
import tempfile
import threading
from collections import Counter, deque
from collections.abc import Awaitable
from pathlib import Path
from typing import IO, TypeVar

from speechlab.service._faults import ClientGone, Fault
from speechlab.service._logs import log

# Size up to which something is held in memory, and of the pieces in which the rest is written.
BLOCK_BYTES = 1024 * 1024


class Shares:
    """Amounts in use by key, up to a common limit; a key below its share is admitted beyond it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._used: Counter[str] = Counter()

    @property
    def total(self) -> int:
        return self._used.total()

    def try_take(self, owner: str, amount: int = 1) -> bool:
        """Use an amount, if there is room for it or the key stays within its share: no key can exclude others."""
        keys, used = len(self._used.keys() | {owner}), self._used[owner] + amount
        room = self.total + amount <= self.limit or (keys > 1 and used <= max(1, self.limit // keys))
        if room:
            self._used[owner] = used
        elif not self._used[owner]:
            del self._used[owner]
        return room

    def give_back(self, owner: str, amount: int = 1) -> None:
        self._used[owner] -= amount
        if not self._used[owner]:
            del self._used[owner]


class BytesBudget:
    """The budget of bytes; for all threads."""

    def __init__(self, limit: int, folder: Path | None = None) -> None:
        self.limit = limit
        self._shares = Shares(limit)
        self.folder = folder
        self._lock = threading.Lock()
        self._given_back = 0

    @property
    def held(self) -> int:
        with self._lock:
            return self._shares.total

    def pop_freed_byte_count(self) -> int:
        """Number of bytes given back since the last call."""
        with self._lock:
            amount, self._given_back = self._given_back, 0
        return amount

    def open_held_bytes(self, owner: str, service: str) -> HeldBytes:
        return HeldBytes(self, owner, service)

    def reserve_or_release_bytes(self, owner: str, amount: int, service: str) -> None:
        """Count bytes, or uncount a negative number of them."""
        with self._lock:
            if amount < 0:
                self._given_back -= amount
                self._shares.give_back(owner, -amount)
            elif not self._shares.try_take(owner, amount):
                message = "the service holds as many bytes as it may (held_bytes); try again later"
                raise Fault("ErrRateLimited", message, service, "held_bytes", headers={"Retry-After": "5"})


class HeldBytes:
    """The bytes of one body, recording or reply; written once, then read. Used by one thread at a time."""

    def __init__(self, budget: BytesBudget, owner: str, service: str) -> None:
        self._budget = budget
        self._owner = owner
        self._service = service
        self._counted = 0
        self._memory = bytearray()
        self._file: IO[bytes] | None = None
        self._closed = False
        self._lock = threading.Lock()
        self.size = 0

    def reserve_total(self, size: int) -> None:
        """Count bytes before they come, such as those of a declared length."""
        if size > self._counted:
            self._budget.reserve_or_release_bytes(self._owner, size - self._counted, self._service)
            self._counted = size

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes. Blocks beyond :data:`BLOCK_BYTES`; then for worker threads."""
        with self._lock:
            self._raise_if_closed()
            self.reserve_total(self.size + len(data))
            self._memory += data
            self.size += len(data)
            if self._file is not None or self.size > BLOCK_BYTES:
                self._spill_to_file()

    def read(self, start: int = 0, size: int | None = None) -> bytes:
        """Return some bytes, by default all of them. Blocks for those in a file."""
        with self._lock:
            self._raise_if_closed()
            end = self.size if size is None else min(self.size, start + size)
            if self._file is None:
                return bytes(self._memory[start:end])
            self._file.seek(start)
            return self._file.read(end - start)

    def view(self) -> memoryview:
        """Return all bytes without reading them, from a file as pages of it. They are valid as long as the view."""
        with self._lock:
            self._raise_if_closed()
            if self._file is None:
                return memoryview(self._memory)
            return memoryview(mmap.mmap(self._file.fileno(), self.size, access=mmap.ACCESS_COPY))

    def close(self) -> None:
        """Give the bytes up; further calls have no effect."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._memory = bytearray()
            if self._file is not None:
                self._file.close()
            self._budget.reserve_or_release_bytes(self._owner, -self._counted, self._service)

    def _raise_if_closed(self) -> None:
        if self._closed:
            raise ClientGone

    def _spill_to_file(self) -> None:
        try:
            if self._file is None:
                # It has no name, and disappears with its last use.
                self._file = tempfile.TemporaryFile(dir=self._budget.folder)  # noqa: SIM115 - closed with this
            self._file.write(self._memory)
            self._file.flush()
        except OSError as error:
            log("bytes cannot be held", level="error", reason=error.strerror)
            message, headers = "there is no room on the disk now; try again later", {"Retry-After": "30"}
            raise Fault("ErrOverloaded", message, self._service, "held_bytes", headers=headers) from error
        self._memory = bytearray()


T = TypeVar("T")

# Bytes per second of the slowest sender of a body.
SENDER_BYTES_S = 4_096
# Bytes per second of the slowest reader of a reply: a third of the rate of Opus.
READER_BYTES_S = 1_024
# Parts of the window; bytes within one count as moved at once.
_SLOTS = 32


class Pace:
    """The pace of one sender or reader. Only the time counts in which the service waits for it."""

    def __init__(self, window_s: float, least_bytes_s: int) -> None:
        self._window_s = window_s
        self._least = max(1, round(window_s * least_bytes_s))
        self._waited_s = 0.0
        self._since_s = 0.0  # up to here the peer was fast enough
        self._moved: deque[list[float]] = deque()
        self._moved_bytes = 0.0

    async def wait_within_pace(self, step: Awaitable[T]) -> T:
        now = asyncio.get_running_loop().time
        started = now()
        try:
            async with asyncio.timeout(self._since_s + self._window_s - self._waited_s):
                return await step
        finally:
            self._waited_s += now() - started

    def count_bytes(self, count: int) -> None:
        """Count bytes that the peer has sent or read."""
        if self._moved and self._waited_s - self._moved[-1][0] < self._window_s / _SLOTS:
            self._moved[-1][1] += count
        else:
            self._moved.append([self._waited_s, count])
        self._moved_bytes += count
        while self._moved_bytes - self._moved[0][1] >= self._least:
            self._moved_bytes -= self._moved.popleft()[1]
        if self._moved_bytes >= self._least:
            self._since_s = self._moved[0][0]
