"""Which library makes the connections of a client."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from speechlab._require import require
from speechlab.client._settings.settings import AIOHTTP
from speechlab.client._transport.httpx import HttpxWire
from speechlab.client._transport.wire_errors import find_proxy

if TYPE_CHECKING:
    from speechlab.client._settings.settings import Settings
    from speechlab.client._transport.http import Wire


def build_wire(settings: Settings) -> Wire:
    """Open no connection yet, and return the wire: aiohttp where it is installed and can do what is needed."""
    fast = settings.transport == AIOHTTP
    if settings.transport is None and find_spec("aiohttp") is not None:
        proxy = find_proxy(settings.base_url)
        fast = proxy is None or proxy.startswith(("http:", "https:"))  # SOCKS is not known to it
    if not fast:
        return HttpxWire(settings)
    require("aiohttp")
    from speechlab.client._transport.aiohttp import AiohttpWire

    return AiohttpWire(settings)
