"""Metering of operations, over HTTP and WebSockets: limits before the engine, the ledger after it.

An operation is rejected without a row, or it reaches an engine and leaves exactly one row, whatever its outcome.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from speechlab.errors import InvalidRequestError
from speechlab.service._accounts.ledger import Counters, Ledger, Status, UsageRow
from speechlab.service._accounts.limits import (
    UNLIMITED,
    LimitScope,
    NotAdmitted,
    Place,
    RateLimiter,
    StoredLimits,
)
from speechlab.service._faults import ClientGone, Fault
from speechlab.service._logs import build_error_fields, log

if TYPE_CHECKING:
    from speechlab.service._config import ServiceConfig
    from speechlab.service._keys import Principal


class Meter:
    """The meter of one operation of one key.

    Call in this order: :meth:`admit`, :meth:`accept`, :meth:`begun` and :meth:`ended` around the engine's work,
    :meth:`close`. The figures of the row are set or increased meanwhile.
    """

    def __init__(self, metering: Metering, row: UsageRow) -> None:
        self._metering = metering
        self.row = row
        self._places: list[Place] = []
        self._closed = False
        self.status: Status | None = None
        """Outcome, once an engine was reached; without one there will be no row."""

    @property
    def size_s(self) -> float:
        """Expected duration by the length of the text or recording; used for the order of work only."""
        # A slow machine does 64,000 bytes, or 20 characters, a second. A recording is never short: it needs a slot,
        # as it is decoded while another is recognized.
        if self.row.operation == "asr":
            return max(11.0, self.row.input_bytes / 64_000)
        return self.row.characters / 20

    def admit_by_key_limits(self) -> None:
        """Check the limits of the key; raises NotAdmitted (a limit was reached, or the limiter failed)."""
        self._places.append(self._metering.admit_request("key", self.row.key_id))

    def admit_by_service_limits(self, provider: str, *, characters: int = 0, input_bytes: int = 0) -> None:
        """Check the limits of the service, after the request was found valid and permitted."""
        self.row.provider, self.row.characters, self.row.input_bytes = provider, characters, input_bytes
        try:
            self._places.append(self._metering.admit_request("service", self.row.operation))
        except NotAdmitted:
            self.undo_admission()
            raise

    def undo_admission(self) -> None:
        """Undo the counting for an operation that another limit, or a full queue, has refused."""
        for place in self._places:
            place.release_and_uncount()

    def record_first_audio(self, engine: str, seconds: float) -> None:
        """Record the time to the first sound of a text."""
        self._metering.counters.first_audio.labels(engine).observe(seconds)

    def record_engine_reached(self) -> None:
        """Record that an engine was reached; from now on there will be a row."""
        if self.status is None:
            self.status = "cancelled"

    def record_end(self, error: BaseException | None) -> None:
        """Record the outcome of the engine's work.

        A request that the engine finds invalid is a 400 like any other, and leaves no row.
        """
        if error is None:
            self.status = "completed"
        elif isinstance(error, InvalidRequestError):
            self.status = None
        elif isinstance(error, Exception) and not isinstance(error, (Fault, ClientGone)):
            self.status = "partial_backend_error" if self.row.audio_bytes else "backend_error"

    def close(self) -> None:
        """Release the places, and write the row if a backend was reached; further calls have no effect."""
        if self._closed:
            return
        self._closed = True
        for place in self._places:
            place()
        if self.status is not None:
            row = self.row
            row.time, row.audio_s, row.status = time.time(), round(row.audio_s, 3), self.status
            self._metering.record_usage(row)


class Metering:
    """Limits, ledger and counters of a service."""

    def __init__(
        self,
        config: ServiceConfig,
        counters: Counters,
        ledger: Ledger | None,
        stored: StoredLimits | None = None,
    ) -> None:
        self.limiter = RateLimiter(config)
        self.counters = counters
        self._ledger = ledger
        self._stored = stored

    def build_meter(self, operation: str, principal: Principal, *, transport: str = "http") -> Meter:
        return Meter(self, UsageRow(0.0, principal.key_id, operation, transport))

    def admit_request(self, scope: LimitScope, name: str) -> Place:
        """Check the limits; a failing limiter admits no request."""
        try:
            limits = UNLIMITED
            if self._stored is not None and scope == "key":
                limits = self._stored.read_effective_limits(name)
            elif self._stored is not None:
                limits = self._stored.read_service_limits(name)
            return self.limiter.admit_request(scope, name, limits)
        except NotAdmitted:
            self.counters.refused.labels(scope).inc()
            raise
        except Exception as error:
            self.counters.refused.labels(scope).inc()
            log("the rate limiter failed", level="error", scope=scope, **build_error_fields(error))
            reason = "the rate limits cannot be checked now; try again later"
            raise NotAdmitted(scope, reason, retry_after_s=5.0, available=False) from error

    def record_usage(self, row: UsageRow) -> None:
        self.counters.count_usage(row)
        if self._ledger is not None:
            self._ledger.queue_row(row)
