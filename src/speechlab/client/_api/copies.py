"""Copies of clients for groups of calls and for timed calls, and what else batches and studies need of a client."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from speechlab.client._api import portal as _portal
from speechlab.client._api.async_client import AsyncClient
from speechlab.client._api.sync_client import Client
from speechlab.client._operations.voices import VoiceCatalogue
from speechlab.client._scheduling.waiting import CallGroup, Patience
from speechlab.client._settings.settings import build_not_replayable_error, open_store
from speechlab.client._stored_calls import Memory
from speechlab.contract import VoiceList
from speechlab.errors import APIConnectionError, InvalidRequestError, RateLimitError, ServerError, StoreError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from speechlab.client._api.perform import Performer
    from speechlab.client._services.service import Service
    from speechlab.store import Store

C = TypeVar("C", Client, AsyncClient)
T = TypeVar("T")
# Seconds of retries for a row that is refused while others succeed; pauses do not count.
_REFUSED_RETRY_S = 600.0
_ASKED_WAIT_S = 3600.0
_UNREACHABLE_S = 60.0
# Retries of a row after failures of its own. At 10, a random failure rate of 1 in 4 loses none of 3,000 rows.
_MAX_FAILURES = 10


def get_performer(lab: Client | AsyncClient) -> Performer:
    """Return what performs the operations of a client."""
    return _get_async_client(lab)._performer  # noqa: SLF001 - of the same room


def _get_async_client(lab: Client | AsyncClient) -> AsyncClient:
    return lab._async if isinstance(lab, Client) else lab  # noqa: SLF001 - of the same room


def get_service(lab: Client | AsyncClient) -> Service:
    """Return the service of a client, with the rules of its operations."""
    return get_performer(lab).service


def copy_with_batch_size(lab: Client, batch_size: int) -> Client | None:
    """Return a copy of a system with another size of its batches; None for one that takes calls one by one."""
    settings = get_performer(lab).settings
    system = settings.functions
    if system is None or not system.takes_many or system.batch_size == batch_size:
        return None
    changed = system.copy_with_batch_size(batch_size)
    return Client.from_settings(
        replace(
            settings, functions=changed, max_concurrency=max(settings.max_concurrency, changed.calls_at_once)
        )
    )


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

    return _portal.start(run_work_once_admitted, _get_async_client(client))


def copy_with_group(
    client: AsyncClient, *, concurrency: int, rate: float | None = None, give_up_after_s: float | None = None
) -> tuple[AsyncClient, CallGroup]:
    """A copy of a client whose calls form one group, as those of a batch, and wait as long as the service asks."""
    performer = get_performer(client)
    settings, service = performer.settings, performer.service
    if service.together > 1:
        concurrency = max(concurrency, service.places or 0)
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
    return client.from_performer(performer.copy(group=group)), group


async def identify_service_and_voices(
    lab: AsyncClient, patient: AsyncClient, store: Store | None, *, voices: bool
) -> tuple[str, VoiceCatalogue | None]:
    """Get the identity of a client's service; if it does not reply, take it from a store, or wait."""
    performer, remembered = get_performer(patient), None
    if store is not None and performer.settings.mode != "replay":
        memory = Memory(store, "live", "at once")
        remembered = await asyncio.to_thread(memory.find_identity_and_catalogue, performer.service.home)
    if voices and remembered is not None and remembered[1] is None:
        remembered = None
    group = performer.sender.group
    patience = group.patience if group is not None else None
    if group is not None and remembered is not None:
        group.patience = replace(group.patience, retries=0)
    try:
        catalogue = (await performer.list_voices())[1] if voices else None
        service = await performer.identify()
    except (APIConnectionError, RateLimitError, ServerError):
        if remembered is None:
            raise
        service, body = remembered
        return service, VoiceCatalogue(VoiceList.parse(body).voices, service) if voices else None
    finally:
        if group is not None and patience is not None:
            group.patience = patience
    get_performer(lab).take_catalogue_of(performer)
    return service, catalogue or performer.catalogue


async def check_and_save_service(lab: AsyncClient, store: Store, expected: str) -> None:
    """Keep the identity and the voices of a client's service in a store, for later replays."""
    performer = get_performer(lab)
    if performer.settings.mode == "replay":
        return
    if store.read_only:
        raise StoreError(f"the store {store.path} can only be read, and does not have all of the results")
    service = await performer.identify()
    if service != expected:
        message = f"the service is {service!r}, and the plan was made for {expected!r}; plan again"
        raise InvalidRequestError(message, parameter="lab")
    body: Any = None
    if performer.catalogue is not None:
        voices = performer.catalogue
        body = {"voices": [voice.model_dump(mode="json", exclude_unset=True) for voice in voices]}
    memory = Memory(store, "live", "at once")
    await asyncio.to_thread(memory.save_identity_and_catalogue, performer.service.home, service, body)


def replace_store_if_replaying(lab: C, store: Store | str | os.PathLike[str] | None) -> C:
    """Return a copy of a replaying client that replays from this store; other clients are returned unchanged."""
    if get_performer(lab).settings.mode != "replay" or store is None:
        return lab
    opened = open_store(store)
    return lab.with_options(store=opened) if opened.newest("voices") else lab


def copy_for_timing(lab: C, *, keep: bool = False) -> C:
    """Return a copy of a client that makes each call at once, in one attempt without a place, as for its time."""
    settings = get_performer(lab).settings
    if settings.mode == "replay":
        if not keep:
            raise build_not_replayable_error("a call made for its time")
        return lab.with_options(pace="as recorded")
    changes: dict[str, Any] = {} if settings.store is None else {"mode": "live"} if keep else {"store": None}
    single = lab.with_options(max_retries=0, **changes)
    return single.from_performer(get_performer(single).copy(group=None, direct=True))


def reveal_credentials(lab: Client | AsyncClient) -> tuple[str, str, str]:
    """The addresses and the key of a client's service, for tools with their own HTTP and WebSocket connections."""
    settings = get_performer(lab).settings
    if settings.mode == "replay":
        raise build_not_replayable_error("this tool")
    key = settings.api_key
    return settings.base_url, settings.ws_base_url, "" if key is None else key.reveal()
