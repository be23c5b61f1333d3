"""Stores of batches, and the options for storing results and reading tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypedDict, TypeGuard

from speechlab._arguments import refused
from speechlab.errors import StoreError
from speechlab.store import STORE_FILE, Store

CHUNK_ROWS = 5_000
"""Rows of a file or stream that are in memory at a time."""

StoreLike = Store | str | os.PathLike[str] | None
"""A store, the folder of a store, or None for the user's own store."""
STORES_ALLOWED = "a store, the path of its folder, or None for your own"


class KeepingOptions(TypedDict, total=False):
    """Options for storing results and reading the table."""

    store: StoreLike
    prefix: str
    columns: Literal["all", "result"]
    chunk_rows: int


def is_store(value: object) -> TypeGuard[StoreLike]:
    """Return whether a value is a store, the path of a store, or None."""
    return value is None or isinstance(value, Store | str | os.PathLike)


@contextmanager
def opened(store: StoreLike) -> Iterator[Store]:
    """Open a store for the block. A store that is already open stays open after it."""
    if not is_store(store):
        raise refused("store", store, STORES_ALLOWED)
    if isinstance(store, Store):
        yield store
    else:
        with Store.default() if store is None else Store(store) as mine:
            yield mine


def is_there(store: StoreLike) -> bool:
    """Return whether a store exists."""
    if isinstance(store, Store):
        return True
    path = Store.default_path() if store is None else Path(store).expanduser()
    return (path / STORE_FILE).is_file()


@contextmanager
def opened_if_there(store: StoreLike) -> Iterator[Store]:
    """Open an existing store for the block. A mistyped path raises an error and creates no folder."""
    if isinstance(store, (str, os.PathLike)) and not is_there(store):
        raise StoreError(
            f"there is no store in {os.fspath(store)}; give the folder that the runs used as store="
        )
    with opened(store) as open_store:
        yield open_store
