"""aiohttp beneath the HTTP library: half of its CPU for a small call, where the extra ``fast`` is installed.

The transport is that of the package httpx-aiohttp. What differs from the usual one is set right here: it keeps no
cookies, opens as many connections as there are calls, and an address that refuses a connection is no timeout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._require import require

if TYPE_CHECKING:
    import ssl

    import httpx2


def fast_transport(
    verify: ssl.SSLContext | bool, *, keepalive_s: float, trust_env: bool
) -> httpx2.AsyncBaseTransport:
    """A transport for one event loop, which is the one of its first request.

    Args:
        verify: How certificates are checked.
        keepalive_s: Seconds for which an idle connection is kept.
        trust_env: Whether proxies of the environment are used.

    Raises:
        MissingDependencyError: httpx-aiohttp is not installed (``pip install 'speechlab[fast]'``).
    """
    import httpx2

    package: Any = require("httpx_aiohttp.httpx2")
    aiohttp: Any = require("aiohttp")

    def session() -> Any:
        connector = aiohttp.TCPConnector(
            limit=0, keepalive_timeout=keepalive_s, ssl=verify if verify is not False else False
        )
        return aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=trust_env
        )

    class _Transport(package.AiohttpTransport):  # type: ignore[misc]
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            try:
                response: httpx2.Response = await super().handle_async_request(request)
            except httpx2.ConnectTimeout as error:
                # It says so of each connection that failed, refused and broken ones among them.
                if isinstance(error.__cause__, TimeoutError):
                    raise
                kind, text = httpx2.ConnectError, str(error)
            else:
                return response
            raise kind(text)

    return _Transport(verify=verify, client=session)
