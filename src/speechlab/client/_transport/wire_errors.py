"""Failures of connections, and proxies of the environment."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from speechlab._platform import is_loopback
from speechlab.client._secret import redact
from speechlab.errors import ConfigurationError


class WireError(Exception):
    """A missing or incomplete reply; ``final`` if a retry would fail in the same way."""

    def __init__(
        self,
        text: str,
        *,
        sent: bool = False,
        timed_out: bool = False,
        advice: str = "",
        final: bool = False,
        too_large: bool = False,
    ) -> None:
        super().__init__(text)
        self.sent = sent
        self.timed_out = timed_out
        self.too_large = too_large
        without_tls = any(word in text for word in _NO_TLS_TEXTS) and not advice
        self.final = final or is_certificate_failure(text) or without_tls
        self.advice = _HTTP_ADVICE if without_tls else advice
        if is_certificate_failure(text) and not without_tls:
            self.advice = next(remedy for word, remedy in _CERTIFICATE_ADVICE.items() if word in text)


_CERTIFICATE_ADVICE = {  # for a refused certificate, by the text of the failure
    "mismatch": "the certificate is for another name; set base_url to the name that it is for",
    "expired": "the service has to renew its certificate, unless the clock of this machine is wrong",
    "": "to trust its certificate's authority, set SSL_CERT_FILE to the file of that authority's certificate",
}
# Texts of OpenSSL, in several versions, for a peer without TLS.
_NO_TLS_TEXTS = ("WRONG_VERSION_NUMBER", "record layer failure")
_HTTP_ADVICE = (
    "the server at this port does not use TLS; the service may be there as http:// (for realtime, ws://), or at "
    "another port as https://"
)


def is_certificate_failure(text: str) -> bool:
    """Return whether a failure concerns the service's certificate, so that a retry does not help."""
    return "CERTIFICATE_VERIFY_FAILED" in text


_PROXY_SOURCE = "it is named by HTTPS_PROXY, HTTP_PROXY or ALL_PROXY"
_PROXY_BYPASS = "NO_PROXY lists the hosts that are reached without it"


def find_proxy(url: str) -> str | None:
    """Return the proxy in the environment for a URL; None for this machine, and for what NO_PROXY lists."""
    address = urlsplit(url)
    host = address.hostname or ""
    if is_loopback(host):
        return None
    from urllib.request import getproxies, proxy_bypass  # slow to import

    proxies = getproxies()
    scheme = {"ws": "http", "wss": "https"}.get(address.scheme, address.scheme)
    proxy = proxies.get(scheme) or proxies.get("all")
    if not proxy or proxy_bypass(address.netloc) or _is_in_excepted_networks(host, proxies.get("no", "")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_in_excepted_networks(host: str, excepted: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return False
    for entry in excepted.split(","):
        with suppress(ValueError):
            if "/" in entry and address in ip_network(entry.strip(), strict=False):
                return True
    return False


def format_proxy(proxy: str) -> str:
    """Return the address of a proxy without its user and password."""
    address = urlsplit(proxy)
    return f"{address.scheme}://{address.netloc.rpartition('@')[2]}"


def build_proxy_error(proxy: str, said: str, status: int | None = None) -> WireError:
    """Return the failure of a proxy."""
    name = format_proxy(proxy)
    if status == 407:
        text = f"the proxy {name} requires a user and a password, or other ones (407)"
        advice = f"{_PROXY_SOURCE}, as http://user:password@host:port; {_PROXY_BYPASS}"
    elif status is not None:
        text = f"the proxy {name} does not pass the request on ({said})"
        advice = f"check base_url and the rules of the proxy; {_PROXY_SOURCE}, and {_PROXY_BYPASS}"
    else:
        text = f"the proxy {name} cannot be reached ({said})"
        advice = f"check that it runs; {_PROXY_SOURCE}, and {_PROXY_BYPASS}"
    return WireError(text, advice=advice, final=status == 407)


def build_unusable_proxy_error(error: Exception) -> ConfigurationError:
    """Return the error for a proxy of the environment that cannot be used."""
    if isinstance(error, ImportError):
        what = "is a SOCKS proxy, which needs packages of the extra socks (pip install 'speechlab[socks]')"
    else:
        # Some messages start with the address, which may contain a password.
        what = f"cannot be used ({redact(getattr(error, 'msg', None) or str(error))})"
    return ConfigurationError(f"the proxy of the environment {what}; {_PROXY_SOURCE}, and {_PROXY_BYPASS}")
