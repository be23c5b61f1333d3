"""API keys: their form, how one is made, and who a token belongs to."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from speechlab.service._accounts.stored_keys import Access

KEY_PREFIX = "sl"
_BODY = re.compile(r"[A-Za-z0-9._~+/=-]{8,256}")


def make_key() -> str:
    """Return a new key with 32 random bytes."""
    return f"{KEY_PREFIX}:{secrets.token_urlsafe(32)}"


def check_key(key: str) -> None:
    """Refuse what cannot be a key.

    Raises:
        ValueError: It is not of the form ``sl:<body>``. The text does not hold the key.
    """
    if not is_key_form(key):
        message = (
            f"an API key must be {KEY_PREFIX!r}, a colon and 8 to 256 letters, digits or ._~+/=- "
            f"(for example the output of: python -m speechlab.service --make-key)"
        )
        raise ValueError(message)


def is_key_form(token: str) -> bool:
    """Whether a token is a complete key, ``<prefix>:<body>`` (section 5, item 2)."""
    prefix, colon, body = token.partition(":")
    return prefix == KEY_PREFIX and colon == ":" and _BODY.fullmatch(body) is not None


@dataclass(frozen=True, slots=True)
class Principal:
    """Who makes a request.

    Attributes:
        key_id: Name of the key for logs and metering; tells nothing about the key.
        providers: Providers whose voices the key may use, or None for all.
        recognition: Whether the key may use recognition.
    """

    key_id: str
    providers: frozenset[str] | None = None
    recognition: bool = True

    def may_speak(self, provider: str) -> bool:
        """Whether the key may use the voices of a provider."""
        return self.providers is None or provider in self.providers


class Keyring:
    """The keys that are let in: those of the settings, and those of the data folder.

    Keys of the settings are kept as digests under a secret of this process, never as they are.

    Args:
        keys: Keys of the settings.
        access: Keys of the data folder, if there is one.
    """

    def __init__(self, keys: Iterable[str], access: Access | None = None) -> None:
        self._access = access
        self._secret = secrets.token_bytes(32)
        self._known = [
            (self._digest(key), Principal(f"key-{number}"))
            for number, key in enumerate(dict.fromkeys(keys), 1)
        ]

    def find(self, token: str) -> Principal | None:
        """Return whose token this is; takes the same time whichever key it is, and if it is none.

        Raises:
            StoreError: The data folder cannot be read; nobody must be let in then.
        """
        digest = self._digest(token)
        found = None
        for known, principal in self._known:
            if hmac.compare_digest(known, digest):
                found = principal
        if found is None and self._access is not None:
            return self._access.find(token)
        return found

    def again(self, principal: Principal) -> Principal | None:
        """Return what somebody who was let in may use by now, or None if their key opens nothing any more.

        For conversations, which outlive a look at the key.

        Raises:
            StoreError: The data folder cannot be read; nobody must be let in then.
        """
        if any(known == principal for _, known in self._known):
            return principal  # keys of the settings last as long as the process
        return None if self._access is None else self._access.again(principal.key_id)

    def _digest(self, key: str) -> bytes:
        return hmac.new(self._secret, key.encode("utf-8", "surrogateescape"), hashlib.sha256).digest()
