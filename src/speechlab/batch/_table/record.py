"""The record of a run: the versions that it depends on."""

from __future__ import annotations

import platform
from typing import Any

from speechlab._platform import installed_version
from speechlab.contract import CONTRACT_VERSION

RUN_ATTRIBUTE = "speechlab_run"
"""Key of the run's id in a table's ``attrs``, and of the manifest in the metadata of an exported file."""


def environment() -> dict[str, Any]:
    """Return the versions that a run depends on, without facts about the user or the machine."""
    return {
        "contract": CONTRACT_VERSION,
        "python": platform.python_version(),
        "system": platform.system(),
        "versions": {name: installed_version(name) for name in ("speechlab", "pandas", "pyarrow", "numpy")},
    }
