"""Which library makes the connections of a client."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from speechlab._require import require
from speechlab.client._settings.settings import AIOHTTP, HTTPX2
from speechlab.client._transport.httpx import HttpxWire
from speechlab.client._transport.wire_errors import find_proxy

if TYPE_CHECKING:
    from speechlab.client._settings.settings import Settings
    from speechlab.client._transport.http import Wire

# Calls of a client before aiohttp is loaded, a tenth of a second longer than httpx2, which only many calls repay.
FIRST_CALLS = 10


def choose_library(settings: Settings, calls: int) -> str:
    """Return the library for a call: after the first ones aiohttp, if it is installed and can do what is needed."""
    if settings.transport is not None:
        return settings.transport if isinstance(settings.transport, str) else HTTPX2
    if calls <= FIRST_CALLS and AIOHTTP not in sys.modules:
        return HTTPX2
    proxy = find_proxy(settings.base_url)
    # SOCKS is not known to it.
    fast = find_spec(AIOHTTP) is not None and (proxy is None or proxy.startswith(("http:", "https:")))
    return AIOHTTP if fast else HTTPX2


def build_wire(settings: Settings, library: str) -> Wire:
    """Return a wire; nothing is connected yet."""
    if library == HTTPX2:
        return HttpxWire(settings)
    require(AIOHTTP)
    from speechlab.client._transport.aiohttp import AiohttpWire

    return AiohttpWire(settings)
