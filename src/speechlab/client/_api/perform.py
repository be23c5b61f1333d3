"""Performing an operation: look it up in the store, or send it, read the reply, count it and keep it; voices."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self, TypeVar, cast
from weakref import WeakKeyDictionary

import orjson

from speechlab.client._api.base import ClientBase
from speechlab.client._closable import AsyncClosable
from speechlab.client._events import CallTotals, RunningTotals, Timing, attach_timing
from speechlab.client._operations.call import RawResponse, attach_headers_and_timing
from speechlab.client._operations.operation import Operation, TimeLeft, get_original_timeout, resolve_timeout
from speechlab.client._operations.speech import SpeechOptions
from speechlab.client._operations.voices import VoiceCatalogue, build_voices_call, parse_catalogue
from speechlab.client._realtime.dial import RealtimeOptions
from speechlab.client._settings.settings import Settings, build_not_replayable_error
from speechlab.client._stored_calls import Memory, StoredCall, build_replay_miss
from speechlab.client._transport.connections import ConnectionPool
from speechlab.client._transport.sender import Sender
from speechlab.contract import Voice, VoiceList, parse_uuid
from speechlab.errors import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    InvalidRequestError,
    RateLimitError,
    ReplayMiss,
    ServerError,
    SpeechLabError,
)

T = TypeVar("T")
# The place where the result is kept, and its key.
CallKey = tuple[str, str]
# Failures of the service, after which each waiting call sends its own request.
_SERVICE_FAILURES = (APIConnectionError, RateLimitError, ServerError)
# The questions that are being asked on each loop; True once there is a result or a failure of the call alone.
_under_way: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[CallKey, asyncio.Future[bool]]] = (
    WeakKeyDictionary()
)


def _build_equal_call_timeout(waited_s: float, time_s: float | None) -> APITimeoutError:
    text = f"the call's time of {get_original_timeout(time_s or 0.0):g} s was up while it waited for another call"
    error = APITimeoutError(f"{text} of this process with the same request, which started before", attempts=0)
    error.advice = "give a longer time as timeout= of the call, or by with_options(timeout=...)"
    attach_timing(error, Timing(attempts=0, latency_s=waited_s))
    return error


R = TypeVar("R")
V = TypeVar("V", bound=SpeechOptions)
# Bytes from which work on a body moves to a thread.
_LARGE_BYTES = 4_000_000
# Statuses of services without speech, or whose voices are not open to this key.
_NO_CATALOGUE_STATUSES = frozenset({403, 404, 405, 501})


@dataclass(frozen=True)
class RawReply(RawResponse):
    """A raw reply (status, headers, content, timing) and its result."""

    _result: Any = field(default=None, repr=False)

    def parse(self) -> Any:
        """Return the result, as the call without ``with_raw_response`` returns it."""
        return self._result


class Performer(ClientBase, AsyncClosable):
    """The part of :class:`AsyncClient` that performs operations."""

    _raw = False
    """Whether calls return their replies as they came."""

    def _set_up_client(self, settings: Settings, parent: Self | None = None) -> None:
        self._settings = settings
        self._memory = Memory.from_settings(settings)
        self._owner = parent is None
        self._catalogue: VoiceCatalogue | None = None
        self._unlisted = False
        """Whether the service has no catalogue, by its reply to an earlier request."""
        if parent is None:
            self._sender: Sender = Sender(settings, ConnectionPool(), RunningTotals())
            return
        self._sender = replace(parent._sender, settings=settings)  # noqa: SLF001 - of the same class
        before = parent._settings  # noqa: SLF001 - of the same class
        if (settings.store, settings.mode) == (before.store, before.mode):
            # Another store needs a copy of the catalogue as well, so it is requested again.
            self._catalogue, self._unlisted = parent._catalogue, parent._unlisted  # noqa: SLF001 - of the same class

    @property
    def usage(self) -> CallTotals:
        """Totals of all calls through this client and the copies made by ``with_options``."""
        return self._sender.totals.sums

    async def aclose(self) -> None:
        """Close the connections, and release the embedded service if this client uses it."""
        if self._owner:
            await self._sender.connections.close()
            if self._settings.lease is not None:
                self._settings.lease.release()

    @property
    def with_raw_response(self) -> Any:
        """A copy of the client whose calls over HTTP return the reply as it came.

        ``voices``, ``synthesize``, ``transcribe``, ``translate`` and ``perform`` return a reply with ``status``,
        ``headers``, ``content`` and ``timing``; its ``parse()`` returns the result of the usual call. An open stream
        has its ``status`` and ``headers`` itself.
        """
        client = self.with_options()
        client._raw = True  # noqa: SLF001 - of the same class
        return client

    def _wrap_result_if_raw(self, reply: RawResponse, result: T) -> T:
        """Return what a call returns: its result, or its raw reply."""
        if not self._raw:
            return result
        return cast("T", RawReply(reply.status, reply.headers, reply.content, reply.timing, result))

    async def perform(self, operation: Operation[R]) -> R:
        """Take the result of an operation from the store, or make the call.

        ``synthesize``, ``transcribe`` and ``translate`` make an operation from their arguments and perform it.

        Args:
            operation: A ``Synthesize``, ``Transcribe`` or ``Translate``.

        Returns:
            The result of the method of the same name.

        Raises:
            InvalidRequestError: The request breaks a rule of the contract; nothing was sent.
            APIError: The service returned an error.
            APIConnectionError: No reply came.
            ContractError: The reply breaks the contract.
        """
        return self._wrap_result_if_raw(*await self._fetch_reply_and_result(operation))

    async def _fetch_reply_and_result(self, operation: Operation[R]) -> tuple[RawResponse, R]:
        """Return the reply to an operation, and its result."""
        if isinstance(operation, SpeechOptions):
            operation = await self._resolve_voice_in_options(operation)
        operation = self._settings.adapt_operation(operation)
        stored = await self._build_stored_call(operation)
        if stored is None:
            return await self._request_and_store_result(operation, None)

        async def load_from_store() -> tuple[RawResponse, R] | None:
            reply = await asyncio.to_thread(stored.load_reply, operation)
            return None if reply is None else (reply, await _parse_reply(operation, reply))

        ask = partial(self._request_and_store_result, operation, stored)
        if not stored.memory.asks:
            return await load_from_store() or await ask()
        return await self._share_or_request_result(
            (str(stored.memory.store.path), stored.key), load_from_store, ask, operation.timeout
        )

    async def _share_or_request_result(
        self,
        question: CallKey,
        look: Callable[[], Awaitable[T | None]],
        ask: Callable[[float | None], Awaitable[T]],
        timeout_s: float | None,
    ) -> T:
        """The result of a call: kept, of an equal call under way, or of an own request if the service failed that."""
        clock = self._settings.clock
        # in a batch, the timeout of a call is for its attempts
        time_s = (
            None if self._sender.group is not None else resolve_timeout(timeout_s, self._settings.timeout)
        )
        began, left_s, together = clock.monotonic(), time_s, True
        loop = asyncio.get_running_loop()
        under_way = _under_way.setdefault(loop, {})
        while together:
            asking = under_way.get(question)
            if asking is None:
                under_way[question] = end = loop.create_future()
                try:
                    result = await look()
                    return await ask(left_s) if result is None else result
                except _SERVICE_FAILURES:
                    end.set_result(False)
                    raise
                finally:
                    del under_way[question]
                    if not end.done():
                        end.set_result(True)
            result = await look()
            if result is not None:
                return result
            try:
                async with asyncio.timeout(left_s):
                    together = await asyncio.shield(asking)
            except TimeoutError:
                raise _build_equal_call_timeout(clock.monotonic() - began, time_s) from None
            if time_s is not None:
                left_s = TimeLeft(time_s - (clock.monotonic() - began), get_original_timeout(time_s))
        return await ask(left_s)

    async def _request_and_store_result(
        self, operation: Operation[R], stored: StoredCall | None, left_s: float | None = None
    ) -> tuple[RawResponse, R]:
        """Make a call within the rest of its timeout, count it, and keep its result."""
        if isinstance(left_s, TimeLeft):
            operation = replace(cast("Any", operation), timeout=left_s)
        call = await run_in_thread_if_large(operation.effort, operation.call, self._settings.timeout)
        reply = await self._sender.send(call)
        result = await _parse_reply(operation, reply)
        self._sender.totals.add(**operation.count_usage(result))
        if stored is not None:
            await asyncio.to_thread(stored.save_result, operation, reply, result)
        return reply, result

    async def _build_stored_call(self, operation: Operation[Any]) -> StoredCall | None:
        """Return the form of an operation in the store; None for a client without a store."""
        if self._memory is None:
            return None
        parameters = await run_in_thread_if_large(operation.effort, getattr, operation, "parameters")
        try:
            service = await self.identity(timeout=operation.resolve_timeout(self._settings.timeout))
        except ReplayMiss:  # of the catalogue, which the user did not request
            raise build_replay_miss(self._memory.store, operation.name, parameters, "") from None
        return StoredCall(self._memory, operation.name, parameters, service)

    async def voices(self, *, timeout: float | None = None) -> VoiceCatalogue:  # noqa: ASYNC109 - of the request, retries included
        """List the voices (section 4.2 of the contract).

        Args:
            timeout: Seconds for this call with its retries; None is the client's.

        Raises:
            APIError: The service returned an error.
            APIConnectionError: No reply came.
            ContractError: The reply is not a catalogue.
        """
        return self._wrap_result_if_raw(*await self._fetch_reply_and_catalog(timeout))

    async def _fetch_reply_and_catalog(self, timeout_s: float | None) -> tuple[RawResponse, VoiceCatalogue]:
        memory, home = self._memory, self._settings.home
        if memory is not None and memory.replaying:
            service, body = await asyncio.to_thread(memory.load_identity_and_catalogue, home)
            if body is None:
                raise build_not_replayable_error("voices")
            reply = RawResponse(200, {"content-type": "application/json"}, orjson.dumps(body))
            self._catalogue = VoiceCatalogue(VoiceList.parse(body).voices, service)
            return reply, self._catalogue
        reply = await self._sender.send(build_voices_call(resolve_timeout(timeout_s, self._settings.timeout)))
        try:
            self._catalogue = catalogue = parse_catalogue(reply)
        except SpeechLabError as error:
            attach_headers_and_timing(error, reply.headers, reply.timing)
            raise
        if memory is not None:
            await asyncio.to_thread(
                memory.save_identity_and_catalogue, home, catalogue.service or home, reply.json()
            )
        return reply, catalogue

    async def identity(self, *, timeout: float | None = None) -> str:  # noqa: ASYNC109 - of the request, retries included
        """Return the identity of the service, part of the keys under which its results are kept.

        Args:
            timeout: Seconds, if a request is necessary; None is the client's.

        Returns:
            The header ``X-Speechlab-Service`` of the catalogue (the service's version and a digest of its engines'
            settings), or else the address. Never a credential.

        Raises:
            APIError: The service returned an error.
            APIConnectionError: No reply came.
            ContractError: The reply is not a catalogue.
        """
        memory, home = self._memory, self._settings.home
        if memory is not None and memory.replaying:
            return (await asyncio.to_thread(memory.load_identity_and_catalogue, home))[0]

        async def find_known_identity() -> str | None:
            if self._unlisted or self._catalogue is None:
                return home if self._unlisted else None
            return self._catalogue.service or home

        async def request_identity(left_s: float | None) -> str:
            try:
                return (await self._fetch_reply_and_catalog(left_s))[1].service or home
            except APIError as error:
                if error.status not in _NO_CATALOGUE_STATUSES:
                    raise
            self._unlisted = True
            if memory is not None:
                await asyncio.to_thread(memory.save_identity_and_catalogue, home, home, None)
            return home

        return await self._share_or_request_result(
            (f"client {id(self)}", "voices"), find_known_identity, request_identity, timeout
        )

    async def _resolve_voice_in_options(self, options: V) -> V:
        """Return the options with the voice of the catalogue, which is requested only to look up a description."""
        voice: object = options.voice
        if isinstance(voice, Voice):
            return options
        if not isinstance(voice, str):
            message = f"voice is a {type(voice).__name__}; give a Voice, its id, or part of its description"
            raise InvalidRequestError(message, parameter="voice_id", rule="2.2")
        catalogue = self._catalogue
        if parse_uuid(voice.strip()) is not None:
            listed = catalogue.get(voice.strip()) if catalogue is not None else None
            return options if listed is None else replace(options, voice=listed)
        if catalogue is not None:
            return replace(options, voice=catalogue.one(voice))
        clock, name = self._settings.clock, getattr(options, "name", "realtime")
        time_s = resolve_timeout(getattr(options, "timeout", None), self._settings.timeout)
        began = clock.monotonic()
        try:
            _, catalogue = await self._fetch_reply_and_catalog(time_s)
        except ReplayMiss as missed:
            text = f"this {name} call is not kept: {missed.message}; the catalogue is needed to find {voice[:60]!r}"
        else:
            options = replace(options, voice=catalogue.one(voice))
            if time_s is None or isinstance(options, RealtimeOptions):  # each text of a session has its own
                return options
            remaining = TimeLeft(time_s - (clock.monotonic() - began), time_s)
            return cast("V", replace(cast("Any", options), timeout=remaining))
        raise ReplayMiss(text, operation=name, parameter="voice_id")


async def _parse_reply(operation: Operation[R], reply: RawResponse) -> R:
    """Read a reply."""
    try:
        return await run_in_thread_if_large(len(reply.content), operation.read, reply)
    except SpeechLabError as error:
        # the request was sent and may be billed, even if the reply is not usable
        attach_headers_and_timing(error, reply.headers, reply.timing)
        raise


async def run_in_thread_if_large(size: int, function: Callable[..., T], *args: Any) -> T:
    """Call a function, in a thread if the work is large enough to block the event loop noticeably."""
    return function(*args) if size < _LARGE_BYTES else await asyncio.to_thread(function, *args)
