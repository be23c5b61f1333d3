"""API keys that no variable view, traceback, pickle or log shows.

Notebooks print variables, tracebacks show locals, pickles travel to workers, and logs are shared. A key that is a
plain string gets into all of them. So the key is kept in a closure: no attribute, repr, pickle or copy shows it.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import logging
import re
import secrets
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from speechlab.errors import ConfigurationError

_MASK = "***"
_LONGEST_SHOWN = 12
_PART = 8
_LONGEST_SEARCHED = 20_000
_SHORTEST = 4  # a shorter value, such as ":" by mistake, would hide every occurrence of an ordinary sign
_KEY_PATTERN = re.compile(r"[!-~]+")
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
    """An API key, shown by ``reveal()`` alone.

    Example:
        >>> key = Secret("sl:a-key-of-mine")
        >>> key, key.reveal()
        (Secret(***), 'sl:a-key-of-mine')
    """

    __slots__ = ("__weakref__", "_reveal")

    number = 0
    """Number of times that the key was replaced by another."""

    def __init__(self, value: str, *, hidden: bool = True) -> None:
        text = str(value).strip()
        self._reveal: Callable[[], str] = lambda: text
        if hidden:  # also where a text contains it
            _live.add(self)

    def reveal(self) -> str:
        """Return the key itself, for the header of a request only."""
        return self._reveal()

    def check(self) -> None:
        """Refuse a key that no header can have; the constructor does not, as its error would show the key."""
        if not _KEY_PATTERN.fullmatch(self._reveal()):
            raise ConfigurationError(
                "the API key is empty, or contains spaces, line breaks or characters outside ASCII; "
                "copy it again, whole and without quotes"
            )

    def fingerprint(self) -> str:
        """Return a short name of the key, constant within this process, from which the key cannot be derived."""
        return hashlib.blake2b(self._reveal().encode(), key=_SALT, digest_size=8).hexdigest()

    def __repr__(self) -> str:
        return f"Secret({_MASK})"

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("an API key cannot be pickled; set SPEECHLAB_API_KEY where the pickle is read")


class FreshSecret(Secret):
    """A key from a function, called before the first call and again when the service refuses the key."""

    __slots__ = ("_function", "_lock", "_name", "number")

    def __init__(self, function: Callable[[], object]) -> None:
        super().__init__("")
        self.number = 0
        self._function = function
        self._lock = threading.Lock()
        self._name = secrets.token_hex(8)

    async def wait_until_ready(self) -> None:
        """Wait until the key can be sent."""
        if self.number == 0:
            await asyncio.to_thread(self._renew_key, 0)

    async def renew(self, number: int) -> bool:
        """Replace a key that was refused; False if there is no other."""
        return await asyncio.to_thread(self._renew_key, number)

    def _renew_key(self, number: int) -> bool:
        """Ask the function for another key, unless another caller has done so since; True if there is one."""
        with self._lock:
            if self.number != number:
                return True
            secret, problem = _call_key_function(self._function)
            if secret is None:
                raise ConfigurationError(f"the function that was given as api_key {problem}")
            secret.check()
            if self.number and secret.fingerprint() == super().fingerprint():
                return False
            self._reveal = secret.reveal
            self.number += 1
            return True

    def check(self) -> None:
        """Do nothing: the key is checked when the function returns it."""

    def fingerprint(self) -> str:
        """Return a constant name for all keys of the function, so that they share one set of limits."""
        return self._name


def _call_key_function(function: Callable[[], object]) -> tuple[Secret | None, str]:
    """Return a new key, or None and the problem, without the frames of the function, which may contain keys."""
    try:
        value = function()
        if inspect.iscoroutine(value):
            value.close()  # prevents Python's warning about a coroutine that was never awaited
            return None, "is async; give one that returns the key, without async"
        secret = to_secret(value)
    except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
        return None, redact(f"failed: {type(error).__name__}: {error}")
    usable = secret is not None and not isinstance(secret, (NoSecret, FreshSecret))
    return (secret, "") if usable else (None, "returned no text; let it return the key")


class NoSecret(Secret):
    """A placeholder for a key that is not text. The value itself is dropped, because it may contain a key."""

    __slots__ = ("_kind",)

    def __init__(self, kind: str) -> None:
        super().__init__("")
        self._kind = kind

    def check(self) -> None:
        """Refuse the value."""
        raise ConfigurationError(
            f"api_key is a {self._kind}; give the key as text, or a function without async that returns it"
        )


def to_secret(value: object) -> Secret | None:
    """Wrap a key. An empty string is no key; a value that is not text is refused when it is checked."""
    if value is None or isinstance(value, Secret):
        return value
    if isinstance(value, str):
        return Secret(value) if value else None
    if callable(value) and not inspect.iscoroutinefunction(value) and not isinstance(value, type):
        return FreshSecret(value)
    return NoSecret(type(value).__name__)


_live: weakref.WeakSet[Secret] = weakref.WeakSet()


def format_setting(value: object) -> str:
    """Return a setting as shown in an error; of a value that could be a key, only its type and length."""
    harmless = value is None or isinstance(value, (bool, int, float))
    if harmless or (isinstance(value, str) and len(value) <= _LONGEST_SHOWN and ":" not in value):
        return redact(repr(value))
    if isinstance(value, str):
        return f"a text of {len(value)} characters (not shown, as it may be a key)"
    kind = type(value).__name__
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


def redact(text: str) -> str:
    """Replace every key of this process in a text, and the parts of keys by which services say which one it was."""
    keys = {secret.reveal() for secret in tuple(_live)}
    for key in keys:
        if len(key) >= _SHORTEST and key in text:
            text = text.replace(key, _MASK)
    if len(text) <= _LONGEST_SEARCHED:
        for key in keys:
            text = _redact_key_parts(text, key)
    return text


def _redact_key_parts(text: str, key: str) -> str:
    """Replace what a text shares with a key behind its prefix: eight characters and more, in any case."""
    body, folded = key.partition(":")[2].lower() or key.lower(), text.lower()
    if len(body) < _PART or len(folded) != len(text):
        return text
    pieces, copied, at = [], 0, 0
    while at + _PART <= len(text):
        length = _PART
        if folded[at : at + length] not in body:
            at += 1
            continue
        while at + length < len(text) and folded[at : at + length + 1] in body:
            length += 1
        pieces += [text[copied:at], _MASK]
        at = copied = at + length
    return "".join([*pieces, text[copied:]]) if pieces else text


def _redact_record(record: logging.LogRecord) -> bool:
    """Remove keys from the text of a log record; none is dropped."""
    with suppress(TypeError, ValueError):
        message = record.getMessage()
        clean = redact(message)
        if clean != message:
            record.msg, record.args = clean, None
    return True


def install_log_filter() -> None:
    """Filter the loggers of all libraries that send requests; ``websockets`` at DEBUG, for example, logs headers."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_redact_record)  # adding the same filter again has no effect
