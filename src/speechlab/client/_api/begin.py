"""Long work with a synchronous client: many calls at once, on the loop that its single calls run on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from speechlab.client._api import portal as _portal

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future

    from speechlab.client._api.async_client import AsyncClient
    from speechlab.client._api.client import Client
    from speechlab.client._events import CallEvent

T = TypeVar("T")


def begin(client: Client, work: Callable[[AsyncClient], Coroutine[Any, Any, T]]) -> Future[T]:
    """Start work with many calls on the loop that a client's calls run on.

    Args:
        client: Whose connections and limits it uses.
        work: Gets the client's asynchronous core, and must not block.

    Returns:
        A future; its owner waits for it, or cancels it.

    Raises:
        ConfigurationError: Called from that loop itself, where waiting would never end.
    """
    return _portal.begin(work, client._async)  # noqa: SLF001 - of the same room


def telling(client: AsyncClient, listener: Callable[[CallEvent], None]) -> AsyncClient:
    """The same client, which tells one more listener of the steps of its calls, beside its own ``on_event``.

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
