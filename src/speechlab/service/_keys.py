"""API keys: their form, making one, and what its holder may use."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

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
    """The owner of a key, who makes a request.

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
