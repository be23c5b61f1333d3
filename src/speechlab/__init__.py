"""speechlab: notebooks and data science for people who work with speech services.

The first lines::

    import speechlab as sl

    lab = sl.connect()  # the configured service, or the embedded one
    clip = lab.synthesize("Hello.", voice=lab.voices()[0])
    lab.transcribe(clip).text

Names load on first use, so that importing speechlab costs next to nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from speechlab import _hooks

__version__ = "0.1.0"

# Where each public name comes from, as in ``__init__.pyi`` for type checkers. The loader reads it, also from a zip.
_STUB = __spec__.loader.get_data(f"{__file__}i").decode().splitlines()  # type: ignore[union-attr]
_HOMES = {line.split()[-1]: line.split()[1] for line in _STUB if line.startswith("from ")}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - a list, in the order of the alphabet


def _display_preview() -> Any:
    return import_module("speechlab.widgets").display_preview()


def _keep_dollars(library: str) -> None:
    import_module("speechlab.display").keep_dollars(library)


_hooks.call_once_loaded("pandas", lambda: import_module("speechlab._accessor"))
_hooks.call_once_loaded("polars", lambda: import_module("speechlab._accessor").register_with_polars())
_hooks.call_once_loaded("pandas", lambda: _keep_dollars("pandas"))
_hooks.call_once_loaded("polars", lambda: _keep_dollars("polars"))
_hooks.set_batch_watcher_display(_display_preview)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        message = f"module 'speechlab' has no attribute {name!r}"
        raise AttributeError(message)
    try:
        home = import_module(_HOMES[name])
        value = import_module(f"speechlab.{name}") if home is sys.modules[__name__] else getattr(home, name)
    except ModuleNotFoundError as error:
        from speechlab._require import explain_missing

        raise explain_missing(error) from error
    globals()[name] = value
    _hooks.call_hooks_if_loaded()  # where a user has loaded pandas or polars in between
    return value


def __dir__() -> list[str]:
    # The errors are half of all names, and ``sl.errors.`` completes them.
    return [*(name for name in __all__ if _HOMES[name] != "speechlab.errors"), "__version__"]
