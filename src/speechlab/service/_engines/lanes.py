"""Blocking engines behind an event loop: one lane for each engine, and one shared limit for the heavy ones.

A lane admits a limited number of requests. It gives a few requests of each key a slot, and the engine to one request
at a time; the module ``sharing`` decides to which. A synthesis releases the engine between two pieces, so that short
texts do not wait for long ones, nor one key for another. A slow reader gives up its slot, so it does not delay
others. An engine that cannot be shared between pieces makes its pieces ahead of the reader instead, up to a limit. A
thread cannot be interrupted: the engine is free when its thread has ended, even after a cancellation.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from speechlab.engines import call_at_checkpoints
from speechlab.service._engines.sharing import EngineUse, FairTurns, Places
from speechlab.service._faults import Fault
from speechlab.service._held_bytes import Shares

if TYPE_CHECKING:
    from speechlab.service._engines.threads import Threads
    from speechlab.service._providers import ServedEngine

T = TypeVar("T")

# Seconds for a piece from which a reader is slow.
_SLOW_READER_S = 0.5
# Expected seconds up to which a request does not wait for the long requests of its own key.
_SHORT_REQUEST_S = 10.0
# Maximum of pieces that an engine makes ahead of its readers, for one request; for tokens, of all requests.
_MAX_AHEAD = 4096


@dataclass(slots=True)
class Admission:
    """One admitted request: its slot, and its times of waiting and computing, in seconds.

    The slot is released and taken again as often as needed. Work of the service itself needs none, and has no places.
    """

    claim: EngineUse = field(default_factory=EngineUse)
    places: Places | None = None
    admitted: float = field(default_factory=time.monotonic)
    queue_s: float = 0.0
    engine_s: float = 0.0
    has_slot: bool = False
    left: bool = False
    begun: bool = False
    first_s: float | None = None

    async def take_slot(self) -> None:
        """Wait for the slot, unless the request has it."""
        if self.places is not None and not self.has_slot:
            await self.places.wait_for_place(self.claim)
            self.has_slot = True

    def release_slot(self) -> None:
        """Release the slot, if the request has it."""
        if self.places is not None and self.has_slot:
            self.has_slot = False
            self.places.release_place(self.claim)

    @contextlib.contextmanager
    def count_engine_time(self) -> Iterator[None]:
        """Count the time of the block as computing."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.engine_s += time.monotonic() - started


class _ClientLeft(Exception):  # noqa: N818 - raised for a client that waits no more
    """The client of a request has left."""


class _End:
    """The end of an iterator, as a value, since StopIteration cannot pass through a future."""


_END = _End()


class EngineLane:
    """The queue of one engine."""

    def __init__(
        self, entry: ServedEngine, threads: Threads, turns: FairTurns, *, concurrency: int, queue_limit: int
    ) -> None:
        self.entry = entry
        self._threads = threads
        self._turns = turns
        self.concurrency = concurrency
        self._long, self._short = Places(concurrency), Places(concurrency)
        self._admitted = Shares(queue_limit)
        self._engine: Any = None
        self._creating = threading.Lock()
        self._worked = False
        self._begun = 0
        self._used_at = time.monotonic()

    @property
    def admitted(self) -> int:
        """Number of admitted requests, waiting or working."""
        return self._admitted.total

    @property
    def waiting(self) -> int:
        """Number of requests that have not had a turn yet."""
        return self.admitted - self._begun

    @property
    def moved_at(self) -> float:
        """Time of ``time.monotonic`` at which its engine, or one that shares its turns, last made a step."""
        return self._turns.moved

    @property
    def has_engine(self) -> bool:
        """Whether the engine object exists."""
        return self._engine is not None

    @property
    def model(self) -> str:
        """Id of the engine's model, or empty while there is no engine object."""
        return str(getattr(self._engine, "model", ""))

    def build_headers(self) -> dict[str, str]:
        """Headers of a reply that name its engine and model."""
        return {
            "X-Speechlab-Provider": self.entry.name,
            "X-Speechlab-Model": str(self.get_or_create_engine().model),
        }

    def get_or_create_engine(self) -> Any:
        """Return the engine object, made on first use. Blocks; for worker threads."""
        with self._creating:
            if self._engine is None:
                self._engine = self.entry.create()
            return self._engine

    async def unload_if_idle(self, idle_s: float) -> bool:
        """Drop an engine after ``idle_s`` seconds without use; the next use makes it again.

        A lookup of its voices or its readiness is no use. An engine that has never worked holds no model, and stays.
        """
        if (
            self._engine is None
            or not self._worked
            or self.admitted
            or time.monotonic() - self._used_at < idle_s
        ):
            return False
        claim = EngineUse()
        await self._turns.wait_for_turn(claim)
        future = self._threads.start_task(self._drop_and_close_engine)
        future.add_done_callback(lambda _: self._turns.end_turn(claim))
        await asyncio.shield(future)
        return True

    def _drop_and_close_engine(self) -> None:
        with self._creating:
            engine, self._engine, self._worked = self._engine, None, False
        getattr(engine, "close", lambda: None)()

    @contextlib.asynccontextmanager
    async def admit_request(
        self, operation: str, owner: str = "", size_s: float = math.inf
    ) -> AsyncIterator[Admission]:
        """Admit a request, and wait for its slot; the short ones of a key have slots of their own."""
        if not self._admitted.try_take(owner):
            full = f"the queue of the engine {self.entry.name!r} is full ({self._admitted.limit} requests)"
            message = f"{full}; try again later"
            raise Fault("ErrRateLimited", message, operation, "capacity", headers={"Retry-After": "2"})
        self._used_at = time.monotonic()
        admission = Admission(
            EngineUse(owner, size_s), self._short if size_s <= _SHORT_REQUEST_S else self._long
        )
        try:
            await admission.take_slot()
            admission.queue_s = time.monotonic() - admission.admitted
            yield admission
        finally:
            admission.left = True
            self._begun -= admission.begun
            admission.release_slot()
            self._admitted.give_back(owner)
            self._used_at = time.monotonic()

    async def run_task(self, admission: Admission, task: Callable[[], T]) -> T:
        """Run a task that uses the engine in a thread, once the engine is free."""
        since = time.monotonic()
        await self._turns.wait_for_turn(admission.claim)
        admission.queue_s += time.monotonic() - since
        self._count_admission_once(admission)
        future = self._threads.start_task(self._make_task_interruptible(admission, task))
        future.add_done_callback(lambda _: self._turns.end_turn(admission.claim))
        with admission.count_engine_time():
            return await asyncio.shield(future)

    def _count_admission_once(self, admission: Admission) -> None:
        if not admission.begun and admission.places is not None:
            admission.begun = True
            self._begun += 1

    def _make_task_interruptible(self, admission: Admission, task: Callable[[], T]) -> Callable[[], T]:
        """Yield to other requests at the engine's checkpoints, and end there if the client has left."""
        loop = asyncio.get_running_loop()

        def on_checkpoint() -> None:
            self._turns.moved = time.monotonic()
            if admission.left:
                raise _ClientLeft
            if self._turns.is_contended:
                since = time.monotonic()
                asyncio.run_coroutine_threadsafe(self._turns.yield_turn(admission.claim), loop).result()
                waited = time.monotonic() - since
                admission.queue_s += waited
                admission.engine_s -= waited

        def run_interruptible() -> T:
            self._worked = True
            with call_at_checkpoints(on_checkpoint):
                return task()

        return run_interruptible

    async def iterate_pieces(
        self, admission: Admission, make: Callable[[], Iterator[T]], *, whole: bool = False
    ) -> AsyncGenerator[T]:
        """Read from a blocking iterator, one piece at a time; the iterator is closed in any case."""
        puller = _Puller(make)
        pull = self._pull_pieces_ahead if whole else self._pull_pieces
        pieces = pull(admission, puller)
        try:
            async for piece in pieces:
                yield piece
        finally:
            await pieces.aclose()
            self._close_puller(puller)

    async def _pull_pieces(self, admission: Admission, puller: _Puller[T]) -> AsyncGenerator[T]:
        later = asyncio.get_running_loop().call_later
        while not isinstance(piece := await self.run_task(admission, puller.pull_next), _End):
            if admission.first_s is None:
                admission.first_s = time.monotonic() - admission.admitted
            slow = later(_SLOW_READER_S, admission.release_slot)
            try:
                yield piece
            finally:
                slow.cancel()
            await admission.take_slot()

    async def _pull_pieces_ahead(self, admission: Admission, puller: _Puller[T]) -> AsyncGenerator[T]:
        await self._turns.wait_for_turn(admission.claim)
        admission.queue_s = time.monotonic() - admission.admitted
        self._count_admission_once(admission)
        ready: asyncio.Queue[T | _End] = asyncio.Queue()
        room = asyncio.Semaphore(_MAX_AHEAD)

        def on_done(making: asyncio.Task[None]) -> None:
            _ = making.cancelled() or making.exception()  # retrieved, in case nothing waits for it any more
            ready.put_nowait(_END)
            admission.release_slot()  # the remaining pieces only have to be read
            # The engine is free for the next request only after the iterator is closed, which waits for its thread.
            self._close_puller(puller, admission.claim)

        making = asyncio.get_running_loop().create_task(
            self._queue_pieces_ahead(admission, puller, ready, room)
        )
        making.add_done_callback(on_done)
        try:
            while not isinstance(piece := await ready.get(), _End):
                room.release()
                yield piece
            await making
        finally:
            making.cancel()

    async def _queue_pieces_ahead(
        self, admission: Admission, puller: _Puller[T], made: asyncio.Queue[T | _End], room: asyncio.Semaphore
    ) -> None:
        while True:
            await room.acquire()
            with admission.count_engine_time():
                piece = await self._threads.run_task(
                    self._make_task_interruptible(admission, puller.pull_next)
                )
            if isinstance(piece, _End):
                return
            made.put_nowait(piece)

    def _close_puller(self, puller: _Puller[Any], releasing: EngineUse | None = None) -> None:
        """Close an iterator in a thread, and release the engine after it.

        Without a task: a task made while the event loop ends is never completed.
        """
        closing = self._threads.start_task(puller.close)
        if releasing is not None:
            closing.add_done_callback(lambda _: self._turns.end_turn(releasing))


class _Puller(Generic[T]):
    """An iterator that is made, advanced and closed by one thread at a time."""

    def __init__(self, make: Callable[[], Iterator[T]]) -> None:
        self._make = make
        self._iterator: Iterator[T] | None = None
        self._lock = threading.Lock()
        self._closed = False

    def pull_next(self) -> T | _End:
        with self._lock:
            if self._closed:
                return _END
            if self._iterator is None:
                self._iterator = self._make()
            return next(self._iterator, _END)

    def close(self) -> None:
        """Close the iterator after the thread that advances it; nothing is read afterwards."""
        with self._lock:
            self._closed = True
            iterator, self._iterator = self._iterator, None
            getattr(iterator, "close", lambda: None)()
