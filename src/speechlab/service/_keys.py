"""API keys: their form, their creation, and the rights of their owners."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

# Prefix of keys made here; other keys keep their own prefix.
KEY_PREFIX = "sl"
# Prefix of the ids of keys in the settings; ids of keys in the data folder begin with ``k-``.
ID_PREFIX = "s-"
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}")
_BODY = re.compile(r"[A-Za-z0-9._~+/=-]{8,256}")


def make_key() -> str:
    """Return a new key with 32 random bytes."""
    return f"{KEY_PREFIX}:{secrets.token_urlsafe(32)}"


def has_key_form(token: str) -> bool:
    """Return whether a token is a complete key, ``<prefix>:<body>`` (section 5, item 2)."""
    prefix, colon, body = token.partition(":")
    return colon == ":" and _PREFIX.fullmatch(prefix) is not None and _BODY.fullmatch(body) is not None


@dataclass(frozen=True, slots=True)
class Principal:
    """The owner of a key, with the key's rights."""

    key_id: str
    providers: frozenset[str] | None = None
    recognition: bool = True
    user: bool = True
    operator: bool = False
    voices: frozenset[str] | None = None

    def can_use_voice(self, provider: str, voice_id: str) -> bool:
        """Return whether the key may use a voice of a provider."""
        return (self.providers is None or provider in self.providers) and (
            self.voices is None or voice_id in self.voices
        )
