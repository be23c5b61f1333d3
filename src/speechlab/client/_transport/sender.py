"""One call from beginning to end: wait for a place under the limit, send, judge, wait, send again.

It knows HTTP, retries, limits and time, and nothing of voices or transcripts. It lives on one event loop.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from typing import TYPE_CHECKING

from speechlab.client._events import CallEvent, RunningTotals, Timing, attach_timing, emit, server_timing_s
from speechlab.client._operations.call import HttpCall, RawResponse
from speechlab.client._operations.failures import error_from_reply, retry_after_s
from speechlab.client._settings.store_mode import nothing_is_sent
from speechlab.client._transport.http import Reply, Sent, Wire, WireError, remedy
from speechlab.client._transport.interrupts import hearing_interrupts
from speechlab.client._transport.limiter import Slot, call_limit
from speechlab.client._transport.retry import Failure, RetryState
from speechlab.errors import (
    APIConnectionError,
    APITimeoutError,
    ConfigurationError,
    SpeechLabError,
    StreamTruncatedError,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from speechlab.client._closable import AsyncClosable
    from speechlab.client._settings.settings import Settings
    from speechlab.client._transport.limiter import CallLimit


class ConnectionPool:
    """The HTTP connections of a client, made on first use and bound to the event loop of that use."""

    def __init__(self) -> None:
        self._wire: Wire | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0
        self.closed = False
        self.sessions: set[AsyncClosable] = set()
        """Realtime sessions, which end with their client."""

    def wire(self, settings: Settings) -> Wire:
        """The wire for the running loop.

        Raises:
            ConfigurationError: The client is closed, or belongs to another loop that is still there.
        """
        self.check()
        if self._wire is None:
            self._wire = Wire(settings)
        return self._wire

    def check(self) -> None:
        """Bind to the running loop, or make sure that it is the one bound to.

        Raises:
            ConfigurationError: The client is closed, or belongs to another loop that is still there.
        """
        loop = asyncio.get_running_loop()
        if self.closed:
            raise ConfigurationError("this client is closed; make a new one")
        if self._loop is None or self._pid != os.getpid() or self._loop.is_closed():
            # Sockets of a closed loop, or of the process that this one was forked from, are of no use here.
            self._wire, self._loop, self._pid = None, loop, os.getpid()
            self.sessions.clear()
        elif self._loop is not loop:
            raise ConfigurationError(
                "this AsyncClient belongs to another event loop, the one of its first call (a widget callback or "
                "asyncio.run has a loop of its own); make one AsyncClient for each loop, or use Client, which "
                "works from every thread and inside a running loop"
            )

    async def close(self) -> None:
        """Close it for good."""
        self.closed = True
        if self._pid == os.getpid() and self._loop is asyncio.get_running_loop():
            for session in tuple(self.sessions):
                await session.aclose()
        wire, self._wire = self._wire, None
        if wire is not None and self._pid == os.getpid() and self._loop is asyncio.get_running_loop():
            await wire.close()


class Progress:
    """Measurements of a running call."""

    def __init__(self, settings: Settings, call: HttpCall) -> None:
        self.clock = settings.clock
        self.call = call
        self._hook = settings.on_event
        self.call_id = secrets.token_hex(8)
        self.began = self.clock.monotonic()
        self.attempts = 0
        self.queued_s = 0.0
        self.first_byte_s: float | None = None
        self.processing_s: float | None = None
        self.service_queued_s: float | None = None
        self.deadline: float | None = None

    @property
    def elapsed_s(self) -> float:
        return self.clock.monotonic() - self.began

    def timing(self) -> Timing:
        told = (self.processing_s, self.service_queued_s)
        return Timing(self.attempts, self.elapsed_s, self.first_byte_s, self.queued_s, *told)

    def tell(self, kind: str, **facts: object) -> None:
        """Log a step of the call, and hand it to the hook."""
        event = CallEvent(
            kind,  # type: ignore[arg-type]
            self.call.operation,
            self.attempts,
            elapsed_s=self.elapsed_s,
            call_id=self.call_id,
            **facts,  # type: ignore[arg-type]
        )
        emit(self._hook, event)


class ReplyStream:
    """A successful reply whose body is still coming; holds its place under the limit until it is closed."""

    def __init__(self, reply: Reply, slot: Slot, progress: Progress) -> None:
        self._reply = reply
        self._slot = slot
        self._progress = progress
        self.status = reply.status
        self.headers = reply.headers

    @property
    def timing(self) -> Timing:
        """Timing so far."""
        return self._progress.timing()

    @property
    def ended(self) -> bool:
        """True once all of the body has come."""
        return self._reply.ended

    def pieces(self) -> AsyncIterator[bytes]:
        """The body as it arrives; WireError if it is cut short."""
        return self._reply.pieces()

    async def close(self) -> None:
        """Close the connection if the body has not been read to its end."""
        try:
            await self._reply.close()
        finally:
            self._slot.release(success=self.ended)


class Sender:
    """Sends calls."""

    def __init__(self, settings: Settings, connections: ConnectionPool, totals: RunningTotals) -> None:
        self.settings = settings
        self.connections = connections
        self.totals = totals

    def with_settings(self, settings: Settings) -> Sender:
        """The same connections and sums under other settings."""
        return Sender(settings, self.connections, self.totals)

    def call_limit(self, service: str) -> CallLimit:
        """The limit that calls of a service share: ``tts``, ``asr`` or ``translate``."""
        key = self.settings.api_key
        return call_limit(self.settings.base_url, key.fingerprint() if key else "", service)

    async def send(self, call: HttpCall) -> RawResponse:
        """Send a call and read the whole reply.

        Raises:
            APIError: The service answered with an error.
            APIConnectionError: No answer came.
            StreamTruncatedError: The answer was cut short.
        """
        outcome = await self._send(call, stream=False)
        if isinstance(outcome, ReplyStream):  # pragma: no cover - the two are told apart by stream
            raise TypeError("a whole reply was asked for")
        return outcome

    async def open(self, call: HttpCall) -> ReplyStream:
        """Send a call and return as soon as the head of a successful reply is there.

        Raises:
            APIError: The service answered with an error.
            APIConnectionError: No answer came.
        """
        outcome = await self._send(call, stream=True)
        if isinstance(outcome, RawResponse):  # pragma: no cover
            raise TypeError("a stream was asked for")
        return outcome

    async def _send(self, call: HttpCall, *, stream: bool) -> RawResponse | ReplyStream:
        settings = self.settings
        if settings.mode == "replay":
            raise nothing_is_sent(call.operation)
        progress = Progress(settings, call)
        try:
            with hearing_interrupts():
                outcome = await self._send_until_answered(call, progress, stream=stream)
        except BaseException as error:  # cancelled, above all
            progress.tell("error", error=type(error).__name__)
            raise
        if isinstance(outcome, Failure):
            raise self.given_up(outcome, progress)
        progress.tell("done", status=outcome.status)
        return outcome

    async def _send_until_answered(
        self, call: HttpCall, progress: Progress, *, stream: bool
    ) -> RawResponse | ReplyStream | Failure:
        settings = self.settings
        state = RetryState(
            max_retries=0 if call.raw else settings.max_retries,
            patience_s=settings.patience_s,
            free=call.free,
            rng=settings.rng,
        )
        limit = self.call_limit(call.service)
        while True:
            pid = self.service_pid
            outcome = await self._send_in_slot(call, progress, limit, stream=stream)
            if not isinstance(outcome, Failure):
                return outcome
            if await self.revived(outcome, progress, pid):
                continue
            delay = state.delay(outcome, now=progress.clock.monotonic(), deadline=progress.deadline)
            if delay is None or not (outcome.status == 429 or limit.spend_retry()):
                return outcome
            name = type(outcome.error).__name__
            progress.tell("retry", status=outcome.status, delay_s=delay, error=name)
            await progress.clock.sleep(delay)

    @property
    def service_pid(self) -> int:
        """The process of the embedded service; 0 for other services."""
        return 0 if self.settings.lease is None else self.settings.lease.service.pid

    async def revived(self, failure: Failure, progress: Progress, pid: int) -> bool:
        """Restart the embedded service if the call failed because it had stopped; True if it is there again.

        Only what was not sent in full is sent again; the time that the start takes does not count as the call's.
        """
        lease = self.settings.lease
        if lease is None or failure.status is not None or failure.sent or failure.timed_out:
            return False
        began = progress.clock.monotonic()
        if not await asyncio.to_thread(lease.revive, pid):
            return False
        if progress.deadline is not None:
            progress.deadline += progress.clock.monotonic() - began
        name = type(failure.error).__name__
        progress.tell("retry", delay_s=0.0, error=name)
        return True

    def given_up(self, failure: Failure, progress: Progress) -> SpeechLabError:
        """Report a call that is not sent again, and return its error; counts it where it may have been metered."""
        error = failure.error
        attach_timing(error, progress.timing())
        if failure.sent and isinstance(error, APIConnectionError):
            self.totals.add(possibly_metered=1)
        progress.tell("error", status=failure.status, error=type(error).__name__)
        return error

    async def _send_in_slot(
        self, call: HttpCall, progress: Progress, limit: CallLimit, *, stream: bool
    ) -> RawResponse | ReplyStream | Failure:
        clock = progress.clock
        waiting_since = clock.monotonic()
        slot = await limit.acquire(self.settings.max_concurrency, clock)
        progress.queued_s += slot.started - waiting_since
        if progress.deadline is None and call.timeouts.total is not None:
            # Time in the queue does not count: of a thousand calls made at once the last one waits for long.
            progress.deadline = slot.started + call.timeouts.total
        progress.attempts += 1
        progress.tell("request")
        keep = False
        outcome: RawResponse | ReplyStream | Failure | None = None
        try:
            outcome = await self._send_once(call, progress, slot, stream=stream)
            keep = isinstance(outcome, ReplyStream)
        finally:
            if not keep:
                success = isinstance(outcome, RawResponse) and outcome.status < 400
                throttled = isinstance(outcome, Failure) and outcome.throttled
                slot.release(success=success, throttled=throttled)
        return outcome

    async def _send_once(
        self, call: HttpCall, progress: Progress, slot: Slot, *, stream: bool
    ) -> RawResponse | ReplyStream | Failure:
        wire = self.connections.wire(self.settings)
        remaining = None if progress.deadline is None else progress.deadline - progress.clock.monotonic()
        reply: Reply | None = None
        opened = False
        sent = Sent()
        try:
            async with asyncio.timeout(remaining):
                reply = await wire.open(call, sent)
                progress.first_byte_s = progress.clock.monotonic() - slot.started
                progress.processing_s = server_timing_s(reply.headers, "engine")
                progress.service_queued_s = server_timing_s(reply.headers, "queue")
                progress.tell("response", status=reply.status)
                if stream and 200 <= reply.status < 300:
                    opened = True
                    return ReplyStream(reply, slot, progress)
                return await self._read_reply(call, progress, reply)
        except WireError as error:
            fault = error
        except TimeoutError:
            text = f"the call's time of {call.timeouts.total:g} s is up"
            fault = WireError(text, sent=sent.done, timed_out=True)
        finally:
            if reply is not None and not opened:
                await reply.close()
        return self._no_reply(call, fault)

    async def _read_reply(self, call: HttpCall, progress: Progress, reply: Reply) -> RawResponse | Failure:
        if call.raw or 200 <= reply.status < 300:
            content = await self._read_body(call, reply)
            if isinstance(content, Failure):
                return content
            return RawResponse(reply.status, reply.headers, content, progress.timing())
        content = await reply.read_some()
        error = error_from_reply(reply.status, reply.headers, content)
        wait = retry_after_s(reply.headers, progress.clock.time())
        return Failure(error, status=reply.status, retry_after_s=wait)

    async def _read_body(self, call: HttpCall, reply: Reply) -> bytes | Failure:
        content = bytearray()
        try:
            async for piece in reply.pieces():
                content += piece
        except WireError as error:
            if error.timed_out or call.free:
                return self._no_reply(call, error)
            text = f"the reply was cut short after {len(content):,} bytes ({error})"
        else:
            return bytes(content)
        # Not repeated: the work has been done, and most likely counted.
        return Failure(StreamTruncatedError(text, partial=bytes(content)), sent=True, final=True)

    def _no_reply(self, call: HttpCall, fault: WireError) -> Failure:
        where = f"{call.method} {self.settings.base_url.rstrip('/')}{call.path}"
        text = f"{where}: {fault}"
        if fault.untrusted:
            text += remedy(text)
        elif fault.sent and not call.free:
            text += "; the request had been sent in full, so it may have been done and billed"
        elif self.settings.lease is not None and not fault.timed_out:
            text += f"; {self.settings.lease.explain()}"
        elif not fault.timed_out:
            text += "; check base_url, and that the service runs"
        if fault.timed_out:
            text += "; a longer time can be given by with_options(timeout=...)"
        kind = APITimeoutError if fault.timed_out else APIConnectionError
        error = kind(text, possibly_metered=fault.sent and not call.free)
        return Failure(error, sent=fault.sent, timed_out=fault.timed_out, final=fault.untrusted)
