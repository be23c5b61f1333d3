"""Addresses in settings: other deployments, host names, and origins of pages."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from speechlab._platform import is_loopback

_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,252}[a-z0-9_.])?")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_SHOWN_CHARS = 80


def normalize_host(name: object) -> str:
    """Return a host in the form compared with ``Host``: name or address in lower case, without port and brackets."""
    allowed = "write a name or an address alone, such as speech.example.org or 192.0.2.7"
    host = _check_address_text(name, allowed).lower()
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if _is_ip_address(bare):
        return str(ipaddress.ip_address(bare))  # in the short form, which clients send
    faults = {
        "has a wildcard, and names are compared whole": "*" in host,
        "is a URL or has a path, and Host contains a name only": "/" in host,
        "has a port, which is not compared": ":" in host,
        "cannot be the name of a host (names beyond ASCII are sent as xn--…)": not _HOST.fullmatch(host),
    }
    _raise_if_faulty(host, faults, allowed)
    return host


def normalize_origin(origin: object, *, any_page: bool) -> str:
    """Return an origin in the form that browsers send: scheme, host and port in lower case, or ``null``."""
    allowed = (
        "write scheme and host, and the port if it is not the usual one, such as https://page.example.org"
    )
    text = _check_address_text(origin, allowed).lower()
    if text == "null" or (any_page and text == "*"):
        return text
    scheme, mark, authority = text.partition("://")
    host, port = _split_host_and_port(authority)
    is_host = _HOST.fullmatch(host) or (host.startswith("[") and _is_ip_address(host[1:-1]))
    faults = {
        "has a wildcard, and origins are compared whole": "*" in text,
        "has no scheme": not mark or not _SCHEME.fullmatch(scheme),
        "is an address of a WebSocket, and an origin is that of the page": scheme in {"ws", "wss"},
        "has text after the host, which an origin never has, not even a slash": any(
            c in authority for c in "/?#"
        ),
        "has no host or port that can be one (names beyond ASCII are sent as xn--…)": not is_host
        or port == 0,
        f"names the usual port of {scheme}, which browsers leave out": port is not None
        and port == _DEFAULT_PORTS.get(scheme),
    }
    _raise_if_faulty(text, faults, allowed)
    return text


def check_backend_url(url: str) -> None:
    """Check the address of another deployment; it may have a path."""
    allowed = "it must look like https://host or http://127.0.0.1:8100"
    try:
        address = urlsplit(url)
        _ = address.port
    except ValueError:
        raise ValueError(f"it is not a URL; {allowed}") from None
    faults = {
        "it holds a user name or password; leave it out, and set recognizer_api_key": address.username
        is not None
        or address.password is not None,
        allowed: address.scheme not in {"http", "https"} or not address.hostname or url != url.strip(),
        "it has a query or a fragment; give the part before it": bool(address.query or address.fragment),
    }
    for fault, present in faults.items():
        if present:
            raise ValueError(fault)


def is_sent_unencrypted(url: str) -> bool:
    """Return whether data sent to a URL travels unencrypted to another machine."""
    address = urlsplit(url)
    return address.scheme == "http" and not is_loopback(address.hostname or "")


def _check_address_text(value: object, allowed: str) -> str:
    if isinstance(value, str) and "@" in value:
        message = f"it holds a user name or password, which is never compared; {allowed}"
        raise ValueError(message)  # without the value, which is a secret
    text = value if isinstance(value, str) else ""
    faults = {
        "is not a text": not isinstance(value, str),
        "is empty or has spaces or control characters": not text.isprintable() or not text or " " in text,
    }
    _raise_if_faulty(value, faults, allowed)
    return text


def _raise_if_faulty(value: object, faults: dict[str, bool], allowed: str) -> None:
    quoted = repr(value)
    if len(quoted) > _SHOWN_CHARS:
        quoted = f"{quoted[: _SHOWN_CHARS - 1]}…"
    for fault, present in faults.items():
        if present:
            raise ValueError(f"{quoted} {fault}; {allowed}")


def _is_ip_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _split_host_and_port(rest: str) -> tuple[str, int | None]:
    """Host and port in the text after a scheme; the port is 0 if it is invalid."""
    host, colon, digits = rest.rpartition(":")
    if not colon or rest.endswith("]"):
        return rest, None
    if not (digits.isascii() and digits.isdigit() and len(digits) < 6 and int(digits) <= 65_535):
        return host, 0
    return host, int(digits)
