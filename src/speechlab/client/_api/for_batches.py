"""Functions that batches and studies need of a client: its loop, copies, and its service's identity and address."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from speechlab.client._api import portal as _portal
from speechlab.client._api.async_client import AsyncClient
from speechlab.client._api.client import Client
from speechlab.client._operations.operation import Operation
from speechlab.client._operations.voices import VoiceCatalogue
from speechlab.client._scheduling.waiting import CallGroup, Patience
from speechlab.client._settings.settings import Settings, build_not_replayable_error, open_store
from speechlab.client._stored_calls import Memory
from speechlab.contract import VoiceList
from speechlab.errors import APIConnectionError, InvalidRequestError, RateLimitError, ServerError, StoreError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from speechlab.store import Store

C = TypeVar("C", Client, AsyncClient)
O = TypeVar("O", bound=Operation[Any])  # noqa: E741 - an operation
T = TypeVar("T")
# Seconds of retries for a row that is refused while others succeed; pauses do not count.
_REFUSED_RETRY_S = 600.0
_ASKED_WAIT_S = 3600.0
_UNREACHABLE_S = 60.0
# Retries of a row after failures of its own. At 10, a random failure rate of 1 in 4 loses none of 3,000 rows.
_MAX_FAILURES = 10


def _get_settings(lab: Client | AsyncClient) -> Settings:
    behind: Any = getattr(lab, "_async", lab)
    settings: Settings = behind._settings  # noqa: SLF001 - of the same room
    return settings


def start_work(
    client: Client,
    work: Callable[[AsyncClient], Coroutine[Any, Any, T]],
    admitted: Future[None] | None = None,
) -> Future[T]:
    """Start work with many calls on the private event loop of the synchronous clients."""

    async def run_work_once_admitted(behind: AsyncClient) -> T:
        if admitted is not None:  # an interrupt before the caller knows the future can then cancel it
            await asyncio.wrap_future(admitted)
        return await work(behind)

    return _portal.start(run_work_once_admitted, client._async)  # noqa: SLF001 - of the same room


def adapt_for_client(lab: Client | AsyncClient, operation: O) -> O:
    """Return an operation in the form for the service of a client: for functions, without the contract's rules."""
    return _get_settings(lab).adapt_operation(operation)


def list_operations_and_places(lab: Client | AsyncClient) -> tuple[frozenset[str], int]:
    """Return the operations of a system of functions, and how many of them run at once; none of a service."""
    adapter = _get_settings(lab).adapter
    return frozenset(getattr(adapter, "functions", ())), getattr(adapter, "places", 0)


def copy_with_group(
    client: AsyncClient, *, concurrency: int, rate: float | None = None, give_up_after_s: float | None = None
) -> tuple[AsyncClient, CallGroup]:
    """A copy of a client whose calls form one group, as those of a batch, and wait as long as the service asks."""
    settings = _get_settings(client)
    patience_s = give_up_after_s
    later_s = _ASKED_WAIT_S if patience_s is None else patience_s
    patience = Patience(
        call_s=max(settings.patience_s, min(later_s, _REFUSED_RETRY_S)),
        later_s=later_s,
        gone_s=_UNREACHABLE_S if patience_s is None else patience_s,
        failures=_MAX_FAILURES,
        spared=True,
    )
    group = CallGroup(concurrency, rate, patience)
    copy = client.with_options()
    copy._sender = replace(copy._sender, group=group)  # noqa: SLF001 - of the same room
    return copy, group


async def identify_service_and_voices(
    lab: AsyncClient, patient: AsyncClient, store: Store | None, *, voices: bool
) -> tuple[str, VoiceCatalogue | None]:
    """Get the identity of a client's service; if it does not reply, take it from a store, or wait."""
    remembered = None
    if store is not None and _get_settings(lab).mode != "replay":
        home = _get_settings(lab).home
        remembered = await asyncio.to_thread(
            Memory(store, "live", "at once").find_identity_and_catalogue, home
        )
    if voices and remembered is not None and remembered[1] is None:
        remembered = None
    group = patient._sender.group  # noqa: SLF001 - of the same room
    patience = group.patience if group is not None else None
    if group is not None and remembered is not None:
        group.patience = replace(group.patience, retries=0)
    try:
        catalogue = await patient.voices() if voices else None
        service = await patient.identity()
    except (APIConnectionError, RateLimitError, ServerError):
        if remembered is None:
            raise
        service, body = remembered
        return service, VoiceCatalogue(VoiceList.parse(body).voices, service) if voices else None
    finally:
        if group is not None and patience is not None:
            group.patience = patience
    lab._catalogue, lab._unlisted = patient._catalogue, patient._unlisted  # noqa: SLF001 - of the same room
    return service, catalogue or patient._catalogue  # noqa: SLF001 - of the same room


async def check_and_save_service(lab: AsyncClient, store: Store, expected: str) -> None:
    """Keep the identity and the voices of a client's service in a store, for later replays."""
    if _get_settings(lab).mode == "replay":
        return
    if store.read_only:
        raise StoreError(f"the store {store.path} can only be read, and does not have all of the results")
    service = await lab.identity()
    if service != expected:
        message = f"the service is {service!r}, and the plan was made for {expected!r}; plan again"
        raise InvalidRequestError(message, parameter="lab")
    catalogue = lab._catalogue  # noqa: SLF001 - of the same room
    body: Any = None
    if catalogue is not None:
        body = {"voices": [voice.model_dump(mode="json", exclude_unset=True) for voice in catalogue]}
    memory = Memory(store, "live", "at once")
    await asyncio.to_thread(memory.save_identity_and_catalogue, _get_settings(lab).home, service, body)


def replace_store_if_replaying(lab: C, store: Store | str | os.PathLike[str] | None) -> C:
    """Return a copy of a replaying client that replays from this store; other clients are returned unchanged."""
    if _get_settings(lab).mode != "replay" or store is None:
        return lab
    opened = open_store(store)
    return lab.with_options(store=opened) if opened.newest("voices") else lab


def copy_for_timing(lab: C, *, keep: bool = False) -> C:
    """Return a copy of a client that makes each call at once, in one attempt without a place, as for its time."""
    settings = _get_settings(lab)
    if settings.mode == "replay":
        if not keep:
            raise build_not_replayable_error("a call made for its time")
        return lab.with_options(pace="as recorded")
    changes: dict[str, Any] = {} if settings.store is None else {"mode": "live"} if keep else {"store": None}
    single = lab.with_options(max_retries=0, **changes)
    behind: Any = getattr(single, "_async", single)
    behind._sender = replace(behind._sender, group=None, direct=True)  # noqa: SLF001 - of the same room
    return single


def reveal_credentials(lab: Client | AsyncClient) -> tuple[str, str, str]:
    """The addresses and the key of a client's service, for tools with their own HTTP and WebSocket connections."""
    settings = _get_settings(lab)
    if settings.mode == "replay":
        raise build_not_replayable_error("this tool")
    key = settings.api_key
    return settings.base_url, settings.ws_base_url, "" if key is None else key.reveal()
