"""Authentication: the owner of a token, among the keys of the settings and those of the data folder."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING

from speechlab.service._keys import Principal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from speechlab.service._accounts.stored_keys import Access


class Keyring:
    """All keys that are let in: those of the settings, and those of the data folder.

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
        """Find the key's owner, in constant time; None for an unknown token.

        Raises:
            StoreError: The data folder cannot be read; nobody may be let in.
        """
        digest = self._digest(token)
        found = None
        for known, principal in self._known:
            if hmac.compare_digest(known, digest):
                found = principal
        if found is None and self._access is not None:
            return self._access.find(token)
        return found

    def recheck(self, principal: Principal) -> Principal | None:
        """Return what the owner of a key may use now, or None if the key has expired or was revoked.

        For conversations, which last longer than one check.

        Raises:
            StoreError: The data folder cannot be read; nobody may be let in.
        """
        if any(known == principal for _, known in self._known):
            return principal  # keys of the settings last as long as the process
        return None if self._access is None else self._access.again(principal.key_id)

    def _digest(self, key: str) -> bytes:
        return hmac.new(self._secret, key.encode("utf-8", "surrogateescape"), hashlib.sha256).digest()
