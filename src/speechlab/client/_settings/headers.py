"""Headers that a client sends with every call."""

from __future__ import annotations

import re
from collections.abc import Mapping

from speechlab.client._secret import Secret, shown
from speechlab.errors import ConfigurationError

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[ -~]*")
_OURS = frozenset(
    {"connection", "content-length", "content-type", "expect", "host", "te", "transfer-encoding", "upgrade"}
)
_SENSITIVE = re.compile(r"auth|key|token|secret|cookie|password|credential", re.IGNORECASE)


def is_sensitive(name: str) -> bool:
    """Whether a header with this name contains a credential."""
    return _SENSITIVE.search(name) is not None


def checked_headers(headers: object) -> dict[str, Secret]:
    """Headers with hidden values; headers that were checked before are returned unchanged."""
    if not isinstance(headers, Mapping):
        raise ConfigurationError(f"default_headers is {shown(headers)}; give a dict of texts")
    return {_name(name): _value(name, value) for name, value in headers.items()}


def check_no_authorization(headers: Mapping[str, Secret]) -> None:
    """Refuse an ``Authorization`` among the default headers beside an API key, which uses the same header."""
    for name in headers:
        if name.lower() == "authorization":
            raise ConfigurationError(
                f"default_headers has {name!r}, the header of the API key; leave it out, or leave out the key "
                "(api_key=, SPEECHLAB_API_KEY, .env or the keyring)"
            )


def _name(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError(f"default_headers has the name {shown(name)}; give names such as 'X-Team'")
    if name.lower() in _OURS or name.lower().startswith("sec-websocket"):
        raise ConfigurationError(f"default_headers has {name!r}, which the client sets itself; leave it out")
    return name


def _value(name: object, value: object) -> Secret:
    if isinstance(value, Secret):
        return value
    if not isinstance(value, str) or not _VALUE.fullmatch(value):
        what = f"a {type(value).__name__}" if not isinstance(value, str) else "not plain ASCII in one line"
        raise ConfigurationError(f"the value of {name!r} in default_headers is {what}; give such a text")
    return Secret(value, hidden=is_sensitive(str(name)))
