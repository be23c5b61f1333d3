"""The state of one running service, shared by all its endpoints: its parts, and what is under way."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

import orjson
from starlette.datastructures import Headers

from speechlab._platform import find_engines_file, get_package_version
from speechlab.contract import HandshakeCode
from speechlab.service._accounts.database import Database
from speechlab.service._accounts.keys import Keyring, KeyStore
from speechlab.service._accounts.ledger import Counters, Ledger
from speechlab.service._accounts.limits import StoredLimits
from speechlab.service._accounts.metering import Meter, Metering
from speechlab.service._engines.engines import Engines
from speechlab.service._engines.health import Readiness, Upkeep
from speechlab.service._faults import HandshakeRefused
from speechlab.service._held_bytes import BytesBudget, HeldBytes
from speechlab.service._logs import log

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection, Request
    from starlette.types import Scope

    from speechlab.service._config import ServiceConfig
    from speechlab.service._keys import Principal


class Drainable(Protocol):
    """A conversation that can be ended."""

    async def drain(self) -> None:
        """Close now if no text is under way, and otherwise after it."""

    async def close_now(self) -> None:
        """Stop the text under way, report it to the client, and close."""


class InFlight:
    """Conversations and HTTP requests under way; used from the event loop only."""

    def __init__(self, max_per_key: int) -> None:
        self._max_per_key = max_per_key
        self._connections: Counter[str] = Counter()
        self.draining = False
        self._conversations: set[Drainable] = set()
        self.running = 0
        self._idle = asyncio.Event()

    @property
    def conversation_count(self) -> int:
        """Number of conversations."""
        return len(self._conversations)

    def admit_connection(self, principal: Principal) -> Callable[[], None]:
        """Count a connection of a key; returns what is called at its end."""
        key_id = principal.key_id
        if self._connections[key_id] >= self._max_per_key:
            message = "this key has reached its limit of connections; close one of them first"
            raise HandshakeRefused(HandshakeCode.WS_CONNECTION_LIMIT_EXCEEDED, message)
        if self.draining:
            message = "the service is stopping and takes no new connections; try again later"
            raise HandshakeRefused(HandshakeCode.WEBSOCKET_DRAINING, message)
        self._connections[key_id] += 1
        return lambda: self._connections.subtract([key_id])

    @contextlib.contextmanager
    def register_conversation(self, conversation: Drainable) -> Iterator[None]:
        """Register a conversation for the duration of the block."""
        self._conversations.add(conversation)
        self._idle.clear()
        try:
            yield
        finally:
            self._conversations.discard(conversation)
            self._signal_if_idle()

    @contextlib.contextmanager
    def register_request(self) -> Iterator[None]:
        """Register an HTTP request for the duration of the block."""
        self.running += 1
        self._idle.clear()
        try:
            yield
        finally:
            self.running -= 1
            self._signal_if_idle()

    async def drain(self, within_s: float, hurry: Callable[[], bool]) -> None:
        """Refuse new work, let work under way finish, and close all conversations.

        The server cancels requests that take longer.
        """
        self.draining = True
        if not (self._conversations or self.running):
            return
        log("draining", connections=len(self._conversations), requests=self.running)
        until = time.monotonic() + within_s
        closing = [asyncio.create_task(conversation.drain()) for conversation in self._conversations]
        while not hurry() and (remaining_s := until - time.monotonic()) > 0:
            # A signal handler wakes no task, so hurry() has to be polled.
            if await self._wait_until_idle(min(remaining_s, 0.05)):
                break
        late = list(self._conversations)
        closing += [asyncio.create_task(conversation.close_now()) for conversation in late]
        if late:
            await self._wait_until_idle(1.0)
        for task in closing:
            task.cancel()
        log("drained", broken_off=len(late) + self.running)

    def _signal_if_idle(self) -> None:
        if not (self._conversations or self.running):
            self._idle.set()

    async def _wait_until_idle(self, within_s: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._idle.wait()
        return self._idle.is_set()


READY_PATH = "/readyz"
METRICS_PATH = "/metrics"
_RECORD_KEY = "speechlab.request"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
# Name of the ASGI extension that drops the connection, unsent data included.
ABORT_EXTENSION = "speechlab.abort"

# Name of the ASGI extension that sends an interim reply to a client that waits.
INTERIM_EXTENSION = "speechlab.interim"


class ServiceState:
    """The parts of a running service."""

    def __init__(self, config: ServiceConfig) -> None:
        self.config = config
        self.database = Database(config.data_dir, serving=True) if config.data_dir else None
        access = KeyStore(self.database) if self.database else None
        self.keyring = Keyring(config.api_keys, access, operators=config.operator_keys)
        ledger = Ledger(self.database) if self.database else None
        self.counters = Counters()
        stored = StoredLimits(self.database) if self.database else None
        self.metering = Metering(config, self.counters, ledger, stored)
        self.engines = Engines(config)
        self.in_flight = InFlight(config.ws_connections)
        self.readiness = Readiness(self.engines, self.database, lambda: self.in_flight.draining)
        self.budget = BytesBudget(config.held_bytes, config.data_dir)
        self.parsing = asyncio.Lock()
        idle_s = 0.0 if config.preload else config.unload_idle_s
        self.upkeep = Upkeep(self.engines, self.database, self.budget, idle_s)
        names = {"engines", "recognizer", "translator"}
        if config.recognizer_url:
            names.add("recognizer_url")
        deciding = config.model_dump(mode="json", include=names)
        if (file := find_engines_file()) is not None:
            deciding["engines_file"] = file.read_text(encoding="utf-8")
        digest = hashlib.sha256(orjson.dumps(deciding, option=orjson.OPT_SORT_KEYS)).hexdigest()
        self.identity = f"speechlab/{get_package_version()} {digest[:16]}"

    async def disconnect_backend(self) -> None:
        """Close its connections to other services; called when no request is under way any more."""
        if self.engines.backend is not None:
            await self.engines.backend.close()

    def close(self) -> None:
        """End its processes, and write pending rows. Blocks; called after the event loop has ended."""
        for workers in self.engines.workers:
            workers.close()
        if self.database is not None:
            self.database.close()


def get_service(connection: HTTPConnection) -> ServiceState:
    return cast("ServiceState", connection.app.state.service)


@dataclass(slots=True)
class RequestRecord:
    """What is noted of a request or a connection, in its ASGI scope; at the end the guard closes what it has."""

    id: str
    principal: Principal | None = None
    meter: Meter | None = None
    held: list[HeldBytes] = field(default_factory=list)
    ended: tuple[int, str] | None = None
    """Status and reason of a reply that broke off."""


def get_or_create_record(scope: Scope) -> RequestRecord:
    """Return the record of a request or a connection; its id is the client's if that is valid, or else a new one."""
    if _RECORD_KEY not in scope:
        sent = Headers(scope=scope).getlist("x-request-id")
        is_valid = len(sent) == 1 and _REQUEST_ID.fullmatch(sent[0]) is not None
        scope[_RECORD_KEY] = RequestRecord(sent[0] if is_valid else secrets.token_hex(8))
    return cast("RequestRecord", scope[_RECORD_KEY])


def get_principal(connection: HTTPConnection) -> Principal:
    """Return the owner of a request's or a conversation's key, as found by the guard."""
    return cast("Principal", get_or_create_record(connection.scope).principal)


def begin_operation(request: Request, operation: str) -> Meter:
    """Start the operation of a request, and check the limits of its key."""
    meter = get_service(request).metering.build_meter(operation, get_principal(request))
    get_or_create_record(request.scope).meter = meter
    meter.admit_by_key_limits()
    return meter


def open_held_bytes(request: Request, service: str) -> HeldBytes:
    """Begin to hold bytes for a request, at most until its end."""
    held = get_service(request).budget.open_held_bytes(get_principal(request).key_id, service)
    get_or_create_record(request.scope).held.append(held)
    return held


def get_abort_function(scope: Scope) -> Callable[[], None]:
    """Return a function that drops the connection of a scope, or does nothing if the server does not support it."""
    abort = scope.get("extensions", {}).get(ABORT_EXTENSION, {}).get("call")
    return cast("Callable[[], None]", abort) if abort is not None else lambda: None
