"""Functions that batches need of a client: its event loop, its events, and the identity of its service."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from speechlab.client._api import portal as _portal
from speechlab.client._api.async_client import AsyncClient
from speechlab.client._api.client import Client
from speechlab.client._settings.settings import plain_url
from speechlab.client._settings.store_mode import open_store
from speechlab.client._store.memory import Memory

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future

    from speechlab.client._events import CallEvent
    from speechlab.store import Store

C = TypeVar("C", Client, AsyncClient)
T = TypeVar("T")


def begin(client: Client, work: Callable[[AsyncClient], Coroutine[Any, Any, T]]) -> Future[T]:
    """Start work with many calls on the loop that a client's calls run on.

    Args:
        client: Whose connections and limits it uses.
        work: Gets the asynchronous client behind it, and must not block.

    Returns:
        A future; its owner waits for it, or cancels it.

    Raises:
        ConfigurationError: Called from that loop itself, where waiting would never end.
    """
    return _portal.begin(work, client._async)  # noqa: SLF001 - of the same room


def with_listener(client: AsyncClient, listener: Callable[[CallEvent], None]) -> AsyncClient:
    """A copy of a client that calls one more listener with its events, besides its own ``on_event``.

    Args:
        client: Whose connections and limits it uses.
        listener: Called in the task that makes the call, with each event; must not fail.
    """
    own = client._settings.on_event  # noqa: SLF001 - of the same room

    def both(event: CallEvent) -> None:
        listener(event)
        if own is not None:
            own(event)

    return client.with_options(on_event=both)


async def remember_service(lab: AsyncClient, store: Store) -> None:
    """Keep the identity and the voices of a client's service in a store, so that a replay can look them up.

    Args:
        lab: The client; one that only replays has nothing new to tell.
        store: Where results of its service are kept.

    Raises:
        APIError: The service would not say who it is.
        APIConnectionError: No answer came.
        StoreError: It cannot be written.
    """
    if lab._settings.mode == "replay":  # noqa: SLF001 - of the same room
        return
    service = await lab.identity()
    catalogue = lab._catalogue  # noqa: SLF001 - of the same room
    body: Any = None
    if catalogue is not None:
        body = {"voices": [voice.model_dump(mode="json", exclude_unset=True) for voice in catalogue]}
    memory = Memory(store, "live", "at once")
    await asyncio.to_thread(memory.keep_catalogue, plain_url(lab.base_url), service, body)


def replaying_from(lab: C, store: Store | str | os.PathLike[str] | None) -> C:
    """For a client that replays: a copy that replays from this store. Other clients are returned as they are.

    Args:
        lab: The client.
        store: The store; None, and one that knows no service, change nothing.

    Raises:
        StoreError: It cannot be read.
    """
    behind: Any = getattr(lab, "_async", lab)
    if behind._settings.mode != "replay" or store is None:  # noqa: SLF001 - of the same room
        return lab
    named = open_store(store)
    return lab.with_options(store=named) if named.newest("voices") else lab
