"""An operation's turn at an engine: queue, ledger and failure in one place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from speechlab.errors import InvalidRequestError
from speechlab.service._faults import OPERATION_NAMES, ClientGone, Fault, build_engine_fault
from speechlab.service._logs import build_error_fields, log

if TYPE_CHECKING:
    from speechlab.service._accounts.metering import Meter
    from speechlab.service._engines.lanes import Admission, EngineLane

T = TypeVar("T")


class Turn:
    """The turn of one operation at an engine, as an asynchronous context manager.

    Entering it waits for a slot of the lane. Leaving it closes the iterators, releases the slot, reports the model
    and the outcome to the operation's meter, and turns a failure into its reply: every exception inside leaves as a
    :class:`~speechlab.service._faults.Fault`.
    """

    def __init__(self, lane: EngineLane, meter: Meter) -> None:
        self.lane = lane
        self.meter = meter
        self._stack = AsyncExitStack()
        self._admission: Admission
        self.reached = False

    async def __aenter__(self) -> Self:
        try:
            self._admission = await self._stack.enter_async_context(
                self.lane.admit_request(self.meter.row.operation, self.meter.row.key_id, self.meter.size_s)
            )
        except Fault:
            self.meter.undo_admission()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the turn, and raise the reply to a failure."""
        await self._stack.__aexit__(kind, error, trace)
        self.meter.row.model = self.lane.model
        if self._admission.first_s is not None:
            self.meter.record_first_audio(self.lane.entry.name, self._admission.first_s)
        if self.reached:
            self.meter.record_end(error)
        if not isinstance(error, Exception) or isinstance(error, (Fault, ClientGone)):
            return
        # A client's mistake is not logged as an error.
        refused = isinstance(error, InvalidRequestError)
        operation, engine = self.meter.row.operation, self.lane.entry.name
        log(
            f"{OPERATION_NAMES[operation]} failed",
            level="info" if refused else "error",
            once_a_minute=refused,
            engine=engine,
            **build_error_fields(error),
        )
        raise build_engine_fault(error, operation) from error

    async def run_task(self, task: Callable[[], T]) -> T:
        """Run a blocking task that uses the engine."""
        self._record_engine_reached()
        return await self.lane.run_task(self._admission, task)

    def iterate_pieces(self, make: Callable[[], Iterator[T]], *, whole: bool = False) -> AsyncIterator[T]:
        """Read from a blocking iterator of the engine; see :meth:`EngineLane.iterate`. Closed with the turn."""
        self._record_engine_reached()
        pieces = self.lane.iterate_pieces(self._admission, make, whole=whole)
        self._stack.push_async_callback(pieces.aclose)
        return pieces

    async def wait_for_backend(self, work: Awaitable[T]) -> T:
        self._record_engine_reached()
        with self._admission.count_engine_time():
            return await work

    def format_server_timing(self) -> str:
        """Return the ``Server-Timing`` header: milliseconds of waiting and of computing."""
        queue_ms, engine_ms = self._admission.queue_s * 1000, self._admission.engine_s * 1000
        return f"queue;dur={queue_ms:.1f}, engine;dur={engine_ms:.1f}"

    def _record_engine_reached(self) -> None:
        self.reached = True
        self.meter.record_engine_reached()
