"""Performing an operation: look it up in the store, or send it, read the reply, count it and keep it; voices."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakKeyDictionary

import orjson

from speechlab._traces import warn_user
from speechlab.client._events import Timing, attach_timing
from speechlab.client._operations.call import RawResponse, Reply, attach_headers_and_timing
from speechlab.client._operations.operation import Operation, TimeLeft, get_original_timeout, resolve_timeout
from speechlab.client._operations.speech import SpeechOptions
from speechlab.client._operations.voices import (
    VoiceCatalogue,
    build_voices_call,
    describe_absent_voices,
    parse_catalogue,
)
from speechlab.client._realtime.dial import RealtimeOptions
from speechlab.client._services.sender import LARGE_BYTES, Sender, run_in_thread_if_large
from speechlab.client._settings.settings import build_not_replayable_error
from speechlab.client._stored_calls import Memory, StoredCall, build_replay_miss
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

if TYPE_CHECKING:
    from speechlab.client._services.service import Service

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
# Statuses of services without speech, or whose voices are not open to this key.
_NO_CATALOGUE_STATUSES = frozenset({403, 404, 405, 501})


class Performer:
    """Performs operations for a client: from its store, or by its service; and knows the service's voices.

    A copy shares the connections, and has other settings, or calls that form a group.
    """

    def __init__(self, sender: Sender) -> None:
        self.sender = sender
        self.settings = sender.settings
        self.memory = Memory.from_settings(sender.settings)
        self.catalogue: VoiceCatalogue | None = None
        self.unlisted = False
        """Whether the service has no catalogue, by its reply to an earlier request."""

    def copy(self, **changes: Any) -> Performer:
        """Return a copy whose sender has these fields changed."""
        copy = Performer(replace(self.sender, **changes))
        before, after = self.settings, copy.settings
        if (after.store, after.mode) == (before.store, before.mode):
            # Another store needs a copy of the catalogue as well, so it is requested again.
            copy.take_catalogue_of(self)
        return copy

    def take_catalogue_of(self, other: Performer) -> None:
        """Know what another performer of the same service knows about its voices."""
        self.catalogue, self.unlisted = other.catalogue, other.unlisted

    @property
    def service(self) -> Service:
        """Who performs what is not in the store."""
        return self.sender.service

    async def perform(self, operation: Operation[R]) -> tuple[Reply | RawResponse, R]:
        """Return the reply to an operation, and its result."""
        if isinstance(operation, SpeechOptions):
            operation = await self.resolve_voice(operation)
        stored = await self.build_stored_call(operation)
        if stored is None:
            return await self._request_and_store_result(operation, None)

        async def load_from_store() -> tuple[Reply | RawResponse, R] | None:
            reply = await asyncio.to_thread(stored.load_reply, operation)
            return None if reply is None else (reply, await self._read(operation, reply))

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
        clock = self.settings.clock
        # in a batch, the timeout of a call is for its attempts
        time_s = None if self.sender.group is not None else resolve_timeout(timeout_s, self.settings.timeout)
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
    ) -> tuple[Reply | RawResponse, R]:
        """Make a call within the rest of its timeout, count it, and keep its result."""
        if isinstance(left_s, TimeLeft):
            operation = replace(cast("Any", operation), timeout=left_s)
        reply = await self.sender.perform(operation)
        result = await self._read(operation, reply)
        spent = await run_in_thread_if_large(operation.effort, operation.count_usage, result)
        self.sender.totals.add(**spent)
        if stored is not None:
            await asyncio.to_thread(stored.save_result, operation, reply, result)
        return reply, result

    async def _read(self, operation: Operation[R], reply: Reply | RawResponse) -> R:
        """Read a reply, in a thread if it is large."""
        try:
            if isinstance(reply, RawResponse) and len(reply.content) >= LARGE_BYTES:
                return await asyncio.to_thread(operation.read, reply)
            return operation.read(reply)
        except SpeechLabError as error:
            # the request was sent and may be billed, even if the reply is not usable
            attach_headers_and_timing(error, reply.headers, reply.timing)
            raise

    async def build_stored_call(self, operation: Operation[Any]) -> StoredCall | None:
        """Return the form of an operation in the store; None for a client without a store."""
        if self.memory is None:
            return None
        build = self.service.build_parameters
        parameters = await run_in_thread_if_large(operation.effort, build, operation)
        try:
            service = await self.identify(operation.resolve_timeout(self.settings.timeout))
        except ReplayMiss:  # of the catalogue, which the user did not request
            raise build_replay_miss(self.memory.store, operation.name, parameters, "") from None
        return StoredCall(self.memory, operation.name, parameters, service)

    async def list_voices(self, timeout_s: float | None = None) -> tuple[Reply | RawResponse, VoiceCatalogue]:
        """Return the catalogue of the service, and the reply that it was read from."""
        memory, home = self.memory, self.service.home
        reply: Reply | RawResponse
        if memory is not None and memory.replaying:
            service, body = await asyncio.to_thread(memory.load_identity_and_catalogue, home)
            if body is None:
                raise build_not_replayable_error("voices")
            reply = RawResponse(200, {"content-type": "application/json"}, orjson.dumps(body))
            self.catalogue = VoiceCatalogue(VoiceList.parse(body).voices, service)
            return reply, self.catalogue
        catalogue = self.service.build_known_catalogue()
        if catalogue is None:
            call = build_voices_call(resolve_timeout(timeout_s, self.settings.timeout))
            reply = await self.sender.send(call)
            assert isinstance(reply, RawResponse)
            try:
                catalogue = parse_catalogue(reply)
            except SpeechLabError as error:
                attach_headers_and_timing(error, reply.headers, reply.timing)
                raise
        else:
            self.sender.connections.bind_to_loop()  # which an error says if the client is closed
            voices = [voice.model_dump(mode="json", exclude_unset=True) for voice in catalogue]
            reply = Reply({"voices": voices}, timing=Timing(attempts=0))
        self.catalogue = catalogue
        if memory is not None:
            await asyncio.to_thread(
                memory.save_identity_and_catalogue, home, catalogue.service or home, reply.fields
            )
        return reply, catalogue

    async def identify(self, timeout_s: float | None = None) -> str:
        """Return the identity of the service, from its catalogue, or else its address."""
        memory, home = self.memory, self.service.home
        if memory is not None and memory.replaying:
            return (await asyncio.to_thread(memory.load_identity_and_catalogue, home))[0]

        async def find_known_identity() -> str | None:
            if self.unlisted or self.catalogue is None:
                return home if self.unlisted else None
            return self.catalogue.service or home

        async def request_identity(left_s: float | None) -> str:
            try:
                return (await self.list_voices(left_s))[1].service or home
            except APIError as error:
                if error.status not in _NO_CATALOGUE_STATUSES:
                    raise
            self.unlisted = True
            if memory is not None:
                await asyncio.to_thread(memory.save_identity_and_catalogue, home, home, None)
            return home

        return await self._share_or_request_result(
            (f"client {id(self)}", "voices"), find_known_identity, request_identity, timeout_s
        )

    async def resolve_voice(self, options: V) -> V:
        """Return the options with the voice of the catalogue; warn once of a lexicon with voices that it has not."""
        if isinstance(options.voice, Voice):  # as in each call of a batch, whose plan has warned
            return options
        found = await self._find_voice(options)
        if options.respell is not None and self.catalogue is not None:
            text = describe_absent_voices(options.respell, self.catalogue)
            if text:
                warn_user(text, stacklevel=1)
        return found

    async def _find_voice(self, options: V) -> V:
        """Return the options with the voice of the catalogue, which is requested only to look up a description."""
        voice: object = options.voice
        if not isinstance(voice, str):
            message = f"voice is a {type(voice).__name__}; give a Voice, its id, or part of its description"
            raise InvalidRequestError(message, parameter="voice_id", rule="2.2")
        catalogue = self.catalogue
        is_id = parse_uuid(voice.strip()) is not None
        if is_id and (options.respell is None or catalogue is not None):
            listed = catalogue.get(voice.strip()) if catalogue is not None else None
            return options if listed is None else replace(options, voice=listed)
        if catalogue is not None:
            return replace(options, voice=catalogue.one(voice))
        clock, name = self.settings.clock, getattr(options, "name", "realtime")
        time_s = resolve_timeout(getattr(options, "timeout", None), self.settings.timeout)
        began = clock.monotonic()
        try:
            _, catalogue = await self.list_voices(time_s)
        except ReplayMiss as missed:
            text = f"this {name} call is not kept: {missed.message}; the catalogue is needed to find {voice[:60]!r}"
        else:
            options = replace(options, voice=catalogue.one(voice))
            if time_s is None or isinstance(options, RealtimeOptions):  # each text of a session has its own
                return options
            remaining = TimeLeft(time_s - (clock.monotonic() - began), time_s)
            return cast("V", replace(cast("Any", options), timeout=remaining))
        raise ReplayMiss(text, operation=name, parameter="voice_id")
