"""Nested event loops."""

from __future__ import annotations

import asyncio

from speechlab._require import require
from speechlab.errors import ConfigurationError


def allow_nested_loops() -> None:
    """Allow calls of ``asyncio.run`` and ``run_until_complete`` in a cell, where a loop is already running.

    The package nest-asyncio2 patches ``asyncio`` for the rest of the process. Without a running loop, nothing is
    changed.

    Raises:
        MissingDependencyError: The package nest-asyncio2 is not installed.
        ConfigurationError: The running loop cannot be patched, for example a loop of uvloop.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    nested = require("nest_asyncio2")
    try:
        nested.apply(loop)
    except ValueError as error:
        kind = f"{type(loop).__module__}.{type(loop).__qualname__}"
        message = f"a loop of the kind {kind} cannot be entered twice; use await, or the synchronous Client"
        raise ConfigurationError(message) from error
