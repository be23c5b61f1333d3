"""Store and mode of a client: arguments, then ``SPEECHLAB_MODE``."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab._platform import after_fork
from speechlab.client._secret import shown
from speechlab.errors import ConfigurationError, ReplayMiss

if TYPE_CHECKING:
    from speechlab.store import Store

MODE_VARIABLE = "SPEECHLAB_MODE"
MODES = ("auto", "live", "replay")
PACES = ("at once", "as recorded")
NOWHERE = "https://replay.invalid"
"""Base URL of a client that only replays and has no other one."""

EMBEDDED = "embedded service, engines "
"""Prefix of the name of a separate embedded service; the options of its engines follow as JSON."""

FUNCTIONS = "functions, "
"""Prefix of the name of a system of functions."""

REMEDY = 'run it once with mode="auto" where the service can be reached'
"""Advice for a call that cannot be replayed."""

_lock = threading.Lock()
_stores: dict[tuple[int, Path], Store] = {}
"""Stores that were opened by path, for each process: a database connection does not survive a fork."""


def with_mode(options: dict[str, Any]) -> dict[str, Any]:
    """The options, with the mode from the environment if none is given."""
    choice = options.get("mode")
    if choice is not None and not isinstance(choice, str):
        raise ConfigurationError(f"mode is {shown(choice)}; it is one of {', '.join(MODES)}")
    mode = choice or os.environ.get(MODE_VARIABLE) or None
    if mode is None and options.get("store") is None:
        return options
    mode = mode or "auto"
    if mode not in MODES:
        source = "mode" if choice else MODE_VARIABLE
        raise ConfigurationError(f"{source} is {shown(mode)}; it is one of {', '.join(MODES)}")
    return {**options, "mode": mode, "store": open_store(options.get("store"))}


def open_store(store: Store | str | os.PathLike[str] | None) -> Store:
    """A store, opened if it is a path; the user's default store if it is None."""
    from speechlab.store import Store

    if isinstance(store, Store):
        return store
    if store is not None and not isinstance(store, (str, os.PathLike)):
        raise ConfigurationError(f"store is {shown(store)}; give a Store, the path of its folder, or None")
    path = Store.default_path() if store is None else Path(store).expanduser().absolute()
    with _lock:
        key = (os.getpid(), path)
        if key not in _stores:
            _stores[key] = Store(path)
        return _stores[key]


def nothing_is_sent(operation: str) -> ReplayMiss:
    """The error for an operation that cannot be replayed."""
    text = f"{operation} would call the service, and this client only replays; {REMEDY}"
    return ReplayMiss(text, operation=operation)


@after_fork
def _forget_after_fork() -> None:
    global _lock  # noqa: PLW0603 - a forked child needs its own
    _lock = threading.Lock()
