"""Event loops within event loops."""

from __future__ import annotations

import asyncio

from speechlab._require import require
from speechlab.errors import ConfigurationError


def allow_nested_loops() -> None:
    """Let ``asyncio.run`` and ``run_until_complete`` be called in a cell, where a loop runs already.

    It changes ``asyncio`` for the whole process and until its end, by the package nest-asyncio2. Where no loop runs,
    there is nothing to do, and nothing is changed.

    Raises:
        MissingDependencyError: The package is not installed.
        ConfigurationError: The running loop is of a kind that cannot be patched, such as uvloop's.
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
