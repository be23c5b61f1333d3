"""Who is calling."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def package_version() -> str:
    """Version of the installed speechlab."""
    try:
        return version("speechlab")
    except PackageNotFoundError:
        return "0"


@cache
def user_agent() -> str:
    """Value of the User-Agent header."""
    return f"speechlab/{package_version()} Python/{platform.python_version()}"
