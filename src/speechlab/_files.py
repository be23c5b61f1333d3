"""Files: atomic writes, checksums and paths given by users."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO

from speechlab.errors import InvalidRequestError

_DATA_URL = re.compile(r"\s*data:[\w.+-]*[/;,]", re.ASCII | re.IGNORECASE)
_URL = re.compile(r"\s*([a-z][a-z0-9+.-]+://)(?:[^/@\s]*@)?([^/?#\s]{0,80})", re.ASCII | re.IGNORECASE)
_SEPARATORS = re.compile(r"[/\\]")
_LONGEST_NAME = 255  # characters, which no file system exceeds
_LONG_PATH = 1_000
_ALIKE = 0.75  # of two names
# Windows replaces no file that a process has open, as a scanner of viruses may for a moment.
_REPLACE_ATTEMPTS = 10 if os.name == "nt" else 1
_REPLACE_PAUSE_S = 0.1


def expand_user_path(path: str | os.PathLike[str]) -> Path:
    """Convert a user's path: a leading ``~`` becomes the home folder, as in a shell.

    Raises:
        InvalidRequestError: It is a URL, or data in place of a path.
    """
    if isinstance(path, str):
        _check_not_data_or_url(path)
    as_path = Path(path)
    try:
        return as_path.expanduser()
    except RuntimeError:  # no user of this name: ``~name`` is a file
        return as_path


def check_place_exists(
    path: Path, allowed: str = "a folder of recordings or a table", parameter: str = "path"
) -> None:
    """Refuse a path where nothing is, and say in which folder, what is called nearly so, and what is allowed."""
    if not _is_absent(path):
        return
    folder = path.absolute()
    while _is_absent(folder) or not folder.is_dir():
        folder = folder.parent
    missing, near = path.absolute().relative_to(folder), []
    with suppress(OSError):
        near = get_close_matches(missing.parts[0], [child.name for child in folder.iterdir()], 1, _ALIKE)
    meant = f"; did you mean {near[0]!r}? Give" if near else "; give"
    message = f"there is no file or folder {str(missing)!r:.100} in {folder}{meant} {allowed}"
    raise InvalidRequestError(message, parameter=parameter)


def _is_absent(path: Path) -> bool:
    try:
        return not path.exists()
    except PermissionError:
        return False
    except (OSError, ValueError):  # no valid name
        return True


def _check_not_data_or_url(text: str) -> None:
    """Raise for a URL, a ``data:`` URL and base64; the message repeats neither data nor what may be a secret."""
    if _DATA_URL.match(text):
        start = text[:30].partition(",")[0]
        message = (
            f"this is data of {len(text):,} characters ({start}…), where a path is meant; give the bytes: "
            "base64.b64decode(text.partition(',')[2])"
        )
    elif url := _URL.match(text):
        what_to_do = "download the file first, as by urllib.request.urlretrieve, and give its path"
        message = f"{url[1]}{url[2]}… is a URL, where a path is meant; {what_to_do}"
    elif len(text) > _LONG_PATH and max(map(len, _SEPARATORS.split(text))) > _LONGEST_NAME:
        message = f"a text of {len(text):,} characters ({text[:20]!r}…) is no path; give bytes, or the path of a file"
    else:
        return
    raise InvalidRequestError(message)


def compute_file_sha256(path: Path) -> str:
    """SHA-256 of a file of any size, in lower-case hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def replace_file(source: Path, target: Path) -> None:
    """Move a file to the place of another; on Windows, try for a second while a process has that one open."""
    for _ in range(_REPLACE_ATTEMPTS - 1):
        with suppress(PermissionError):
            source.replace(target)
            return
        time.sleep(_REPLACE_PAUSE_S)
    source.replace(target)


@contextmanager
def write_atomically(path: Path) -> Iterator[Path]:
    """Write a file atomically: the draft that the block gets takes its name only when it is complete.

    If the block fails, an existing file stays unchanged. A killed process leaves a hidden file, which ends in
    ``.part``.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield draft
        replace_file(draft, path)
    except OSError as error:
        if error.filename == str(draft):
            error.filename = str(path)  # the draft's name means nothing to the user
        raise
    finally:
        with suppress(OSError):
            shutil.rmtree(draft) if draft.is_dir() else draft.unlink()


@contextmanager
def report_write_errors(path: Path, build_error: Callable[[str], Exception]) -> Iterator[None]:
    """Raise an error of our own for a file that the block cannot write; errors of other files stay."""
    try:
        yield
    except OSError as error:
        if error.filename not in (None, str(path)):
            raise
        message = f"{path} cannot be written: {error.strerror or error}; make its folder, free space or name another"
        raise build_error(message) from error


@contextmanager
def write_together(folder: Path, last: str) -> Iterator[Path]:
    """Write files to a folder, all or none: the block gets a draft of it, whose files are moved when all are there.

    Args:
        folder: The folder; it is created, and removed again if the block fails.
        last: The name of the file that is moved last.
    """
    created = [place for place in (folder, *folder.parents) if not place.exists()]
    draft = folder / f".{secrets.token_hex(4)}.part"
    try:
        draft.mkdir(parents=True)
        yield draft
        _move_files(draft, folder, last)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        for place in created:
            with suppress(OSError):  # it has files
                place.rmdir()


def _move_files(source: Path, target: Path, last: str) -> None:
    for item in sorted(source.iterdir(), key=lambda item: (item.name == last, item.name)):
        place = target / item.name
        if item.is_dir() and place.is_dir():
            _move_files(item, place, last)
        else:
            replace_file(item, place)


def check_is_regular_file(path: Path) -> None:
    """Refuse pipes, sockets and devices, which may wait or have no end; raises OSError."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "it is a device or a pipe, no file", str(path))


def open_regular_file(path: Path) -> BinaryIO:
    """Open a file to read it; one that is no regular file raises OSError."""
    check_is_regular_file(path)
    return path.open("rb")


def read_regular_file(path: Path) -> bytes:
    """Return the content of a file; of what is no regular file raises OSError."""
    with open_regular_file(path) as stream:
        return stream.read()
