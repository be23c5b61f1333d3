"""Authentication: the owner of a token, among the keys of the settings and those of the data folder."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING

from speechlab.service._keys import ID_PREFIX, Principal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from speechlab.service._accounts.stored_keys import Access

_ID_DIGITS = 8


class Keyring:
    """All accepted keys: those of the settings, and those of the data folder.

    Keys of the settings are kept as digests, never in plain text. The id of such a key is derived from its digest
    under the data folder's secret, so that it is the same at every start; without a folder it is valid for this
    process.
    """

    def __init__(
        self, keys: Iterable[str], access: Access | None = None, *, operators: Iterable[str] = ()
    ) -> None:
        self._access = access
        self._secret = secrets.token_bytes(32)
        users, watchers = list(dict.fromkeys(keys)), set(operators)
        self._known = [
            (self._digest(key), Principal(self._id(key), user=key in users, operator=key in watchers))
            for key in dict.fromkeys([*users, *sorted(watchers)])
        ]
        self.ids = [self._id(key) for key in users]
        """Ids of the users' keys, in the order of the settings."""

    def find(self, token: str) -> Principal | None:
        """Find the key's owner, in constant time; None for an unknown token."""
        digest = self._digest(token)
        owner = None
        for accepted, principal in self._known:
            if hmac.compare_digest(accepted, digest):
                owner = principal
        if owner is None and self._access is not None:
            return self._access.find(token)
        return owner

    def recheck(self, principal: Principal) -> Principal | None:
        """Return the current rights of a key's owner, or None if the key has expired or was revoked.

        For conversations, which outlast a single check.
        """
        if any(owner == principal for _, owner in self._known):
            return principal  # keys of the settings are valid as long as the process runs
        return None if self._access is None else self._access.again(principal.key_id)

    def _id(self, key: str) -> str:
        digest = self._digest(key) if self._access is None else self._access.digest(key)
        return f"{ID_PREFIX}{digest.hex()[:_ID_DIGITS]}"

    def _digest(self, key: str) -> bytes:
        return hmac.new(self._secret, key.encode("utf-8", "surrogateescape"), hashlib.sha256).digest()
