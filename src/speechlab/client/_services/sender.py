"""One call from start to end on its event loop: a place, an attempt, how it ended, and perhaps another one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from speechlab.client._clock import wake_for_interrupts
from speechlab.client._events import Timing, attach_timing
from speechlab.client._operations.call import RawResponse, Reply, ServiceCall
from speechlab.client._operations.failures import NO_KEY
from speechlab.client._scheduling.pressure import AttemptEnd, End
from speechlab.client._scheduling.retry import MAX_FAILURES, UNREACHABLE_S, Failure, ScheduledCall
from speechlab.client._scheduling.waiting import CallGroup, CallPlace, NotSentError, Patience
from speechlab.client._secret import FreshSecret
from speechlab.client._services.progress import Progress, RunningTotals
from speechlab.client._settings.settings import Settings, build_not_replayable_error
from speechlab.errors import APITimeoutError, RunStoppedError, SpeechLabError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from speechlab.client._operations.operation import Operation
    from speechlab.client._services.connections import ConnectionPool
    from speechlab.client._services.service import Service
    from speechlab.client._transport.http import ReplyBody

T = TypeVar("T")
# Bytes from which work on a body moves to a thread.
LARGE_BYTES = 4_000_000


async def run_in_thread_if_large(size: int, function: Callable[..., T], *args: Any) -> T:
    """Call a function, in a thread if the work is large enough to block the event loop noticeably."""
    return function(*args) if size < LARGE_BYTES else await asyncio.to_thread(function, *args)


class ReplyStream:
    """A successful reply whose body is arriving; it has its place until it is closed or has no reader."""

    def __init__(self, body: ReplyBody, place: CallPlace, progress: Progress) -> None:
        self._body, self._place, self._progress = body, place, progress
        self.status = body.status
        self.headers: Mapping[str, str] = body.headers

    @property
    def timing(self) -> Timing:
        """Timing so far."""
        return self._progress.build_timing()

    @property
    def ended(self) -> bool:
        """Whether the body is complete."""
        return self._body.ended

    async def next(self) -> bytes | None:
        """Return the next piece of the body as it arrives, or None; WireError if it is incomplete."""
        self._place.set_reading(reading=True)
        try:
            return await self._body.next()
        finally:
            self._place.set_reading(reading=False)

    async def close(self) -> None:
        """Close the connection unless the body was read completely."""
        try:
            await self._body.close()
        finally:
            self._place.end(AttemptEnd(End.OK if self._body.ended else End.UNKNOWN))


@dataclass(frozen=True)
class Sender:
    """Makes calls: all of a client, those of a group, or each directly, in one attempt without waiting."""

    settings: Settings
    service: Service
    totals: RunningTotals
    group: CallGroup | None = None
    direct: bool = False

    @property
    def connections(self) -> ConnectionPool:
        """The connections of the client."""
        return self.service.connections

    def build_scheduled_call(
        self, queue: str, *, free: bool = False, retries: int | None = None, light: bool = False
    ) -> ScheduledCall:
        """Return a call in the scheduler of its part of the service."""
        settings, group = self.settings, self.group
        most = settings.max_retries if retries is None else retries
        if self.direct:
            most = 0
        if group is not None:
            patience = group.patience if most is None else replace(group.patience, retries=most)
        else:
            patience = Patience(
                call_s=settings.patience_s,
                later_s=settings.patience_s,
                gone_s=min(settings.patience_s, UNREACHABLE_S),
                failures=MAX_FAILURES if most is None else most,
                retries=most,
            )
        return ScheduledCall(
            self.service.get_scheduler(queue, settings.clock, settings.rng),
            patience,
            settings.max_concurrency,
            group,
            free=free,
            light=light,
            direct=self.direct,
        )

    async def wait_for_place(self, queue: str, time_s: float | None) -> CallPlace:
        """Return a place for one attempt that runs elsewhere and is not retried."""
        scheduled = self.build_scheduled_call(queue, retries=0)
        if time_s is not None:
            scheduled.deadline = scheduled.began + time_s
        try:
            return await self.connections.wait_while_open(scheduled.wait_for_place)
        except NotSentError as error:
            problem = _build_not_sent_error(error, "the text")
        raise problem

    async def perform(self, operation: Operation[Any]) -> Reply | RawResponse:
        """Have an operation performed, and return its whole reply."""
        timeout = self.settings.timeout
        return await self.send(
            await run_in_thread_if_large(operation.effort, self.service.prepare, operation, timeout)
        )

    async def send(self, call: ServiceCall) -> Reply | RawResponse:
        """Make a call, and return its whole reply."""
        return await self._make_call(call, self._perform_attempt)

    async def open_stream(self, operation: Operation[Any]) -> ReplyStream:
        """Have an operation performed, and return once a successful reply begins."""
        return await self._make_call(
            self.service.prepare(operation, self.settings.timeout), self._open_stream_attempt
        )

    async def _make_call(
        self,
        call: ServiceCall,
        attempt: Callable[[ServiceCall, Progress, CallPlace], Awaitable[T | Failure]],
    ) -> T:
        settings = self.settings
        if settings.mode == "replay":
            raise build_not_replayable_error(call.operation)
        limits = call.timeouts
        if settings.read_timeout_s is not None:
            limits = replace(limits, read=settings.read_timeout_s)
        if settings.lease is not None and not limits.given:
            # It says while it waits in the queue that it does; the longest silence is the only limit.
            limits = replace(limits, total=None)
        if limits is not call.timeouts:
            call = replace(call, timeouts=limits)
        clock = settings.clock
        progress = Progress(
            settings=settings, clock=clock, call=call, place=self.service.place, began=clock.monotonic()
        )
        if limits.given and limits.total is not None and self.group is None:
            # A user's timeout limits the whole call; in a batch, it limits the time of the attempts.
            progress.deadline = progress.began + limits.total
        scheduled = self.build_scheduled_call(call.service, free=call.free, retries=0 if call.raw else None)
        outcome = await self.retry_until_answered(scheduled, progress, partial(attempt, call, progress))
        if progress.possibly_metered:  # by a failed attempt, in addition to the successful one
            self.totals.add(possibly_metered=1)
        progress.report("done", status=getattr(outcome, "status", None))
        return outcome

    async def retry_until_answered(
        self,
        scheduled: ScheduledCall,
        progress: Progress,
        attempt: Callable[[CallPlace], Awaitable[T | Failure]],
    ) -> T:
        """Make attempts when the scheduler says, until one succeeds or no other may be made: all retries are here."""
        try:
            if isinstance(key := self.settings.api_key, FreshSecret):
                await progress.wait_for_key_function(key.wait_until_ready())
            with wake_for_interrupts():
                outcome = await self._make_attempts(scheduled, progress, attempt)
        except BaseException as error:  # usually a cancellation
            progress.report("error", error=type(error).__name__)
            raise
        if isinstance(outcome, Failure):
            raise self._report_and_return_error(outcome, progress)
        return outcome

    async def _make_attempts(
        self,
        scheduled: ScheduledCall,
        progress: Progress,
        attempt: Callable[[CallPlace], Awaitable[T | Failure]],
    ) -> T | Failure:
        scheduled.deadline = progress.deadline
        last: Failure | None = None
        while True:
            pid = 0 if self.settings.lease is None else self.settings.lease.service.pid
            waiting_since = progress.clock.monotonic()
            try:
                place = await self.connections.wait_while_open(scheduled.wait_for_place)
            except NotSentError as error:
                if last is None or error.stopped:
                    return Failure(_build_not_sent_error(error, progress.target))
                last.error.service_lost = error.lost
                return last
            progress.queued_s += place.started - waiting_since
            outcome = await attempt(place)
            if not isinstance(outcome, Failure):
                return outcome
            last = outcome
            progress.possibly_metered |= last.sent and last.status is None and not progress.call.free
            if await self._recover_from_failure(last, progress, pid):
                place.end(AttemptEnd(End.UNKNOWN))
            else:
                delay = scheduled.end_attempt_and_compute_delay(last, place)
                if delay is None:
                    last.error.service_lost = scheduled.lost
                    return last
                name = type(last.error).__name__
                progress.report("retry", status=last.status, delay_s=delay, error=name)
            scheduled.deadline = None if self.group is not None else progress.deadline

    async def _recover_from_failure(self, failure: Failure, progress: Progress, pid: int) -> bool:
        """Restart a stopped service, or renew a refused key; True if the call may be sent again."""
        if failure.status == 401:
            key, most = self.settings.api_key, self.settings.max_retries
            if not isinstance(key, FreshSecret) or progress.key_renewed:
                return False
            if not await progress.wait_for_key_function(key.renew(progress.key_number)):
                return False
            progress.key_renewed = True
            if most is not None and progress.attempts > most:  # the new key serves the next call
                return False
            progress.report("retry", status=401, delay_s=0.0, error="AuthenticationError")
            return True
        lease = self.settings.lease
        if lease is None or failure.status is not None or failure.sent or failure.timed_out:
            return False
        began = progress.clock.monotonic()
        if not await asyncio.to_thread(lease.restart_if_ended, pid):
            return False
        if progress.deadline is not None:
            progress.deadline += progress.clock.monotonic() - began
        name = type(failure.error).__name__
        progress.report("retry", delay_s=0.0, error=name)
        return True

    def _report_and_return_error(self, failure: Failure, progress: Progress) -> SpeechLabError:
        """Report a call that is not retried, and return its error; count it if it may have been metered."""
        error = failure.error
        attach_timing(error, progress.build_timing())
        if failure.status == 401 and self.settings.api_key is None:
            error.advice = NO_KEY
        if failure.asks_to_wait and self.group is None:
            longest_s = self.settings.patience_s
            error.advice = (
                f"a call waits {longest_s:g} s for it (patience_s=), if timeout= and max_retries= allow it"
            )
        if progress.possibly_metered:
            error.possibly_metered = True
            self.totals.add(possibly_metered=1)
            if not failure.sent:
                earlier = "an earlier attempt had been sent in full, so that it may have been done and billed"
                error.advice = f"{error.advice}; {earlier}" if error.advice else earlier
        progress.report("error", status=failure.status, error=type(error).__name__)
        return error

    def _begin_attempt(self, call: ServiceCall, progress: Progress, place: CallPlace) -> None:
        if call.timeouts.total is not None and (progress.deadline is None or self.group is not None):
            # Time in the queue does not count: of a thousand calls made at once, the last one waits for long.
            progress.deadline = place.started + call.timeouts.total
        progress.attempts += 1
        progress.report("request")

    async def _perform_attempt(
        self, call: ServiceCall, progress: Progress, place: CallPlace
    ) -> Reply | RawResponse | Failure:
        self._begin_attempt(call, progress, place)
        try:
            outcome = await self.service.perform(call, progress, place)
        except BaseException:
            place.end(AttemptEnd(End.UNKNOWN))
            raise
        if not isinstance(outcome, Failure):
            refused = isinstance(outcome, RawResponse) and outcome.status >= 400
            strain = (progress.clock.monotonic() - place.started) / call.timeouts.read
            place.end(AttemptEnd(End.ANSWERED if refused else End.OK, strain=strain))
        return outcome

    async def _open_stream_attempt(
        self, call: ServiceCall, progress: Progress, place: CallPlace
    ) -> ReplyStream | Failure:
        self._begin_attempt(call, progress, place)
        try:
            body = await self.service.open_stream(call, progress, place)
        except BaseException:
            place.end(AttemptEnd(End.UNKNOWN))
            raise
        if isinstance(body, Failure):
            return body
        place.mark_streaming()
        return ReplyStream(body, place, progress)


def _build_not_sent_error(error: NotSentError, what: str) -> SpeechLabError:
    """Return the error of a call that was not sent."""
    if error.stopped:
        return RunStoppedError(f"{what} was not sent: {error}")
    problem = APITimeoutError(f"{what} was not sent: {error}", attempts=0)
    problem.service_lost = error.lost
    return problem
