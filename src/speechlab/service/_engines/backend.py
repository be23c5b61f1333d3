"""A remote recognizer: another deployment of the contract, to which recordings are forwarded.

Keys, limits, metering and checks stay here. The request is forwarded as parsed, written again; the status and the
body of the reply are returned, for successes and errors. Of the headers only those about the body are passed on: no
key of a client reaches the backend, and nothing about the backend's connection reaches a client.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from speechlab._platform import is_loopback
from speechlab.contract import REASON_HEADER, RECOGNITION_PATH, join_url
from speechlab.service._faults import Fault
from speechlab.service._logs import log

if TYPE_CHECKING:
    import httpx2

    from speechlab.service._config import ServiceConfig
    from speechlab.service._held_bytes import HeldBytes

# The backend's name, in place of an engine's.
REMOTE_NAME = "remote"

_SEND_BYTES = 64 * 1024
_REPLY_BYTES = 16 * 1024 * 1024
_FORWARDED_HEADERS = (
    "content-type",
    "retry-after",
    "x-should-retry",
    REASON_HEADER,
    "x-speechlab-model",
    "x-speechlab-audio-seconds",
)


@dataclass(frozen=True, slots=True)
class BackendReply:
    """A reply of the backend."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


class BackendUnreachable(Fault):
    """502: the backend sent no usable reply."""

    def __init__(self, reason: str, *, reached: bool) -> None:
        super().__init__(
            "ErrBackendUnreachable", f"the speech recognition backend {reason}", "asr", "backend"
        )
        self.reached = reached


class Backend:
    """The recognizer of another deployment."""

    def __init__(self, config: ServiceConfig) -> None:
        base = config.recognizer_url
        self.url = base if base.rstrip("/").endswith(RECOGNITION_PATH) else join_url(base, RECOGNITION_PATH)
        self._key = config.recognizer_api_key
        self._timeout_s = config.recognizer_timeout_s
        self._http: httpx2.AsyncClient | None = None
        self._opening = threading.Lock()
        # Recognizes a request that returns to this service, by its Via header.
        self._name = f"speechlab-{secrets.token_hex(8)}"
        self._last = "not asked yet"

    def __repr__(self) -> str:
        return f"Backend({self.url!r})"

    def summarize_status(self) -> dict[str, str]:
        """Its address, and its last reply."""
        return {"url": self.url, "last": self._last}

    def open(self) -> None:
        """Make the connection pool, which blocks for a moment; for worker threads."""
        import httpx2

        with self._opening:
            if self._http is not None:
                return
            address = urlsplit(self.url)
            self._http = httpx2.AsyncClient(
                verify=httpx2.create_ssl_context() if address.scheme == "https" else False,
                # A proxy for the internet must not see requests to this machine.
                trust_env=not is_loopback(address.hostname or ""),
                timeout=httpx2.Timeout(None, connect=5.0),
                # The lane limits the calls. A connection is dropped before any server does so, just when it is used.
                limits=httpx2.Limits(max_connections=None, keepalive_expiry=5.0),
                headers={"User-Agent": "speechlab", "Accept-Encoding": "identity"},
                follow_redirects=False,
            )
            # Cookies that the backend sets for one client are not sent with the request of another.
            self._http.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))

    async def close(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def forward_request(self, body: HeldBytes, via: str = "") -> BackendReply:
        """Forward a request; a cancellation closes the connection."""
        if self._name in via:
            raise BackendUnreachable("is this service itself; see the setting recognizer_url", reached=False)
        try:
            async with asyncio.timeout(self._timeout_s):
                reply = await self._request_reply(
                    body, ", ".join(hop for hop in (via, f"1.1 {self._name}") if hop)
                )
        except BackendUnreachable as fault:
            self._last = fault.error
            log("no answer of the backend", level="error", url=self.url, reason=fault.error)
            raise
        except TimeoutError:
            self._last = f"gave no answer within {self._timeout_s:g} s"
            log("no answer of the backend", level="error", url=self.url, reason=self._last)
            raise BackendUnreachable(f"{self._last} (recognizer_timeout_s)", reached=True) from None
        self._last = f"answered {reply.status}"
        if reply.status in {401, 403}:
            remedy = "see the setting recognizer_api_key"
            log(
                "the backend refuses its key", level="error", url=self.url, status=reply.status, remedy=remedy
            )
        return reply

    async def _request_reply(self, body: HeldBytes, via: str) -> BackendReply:
        import httpx2

        http = self._http
        assert http is not None
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Via": via}
        headers["Content-Length"] = str(body.size)
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        data = bytearray()
        try:
            async with http.stream(
                "POST", self.url, content=_iterate_body_pieces(body), headers=headers
            ) as response:
                async for chunk in response.aiter_bytes():
                    data += chunk
                    if len(data) > _REPLY_BYTES:
                        raise BackendUnreachable(
                            f"gave an answer of more than {_REPLY_BYTES:,} bytes", reached=True
                        )
            return _build_checked_reply(response.status_code, bytes(data), response.headers)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            log("connection refused", level="debug", error=type(error).__name__)
            raise BackendUnreachable("cannot be reached; try again later", reached=False) from None
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            # Its message may quote received data, so only its type is reported.
            raise BackendUnreachable(f"broke off its answer ({type(error).__name__})", reached=True) from None


async def _iterate_body_pieces(body: HeldBytes) -> AsyncIterator[bytes]:
    for start in range(0, body.size, _SEND_BYTES):
        yield body.read(start, _SEND_BYTES)


def _build_checked_reply(status: int, body: bytes, headers: Any) -> BackendReply:
    """Accept transcripts and errors; refuse other replies."""
    if status == 200:
        try:
            is_object = isinstance(orjson.loads(body), dict)
        except orjson.JSONDecodeError:
            is_object = False
        if not is_object:
            raise BackendUnreachable("answered 200 with something that is no JSON object", reached=True)
    elif not 400 <= status <= 599:
        raise BackendUnreachable(f"answered with the status {status}, which means nothing here", reached=True)
    return BackendReply(status, body, {name: headers[name] for name in _FORWARDED_HEADERS if name in headers})
