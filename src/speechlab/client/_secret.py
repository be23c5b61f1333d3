"""API keys that no variable view, traceback, pickle or log shows.

Notebooks print variables, tracebacks show locals, pickles travel to workers, and logs are shared. A key that is a
plain string gets into all of them, so it lives in a closure here: no attribute, repr, pickle or copy shows it.
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
import weakref
from typing import TYPE_CHECKING, Any, NoReturn

from speechlab.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

_MASK = "***"
_SHORTEST = 4  # a slip such as ":" is no secret, and would blot out every colon
_SENDABLE = re.compile(r"[!-~]+")
_SALT = secrets.token_bytes(16)
_LOGGERS = (
    "aiohttp.client",
    "httpcore2.connection",
    "httpcore2.http11",
    "httpcore2.http2",
    "httpcore2.proxy",
    "httpcore2.socks",
    "httpx2",
    "speechlab.client",
    "websockets",
    "websockets.client",
    "websockets.server",
)


class Secret:
    """An API key: ``reveal()`` gives it, and nothing else does."""

    __slots__ = ("__weakref__", "_reveal")

    def __init__(self, value: str) -> None:
        text = str(value).strip()
        self._reveal: Callable[[], str] = lambda: text
        _live.add(self)

    def reveal(self) -> str:
        """The key itself; for the header of a request only."""
        return self._reveal()

    def check(self) -> None:
        """Make sure that it can go into a header.

        It is checked here and not where it is made, since there it would be among the locals of the error.

        Raises:
            ConfigurationError: It cannot.
        """
        if not _SENDABLE.fullmatch(self._reveal()):
            raise ConfigurationError(
                "the API key is empty or holds spaces, line breaks or characters outside ASCII; "
                "copy it again, whole and without quotes"
            )

    def fingerprint(self) -> str:
        """A short name that is the same for the same key within this process, and tells nothing of it."""
        return hashlib.blake2b(self._reveal().encode(), key=_SALT, digest_size=8).hexdigest()

    def __repr__(self) -> str:
        return f"Secret({_MASK})"

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("an API key cannot be pickled; set SPEECHLAB_API_KEY where the pickle is read")


class NoSecret(Secret):
    """Stands for a key that is not a text. The value itself is dropped, as it may contain a key.

    Args:
        kind: Name of its type.
    """

    __slots__ = ("_kind",)

    def __init__(self, kind: str) -> None:
        super().__init__("")
        self._kind = kind

    def check(self) -> None:
        """Refuse it.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError(f"api_key is a {self._kind}; give the key as text")


def as_secret(value: object) -> Secret | None:
    """Wrap a key; an empty string counts as none, and what is no text is refused when it is checked."""
    if value is None or isinstance(value, Secret):
        return value
    if isinstance(value, str):
        return Secret(value) if value else None
    return NoSecret(type(value).__name__)


_live: weakref.WeakSet[Secret] = weakref.WeakSet()


def redact(text: str) -> str:
    """Replace each key of this process that occurs in a text."""
    for secret in tuple(_live):
        key = secret.reveal()
        if len(key) >= _SHORTEST and key in text:
            text = text.replace(key, _MASK)
    return text


class _RedactingFilter(logging.Filter):
    """Renders records that hold a key, and takes it out."""

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            return True
        clean = redact(message)
        if clean != message:
            record.msg, record.args = clean, None
        return True


_filter = _RedactingFilter()


def install_log_filter() -> None:
    """Guard the loggers of everything that sends for us; ``websockets`` at DEBUG prints the header, for one."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_filter)  # adding it twice is the same as once
