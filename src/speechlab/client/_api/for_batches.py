"""Functions that batches need of a client: its event loop, its events, and the identity of its service."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from speechlab.client._api import portal as _portal
from speechlab.client._api.async_client import AsyncClient
from speechlab.client._api.client import Client
from speechlab.client._operations.voices import VoiceCatalogue
from speechlab.client._scheduling.group import CallGroup
from speechlab.client._scheduling.retry import Patience
from speechlab.client._settings.store_mode import nothing_is_sent, open_store
from speechlab.client._store.memory import Memory
from speechlab.contract import VoiceList
from speechlab.errors import APIConnectionError, InvalidRequestError, RateLimitError, ServerError, StoreError

if TYPE_CHECKING:
    import os
    from collections.abc import Awaitable, Callable, Coroutine
    from concurrent.futures import Future

    from speechlab.contract import OperationName
    from speechlab.store import Store

C = TypeVar("C", Client, AsyncClient)
T = TypeVar("T")
_CALL_S = 600.0
"""Seconds for which one row is repeated that is refused while others are not; pauses do not count."""
_LATER_S = 3600.0
_GONE_S = 60.0
_FAILURES = 10
"""Retries of a row after failures of its own: if every fourth attempt fails by chance, none of 3,000 rows is lost."""


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


def result_of(future: Future[T]) -> T:
    """Wait for the result of what :func:`begin` started.

    Raises:
        SystemExit: The program is over, in a thread that it does not wait for.
    """
    return _portal.result_of(future)


def grouped(
    client: AsyncClient, *, concurrency: int, rate: float | None = None, give_up_after_s: float | None = None
) -> tuple[AsyncClient, CallGroup]:
    """A copy of a client whose calls belong together, as those of a batch do.

    They wait as long as the service asks, and failures while no call succeeds do not count against any of them.

    Args:
        client: Whose connections, schedulers and options it uses; the group's ceiling takes the place of
            ``max_concurrency``.
        concurrency: Most attempts under way at once.
        rate: Most attempts begun per second, or None.
        give_up_after_s: Seconds without a success after which the service is given up. None is an hour where it says
            "later", and a minute where it is not there.

    Returns:
        The copy; and the group, which its owner ends.
    """
    settings = client._settings  # noqa: SLF001 - of the same room
    given = give_up_after_s
    later_s = _LATER_S if given is None else given
    patience = Patience(
        call_s=max(settings.patience_s, min(later_s, _CALL_S)),
        later_s=later_s,
        gone_s=_GONE_S if given is None else given,
        failures=_FAILURES,
        spared=True,
    )
    group = CallGroup(concurrency, rate, patience)
    copy = client.with_options()
    copy._sender = copy._sender.in_group(group)  # noqa: SLF001
    return copy, group


def without_scheduler(client: AsyncClient) -> AsyncClient:
    """A copy of a client that attempts each call once, and at once: for workers of :func:`by_attempts`.

    Args:
        client: Whose connections and options it uses.
    """
    copy = client.with_options()
    copy._sender = copy._sender.directly()  # noqa: SLF001 - of the same room
    return copy


async def by_attempts(
    client: AsyncClient, operation: OperationName, attempt: Callable[[], Awaitable[T]]
) -> tuple[T, int]:
    """Make a call whose attempts are made elsewhere: the client's scheduler says when, and hears how they ended.

    Args:
        client: Whose scheduler, group and options hold; as :func:`grouped` gives it.
        operation: What is asked.
        attempt: Makes one attempt, with a client that :func:`without_scheduler` gives; raises its error.

    Returns:
        What the last attempt gave, and how many there were.

    Raises:
        SpeechLabError: The last attempt's, with the number of attempts.
        APITimeoutError: The service was given up before an attempt could be made.
        RunStoppedError: The group was stopped.
    """
    service = {"synthesize": "tts", "transcribe": "asr", "translate": "translate"}[operation]
    return await client._sender.repeat(service, attempt)  # noqa: SLF001 - of the same room


async def ask_service(
    lab: AsyncClient, patient: AsyncClient, store: Store | None, *, voices: bool
) -> tuple[str, VoiceCatalogue | None]:
    """Ask who a client's service is; where it does not answer, take what a store remembers of it, or wait.

    Args:
        lab: The client.
        patient: The copy of it that waits for the service, as :func:`grouped` gives it.
        store: Where results of its service may have been kept.
        voices: Whether its voices are needed as well.

    Returns:
        Its identity, and its voices if they were asked for.

    Raises:
        APIError: The service would not say, and the store does not know it.
        APIConnectionError: No answer came, and the store does not know it.
    """
    known = None
    if store is not None and lab._settings.mode != "replay":  # noqa: SLF001 - of the same room
        home = lab._settings.home  # noqa: SLF001
        known = await asyncio.to_thread(Memory(store, "live", "at once").remembered, home)
    if voices and known is not None and known[1] is None:
        known = None
    asking = patient if known is None else lab.with_options(max_retries=0)
    try:
        catalogue = await asking.voices() if voices else None
        service = await asking.identity()
    except (APIConnectionError, RateLimitError, ServerError):
        if known is None:
            raise
        service, body = known
        return service, VoiceCatalogue(VoiceList.parse(body).voices, service) if voices else None
    lab._catalogue, lab._unlisted = asking._catalogue, asking._unlisted  # noqa: SLF001 - of the same room
    return service, catalogue


async def remember_service(lab: AsyncClient, store: Store, expected: str) -> None:
    """Keep the identity and the voices of a client's service in a store, so that a replay can look them up.

    Args:
        lab: The client; one that only replays has nothing new to tell.
        store: Where results of its service are to be kept.
        expected: The identity under which they are to be kept.

    Raises:
        APIError: The service would not say who it is.
        APIConnectionError: No answer came.
        InvalidRequestError: It is another one.
        StoreError: It cannot be written.
    """
    if lab._settings.mode == "replay":  # noqa: SLF001 - of the same room
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
    home = lab._settings.home  # noqa: SLF001
    await asyncio.to_thread(memory.keep_catalogue, home, service, body)


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


def asking_afresh(lab: C) -> C:
    """A copy of a client that asks its service each time, and once: it keeps, replays and repeats nothing.

    Args:
        lab: The client.

    Raises:
        ReplayMiss: It only replays.
    """
    behind: Any = getattr(lab, "_async", lab)
    if behind._settings.mode == "replay":  # noqa: SLF001 - of the same room
        raise nothing_is_sent("a call made for its time")
    return lab.with_options(max_retries=0, store=None)


def asking_always(lab: C) -> C:
    """A copy of a client that asks its service each time, and once; what it keeps, it keeps still.

    Args:
        lab: The client; of one that only replays, the copy gives streams at the moments at which they came.
    """
    behind: Any = getattr(lab, "_async", lab)
    settings = behind._settings  # noqa: SLF001 - of the same room
    if settings.mode == "replay":
        return lab.with_options(pace="as recorded")
    once = lab.with_options(max_retries=0)
    return once if settings.store is None else once.with_options(mode="live")


def address_and_key(lab: Client | AsyncClient) -> tuple[str, str, str]:
    """Where a client's service is, and the key for it: for tools that speak HTTP and WebSockets by themselves.

    Args:
        lab: The client. The embedded service stays as long as it is open.

    Returns:
        The HTTP base URL, the WebSocket base URL, and the key; empty where the client has none.

    Raises:
        ReplayMiss: It only replays, and has no service.
    """
    behind: Any = getattr(lab, "_async", lab)
    settings = behind._settings  # noqa: SLF001 - of the same room
    if settings.mode == "replay":
        raise nothing_is_sent("this tool")
    key = settings.api_key
    return settings.base_url, settings.ws_base_url, "" if key is None else key.reveal()
