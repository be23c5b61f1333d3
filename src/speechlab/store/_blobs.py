"""Files named by the SHA-256 of their content, and the errors of writing to a store."""

from __future__ import annotations

import errno
import hashlib
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from speechlab._files import compute_file_sha256, write_atomically
from speechlab._untrusted import is_digest, is_suffix
from speechlab.errors import StoreError

# The file that makes a folder a store.
STORE_FILE = "store.sqlite"


@dataclass(frozen=True, slots=True)
class Blob:
    """A file of the folder: ``sha256`` in hexadecimal, ``suffix`` with its dot, ``size`` in bytes."""

    sha256: str
    suffix: str
    size: int


class BlobFolder:
    """Content-addressed files below one folder, which the first write makes; written atomically.

    A store may be a stranger's: digests and suffixes are checked, and links below the folder are not followed.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def resolve_path(self, sha256: str, suffix: str = "") -> Path:
        """Return the path of the file with this content, which need not exist.

        Raises:
            StoreError: The digest or the suffix is none, and may name a file elsewhere.
        """
        if not is_digest(sha256) or not is_suffix(suffix):
            name = f"{sha256}{suffix}"
            message = f"{name!r:.100} names no file of a store, which are 64 hexadecimal digits and a suffix"
            raise StoreError(f"{message}; the store was damaged, or changed by somebody")
        return self.root / sha256[:2] / f"{sha256}{suffix}"

    def add_bytes(self, data: bytes, suffix: str = "") -> Blob:
        """Keep some bytes; the same bytes are kept once."""
        blob = Blob(hashlib.sha256(data).hexdigest(), suffix, len(data))
        if self.has_blob(blob):
            return blob
        target = self.resolve_path(blob.sha256, suffix)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with write_atomically(target) as draft:
                draft.write_bytes(data)
        except OSError as error:
            raise build_store_error(error, target) from error
        return blob

    def has_blob(self, blob: Blob) -> bool:
        """Return whether a file exists in its full length; a power failure may leave an empty file."""
        try:
            about = self._resolve_unlinked_path(blob.sha256, blob.suffix).lstat()
        except (OSError, StoreError):
            return False
        return S_ISREG(about.st_mode) and about.st_size == blob.size

    def _resolve_unlinked_path(self, sha256: str, suffix: str) -> Path:
        """Return the path of a file, whose folder is no link."""
        path = self.resolve_path(sha256, suffix)
        if path.parent.is_symlink():
            raise StoreError(f"{path.parent} is a link to another folder, which no store has")
        return path

    def is_intact(self, sha256: str, suffix: str = "") -> bool:
        """Return whether the file exists and its content has the digest in its name."""
        try:
            path = self._resolve_unlinked_path(sha256, suffix)
            return not path.is_symlink() and path.is_file() and compute_file_sha256(path) == sha256
        except (OSError, StoreError):
            return False


def build_store_error(error: OSError, path: Path) -> StoreError:
    """Return the store's error for a failed write, with the reason and a remedy."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        message = (
            f"no space left to write {path}; free some, or use a store elsewhere; stored results stay valid"
        )
    else:
        reason = error.strerror or os.strerror(error.errno or errno.EIO)
        message = f"cannot write {path}: {reason}; choose a folder that you may write to"
    return StoreError(message)


def build_database_error(error: sqlite3.Error, path: Path) -> StoreError:
    """Return the store's error for one of its database, with the reason and a remedy."""
    if "full" in str(error):
        return StoreError(f"no space left for the store {path}; free some; stored results stay valid")
    if "disk I/O error" in str(error):
        text = "free space, a limit on the size of files (ulimit -f) or the disk itself may be the reason"
        return StoreError(
            f"the store {path} cannot be read or written (disk I/O error): {text}; stored results stay valid"
        )
    if "readonly" in str(error) or "unable to open" in str(error):
        return StoreError(
            f"the store {path} can only be read: its folder, or {STORE_FILE} in it, cannot be written; use a store "
            "elsewhere"
        )
    if isinstance(error, sqlite3.DatabaseError) and "not a database" in str(error):
        return StoreError(f"{path / STORE_FILE} is not a store; choose another folder")
    return StoreError(f"the store {path} cannot be used: {error}")
