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
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
__version__ = "0.1.0"

with open(f"{__file__}i", encoding="utf-8") as _stub:  # noqa: PTH123 - pathlib is slow to load
    _HOMES = {line.split()[-1]: line.split()[1] for line in _stub if line.startswith("from ")}
"""Where each public name comes from, as ``__init__.pyi`` tells type checkers, too."""

__all__ = sorted(_HOMES)  # noqa: PLE0605 - a list, in the order of the alphabet


class _BesidePandas:
    """Module finder that registers ``DataFrame.speech`` right after pandas, without loading pandas, which is slow."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002 - the import system's signature
        if name != "pandas" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_both(module: ModuleType) -> None:
                load(module)
                import_module("speechlab._accessor")

            spec.loader.exec_module = load_both  # type: ignore[method-assign]  # the loader of this one import
        return spec


if "pandas" in sys.modules:
    import_module("speechlab._accessor")
else:
    sys.meta_path.insert(0, _BesidePandas())


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        message = f"module 'speechlab' has no attribute {name!r}"
        raise AttributeError(message)
    home = import_module(_HOMES[name])
    value = import_module(f"speechlab.{name}") if home is sys.modules[__name__] else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
