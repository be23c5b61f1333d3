"""Addresses of other deployments: which can be one, and which may carry a key."""

from __future__ import annotations

from urllib.parse import urlsplit

from speechlab._platform import is_loopback


def check_backend_url(url: str) -> None:
    """Check the address of another deployment; it may have a path.

    Raises:
        ValueError: It cannot be one; the text does not repeat it, since it may hold a password.
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
    """Whether what is sent to a URL can be read on the way to another machine."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")
