"""pandas, as rooms import it: ``from speechlab._pandas import pd``.

It is loaded at the first use of one of its names, because its import is slow; tables then have ``.speech``.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from speechlab._hooks import call_hooks_if_loaded

__all__ = ["pd"]


class _Pandas(ModuleType):
    """pandas, which is imported when one of its names is first used."""

    def __getattr__(self, name: str) -> Any:
        import pandas

        call_hooks_if_loaded()
        value = getattr(pandas, name)
        setattr(self, name, value)  # found at once from now on
        return value


if TYPE_CHECKING:
    import pandas as pd
else:
    pd = _Pandas("pandas")
