"""A wire with an adapter, for services with another API than the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from speechlab.client._settings.settings import plain_url
from speechlab.client._transport.http import Reply, Wire
from speechlab.contract import VOICES_PATH

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from speechlab.client._openai import OpenAIAdapter
    from speechlab.client._operations.call import HttpCall
    from speechlab.client._settings.settings import Settings
    from speechlab.client._transport.http import Sent


class _Whole(Reply):
    """A reply that is already complete."""

    def __init__(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.status = status
        self.headers = headers
        self._content = content

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body."""
        self.ended = True
        yield self._content

    async def close(self) -> None:
        """Do nothing: no connection is open."""


class AdaptedWire(Wire):
    """A wire whose calls and replies pass through an adapter."""

    def __init__(self, settings: Settings, wire: Wire, adapter: OpenAIAdapter) -> None:
        super().__init__(settings)
        self._wire = wire
        self._adapter = adapter
        self._service = f"{adapter.identity}, at {plain_url(settings.base_url)}"

    async def open(self, call: HttpCall, sent: Sent, connect_s: float, read_s: float | None) -> Reply:
        """Send a request, and wait for the headers of the reply; the catalogue comes from the adapter."""
        if call.path == VOICES_PATH:
            headers = {"content-type": "application/json", "x-speechlab-service": self._service}
            return _Whole(200, headers, orjson.dumps({"voices": self._adapter.catalogue}))
        reply = await self._wire.open(await self._adapter.asked(call), sent, connect_s, read_s)
        if not self._adapter.reads(call, reply.status):
            return reply
        try:
            content = b"".join([piece async for piece in reply.pieces()])
        finally:
            await reply.close()
        status, content = self._adapter.answered(call, reply.status, content)
        return _Whole(status, reply.headers, content)

    async def close(self) -> None:
        """Close all connections."""
        await super().close()
        await self._wire.close()
