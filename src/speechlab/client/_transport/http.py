"""One HTTP exchange with any library: its reply, its failures, its certificates and its proxy.

Exceptions of a library are replaced by :class:`WireError`: their tracebacks run through frames that contain the
Authorization header, and a notebook prints the locals of tracebacks.
"""

from __future__ import annotations

import os
import platform
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from speechlab._platform import get_package_version
from speechlab.client._clock import LoopTurns
from speechlab.client._secret import install_log_filter, redact
from speechlab.client._transport.unpacking import find_unpacker
from speechlab.client._transport.wire_errors import (
    WireError,
    build_proxy_error,
    format_proxy,
    is_certificate_failure,
)
from speechlab.contract import INTERIM_HEADER, join_url
from speechlab.errors import ConfigurationError, SpeechLabError

if TYPE_CHECKING:
    import ssl

    from speechlab.client._operations.call import HttpCall
    from speechlab.client._secret import Secret
    from speechlab.client._settings.settings import Settings

_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_LARGE_BODY = 1 << 20
# Seconds for which an idle connection is kept.
KEEPALIVE_S = 20.0
# The end of a reply's head, which may begin in the packet before.
HEAD_END = re.compile(rb"(?:^|\n)\r?\n")
CLOSED_IN_HEAD = "the connection was closed within the head of the reply"
# Maximum of cached addresses.
_URLS = 100


def strip_traceback(error: BaseException) -> BaseException:
    """Remove the frames of an exception, and those of the exceptions that caused it."""
    error.__traceback__ = None
    error.__context__ = error.__cause__ = None
    return error


@dataclass(slots=True)
class RequestAttempt:
    """One request on its way: its time limits, and how far it has come."""

    call: HttpCall
    connect_s: float
    read_s: float | None
    defaults: Mapping[str, Secret]  # headers of the client, for other names
    started: bool = False  # whether there was a connection, and the body began to be sent
    at: float | None = None
    """Since when its reply has been silent (``time.monotonic``); None until the request was sent in full."""

    @property
    def sent(self) -> bool:
        """Whether the request was sent in full."""
        return self.at is not None

    @property
    def is_counted(self) -> bool:
        """Whether whatever came in reply shows that the work was done, which would be paid for again."""
        return self.sent and not self.call.free

    @property
    def broke_off(self) -> bool:
        """Whether a large body was sent in part: the service may have refused it."""
        body = self.call.body
        return self.started and not self.sent and body is not None and body.length >= _LARGE_BODY

    def record_progress(self) -> None:
        """Note the end of the request, or a piece of its reply."""
        self.at = time.monotonic()


class ReplyBody(ABC):
    """A body that arrives in pieces, read on demand; the names of its headers are in lower case."""

    status: int | None = None
    """Status of HTTP; None for what came by another way."""
    headers: Mapping[str, str]
    ended: bool = False
    limit: int | None = None
    """Maximum of bytes of the body, unpacked; None for what is made in this process."""
    _size = 0
    _broken_off: bool = False
    """Whether the reading of a piece failed or was cancelled; also while one is read."""

    def __init__(self) -> None:
        self._turns = LoopTurns()

    async def next(self) -> bytes | None:
        """Return the next piece of the body as it arrives; None at its end, and after a read that was broken off.

        Raises:
            WireError: The body is incomplete, or larger than its limit.
        """
        if self.ended or self._broken_off:
            return None
        self._broken_off = True
        await self._turns.yield_to_loop_if_due()
        piece = await self._read_next_piece()
        if piece is not None and self.limit is not None:
            self._size += len(piece)
            if self._size > self.limit:
                text = f"the reply is larger than {self.limit:,} bytes, more than a reply of its kind needs"
                raise WireError(text, sent=True, final=True, too_large=True)
        self._broken_off, self.ended = False, piece is None
        return piece

    @abstractmethod
    async def _read_next_piece(self) -> bytes | None:
        """Return the next piece, or None at the end; WireError if the body is incomplete."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connection, or return it to the pool if the body was read completely."""


class Wire(ABC):
    """Connections of one client on one event loop, by a library whose exceptions are translated."""

    proxy: str | None = None
    """Address of the proxy before the service."""

    def __init__(self, settings: Settings) -> None:
        install_log_filter()
        self.replies: WeakSet[ReplyBody] = WeakSet()
        """Replies that are still referenced; they end with the wire."""
        self._base_url = settings.base_url
        self._key = settings.api_key
        self._settings = settings
        self._reads_interim = settings.lease is not None
        self._urls: dict[str, Any] = {}

    def _get_url(self, path: str) -> Any:
        """Return the address of a path in the library's own type, which is expensive to make."""
        url = self._urls.get(path)
        if url is None:
            url = self.parse_url(join_url(self._base_url, path))
            if len(self._urls) < _URLS:
                self._urls[path] = url
        return url

    def _build_headers(self, attempt: RequestAttempt) -> dict[str, str]:
        """Return the headers of a call: made last, so that no long-lived object contains those that are secret."""
        call = attempt.call
        headers = {
            "Accept": call.accept,
            "Accept-Encoding": "gzip, deflate",
            "Connection": "keep-alive",
            "User-Agent": get_user_agent(),
        }
        if call.body is not None:
            headers["Content-Type"] = call.body.content_type
            headers["Content-Length"] = str(call.body.length)
        if self._reads_interim:
            headers[INTERIM_HEADER] = "100"
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key.reveal()}"
        if not attempt.defaults and not call.headers:
            return headers
        defaults = {name: value.reveal() for name, value in attempt.defaults.items()}
        by_name = {
            name.lower(): (name, value)
            for layer in (headers, defaults, call.headers)
            for name, value in layer.items()
        }
        return dict(by_name.values())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._base_url!r})"

    @staticmethod
    @abstractmethod
    def parse_url(url: str) -> Any:
        """Return an address in the library's own type."""

    @abstractmethod
    async def _send_request(self, attempt: RequestAttempt, url: Any, headers: dict[str, str]) -> LibraryReply:
        """Send a request by the library; its own errors."""

    @abstractmethod
    def to_wire_error(self, error: Exception, attempt: RequestAttempt, *, reading: bool = False) -> WireError:
        """Return the failure for an exception of the library, before the reply or while it is read."""

    async def open(self, attempt: RequestAttempt) -> LibraryReply:
        """Send a request, and wait for the headers of the reply."""
        failure: Exception
        try:
            url = self._get_url(attempt.call.path)
            # The headers have no name here: this frame is in tracebacks, and they contain the key.
            reply = await self._send_request(attempt, url, self._build_headers(attempt))
        except SpeechLabError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - translated outside the block, to leave no context
            failure = self.to_wire_error(error, attempt)
        except BaseException as error:  # noqa: BLE001 - a cancellation, raised again without its frames
            raise strip_traceback(error)  # noqa: B904 - the cause was removed on purpose
        else:
            self.replies.add(reply)
            if reply.status != 407 or self.proxy is None:
                return reply
            await reply.close()
            failure = build_proxy_error(self.proxy, "407", 407)
        raise strip_traceback(failure)

    def _build_connection_error(
        self, error: Exception, text: str, *, sent: bool, connecting: bool, status: int | None = None
    ) -> WireError:
        """Return the failure of a connection: of the proxy, if there is one and the service was not reached."""
        text = redact(text).strip() or type(error).__name__
        if connecting and self.proxy is not None and not is_certificate_failure(text):
            return build_proxy_error(self.proxy, text, status)
        return WireError(text, sent=sent)

    async def close(self) -> None:
        """Close all connections."""
        for reply in tuple(self.replies):
            await reply.close()


class LibraryReply(ReplyBody):
    """A reply that a library reads."""

    status: int

    def __init__(self, wire: Wire, attempt: RequestAttempt, headers: dict[str, str]) -> None:
        super().__init__()
        self._wire, self._attempt = wire, attempt
        self.headers, self.limit = headers, attempt.call.reply_limit
        encoding = headers.get("content-encoding")
        self._unpacker = find_unpacker(encoding) if encoding else None

    @abstractmethod
    async def _read(self) -> bytes | None:
        """Return the next piece of the body as it came, or None at its end; the library's own errors."""

    async def _read_next_piece(self) -> bytes | None:
        unpacker = self._unpacker
        if unpacker is None:
            return await self._read_packed_piece()
        try:
            while not (piece := unpacker.take()):
                packed = await self._read_packed_piece()
                if packed is None:
                    unpacker.check_end()
                    return None
                unpacker.feed(packed)
        except ValueError as error:
            failure = WireError(str(error), sent=True)
        else:
            return piece
        raise failure

    async def _read_packed_piece(self) -> bytes | None:
        failure: WireError
        try:
            return await self._read()
        except Exception as error:  # noqa: BLE001 - translated outside the block, to leave no context
            failure = self._wire.to_wire_error(error, self._attempt, reading=True)
        except BaseException as error:  # noqa: BLE001 - a cancellation, raised again without its frames
            raise strip_traceback(error)  # noqa: B904 - the cause was removed on purpose
        raise failure


def check_port_not_taken(settings: Settings) -> None:
    """Raise a WireError for a new connection to whoever took the port of the embedded service; no key was sent."""
    if settings.lease is not None and not settings.lease.is_listening_or_restarted():
        raise WireError("another program has taken the port of the embedded service")


@cache
def get_user_agent() -> str:
    """Value of the User-Agent header."""
    return f"speechlab/{get_package_version()} Python/{platform.python_version()}"


def build_connect_timeout_error(attempt: RequestAttempt, proxy: str | None) -> WireError:
    """Return the failure of an attempt to connect in time."""
    text = f"no connection{f' to the proxy {format_proxy(proxy)}' if proxy else ''} within {attempt.connect_s:g} s"
    return WireError(text, timed_out=True, advice="give a longer time by with_options(connect_timeout_s=...)")


def build_reply_timeout_error(attempt: RequestAttempt, *, reading: bool, taking: bool = False) -> WireError:
    """Return the timeout of a reply, of a piece of one (``reading``), or of the request (``taking``)."""
    limits = attempt.call.timeouts
    what = "the request was not taken" if taking else "nothing more came" if reading else "nothing came"
    text = f"{what} within {limits.write if taking else limits.read:g} s"
    return WireError(text, sent=reading or attempt.sent, timed_out=True)


def get_ssl_context() -> ssl.SSLContext:
    """Return the TLS context for the certificates that the environment names."""
    return _create_ssl_context(*map(os.environ.get, _CERTIFICATES))


@cache
def _create_ssl_context(*places: str | None) -> ssl.SSLContext:
    """Create a TLS context once for these certificates; it takes a hundred times as long as the rest of a client."""
    import httpx2

    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        named = [f"{name}={place!r}" for name, place in zip(_CERTIFICATES, places, strict=True) if place]
        sources = " and ".join(named) or "those of the system"
        raise ConfigurationError(f"the certificates to trust cannot be read ({sources}): {error}") from error
