"""The base of the synchronous client, whose methods ``tools/write_sync_client.py`` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from speechlab.client._api.async_client import AsyncClient
from speechlab.client._api.base import ClientBase
from speechlab.client._api.portal import SyncWrapper

if TYPE_CHECKING:
    from speechlab.client._api.perform import Performer
    from speechlab.client._settings.settings import Settings


class SyncClientBase(ClientBase, SyncWrapper[AsyncClient]):
    """What a synchronous client does otherwise than by waiting for the asynchronous one."""

    def _set_up_client(self, settings: Settings, parent: Self | None = None) -> None:
        self._settings = settings
        behind = None if parent is None else parent._async  # noqa: SLF001 - of the same class
        self._async = AsyncClient.from_settings(settings, behind)

    @classmethod
    def from_performer(cls, performer: Performer) -> Self:
        """Make a client of what performs its operations; its connections are those of another client."""
        client = cls.__new__(cls)
        client._settings, client._async = performer.settings, AsyncClient.from_performer(performer)  # noqa: SLF001 - of the same class
        return client

    def _copy_with_raw_response(self) -> Self:
        client = self.with_options()
        client._async = self._async.with_raw_response  # noqa: SLF001 - of the same class
        return client

    def __enter__(self) -> Self:
        return self
