"""Who is calling."""

from __future__ import annotations

import platform
from functools import cache

from speechlab._platform import package_version


@cache
def user_agent() -> str:
    """Value of the User-Agent header."""
    return f"speechlab/{package_version()} Python/{platform.python_version()}"
