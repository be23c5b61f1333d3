"""One call from start to end on its event loop: get a place, send, report the end, and repeat if necessary."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from speechlab.client._events import RunningTotals, attach_timing
from speechlab.client._operations.call import HttpCall, RawResponse
from speechlab.client._operations.failures import NO_KEY
from speechlab.client._scheduling.pressure import AttemptEnd, End
from speechlab.client._scheduling.retry import MAX_FAILURES, UNREACHABLE_S, Failure, ScheduledCall
from speechlab.client._scheduling.scheduler import Scheduler, get_scheduler
from speechlab.client._scheduling.waiting import CallGroup, CallPlace, NotSentError, Patience
from speechlab.client._secret import FreshSecret
from speechlab.client._settings.settings import Settings, build_not_replayable_error
from speechlab.client._systems.functions import FunctionSystem
from speechlab.client._transport.exchange import (
    Progress,
    ReplyStream,
    send_and_read_reply,
    wake_for_interrupts,
)
from speechlab.contract import CONCURRENCY_HEADER, parse_concurrency_header
from speechlab.errors import APITimeoutError, RunStoppedError, SpeechLabError

if TYPE_CHECKING:
    from speechlab.client._transport.connections import ConnectionPool

T = TypeVar("T")


@dataclass(frozen=True)
class Sender:
    """Sends calls: all of them, those of a group, or each directly, in one attempt without waiting."""

    settings: Settings
    connections: ConnectionPool
    totals: RunningTotals
    group: CallGroup | None = None
    direct: bool = False

    def get_service_scheduler(self, service: str) -> Scheduler:
        """Return the scheduler of a service: ``tts``, ``asr`` or ``translate``."""
        settings = self.settings
        key = settings.api_key.fingerprint() if settings.api_key else ""
        most = settings.adapter.places if isinstance(settings.adapter, FunctionSystem) else None
        return get_scheduler(settings.base_url, key, service, settings.clock, settings.rng, most)

    def build_scheduled_call(
        self, service: str, *, free: bool = False, retries: int | None = None, light: bool = False
    ) -> ScheduledCall:
        """Return a call in the scheduler of its service."""
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
            self.get_service_scheduler(service),
            patience,
            settings.max_concurrency,
            group,
            free=free,
            light=light,
            direct=self.direct,
        )

    async def wait_for_place(self, service: str, time_s: float | None) -> CallPlace:
        """Return a place for one attempt that runs elsewhere and is not retried."""
        scheduled = self.build_scheduled_call(service, retries=0)
        if time_s is not None:
            scheduled.deadline = scheduled.began + time_s
        try:
            return await self.connections.wait_while_open(scheduled.wait_for_place)
        except NotSentError as error:
            problem = self._build_not_sent_error(error, "the text")
        raise problem

    def _build_not_sent_error(self, error: NotSentError, what: str) -> SpeechLabError:
        """Return the error of a call that was not sent."""
        if error.stopped:
            return RunStoppedError(f"{what} was not sent: {error}")
        problem = APITimeoutError(f"{what} was not sent: {error}", attempts=0)
        problem.service_lost = error.lost
        return problem

    async def send(self, call: HttpCall) -> RawResponse:
        """Send a call, and read the whole reply."""
        return cast("RawResponse", await self._send_call(call, stream=False))

    async def open_stream(self, call: HttpCall) -> ReplyStream:
        """Send a call, and return at the headers of a successful reply."""
        return cast("ReplyStream", await self._send_call(call, stream=True))

    async def _send_call(self, call: HttpCall, *, stream: bool) -> RawResponse | ReplyStream:
        settings = self.settings
        if settings.mode == "replay":
            raise build_not_replayable_error(call.operation)
        limits = call.timeouts
        if settings.read_timeout_s is not None:
            limits = replace(limits, read=settings.read_timeout_s)
        if settings.lease is not None and not limits.given:
            # It says while it waits in the queue that it does; the longest silence is the only limit.
            limits = replace(limits, total=None)
        if settings.default_headers or limits is not call.timeouts:
            call = replace(call, defaults=settings.default_headers, timeouts=limits)
        progress = Progress(settings, call)
        if limits.given and limits.total is not None and self.group is None:
            # A user's timeout limits the whole call; in a batch, it limits the time of the attempts.
            progress.deadline = progress.began + limits.total
        scheduled = self.build_scheduled_call(call.service, free=call.free, retries=0 if call.raw else None)
        attempt = partial(self._send_attempt, call, progress, stream=stream)
        outcome: RawResponse | ReplyStream = await self.retry_until_answered(scheduled, progress, attempt)
        if progress.possibly_metered:  # by a failed attempt, in addition to the successful one
            self.totals.add(possibly_metered=1)
        progress.report("done", status=outcome.status)
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
                    return Failure(
                        self._build_not_sent_error(
                            error, progress.call.describe_target(progress.address or self.settings.place)
                        )
                    )
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

    async def _send_attempt(
        self, call: HttpCall, progress: Progress, place: CallPlace, *, stream: bool
    ) -> RawResponse | ReplyStream | Failure:
        if call.timeouts.total is not None and (progress.deadline is None or self.group is not None):
            # Time in the queue does not count: of a thousand calls made at once, the last one waits for long.
            progress.deadline = place.started + call.timeouts.total
        progress.attempts += 1
        progress.report("request")
        outcome: RawResponse | ReplyStream | Failure | None = None
        try:
            wire = self.connections.get_wire(self.settings, many=self.group is not None)
            outcome = await send_and_read_reply(wire, progress, place, stream=stream)
        finally:
            if outcome is None:
                place.end(AttemptEnd(End.UNKNOWN))
            elif isinstance(outcome, RawResponse):
                took_s = progress.clock.monotonic() - place.started
                strain = took_s / call.timeouts.read
                place.end(AttemptEnd(End.OK if outcome.status < 400 else End.ANSWERED, strain=strain))
        if isinstance(outcome, Failure):
            return outcome
        # The schedulers follow a service that says how many calls it works on at once, by service.
        numbers = outcome.headers.get(CONCURRENCY_HEADER, "")
        if numbers != self.connections.concurrency:
            self.connections.concurrency = numbers
            for service, at_once in parse_concurrency_header(numbers).items():
                self.get_service_scheduler(service).set_capacity(at_once)
        return outcome
