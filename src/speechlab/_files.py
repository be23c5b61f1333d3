"""Files: atomic writes, checksums and paths given by users."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def user_path(path: str | os.PathLike[str]) -> Path:
    """Convert a user's path: a leading ``~`` becomes the home folder, as in a shell."""
    as_path = Path(path)
    try:
        return as_path.expanduser()
    except RuntimeError:  # no user of this name: ``~name`` is a file
        return as_path


def file_sha256(path: Path) -> str:
    """SHA-256 of a file of any size, in lower-case hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Write a file atomically: the draft that the block gets takes its name only when it is complete.

    If the block fails, an existing file stays unchanged. A killed process leaves a hidden file, which ends in
    ``.part``.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield draft
        draft.replace(path)
    except OSError as error:
        if error.filename == str(draft):
            error.filename = str(path)  # the draft's name means nothing to the user
        raise
    finally:
        with suppress(OSError):
            shutil.rmtree(draft) if draft.is_dir() else draft.unlink()
