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


def checked_host(name: object) -> str:
    """Return a host in the form compared with ``Host``: name or address in lower case, without port and brackets.

    Raises:
        ValueError: No request can name such a host; the message contains the reason and the allowed form.
    """
    allowed = "write a name or an address alone, such as speech.example.org or 192.0.2.7"
    host = _text(name, allowed).lower()
    if "*" in host:
        message = f"{_shown(host)} has a wildcard, and names are compared whole; {allowed}"
        raise ValueError(message)
    if "/" in host:
        message = f"{_shown(host)} is a URL or has a path, and Host contains a name only; {allowed}"
        raise ValueError(message)
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if _is_address(bare):
        return str(ipaddress.ip_address(bare))  # in the short form, which clients send
    if ":" in host:
        message = f"{_shown(host)} has a port, which is not compared; {allowed}"
        raise ValueError(message)
    if not _HOST.fullmatch(host):
        message = (
            f"{_shown(host)} cannot be the name of a host (names beyond ASCII are sent as xn--…); {allowed}"
        )
        raise ValueError(message)
    return host


def checked_origin(origin: object, *, any_page: bool) -> str:
    """Return an origin in the form that browsers send: scheme, host and port in lower case, or ``null``.

    Args:
        origin: The value of the setting.
        any_page: Whether ``*`` is allowed for all pages.

    Raises:
        ValueError: No browser sends this origin; the message contains the reason and the allowed form.
    """
    allowed = (
        "write scheme and host, and the port if it is not the usual one, such as https://page.example.org"
    )
    text = _text(origin, allowed).lower()
    if text == "null" or (any_page and text == "*"):
        return text
    if "*" in text:
        message = f"{_shown(text)} has a wildcard, and origins are compared whole; {allowed}"
        raise ValueError(message)
    scheme, mark, rest = text.partition("://")
    if not mark or not _SCHEME.fullmatch(scheme):
        message = f"{_shown(text)} has no scheme; {allowed}"
        raise ValueError(message)
    if scheme in {"ws", "wss"}:
        message = f"{_shown(text)} is an address of a WebSocket, and an origin is that of the page; {allowed}"
        raise ValueError(message)
    if any(mark in rest for mark in "/?#"):
        message = (
            f"{_shown(text)} has text after the host, which an origin never has, not even a slash; {allowed}"
        )
        raise ValueError(message)
    host, port = _parted(rest)
    if not (_HOST.fullmatch(host) or (host.startswith("[") and _is_address(host[1:-1]))) or port == 0:
        unlike = "no host or port that can be one (names beyond ASCII are sent as xn--…)"
        message = f"{_shown(text)} has {unlike}; {allowed}"
        raise ValueError(message)
    if port is not None and port == _DEFAULT_PORTS.get(scheme):
        message = f"{_shown(text)} names the usual port of {scheme}, which browsers leave out; {allowed}"
        raise ValueError(message)
    return text


def _text(value: object, allowed: str) -> str:
    if not isinstance(value, str):
        message = f"it holds {_shown(value)}, which is not a text; {allowed}"
        raise ValueError(message)  # noqa: TRY004 - all faults of settings have the same type
    if "@" in value:
        message = f"it holds a user name or password, which is never compared; {allowed}"
        raise ValueError(message)  # without the value, which is a secret
    if not value or any(letter.isspace() or not letter.isprintable() for letter in value):
        message = f"{_shown(value)} is empty or has spaces or control characters; {allowed}"
        raise ValueError(message)
    return value


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…"


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _parted(rest: str) -> tuple[str, int | None]:
    """Host and port in the text after a scheme; the port is 0 if it is invalid."""
    host, colon, digits = rest.rpartition(":")
    if not colon or rest.endswith("]"):
        return rest, None
    if not (digits.isascii() and digits.isdigit() and len(digits) < 6 and int(digits) <= 65_535):
        return host, 0
    return host, int(digits)


def check_backend_url(url: str) -> None:
    """Check the address of another deployment; it may have a path.

    Raises:
        ValueError: The URL is not usable; the message does not repeat it, since it may contain a password.
    """
    allowed = "it must look like https://host or http://127.0.0.1:8100"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        message = f"it is not a URL; {allowed}"
        raise ValueError(message) from None
    if parts.username is not None or parts.password is not None:
        message = "it holds a user name or password; leave it out, and set recogniser_api_key"
        raise ValueError(message)
    if parts.scheme not in {"http", "https"} or not parts.hostname or url != url.strip():
        raise ValueError(allowed)
    if parts.query or parts.fragment:
        message = "it has a query or a fragment; give the part before it"
        raise ValueError(message)


def sends_in_the_clear(url: str) -> bool:
    """Whether data sent to a URL travels unencrypted to another machine."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")
