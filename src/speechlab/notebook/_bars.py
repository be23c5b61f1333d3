"""Bars of progress."""

from __future__ import annotations

from typing import Any

from speechlab._platform import is_in_notebook
from speechlab._require import require


def open_bar(total: float | None, label: str, unit: str, **options: Any) -> Any:
    """Return a bar of tqdm; where the output is neither a terminal nor a notebook, it shows nothing."""
    require("tqdm")
    from tqdm import tqdm

    hidden = False if is_in_notebook() else None
    return tqdm(total=total, desc=label, unit=unit, disable=hidden, **options)
