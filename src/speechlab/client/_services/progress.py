"""Measurements of a call while it is made: its attempts, its times, its events, and what it adds to the totals."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from logging import DEBUG
from typing import TYPE_CHECKING, TypeVar

from speechlab.client._events import CallEvent, CallTotals, Timing, logger
from speechlab.client._operations.operation import get_original_timeout
from speechlab.errors import APITimeoutError

if TYPE_CHECKING:
    from speechlab.client._clock import Clock
    from speechlab.client._operations.call import ServiceCall
    from speechlab.client._scheduling.waiting import CallPlace
    from speechlab.client._settings.settings import Settings

T = TypeVar("T")


class RunningTotals:
    """Totals that several threads may add to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.sums = CallTotals()

    def add(self, **amounts: float) -> None:
        """Add to the named totals."""
        with self._lock:
            sums = {name: getattr(self.sums, name) + amount for name, amount in amounts.items()}
            self.sums = replace(self.sums, **sums)


@dataclass(slots=True, kw_only=True)
class Progress:
    """Measurements of a running call."""

    settings: Settings
    clock: Clock
    call: ServiceCall
    place: str  # where it goes, for messages
    began: float
    call_id: str = ""
    attempts: int = 0
    queued_s: float = 0.0
    first_byte_s: float | None = None
    processing_s: float | None = None
    service_queued_s: float | None = None
    deadline: float | None = None
    possibly_metered: bool = (
        False  # an attempt failed after it was sent in full, so that it may have been billed
    )
    key_number: int = 0  # of the key used by the last attempt
    key_renewed: bool = False

    @property
    def elapsed_s(self) -> float:
        """Seconds since the call began."""
        return self.clock.monotonic() - self.began

    @property
    def left_s(self) -> float | None:
        """Seconds until the end of the call's timeout; None without one."""
        return None if self.deadline is None else self.deadline - self.clock.monotonic()

    @property
    def target(self) -> str:
        """What is called, and where, for messages."""
        return self.call.describe_target(self.place)

    def record_reply(self, place: CallPlace, status: int, headers: Mapping[str, str]) -> None:
        """Note that the headers of a reply have come, and what they say about the service's times."""
        self.first_byte_s = self.clock.monotonic() - place.started
        self.processing_s = _parse_server_timing(headers, "engine")
        self.service_queued_s = _parse_server_timing(headers, "queue")
        self.report("response", status=status)

    def build_timing(self) -> Timing:
        """Return the times so far."""
        reported = (self.processing_s, self.service_queued_s)
        return Timing(self.attempts, self.elapsed_s, self.first_byte_s, self.queued_s, *reported)

    def describe_end_of_time(self, waited_for: str) -> str:
        """Return the sentence of a call whose whole time is up."""
        time_s = get_original_timeout(self.call.timeouts.total or 0.0)
        return f"the call's time of {time_s:g} s was up while it waited for {waited_for}"

    async def wait_for_key_function(self, waiting: Awaitable[T]) -> T:
        """Wait for the function that returns the key, within the call's timeout."""
        left_s = self.left_s
        try:
            async with asyncio.timeout(None if left_s is None else max(0.0, left_s)):
                return await waiting
        except TimeoutError:
            pass
        what = self.call.describe_target("")
        raise APITimeoutError(f"{what}: {self.describe_end_of_time('the function of api_key')}")

    def report(self, kind: str, **facts: object) -> None:
        """Log a step of the call, and pass it to the hook, whose error is logged and does not fail the call."""
        key, hook = self.settings.api_key, self.settings.on_event
        if kind == "request" and key is not None:
            self.key_number = key.number
        if hook is None and not logger.isEnabledFor(DEBUG):
            return
        if not self.call_id:
            self.call_id = secrets.token_hex(8)
        event = CallEvent(
            kind,  # type: ignore[arg-type]  # the kinds are those of CallEvent
            self.call.operation,
            self.attempts,
            elapsed_s=self.elapsed_s,
            call_id=self.call_id,
            **facts,  # type: ignore[arg-type]  # fields of CallEvent
        )
        logger.debug(
            "%s %s attempt=%d status=%s delay=%s elapsed=%.3f error=%s",
            event.operation,
            event.kind,
            event.attempt,
            event.status,
            event.delay_s,
            event.elapsed_s,
            event.error,
        )
        try:
            if hook is not None:
                hook(event)
        except BaseException as error:
            # sys.exit() would end the loop of all synchronous clients; on the main thread it may be a real Ctrl-C
            if not isinstance(error, Exception) and threading.current_thread() is threading.main_thread():
                raise
            logger.exception("the on_event hook failed; the call continues")


def _parse_server_timing(headers: Mapping[str, str], wanted: str) -> float | None:
    """Seconds of a part of the service's work from its ``Server-Timing`` header; None if the header lacks it."""
    for entry in headers.get("server-timing", "").split(","):
        name, *parameters = (field.strip() for field in entry.split(";"))
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if name == wanted and key.strip() == "dur":
                try:
                    milliseconds = float(value.strip().strip('"'))
                except ValueError:
                    return None
                return milliseconds / 1000 if 0 <= milliseconds < float("inf") else None
    return None
