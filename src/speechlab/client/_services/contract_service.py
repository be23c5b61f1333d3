"""A service of the contract: one request of HTTP for each attempt, and its reply or how it failed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from speechlab.client._operations.call import HttpCall, RawResponse, ServiceCall
from speechlab.client._operations.failures import build_error_from_reply, parse_retry_after
from speechlab.client._scheduling.retry import Failure
from speechlab.client._scheduling.scheduler import Scheduler, get_scheduler
from speechlab.client._services.service import Service
from speechlab.client._settings.settings import AIOHTTP, EMBEDDED_PREFIX, normalize_url, to_engines_json
from speechlab.client._transport.http import LibraryReply, RequestAttempt, build_reply_timeout_error
from speechlab.client._transport.wire_errors import WireError
from speechlab.client._transport.wires import FIRST_CALLS, build_wire, choose_library
from speechlab.contract import CONCURRENCY_HEADER, parse_concurrency_header
from speechlab.errors import (
    APIConnectionError,
    APITimeoutError,
    ContractError,
    StreamTruncatedError,
)

if TYPE_CHECKING:
    from random import Random

    from speechlab.client._clock import Clock
    from speechlab.client._operations.operation import Operation
    from speechlab.client._operations.voices import VoiceCatalogue
    from speechlab.client._scheduling.waiting import CallPlace
    from speechlab.client._services.progress import Progress
    from speechlab.client._settings.settings import Settings
    from speechlab.client._transport.http import Wire

_ERROR_BYTES = 1 << 20
# Advice on a reply that a service of OpenAI's API gives to a request of the contract.
_OPENAI_ADVICE = (
    "an address that ends in /v1 is mostly that of OpenAI's API; give its adapter: sl.connect(…, "
    "adapter=sl.client.OpenAIAdapter(…))"
)


class ContractService(Service):
    """A service that speaks the contract."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        # Those of the first client: the options of the connections, which copies do not change.
        self._settings = settings
        self._key = settings.api_key.fingerprint() if settings.api_key else ""
        self._concurrency = ""
        """The numbers of calls that the service works on at once, as it last said."""
        self._library = ""
        self._calls = 0
        self.place = settings.base_url

    @property
    def home(self) -> str:  # type: ignore[override]  # the base class has a field
        """The address, or the options of the embedded service's engines."""
        if self._settings.engines is not None:
            return EMBEDDED_PREFIX + to_engines_json(self._settings.engines)
        return normalize_url(self._settings.base_url)

    def build_known_catalogue(self) -> VoiceCatalogue | None:
        return None

    def get_scheduler(self, queue: str, clock: Clock, rng: Random) -> Scheduler:
        return get_scheduler(self.place, self._key, queue, clock, rng)

    def prepare(self, operation: Operation[Any], timeout: float | None) -> ServiceCall:
        return operation.call(timeout)

    async def perform(self, call: ServiceCall, progress: Progress, place: CallPlace) -> RawResponse | Failure:
        assert isinstance(call, HttpCall)
        exchange = _Exchange(call, progress, place)
        outcome: RawResponse | Failure
        try:
            async with asyncio.timeout(progress.left_s) as limit:
                reply = await self._open_reply(exchange, limit)
                if call.raw or 200 <= reply.status < 300:
                    outcome = await exchange.read_whole(reply)
                    if isinstance(outcome, RawResponse) and not call.raw:
                        outcome = self._convert_reply(call, outcome)
                else:
                    outcome = await self._read_refusal(exchange, reply)
        except WireError as error:
            fault = error
        except TimeoutError:
            fault = exchange.build_timeout_error()
        else:
            return outcome
        finally:
            await exchange.close()
        return exchange.build_failure(fault)

    async def open_stream(
        self, call: ServiceCall, progress: Progress, place: CallPlace
    ) -> LibraryReply | Failure:
        assert isinstance(call, HttpCall)
        exchange = _Exchange(call, progress, place)
        try:
            async with asyncio.timeout(progress.left_s):
                reply = await self._open_reply(exchange)
                if not 200 <= reply.status < 300:
                    return await self._read_refusal(exchange, reply)
        except WireError as error:
            fault = error
        except TimeoutError:
            fault = exchange.build_timeout_error()
        else:
            exchange.reply = None  # it goes on
            return reply
        finally:
            await exchange.close()
        return exchange.build_failure(fault)

    async def _open_reply(self, exchange: _Exchange, limit: asyncio.Timeout | None = None) -> LibraryReply:
        """Send the request, and wait for the headers of its reply; ``limit`` is that of a whole reply."""
        progress, settings = exchange.progress, exchange.progress.settings
        wire = self._get_wire()
        call = exchange.call
        attempt = exchange.attempt = RequestAttempt(
            call, settings.connect_timeout_s, call.timeouts.read, settings.default_headers
        )
        if limit is not None and settings.lease is None and not call.raw and call.body is not None:
            # The embedded service sends signs of life, which only the library sees; others may have a queue.
            exchange.watch_silence(limit)
        exchange.reply = reply = await wire.open(attempt)
        attempt.record_progress()
        progress.record_reply(exchange.place, reply.status, reply.headers)
        # The schedulers follow a service that says how many calls it works on at once, by service.
        numbers = reply.headers.get(CONCURRENCY_HEADER, "")
        if numbers != self._concurrency and 200 <= reply.status < 300:
            self._concurrency = numbers
            for queue, at_once in parse_concurrency_header(numbers).items():
                self.get_scheduler(queue, settings.clock, settings.rng).set_capacity(at_once)
        return reply

    def _get_wire(self) -> Wire:
        """Return the connections for a call."""
        if self._calls <= FIRST_CALLS and self._library != AIOHTTP:
            self._calls += 1
            self._library = choose_library(self._settings, self._calls)
        return self.connections.get(self._library, partial(build_wire, self._settings, self._library))

    async def _read_refusal(self, exchange: _Exchange, reply: LibraryReply) -> Failure:
        """Read the reply of a call that the service refused."""
        start = b""
        with contextlib.suppress(WireError):  # an incomplete body of an error is no failure
            while len(start) < _ERROR_BYTES and (piece := await reply.next()) is not None:
                start += piece
        response = self._convert_reply(exchange.call, RawResponse(reply.status, reply.headers, start))
        refusal = build_error_from_reply(response.status, response.headers, response.content)
        if advice := self._advise_on(response.status):
            refusal.advice = advice
        wait_s = parse_retry_after(response.headers, exchange.progress.clock.time())
        final = response.status >= 500 and not refusal.retryable
        return Failure(refusal, status=response.status, retry_after_s=wait_s, final=final)

    def _convert_reply(self, call: HttpCall, response: RawResponse) -> RawResponse:  # noqa: ARG002 - of other kinds
        """Return a reply in the form of the contract."""
        return response

    def _advise_on(self, status: int) -> str:
        """Return advice on a refusal that the address explains."""
        return _OPENAI_ADVICE if status in {404, 405} and self.place.endswith("/v1") else ""


class _Exchange:
    """One request and its reply: its time limits, and how it failed."""

    def __init__(self, call: HttpCall, progress: Progress, place: CallPlace) -> None:
        self.call, self.progress, self.place = call, progress, place
        self.attempt: RequestAttempt | None = None  # None while the connections are made
        self.reply: LibraryReply | None = None
        self._watch: _SilenceWatch | None = None

    def watch_silence(self, limit: asyncio.Timeout) -> None:
        """Let the request wait for its turn at the service, unless that is silent to all calls."""
        assert self.attempt is not None
        self.attempt.read_s = None
        limits = self.call.timeouts
        if limits.total is None or limits.read < limits.total:
            self._watch = _SilenceWatch(self.place, limit, self.attempt)

    async def close(self) -> None:
        """Close the reply, unless it goes on as a stream."""
        if self._watch is not None:
            self._watch.end()
        if self.reply is not None:
            await self.reply.close()

    async def read_whole(self, reply: LibraryReply) -> RawResponse | Failure:
        """Read the whole body of a reply."""
        pieces: list[bytes] = []
        attempt = self.attempt
        assert attempt is not None
        try:
            while (piece := await reply.next()) is not None:
                pieces.append(piece)
                attempt.record_progress()
        except WireError as error:
            if error.timed_out or error.too_large or self.call.free:
                return self.build_failure(error)
            fault = str(error)
        else:
            whole = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            return RawResponse(reply.status, reply.headers, whole, self.progress.build_timing())
        # Not repeated: the work has been done, and most likely counted.
        content = b"".join(pieces)
        text = f"the reply was cut short after {len(content):,} bytes ({fault})"
        return Failure(StreamTruncatedError(text, partial=content), sent=True, final=True)

    def build_timeout_error(self) -> WireError:
        """Return the failure of an attempt at the end of the call's whole time, or after too long a silence."""
        attempt, reading = self.attempt, self.reply is not None
        sent = attempt is not None and attempt.sent
        if attempt is not None and self._watch is not None and self._watch.fell:
            return build_reply_timeout_error(attempt, reading=reading)
        if reading:
            waited = "the rest of the reply"
        elif self.call.body is None:
            waited = "a connection, or for the reply"
        else:
            waited = "the reply" if sent else "a connection, and for the request to be taken"
        return WireError(self.progress.describe_end_of_time(waited), sent=sent, timed_out=True)

    def build_failure(self, fault: WireError) -> Failure:
        """Return a failure of the connection as that of the attempt."""
        call, lease = self.call, self.progress.settings.lease
        broke_off = self.attempt is not None and self.attempt.broke_off
        where = self.progress.target
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
        return Failure(
            error, sent=fault.sent, timed_out=fault.timed_out, final=fault.final, broke_off=broke_off
        )


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
