"""The files of a listening test: the page for listeners, whose sounds have to fit, and the key beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from speechlab._files import user_path, whole_file
from speechlab.errors import InvalidRequestError
from speechlab.widgets._shared.page import base64_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any

    from speechlab.widgets._listening.sounds import Stimuli, Stimulus

_MAX_PAGE_BYTES = 200_000_000
_TRIED = 12
"""Sounds that are encoded to tell whether all will fit; a page that is a quarter too large is refused by them."""
_DOUBT = 1.25


def write_files(path: str | os.PathLike[str], key: Mapping[str, Any], make_page: Callable[[], str]) -> Path:
    """Write the page of a test and its key.

    Args:
        path: The page.
        key: The key, which stands beside the page.
        make_page: Makes the page; called once it is clear that the key of no other test is lost.

    Returns:
        The path of the page.

    Raises:
        InvalidRequestError: The key of another test stands there, or something that is no key; or the path is a
            folder.
        OSError: A file cannot be read or written.
    """
    file = user_path(path)
    beside = file.with_suffix(".key.json")
    if file.is_dir():
        message = f"{file} is a folder; give the name of a page in it, such as {file.name}/test.html"
        raise InvalidRequestError(message, parameter="path")
    if beside.exists():
        _keep_other_key(beside, key)
    page = make_page()
    written = orjson.dumps(key, option=orjson.OPT_INDENT_2).decode()
    for target, text in ((beside, written), (file, page)):
        with whole_file(target) as draft:
            draft.write_text(text, encoding="utf-8")
    return file


def _keep_other_key(beside: Path, key: Mapping[str, Any]) -> None:
    """Refuse to replace the key of another test: without it, the answers of its listeners say nothing."""
    try:
        found = orjson.loads(beside.read_bytes())
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or found.get("format") != key["format"]:
        message = f"{beside.name} stands there and is no key of a listening test; give the page another name"
        raise InvalidRequestError(message, parameter="path")
    if found.get("test") != key["test"]:
        message = (
            f"{beside.name} is the key of another test, whose page may be with listeners: without it nobody can read "
            "their answers. Give this page another name, or move that key. To make that test again, give "
            "ListeningTest the same rows and options, and as seed= the number that stands in the key."
        )
        raise InvalidRequestError(message, parameter="path")


def encoded_sounds(stimuli: Stimuli, sounds: Mapping[str, Stimulus]) -> dict[str, str]:
    """Return the sounds of a page as base64 of FLAC, by their names in order.

    Raises:
        InvalidRequestError: They are more than a page can hold, which is told from a few of them where that is clear;
            or a recording is gone.
    """
    names = sorted(sounds)
    made: dict[str, str] = {}

    def encode(some: list[str]) -> None:
        for name in some:
            if name not in made:
                made[name] = base64_text(stimuli.data(sounds[name]))

    tried = names[:: max(len(names) // _TRIED, 1)]
    encode(tried)
    raw = sum(stimuli.size(sounds[name]) for name in tried)
    whole = sum(stimuli.size(sounds[name]) for name in names)
    expected = sum(len(made[name]) for name in tried) / max(raw, 1) * whole
    if expected > _DOUBT * _MAX_PAGE_BYTES:
        raise _too_large(len(names), f"about {expected / 1e6:,.0f} MB")
    taken = 0
    for name in names:
        encode([name])
        taken += len(made[name])
        if taken > _MAX_PAGE_BYTES:
            raise _too_large(len(names), f"more than {_MAX_PAGE_BYTES / 1e6:.0f} MB")
    return {name: made[name] for name in names}


def _too_large(count: int, size: str) -> InvalidRequestError:
    message = (
        f"{count:,} sounds take {size}, and a page holds {_MAX_PAGE_BYTES / 1e6:.0f} MB; ask about fewer items or "
        "systems, or about recordings of a lower sample rate"
    )
    return InvalidRequestError(message, parameter="frame")
