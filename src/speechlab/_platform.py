"""The machine and the process: forks, notebooks, installed versions and what they change, loopback addresses.

And the user's file of engines, which the service reads, and a client watches.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from speechlab._pandas import pd

# Environment variable with the path of the TOML file of the user's engines.
ENGINES_FILE_VARIABLE = "SPEECHLAB_ENGINES"


def register_after_fork(renew: Callable[[], None]) -> Callable[[], None]:
    """Decorate a function that every forked child process calls.

    A fork copies locks but no other threads: a lock that another thread held stays locked in the child for ever.
    The decorator does nothing on systems without fork (Windows).
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)
    return renew


def find_marimo() -> Any:
    """Return marimo, if it runs this code as a notebook, and else None."""
    marimo = sys.modules.get("marimo")
    return marimo if marimo is not None and marimo.running_in_notebook() else None


def is_in_notebook() -> bool:
    """Return whether this code runs in a notebook, whose cells show what is displayed."""
    ipython = sys.modules.get("IPython")
    return bool(find_marimo()) or (ipython is not None and hasattr(ipython.get_ipython(), "kernel"))


@cache
def find_installed_version(distribution: str) -> str | None:
    """Version of an installed distribution, by the name that pip knows; None if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def get_package_version() -> str:
    """Version of speechlab itself; ``"0"`` where it runs without being installed."""
    return find_installed_version("speechlab") or "0"


@cache
def get_text_dtype() -> pd.StringDtype[Any]:
    """Return the dtype of texts in pandas 3, with NaN for a missing one; pandas 2.2 has another name for it.

    Without pyarrow, pandas keeps them as Python's own; they are equal to those of pyarrow.
    """
    from importlib.util import find_spec

    dtype: Any = pd.StringDtype
    storage = "pyarrow" if find_spec("pyarrow") is not None else "python"
    try:
        text_type: pd.StringDtype[Any] = dtype(storage=storage, na_value=float("nan"))
    except TypeError:
        text_type = dtype("pyarrow_numpy")
    return text_type


def stack_tables(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Tables one below the other, without the warning of pandas 2 that columns without values will count."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The behavior of DataFrame concatenation", FutureWarning)
        return pd.concat(list(tables))


def find_engines_file() -> Path | None:
    """Return the TOML file of the user's engines; one that is named may be missing."""
    if named := os.environ.get(ENGINES_FILE_VARIABLE):
        return Path(named).expanduser().absolute()
    from platformdirs import user_config_path

    path = user_config_path("speechlab", appauthor=False) / "engines.toml"
    return path if path.is_file() else None


def is_loopback(host: str) -> bool:
    """Return whether a host name or address can be reached from this machine only."""
    name = host.lower()
    if name == "localhost" or name.endswith(".localhost"):  # RFC 6761, section 6.3
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
