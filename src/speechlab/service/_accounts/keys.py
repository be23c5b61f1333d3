"""API keys and their owners: keys of the settings, and keys of the data folder with rights, expiry and revocation.

A key of the data folder is created and shown once. The database stores its HMAC-SHA256 under a secret of the folder,
so that no key can be derived from the database or a copy of it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from speechlab.errors import InvalidRequestError, StoreError
from speechlab.service._keys import ID_PREFIX, KEY_PREFIX, Principal, make_key
from speechlab.service._logs import log

if TYPE_CHECKING:
    import sqlite3

    from speechlab.service._accounts.database import Database

_SECRET_BYTES = 32
_NAME_CHARS = 80
# Frequent enough for people, and rare enough for a disk.
_LAST_USE_S = 5.0


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key as it is stored, without the key itself. Times are Unix seconds; None allows all providers or voices."""

    key_id: str
    prefix: str
    name: str
    created: float
    expires: float | None = None
    last_used: float | None = None
    revoked: float | None = None
    providers: frozenset[str] | None = None
    recognition: bool = True
    voices: frozenset[str] | None = None

    def is_open(self, now: float) -> bool:
        """Return whether the key is valid at a time (Unix seconds)."""
        return self.revoked is None and (self.expires is None or now < self.expires)


class KeyStore:
    """The keys of a data folder."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self._secret, is_new = _load_or_create_secret(database.folder / "secret")
        if is_new:
            _warn_if_keys_orphaned(database)
        self._last_uses: dict[str, float] = {}

    def create_key(
        self,
        name: str,
        *,
        expires_in_s: float | None = None,
        providers: Iterable[str] | None = None,
        recognition: bool = True,
    ) -> tuple[StoredKey, str]:
        if not 1 <= len(name.strip()) <= _NAME_CHARS or not name.isprintable():
            raise InvalidRequestError(f"a key's name must have 1 to {_NAME_CHARS} printable characters")
        if expires_in_s is not None and not 0 < expires_in_s < float("inf"):
            raise InvalidRequestError(f"a key must expire after more than 0 seconds, not {expires_in_s!r}")
        key, now = make_key(), self._clock()
        stored = StoredKey(
            key_id=f"k-{secrets.token_hex(4)}",
            prefix=key[: len(f"{KEY_PREFIX}:") + 6],
            name=name.strip(),
            created=now,
            expires=None if expires_in_s is None else now + expires_in_s,
            providers=None if providers is None else frozenset(providers),
            recognition=recognition,
        )
        self._database.write(
            "INSERT INTO keys (id, digest, prefix, name, created, expires, providers, recognition) "
            "VALUES (:key_id, :digest, :prefix, :name, :created, :expires, :providers, :recognition)",
            {
                **asdict(stored),
                "digest": self.compute_digest(key),
                "providers": _to_json_list(stored.providers),
            },
        )
        return stored, key

    def list_keys(self) -> list[StoredKey]:
        """Return all keys, the oldest first, including expired and revoked ones, which the ledger may name."""
        return [_to_stored_key(row) for row in self._database.read("SELECT * FROM keys ORDER BY created, id")]

    def resolve_key(self, which: str) -> StoredKey:
        """Find a key by its id, its name or its first characters."""
        matches = [key for key in self.list_keys() if which in {key.key_id, key.name, key.prefix}]
        if len(matches) == 1:
            return matches[0]
        if not matches:
            # The text may be a key, and is not repeated.
            raise InvalidRequestError(
                "no key has this id, name or beginning; `speechlab keys list` shows them"
            )
        ids = ", ".join(key.key_id for key in matches)
        raise InvalidRequestError(f"{len(matches)} keys have this name; give an id: {ids}")

    def revoke_key(self, which: str) -> StoredKey:
        """Revoke a key permanently, with immediate effect; its usage stays in the ledger."""
        stored = self.resolve_key(which)
        if stored.revoked is None:
            stored = replace(stored, revoked=self._clock())
            self._database.write("UPDATE keys SET revoked = ? WHERE id = ?", (stored.revoked, stored.key_id))
        return stored

    def set_rights(
        self,
        which: str,
        *,
        providers: Iterable[str] | None = None,
        recognition: bool = True,
        voices: Iterable[str] | None = None,
    ) -> StoredKey:
        """Set the rights of a key, from its next request on."""
        allowed, chosen = (None if names is None else frozenset(names) for names in (providers, voices))
        stored = replace(self.resolve_key(which), providers=allowed, recognition=recognition, voices=chosen)
        self._database.write(
            "UPDATE keys SET providers = ?, recognition = ?, voices = ? WHERE id = ?",
            (_to_json_list(allowed), recognition, _to_json_list(chosen), stored.key_id),
        )
        return stored

    def has_open_key(self) -> bool:
        return any(key.is_open(self._clock()) for key in self.list_keys())

    def find_owner(self, token: str) -> Principal | None:
        """Find the owner of a token; None if it is unknown, expired or revoked."""
        digest = self.compute_digest(token)
        rows = self._database.read("SELECT * FROM keys WHERE digest = ?", (digest,))
        # The index searches by digest, which a client cannot choose; the comparison in constant time decides.
        return (
            self._find_owner_and_note_use(rows)
            if rows and hmac.compare_digest(bytes(rows[0]["digest"]), digest)
            else None
        )

    def recheck_key(self, key_id: str) -> Principal | None:
        """Return the current rights of a key, or None if it has expired or was revoked."""
        return self._find_owner_and_note_use(
            self._database.read("SELECT * FROM keys WHERE id = ?", (key_id,))
        )

    def _find_owner_and_note_use(self, rows: list[sqlite3.Row]) -> Principal | None:
        """Return the owner of the key in the first row, if it is open, whose use is noted."""
        stored, now = (_to_stored_key(rows[0]) if rows else None), self._clock()
        if stored is None or not stored.is_open(now):
            return None
        if now - self._last_uses.get(stored.key_id, float("-inf")) >= _LAST_USE_S:
            self._last_uses[stored.key_id] = now
            self._database.write_later("UPDATE keys SET last_used = ? WHERE id = ?", (now, stored.key_id))
        return Principal(stored.key_id, stored.providers, stored.recognition, voices=stored.voices)

    def compute_digest(self, key: str) -> bytes:
        """Return the stored form of a key: its HMAC-SHA256 under the folder's secret."""
        return _compute_key_digest(self._secret, key)


def _compute_key_digest(secret: bytes, key: str) -> bytes:
    return hmac.new(secret, key.encode("utf-8", "surrogateescape"), hashlib.sha256).digest()


def _warn_if_keys_orphaned(database: Database) -> None:
    """Warn of a new secret with keys or usage of an older one, as after an incomplete restore."""
    stored = database.read("SELECT count(*) FROM keys")[0][0]
    of_settings = database.read(
        "SELECT count(*) FROM (SELECT key_id FROM usage UNION SELECT key_id FROM limits) WHERE key_id GLOB ?",
        (f"{ID_PREFIX}*",),
    )[0][0]
    if stored or of_settings:
        log(
            "the data folder's file 'secret' was missing, and a new one was made: stored keys are now invalid, "
            "and keys of the settings have new ids, so that their usage and limits stay with the old ones; stop the "
            "service and restore 'secret' from the backup, or make new keys and limits",
            level="warning",
            folder=str(database.folder),
            stored_keys=stored,
            settings_keys=of_settings,
        )


def _load_or_create_secret(path: Path) -> tuple[bytes, bool]:
    """Read the folder's secret, or create it, and return which; two concurrent processes get the same secret."""
    is_new = False
    try:
        if not path.exists():
            is_new = True
            fresh = path.with_name(f".secret-{secrets.token_hex(8)}")
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.write(descriptor, secrets.token_bytes(_SECRET_BYTES))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            try:
                os.link(fresh, path)  # fails if the file exists by now, whereas a rename would replace it
            except FileExistsError:
                pass
            finally:
                fresh.unlink()
        if os.name == "posix" and path.stat().st_mode & 0o077:
            path.chmod(0o600)
        secret = path.read_bytes()
    except OSError as error:
        raise StoreError(f"the service's secret {path} cannot be used: {error.strerror}") from error
    if len(secret) != _SECRET_BYTES:
        raise StoreError(
            f"the service's secret {path} is damaged ({len(secret)} bytes instead of {_SECRET_BYTES}); restore it "
            f"from a backup, or remove it and make all keys again"
        )
    return secret, is_new


def _to_json_list(names: frozenset[str] | None) -> str | None:
    return None if names is None else orjson.dumps(sorted(names)).decode()


def _parse_names(listed: str | None) -> frozenset[str] | None:
    return None if listed is None else frozenset(orjson.loads(listed))


def _to_stored_key(row: sqlite3.Row) -> StoredKey:
    same = {name: row[name] for name in ("prefix", "name", "created", "expires", "last_used", "revoked")}
    providers, voices = _parse_names(row["providers"]), _parse_names(row["voices"])
    return StoredKey(
        row["id"], **same, providers=providers, voices=voices, recognition=bool(row["recognition"])
    )


class Keyring:
    """All accepted keys: those of the settings, and those of the data folder.

    Keys of the settings are kept as digests, never in plain text. The id of such a key is derived from its digest
    under the data folder's secret, so that it is the same at every start; without a folder it is valid for this
    process.
    """

    def __init__(
        self, keys: Iterable[str], access: KeyStore | None = None, *, operators: Iterable[str] = ()
    ) -> None:
        self._access = access
        self._secret = secrets.token_bytes(32)
        users, watchers = list(dict.fromkeys(keys)), set(operators)
        self._known = [
            (
                self._compute_key_digest(key),
                Principal(self._compute_key_id(key), user=key in users, operator=key in watchers),
            )
            for key in dict.fromkeys([*users, *sorted(watchers)])
        ]
        self.ids = [self._compute_key_id(key) for key in users]
        """Ids of the users' keys, in the order of the settings."""

    def find_owner(self, token: str) -> Principal | None:
        """Find the key's owner, in constant time; None for an unknown token."""
        digest = self._compute_key_digest(token)
        owner = None
        for accepted, principal in self._known:
            if hmac.compare_digest(accepted, digest):
                owner = principal
        if owner is None and self._access is not None:
            return self._access.find_owner(token)
        return owner

    def recheck(self, principal: Principal) -> Principal | None:
        """Return the current rights of a key's owner, or None if the key has expired or was revoked.

        For conversations, which outlast a single check.
        """
        if any(owner == principal for _, owner in self._known):
            return principal  # keys of the settings are valid as long as the process runs
        return None if self._access is None else self._access.recheck_key(principal.key_id)

    def _compute_key_id(self, key: str) -> str:
        digest = self._compute_key_digest(key) if self._access is None else self._access.compute_digest(key)
        return f"{ID_PREFIX}{digest.hex()[:8]}"

    def _compute_key_digest(self, key: str) -> bytes:
        return _compute_key_digest(self._secret, key)
