"""The bases of streams, whose connection lasts from entering to leaving, which stops the service's work."""

from __future__ import annotations

import asyncio
import os
import weakref
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from speechlab.client._clock import wake_for_interrupts
from speechlab.client._closable import AsyncOpenable, build_forked_error, close_soon
from speechlab.client._events import Timing
from speechlab.client._operations.call import attach_headers_and_timing
from speechlab.client._operations.operation import Operation, get_original_timeout
from speechlab.client._stored_calls import StoredCall, Tape, TapedBody
from speechlab.client._transport.wire_errors import WireError
from speechlab.errors import ConfigurationError, SpeechLabError, StreamTruncatedError
from speechlab.notebook import Playback, show_stream_player

if TYPE_CHECKING:
    from speechlab.client._services.sender import ReplyStream, Sender

    StreamBody = ReplyStream | TapedBody
    """A body in pieces, from the service or from a tape."""
    StoredCallOf = Callable[[Operation[Any]], Awaitable[StoredCall | None]]
    """Gives the form of an operation in the store; None for clients without a store."""


class Playable:
    """Speech that can be played while it is made."""

    def play(self) -> Playback:
        """Play the sound while it is made, in a player that the running cell shows.

        It sounds with the first piece, and begins after the player before it has ended. Its button stops the
        service's work. What comes is read in the background, and has to be in WAV or PCM.

        Returns:
            The player: ``wait()`` or ``await`` gives the clip at the end, ``times`` the times, ``stop()`` stops it.

        Raises:
            MissingDependencyError: The extra ``lab`` is not installed.
        """
        return show_stream_player(self, getattr(self, "text", ""))


class Stream(AsyncOpenable):
    """Opening, reading and closing, for speech and for translations."""

    def __init__(self, sender: Sender, stored_call_of: StoredCallOf) -> None:
        self._body: StreamBody | None = None
        self._sender = sender
        self._stored_call_of = stored_call_of
        self._tape: Tape | None = None
        self._let_go: weakref.finalize[..., Stream] | None = None
        self._opening = asyncio.Lock()
        self._reading = False
        self._closed = False
        self._timing = Timing()
        self._pid = os.getpid()
        self._time_s: float | None = None
        """Seconds for opening and reading together, without what the reader does in between; None is no limit."""
        self._spent_s = 0.0
        self._resumed_at: float | None = None

    @property
    def timing(self) -> Timing:
        """Durations so far, and the number of attempts."""
        return self._body.timing if self._body is not None and not self._closed else self._timing

    @property
    def status(self) -> int | None:
        """HTTP status; None before the stream is open."""
        return None if self._body is None else self._body.status

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the reply, names in lower case; empty before the stream is open."""
        return {} if self._body is None else self._body.headers

    @property
    def _media_type(self) -> str:
        """Media type without its parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def open(self) -> None:
        """Send the request, and wait for the headers of the reply.

        Raises:
            InvalidRequestError: The request breaks a rule of the contract.
            APIError: The service returned an error.
            APIConnectionError: No reply came.
            ContractError: The reply has another type.
        """
        async with self._opening:  # several threads may start to read, and the request must be sent once
            if self._pid != os.getpid():
                raise build_forked_error(self._pid, "stream")
            if self._closed:
                raise ConfigurationError("this stream is closed; make a new one")
            if self._body is None:
                await self._open_reply()

    @abstractmethod
    async def _open_reply(self) -> None:
        """Send the request, or find its reply in the store."""

    async def _find_or_request_body(self, operation: Operation[Any]) -> StreamBody:
        """Find the body in the store; one that is requested is recorded for the store."""
        sender = self._sender
        body: StreamBody | None = None
        call = await self._stored_call_of(operation)
        if call is not None:
            clock, recalled = sender.settings.clock, await asyncio.to_thread(call.load)
            if recalled is None:
                self._tape = Tape(clock, call)
            else:
                stored, facts = recalled
                body = TapedBody(stored.files["body"], facts, clock, at_pace=call.memory.paced)
        if body is None:
            self._time_s = operation.resolve_timeout(sender.settings.timeout)
            body = await sender.open_stream(operation)
            self._spent_s = body.timing.latency_s
            if self._resumed_at is not None:
                self._resumed_at = sender.settings.clock.monotonic()
            sender.connections.sessions.add(self)
        self._body = body
        # A stream that is dropped before its end must return its place in the scheduler.
        self._let_go = weakref.finalize(self, close_soon, asyncio.get_running_loop(), self._pid, body.close)
        self._let_go.atexit = False
        return body

    async def _read_bytes(self) -> bytes | None:
        """Return the next bytes of the body, or None at the end; WireError if the body is incomplete."""
        assert self._body is not None
        if self._pid != os.getpid():
            raise build_forked_error(self._pid, "stream")
        if self._reading:
            raise ConfigurationError(
                "another thread or task is reading this stream; read it in one of them, and share what it returns"
            )
        self._reading = True
        try:
            piece = await self._wait_for_bytes()
        finally:
            self._reading = False
        if piece is None:
            if not self._body.ended:
                raise WireError("reading it was interrupted", sent=True)
            return None
        if self._tape is not None:
            self._tape.add(piece)
        return piece

    @contextmanager
    def _count_time_spent(self) -> Iterator[None]:
        """Count the time of the block, in which the reader waits for the stream."""
        monotonic = self._sender.settings.clock.monotonic
        if self._resumed_at is not None:  # within another such block
            yield
            return
        self._resumed_at = monotonic()
        try:
            yield
        finally:
            self._spent_s += monotonic() - self._resumed_at
            self._resumed_at = None

    def _check_time_left(self) -> float | None:
        """Return the rest of the call's timeout; WireError if there is none."""
        if self._time_s is None:
            return None
        now = self._sender.settings.clock.monotonic()
        left_s = self._time_s - self._spent_s - (0.0 if self._resumed_at is None else now - self._resumed_at)
        if left_s <= 0:
            raise self._build_timeout_error()
        return left_s

    async def _wait_for_bytes(self) -> bytes | None:
        """Wait for the next bytes, within the rest of the call's timeout."""
        assert self._body is not None
        try:
            # The check as well: bytes that are there already come without a wait, which alone would end.
            with self._count_time_spent(), wake_for_interrupts():
                async with asyncio.timeout(self._check_time_left()):
                    return await self._body.next()
        except TimeoutError:
            pass
        raise self._build_timeout_error()

    def _build_timeout_error(self) -> WireError:
        given_s = get_original_timeout(self._time_s or 0.0)
        text = (
            f"the call's time of {given_s:g} s is up; a longer one can be given by with_options(timeout=...)"
        )
        return WireError(text, sent=True, timed_out=True)

    async def _save_and_count_stream(self, spent: dict[str, float]) -> None:
        """Keep and count a complete stream; a stream from the store is not counted."""
        assert self._body is not None
        if self._tape is not None:
            await asyncio.to_thread(self._tape.save, self._body.headers.get("content-type", ""), self.timing)
        if not isinstance(self._body, TapedBody):
            self._sender.totals.add(**spent)

    async def aclose(self) -> None:
        """Close the connection, which stops the service's work."""
        if not self._closed:
            self._timing = self.timing
            self._closed = True
            self._sender.connections.sessions.discard(self)
            if self._body is not None and self._pid == os.getpid():
                await self._body.close()
                if self._let_go is not None:
                    self._let_go.detach()

    async def _close_with_error(self, error: SpeechLabError) -> SpeechLabError:
        """Close the stream, and attach its facts to the error that ends it."""
        await self.aclose()
        return self._attach_facts_and_count(error)

    def _attach_facts_and_count(self, error: SpeechLabError) -> SpeechLabError:
        if isinstance(error, StreamTruncatedError) and not isinstance(self._body, TapedBody):
            error.possibly_metered = True
            self._sender.totals.add(possibly_metered=1)
        return attach_headers_and_timing(error, self.headers, self.timing)


async def read_start(body: StreamBody) -> str:
    """Return the start of an unexpected body, for error messages."""
    with suppress(WireError):
        return (await body.next() or b"")[:2000].decode("utf-8", "replace")
    return ""
