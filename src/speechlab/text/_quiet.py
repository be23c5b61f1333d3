"""Loading packages of others without their warnings."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from speechlab._require import require

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["load"]


def load(module: str) -> ModuleType:
    """Import an optional module, or say how to install it; its warnings at import are dropped.

    whisper-normalizer has invalid escapes that the compiler complains about once, and OpenJTalk warns when an
    optional model is off. Neither means anything to the user.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return require(module)
