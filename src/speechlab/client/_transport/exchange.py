"""One attempt of a call over a wire, its measurements, and its reply or how it failed."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sys
import threading
import time
from collections.abc import Awaitable, Iterator
from logging import DEBUG
from typing import TYPE_CHECKING, TypeVar

from speechlab.client._events import CallEvent, Timing, logger, parse_server_timing
from speechlab.client._operations.call import HttpCall, RawResponse
from speechlab.client._operations.failures import build_error_from_reply, parse_retry_after
from speechlab.client._operations.operation import get_original_timeout
from speechlab.client._scheduling.pressure import AttemptEnd, End
from speechlab.client._scheduling.retry import Failure
from speechlab.client._transport.http import Reply, RequestAttempt, Wire, WireError, build_reply_timeout_error
from speechlab.errors import (
    APIConnectionError,
    APITimeoutError,
    ContractError,
    SpeechLabError,
    StreamTruncatedError,
)

if TYPE_CHECKING:
    from speechlab.client._scheduling.waiting import CallPlace
    from speechlab.client._settings.settings import Settings

T = TypeVar("T")
_ERROR_BYTES = 1 << 20
_TURN_S = 0.2
# Advice on a reply that a service of OpenAI's API gives to a request of the contract.
_OPENAI_ADVICE = (
    "an address that ends in /v1 is mostly that of OpenAI's API; give its adapter: sl.connect(…, "
    "adapter=sl.client.OpenAIAdapter(…))"
)
_NO_CONTEXT = contextlib.nullcontext()


class Progress:
    """Measurements of a running call."""

    def __init__(self, settings: Settings, call: HttpCall) -> None:
        self.settings = settings
        self.clock = settings.clock
        self.call = call
        self.address = ""
        """Where the call goes, if not to the address of the settings."""
        self.call_id = ""
        self.began = self.clock.monotonic()
        self.attempts = 0
        self.queued_s = 0.0
        self.first_byte_s: float | None = None
        self.processing_s: float | None = None
        self.service_queued_s: float | None = None
        self.deadline: float | None = None
        self.possibly_metered = False
        """Whether an attempt failed after it was sent in full, so that it may have been billed."""
        self.key_number = 0
        """Number of the key used by the last attempt."""
        self.key_renewed = False

    @property
    def elapsed_s(self) -> float:
        return self.clock.monotonic() - self.began

    def build_timing(self) -> Timing:
        reported = (self.processing_s, self.service_queued_s)
        return Timing(self.attempts, self.elapsed_s, self.first_byte_s, self.queued_s, *reported)

    async def wait_for_key_function(self, waiting: Awaitable[T]) -> T:
        """Wait for the function that returns the key, within the call's timeout."""
        left_s = None if self.deadline is None else max(0.0, self.deadline - self.clock.monotonic())
        try:
            async with asyncio.timeout(left_s):
                return await waiting
        except TimeoutError:
            pass
        where = f"{self.call.method} {self.call.path}"
        time_s = get_original_timeout(self.call.timeouts.total or 0.0)
        text = f"the call's time of {time_s:g} s was up while it waited for the function of api_key"
        raise APITimeoutError(f"{where}: {text}")

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


class ReplyStream:
    """A successful reply whose body is arriving; it has its place until it is closed or has no reader."""

    def __init__(self, reply: Reply, place: CallPlace, progress: Progress) -> None:
        self._reply = reply
        self._place = place
        self._progress = progress
        self.status = reply.status
        self.headers = reply.headers

    @property
    def timing(self) -> Timing:
        """Timing so far."""
        return self._progress.build_timing()

    @property
    def ended(self) -> bool:
        """Whether the body is complete."""
        return self._reply.ended

    async def next(self) -> bytes | None:
        """Return the next piece of the body as it arrives, or None; WireError if it is incomplete."""
        self._place.set_reading(reading=True)
        try:
            return await self._reply.next()
        finally:
            self._place.set_reading(reading=False)

    async def close(self) -> None:
        """Close the connection unless the body was read completely."""
        try:
            await self._reply.close()
        finally:
            self._place.end(AttemptEnd(End.OK if self.ended else End.UNKNOWN))


def wake_for_interrupts() -> contextlib.AbstractContextManager[None]:
    """Wake a kernel's loop regularly, because IPython's signal handler does not wake it on an interrupt."""
    if "ipykernel" not in sys.modules or threading.current_thread() is not threading.main_thread():
        return _NO_CONTEXT
    return _keep_loop_awake(asyncio.get_running_loop())


@contextlib.contextmanager
def _keep_loop_awake(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    next_turn: asyncio.TimerHandle | None = None

    def wake() -> None:
        nonlocal next_turn
        next_turn = loop.call_later(_TURN_S, wake)

    wake()
    try:
        yield
    finally:
        if next_turn is not None:
            next_turn.cancel()


async def send_and_read_reply(
    wire: Wire, progress: Progress, place: CallPlace, *, stream: bool
) -> RawResponse | ReplyStream | Failure:
    """Send a request, and read its reply."""
    settings, call = progress.settings, progress.call
    remaining = None if progress.deadline is None else progress.deadline - progress.clock.monotonic()
    reply: Reply | None = None
    opened = False
    limits = call.timeouts
    watch: _SilenceWatch | None = None
    # The embedded service sends signs of life, which only the library sees; other services may have a queue.
    watched = settings.lease is None and not stream and not call.raw and call.body is not None
    attempt = RequestAttempt(call, settings.connect_timeout_s, None if watched else limits.read)
    try:
        async with asyncio.timeout(remaining) as limit:
            if watched and (limits.total is None or limits.read < limits.total):
                watch = _SilenceWatch(place, limit, attempt)
            reply = await wire.open(attempt)
            attempt.record_progress()
            progress.first_byte_s = progress.clock.monotonic() - place.started
            progress.processing_s = parse_server_timing(reply.headers, "engine")
            progress.service_queued_s = parse_server_timing(reply.headers, "queue")
            progress.report("response", status=reply.status)
            if stream and 200 <= reply.status < 300:
                opened = True
                place.mark_streaming()
                return ReplyStream(reply, place, progress)
            return await _read_reply(progress, reply, attempt)
    except WireError as error:
        fault = error
    except SpeechLabError as error:
        failure = None if call.asked is None else Failure.from_error(error)
        if failure is None:
            raise
        return failure
    except TimeoutError:
        if watch is not None and watch.fell:
            fault = build_reply_timeout_error(attempt, reading=reply is not None)
        else:
            fault = _build_timeout_error(call, attempt, reading=reply is not None)
    finally:
        if watch is not None:
            watch.end()
        if reply is not None and not opened:
            await reply.close()
    return _build_failure(progress, fault, broke_off=attempt.broke_off)


class _SilenceWatch:
    """Ends an attempt once its service has been silent for too long, to it and to those before it in its queue."""

    def __init__(self, place: CallPlace, limit: asyncio.Timeout, attempt: RequestAttempt) -> None:
        self._place, self._limit, self._attempt = place, limit, attempt
        self._silence_s = attempt.call.timeouts.read
        self._loop = asyncio.get_running_loop()
        self.fell = False
        self._timer = self._loop.call_later(self._silence_s, self._check_silence)

    def _check_silence(self) -> None:
        now, at = time.monotonic(), self._attempt.at
        left_s = self._silence_s
        if at is not None:
            left_s += max(at, self._place.scheduler.answered_at) - now
        if left_s > 0:
            self._timer = self._loop.call_later(left_s, self._check_silence)
        else:
            self.fell = True
            self._limit.reschedule(self._loop.time())

    def end(self) -> None:
        """Watch no longer."""
        self._timer.cancel()


def _build_timeout_error(call: HttpCall, attempt: RequestAttempt, *, reading: bool) -> WireError:
    """Return the failure of an attempt at the end of the call's whole time."""
    if call.asked is not None:
        cause = "it waited for the function, which may still be running"
        text = (
            f"the call's time of {get_original_timeout(call.timeouts.total or 0.0):g} s was up while {cause}"
        )
        return WireError(text, timed_out=True, final=True)
    if reading:
        waited = "the rest of the reply"
    elif call.body is None:
        waited = "a connection, or for the reply"
    else:
        waited = "the reply" if attempt.sent else "a connection, and for the request to be taken"
    time_s = get_original_timeout(call.timeouts.total or 0.0)
    text = f"the call's time of {time_s:g} s was up while it waited for {waited}"
    return WireError(text, sent=attempt.sent, timed_out=True)


async def _read_reply(progress: Progress, reply: Reply, attempt: RequestAttempt) -> RawResponse | Failure:
    if not progress.call.raw and not 200 <= reply.status < 300:
        start = b""
        with contextlib.suppress(WireError):  # an incomplete body of an error is no failure
            while len(start) < _ERROR_BYTES and (piece := await reply.next()) is not None:
                start += piece
        refusal = build_error_from_reply(reply.status, reply.headers, start)
        settings = progress.settings
        if reply.status in {404, 405} and settings.adapter is None and settings.base_url.endswith("/v1"):
            refusal.advice = _OPENAI_ADVICE
        wait = parse_retry_after(reply.headers, progress.clock.time())
        return Failure(refusal, status=reply.status, retry_after_s=wait)
    pieces: list[bytes] = []
    try:
        while (piece := await reply.next()) is not None:
            pieces.append(piece)
            attempt.record_progress()
    except WireError as error:
        if error.timed_out or error.too_large or progress.call.free:
            return _build_failure(progress, error)
        fault = str(error)
    else:
        whole = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return RawResponse(reply.status, reply.headers, whole, progress.build_timing())
    # Not repeated: the work has been done, and most likely counted.
    content = b"".join(pieces)
    text = f"the reply was cut short after {len(content):,} bytes ({fault})"
    return Failure(StreamTruncatedError(text, partial=content), sent=True, final=True)


def _build_failure(progress: Progress, fault: WireError, *, broke_off: bool = False) -> Failure:
    settings, call = progress.settings, progress.call
    where = call.describe_target(settings.place)
    if fault.too_large:
        return Failure(ContractError(f"{where}: {fault}"), sent=True, final=True)
    advice = [fault.advice] if fault.advice else []
    if not advice and fault.sent and not call.free:
        advice = ["the request had been sent in full, so it may have been done and billed"]
    elif not advice and broke_off and call.body is not None and not fault.timed_out:
        size = f"{call.body.length / 1e6:,.1f} MB"
        advice = [
            f"the connection broke while the request of {size} was sent; the service may refuse that size"
        ]
    elif not advice and not fault.timed_out:
        lease = settings.lease
        advice = [
            lease.describe_failure() if lease is not None else "check base_url, and that the service runs"
        ]
    if fault.timed_out and not fault.advice:
        advice.append("give a longer time as timeout= of the call, or by with_options(timeout=...)")
    kind = APITimeoutError if fault.timed_out else APIConnectionError
    error = kind(f"{where}: {fault}", possibly_metered=fault.sent and not call.free)
    error.advice = "; ".join(advice)
    if fault.final:
        error.retryable = False
    return Failure(error, sent=fault.sent, timed_out=fault.timed_out, final=fault.final, broke_off=broke_off)
