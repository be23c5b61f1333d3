"""Stores of batches, and the options for storing results and reading tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypedDict, TypeGuard

from speechlab._arguments import build_argument_error
from speechlab.errors import StoreError
from speechlab.store import STORE_FILE, Store

# Rows of a file or stream that are in memory at a time.
CHUNK_ROWS = 5_000

# A store, the folder of a store, or None for the user's own store.
StoreLike = Store | str | os.PathLike[str] | None
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
def use_store(store: StoreLike) -> Iterator[Store]:
    """Open a store for the block. A store that is already open stays open after it."""
    if not is_store(store):
        raise build_argument_error("store", store, STORES_ALLOWED)
    if isinstance(store, Store):
        yield store
    else:
        with Store.default() if store is None else Store(store) as mine:
            yield mine


def is_existing_store(store: StoreLike) -> bool:
    """Return whether a store exists."""
    if isinstance(store, Store):
        return True
    path = Store.default_path() if store is None else Path(store).expanduser()
    return (path / STORE_FILE).is_file()


@contextmanager
def use_existing_store(store: StoreLike) -> Iterator[Store]:
    """Open an existing store for the block. A mistyped path raises an error and creates no folder."""
    if isinstance(store, (str, os.PathLike)) and not is_existing_store(store):
        raise StoreError(
            f"there is no store in {os.fspath(store)}; give the folder that the runs used as store="
        )
    with use_store(store) as open_store:
        yield open_store
