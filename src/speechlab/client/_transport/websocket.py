"""Adapter of the WebSocket library.

As with HTTP, exceptions of the library are replaced by errors of speechlab: their frames contain the header with the
key, and a notebook prints the locals of tracebacks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

from speechlab.client._clock import wake_for_interrupts
from speechlab.client._operations.failures import build_error_from_reply, parse_retry_after
from speechlab.client._operations.operation import get_original_timeout
from speechlab.client._scheduling.retry import Failure
from speechlab.client._secret import install_log_filter, redact
from speechlab.client._transport.http import (
    check_port_not_taken,
    get_ssl_context,
    get_user_agent,
    strip_traceback,
)
from speechlab.client._transport.wire_errors import (
    WireError,
    build_proxy_error,
    build_unusable_proxy_error,
    find_proxy,
    is_certificate_failure,
)
from speechlab.contract import REALTIME_PATH, join_url
from speechlab.errors import APIConnectionError, APITimeoutError

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

    from speechlab.client._settings.settings import Settings

# Maximum bytes of one message: in base64, a service may send the audio of a whole text in one.
_MAX_MESSAGE = 32 << 20
_KEEPALIVE_S = 20.0
_CLOSE_S = 2.0

# Meanings of close codes, for error messages.
CLOSE_CODES = {
    1000: "the service ended the session",
    1001: "the service is going away",
    1003: "the service says that it was sent a binary frame",
    1002: "the service says that the WebSocket protocol was broken",
    1006: "the connection broke without a close frame",
    1007: "the service says that a message was not UTF-8",
    1008: "the service ended the session by its rules",
    1009: "the service says that a message was too large",
    1011: "the service failed",
    1012: "the service is restarting",
    1013: "the service is overloaded",
}


class SocketClosedError(Exception):
    """The connection is closed; ``code`` is 1006 if it broke without a close frame."""

    def __init__(self, code: int, reason: str) -> None:
        reasons = f": {redact(reason)[:200]}" if reason else ""
        super().__init__(f"{CLOSE_CODES.get(code, 'the connection was closed')} (code {code}{reasons})")
        self.code = code


class Socket:
    """An open connection, on the event loop that opened it."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    @property
    def is_open(self) -> bool:
        """Whether neither side has started to close it, as far as is known."""
        from websockets import State

        return self._connection.state is State.OPEN

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a JSON message, as text: a binary frame would end the session (section 4.3)."""
        from websockets import ConnectionClosed

        closed: SocketClosedError
        try:
            return await self._connection.send(orjson.dumps(message).decode())
        except ConnectionClosed as error:
            closed = _to_closed_error(error)
        raise closed

    async def receive(self, within_s: float) -> str | bytes:
        """Return the next message: text is JSON, bytes are audio."""
        from websockets import ConnectionClosed

        closed: SocketClosedError
        try:
            with wake_for_interrupts():
                async with asyncio.timeout(within_s):
                    return await self._connection.recv()
        except ConnectionClosed as error:
            closed = _to_closed_error(error)
        raise closed

    async def close(self, *, wait: bool = True) -> None:
        """Close the connection."""
        # A task of its own: in Python 3.11.2, a timeout within a task that is being cancelled raises CancelledError.
        closing = asyncio.ensure_future(self._connection.close())
        try:
            await asyncio.wait({closing}, timeout=None if wait else 0)
            if closing.done() and not closing.cancelled() and (error := closing.exception()) is not None:
                strip_traceback(error)  # a connection that breaks while closing is closed
        finally:
            closing.cancel()
            self._connection.transport.abort()


def _to_closed_error(error: Any) -> SocketClosedError:
    frame = error.rcvd or error.sent
    return SocketClosedError(frame.code if frame else 1006, frame.reason if frame else "")


async def open_socket(settings: Settings, within_s: float) -> Socket | Failure:
    """Connect, with the key in the header of the handshake and nowhere else."""
    from websockets import InvalidStatus, WebSocketException
    from websockets.exceptions import InvalidProxy

    install_log_filter()
    url = join_url(settings.ws_base_url, REALTIME_PATH)
    proxy = find_proxy(url)
    failure: Failure
    try:
        with wake_for_interrupts():
            connection = await _open_connection(settings, url, within_s, proxy)
    except InvalidStatus as error:
        response = strip_traceback(error).response  # type: ignore[attr-defined]  # returns the same error
        headers = {name.lower(): value for name, value in response.headers.raw_items()}
        wait = parse_retry_after(headers, settings.clock.time())
        refusal = build_error_from_reply(response.status_code, headers, bytes(response.body or b""))
        failure = Failure(refusal, status=response.status_code, retry_after_s=wait)
    except TimeoutError:
        text = f"{url}: no answer to the handshake within {get_original_timeout(within_s):g} s"
        text += "; give a longer time by with_options(timeout=...)"
        failure = Failure(APITimeoutError(text), timed_out=True)
    except (ImportError, InvalidProxy) as error:
        raise build_unusable_proxy_error(error) from None
    except (OSError, WebSocketException, WireError, ValueError) as error:
        fault = _to_wire_error(error, proxy)
        advice = fault.advice or "check ws_base_url, and that the service runs"
        failure = Failure(APIConnectionError(f"{url}: {fault}; {advice}"), final=fault.final)
    except BaseException as error:  # noqa: BLE001 - a cancellation, raised again without its frames
        raise strip_traceback(error)  # noqa: B904 - the cause was removed on purpose
    else:
        if connection.request is not None:  # a repr of it would show the key
            for name in ("Authorization", *settings.default_headers):
                connection.request.headers.pop(name, None)
        return Socket(connection)
    return failure


def _to_wire_error(error: Exception, proxy: str | None) -> WireError:
    from websockets.exceptions import InvalidProxyStatus, ProxyError

    message = redact(str(error)).strip() or type(error).__name__
    if proxy is not None and not is_certificate_failure(message):
        if isinstance(error, InvalidProxyStatus):
            return build_proxy_error(proxy, message, error.response.status_code)
        if isinstance(error, ProxyError):
            return build_proxy_error(proxy, message, 0)
        if isinstance(error, OSError):  # nothing has been sent to the service yet
            return build_proxy_error(proxy, message)
    return WireError(message)


async def _open_connection(
    settings: Settings, url: str, within_s: float, proxy: str | None
) -> ClientConnection:
    from websockets.asyncio.client import ClientConnection, connect

    class _NoRedirect(connect):
        """Follows no redirection, so that the key is sent to no other address."""

        def process_redirect(self, exc: Exception) -> Exception | str:
            return exc

    class _Known(ClientConnection):
        """Sends its handshake, which has the key, to the service alone."""

        async def handshake(self, *arguments: Any, **options: Any) -> None:
            check_port_not_taken(settings)
            await super().handshake(*arguments, **options)

    secrets = {name: value.reveal() for name, value in settings.default_headers.items()}
    if settings.api_key is not None:
        secrets = {name: value for name, value in secrets.items() if name.lower() != "authorization"}
        secrets["Authorization"] = f"Bearer {settings.api_key.reveal()}"
    tls: dict[str, Any] = {"ssl": get_ssl_context()} if url.startswith("wss:") else {}
    return await _NoRedirect(
        url,
        additional_headers=secrets,
        user_agent_header=get_user_agent(),
        create_connection=_Known,
        compression=None,  # audio does not compress, and decompression costs ten times the receipt of a frame
        max_size=_MAX_MESSAGE,
        max_queue=2,
        open_timeout=within_s,
        close_timeout=_CLOSE_S,
        ping_interval=_KEEPALIVE_S,
        ping_timeout=_KEEPALIVE_S,
        proxy=proxy,
        **tls,
    )
