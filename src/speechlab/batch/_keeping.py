"""Stores of batches, and the options of where results are kept and how tables are read."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from speechlab._arguments import is_whole_number
from speechlab.errors import InvalidRequestError, StoreError
from speechlab.store import STORE_FILE, Store

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_ROWS = 5_000
"""Rows of a file or stream that are in memory at once."""

StoreLike = Store | str | os.PathLike[str] | None
"""A store, the folder of one, or None for the user's own."""


class KeepingOptions(TypedDict, total=False):
    """Where results go, and how the table is read."""

    store: StoreLike
    prefix: str
    chunk_rows: int


KEEPING_DEFAULTS: KeepingOptions = {"store": None, "prefix": "", "chunk_rows": CHUNK_ROWS}


def keeping_options(given: KeepingOptions) -> KeepingOptions:
    """Check the options, and add the defaults of those not given.

    Raises:
        InvalidRequestError: One is not allowed.
    """
    options: KeepingOptions = {**KEEPING_DEFAULTS, **given}
    check_store(options["store"])
    if not isinstance(options["prefix"], str):
        raise refused("prefix", options["prefix"], "a string")
    if not is_count(options["chunk_rows"]):
        raise refused("chunk_rows", options["chunk_rows"], "a whole number of at least 1")
    return options


def check_store(store: object) -> None:
    """Refuse what is no store.

    Raises:
        InvalidRequestError: It is none.
    """
    if store is not None and not isinstance(store, Store | str | os.PathLike):
        raise refused("store", store, "a store, the path of its folder, or None for your own")


@contextmanager
def opened(store: StoreLike) -> Iterator[Store]:
    """Open a store for a while; one that is open already stays open.

    Raises:
        InvalidRequestError: It is none.
    """
    check_store(store)
    if isinstance(store, Store):
        yield store
    else:
        with Store.default() if store is None else Store(store) as mine:
            yield mine


@contextmanager
def opened_if_there(store: StoreLike) -> Iterator[Store]:
    """Open a store that must exist; a folder whose name is wrong is neither made nor taken for an empty store.

    Raises:
        StoreError: There is none.
    """
    if isinstance(store, (str, os.PathLike)) and not (Path(store) / STORE_FILE).is_file():
        raise StoreError(f"there is no store in {os.fspath(store)}; name the folder that the runs were given")
    with opened(store) as open_store:
        yield open_store


def is_count(value: object) -> bool:
    """Return whether a value is a whole number of at least 1."""
    return is_whole_number(value) and value >= 1


def refused(name: str, value: object, allowed: str) -> InvalidRequestError:
    """Return the error for an argument that is not allowed."""
    return InvalidRequestError(f"{name} is {value!r}; it must be {allowed}", parameter=name)
