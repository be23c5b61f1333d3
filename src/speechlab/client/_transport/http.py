"""Adapter of the HTTP library.

Everything that it raises is turned into :class:`WireError` here, and the original is dropped: its traceback runs
through frames that hold the Authorization header, and a notebook prints the locals of tracebacks.
"""

from __future__ import annotations

import os
import platform
import threading
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from speechlab._platform import after_fork, is_loopback, package_version
from speechlab.client._secret import Secret, install_log_filter, redact
from speechlab.contract import join_url
from speechlab.errors import ConfigurationError, SpeechLabError

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    import httpx2

    from speechlab.client._operations.call import HttpCall
    from speechlab.client._settings.settings import Settings

_KEEPALIVE_S = 20.0
_ERROR_BYTES = 1 << 20
_URLS = 100


class WireError(Exception):
    """No reply, or not all of it.

    Attributes:
        sent: Whether the request had been sent in full.
        timed_out: Whether it is a matter of time.
        cut: Whether a reply had begun.
        untrusted: Whether the certificate of the service is the reason.
    """

    def __init__(self, text: str, *, sent: bool, timed_out: bool, cut: bool = False) -> None:
        super().__init__(text)
        self.sent = sent
        self.timed_out = timed_out
        self.cut = cut
        self.untrusted = is_untrusted(text)


_REMEDIES = {
    "mismatch": "; the certificate is for another name; set base_url to the name that it is for",
    "expired": "; the service has to renew its certificate, unless the clock of this machine is wrong",
    "": "; to trust its certificate's authority, set SSL_CERT_FILE to the file of that authority's certificate",
}


def is_untrusted(text: str) -> bool:
    """True if a failure is about the service's certificate; trying again does not change that."""
    return "CERTIFICATE_VERIFY_FAILED" in text


def remedy(text: str) -> str:
    """Advice for a certificate that was refused with this text."""
    return next(advice for word, advice in _REMEDIES.items() if word in text)


def without_trace(error: BaseException) -> BaseException:
    """Cut off the frames in which an exception arose, and those of the exceptions behind it."""
    error.__traceback__ = None
    error.__context__ = error.__cause__ = None
    return error


class Sent:
    """Flag that is set when a request has been sent in full."""

    def __init__(self) -> None:
        self.done = False


async def _upload(content: bytes | AsyncIterator[bytes], sent: Sent) -> AsyncIterator[bytes]:
    """Hand out a body, and note when the last piece of it was taken."""
    if isinstance(content, bytes):
        yield content
    else:
        async for piece in content:
            yield piece
    sent.done = True


class Reply:
    """A reply whose head has come; the body comes when asked for.

    Attributes:
        status: HTTP status.
        headers: Headers, names in lower case.
        ended: Whether all of the body has come.
    """

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self.status: int = response.status_code
        self.headers: dict[str, str] = {name.lower(): value for name, value in response.headers.items()}
        self.ended = False

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it arrives.

        Raises:
            WireError: It was cut short, or nothing came for too long.
        """
        body = self._response.aiter_bytes()
        failure: WireError | None = None
        while failure is None:
            try:
                piece = await anext(body, None)
            except Exception as error:  # noqa: BLE001 - translated outside the block, so that it leaves no context
                failure = _translated(error, sent=True, cut=True)
            except BaseException as error:  # noqa: BLE001 - cancelled: on it goes, without the frames beneath
                raise without_trace(error)  # noqa: B904
            else:
                if piece is None:
                    self.ended = True
                    return
                yield piece
        raise failure

    async def read_some(self, limit: int = _ERROR_BYTES) -> bytes:
        """The start of an error's body; no failure if it is cut short."""
        content = b""
        with suppress(WireError):
            async for piece in self.pieces():
                content += piece
                if len(content) >= limit:
                    break
        return content

    async def close(self) -> None:
        """Close the connection if the body has not been read to its end, and give it back otherwise."""
        try:
            await self._response.aclose()
        except Exception as error:  # noqa: BLE001 - a connection that breaks while it is closed is closed
            without_trace(error)


class Wire:
    """Connections of one client, on one event loop."""

    def __init__(self, settings: Settings) -> None:
        install_log_filter()
        self._settings = settings
        self._http = _http_client(settings)
        self._urls: dict[str, httpx2.URL] = {}
        self._auth = _bearer(settings.api_key) if settings.api_key else None

    async def open(self, call: HttpCall, sent: Sent) -> Reply:
        """Send a request and wait for the head of the reply.

        Args:
            call: What to send.
            sent: Is told when all of it has been sent.

        Raises:
            WireError: None came.
            SpeechLabError: The body could not be made.
        """
        request = self._request(call, sent)
        failure: Exception
        try:
            response = await self._http.send(request, auth=self._auth, stream=True, follow_redirects=False)
            return Reply(response)
        except SpeechLabError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - translated outside the block, so that it leaves no context
            failure = _translated(error, sent=sent.done)
        except BaseException as error:  # noqa: BLE001 - cancelled: on it goes, without the frames beneath
            raise without_trace(error)  # noqa: B904
        raise without_trace(failure)

    def _request(self, call: HttpCall, sent: Sent) -> httpx2.Request:
        import httpx2

        url = self._urls.get(call.path)
        if url is None:
            url = httpx2.URL(join_url(self._settings.base_url, call.path))
            if len(self._urls) < _URLS:
                self._urls[call.path] = url
        limits = call.timeouts
        waits = {"connect": limits.connect, "read": limits.read, "write": limits.write, "pool": None}
        # Made here and not by the library's client, whose merging of defaults takes as long as all of our own work.
        return httpx2.Request(
            call.method,
            url,
            headers=_headers(call),
            content=None if call.body is None else _upload(call.body.open(), sent),
            extensions={"timeout": waits},
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    def __repr__(self) -> str:
        return f"Wire({self._settings.base_url!r})"


@cache
def user_agent() -> str:
    """Value of the User-Agent header."""
    return f"speechlab/{package_version()} Python/{platform.python_version()}"


def _headers(call: HttpCall) -> dict[str, str]:
    headers = {
        "Accept": call.accept,
        "Accept-Encoding": "gzip, deflate",
        "Connection": "keep-alive",
        "User-Agent": user_agent(),
    }
    if call.body is not None:
        headers["Content-Type"] = call.body.content_type
        headers["Content-Length"] = str(call.body.length)
    if call.headers:
        given = {name.lower() for name in call.headers}
        headers = {name: value for name, value in headers.items() if name.lower() not in given}
    return {**headers, **call.headers}


def _translated(error: Exception, *, sent: bool, cut: bool = False) -> WireError:
    import httpx2

    timed_out = isinstance(error, (httpx2.TimeoutException, TimeoutError))
    text = redact(str(error)).strip() or type(error).__name__
    if isinstance(error, httpx2.ConnectTimeout):
        text = "no connection in time"
    elif timed_out:
        text = "nothing came in time"
    return WireError(text, sent=sent, timed_out=timed_out, cut=cut)


_ssl_lock = threading.Lock()
_ssl_context: ssl.SSLContext | None = None


def shared_ssl_context() -> ssl.SSLContext:
    """The TLS context of the process: making one takes a hundred times as long as the rest of a client.

    Raises:
        ConfigurationError: ``SSL_CERT_FILE`` or ``SSL_CERT_DIR`` names what cannot be read.
    """
    global _ssl_context  # noqa: PLW0603
    with _ssl_lock:
        if _ssl_context is None:
            import httpx2

            try:
                _ssl_context = httpx2.create_ssl_context()
            except OSError as error:
                names = [name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)]
                told = " and ".join(f"{name}={os.environ[name]!r}" for name in names) or "those of the system"
                text = f"the certificates to trust cannot be read ({told}): {error}"
                raise ConfigurationError(text) from error
        return _ssl_context


def _http_client(settings: Settings) -> httpx2.AsyncClient:
    import httpx2

    parts = urlsplit(settings.base_url)
    options: dict[str, Any] = {}
    verify = shared_ssl_context() if parts.scheme == "https" else False
    # A proxy that is meant for the internet must not see what stays on this machine.
    trust_env = not is_loopback(parts.hostname or "")
    if isinstance(settings.transport, str):
        from speechlab.client._transport.aiohttp import fast_transport

        options["transport"] = fast_transport(verify, keepalive_s=_KEEPALIVE_S, trust_env=trust_env)
    elif settings.transport is not None:
        options["transport"] = settings.transport
    else:
        options["verify"], options["trust_env"] = verify, trust_env
        # The limiter bounds the calls, so the pool must not: waiting there would count as a timeout.
        options["limits"] = httpx2.Limits(
            max_connections=None, max_keepalive_connections=64, keepalive_expiry=_KEEPALIVE_S
        )
    try:
        return httpx2.AsyncClient(follow_redirects=False, **options)
    except (ImportError, ValueError) as error:  # it reads the proxies of the environment
        raise unusable_proxy(error) from None


def unusable_proxy(error: Exception) -> ConfigurationError:
    """The error for a proxy of the environment that cannot be used."""
    if isinstance(error, ImportError):
        what = "is a SOCKS proxy, which needs two more packages (pip install socksio python-socks)"
    else:
        # Some texts begin with the address, which may hold a password.
        what = f"cannot be used ({redact(getattr(error, 'msg', None) or str(error))})"
    return ConfigurationError(
        f"the proxy of the environment {what}; it is named by HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, and NO_PROXY "
        "lists the hosts that are reached without it"
    )


def _bearer(key: Secret) -> httpx2.Auth:
    import httpx2

    class _BearerAuth(httpx2.Auth):
        """Puts the key on a request at the last moment, so that no header dictionary of ours holds it."""

        def auth_flow(self, request: httpx2.Request) -> Any:
            request.headers["Authorization"] = f"Bearer {key.reveal()}"
            yield request

    return _BearerAuth()


@after_fork
def _forget_after_fork() -> None:
    global _ssl_lock  # noqa: PLW0603
    _ssl_lock = threading.Lock()
