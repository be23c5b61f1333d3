"""Packages of others: loaded without their warnings, and given only what they can take."""

from __future__ import annotations

import re
import sys
import warnings
from typing import TYPE_CHECKING

from speechlab._require import require

if TYPE_CHECKING:
    from types import ModuleType

_HALF_PAIR = re.compile("[\ud800-\udfff]")


def load(module: str) -> ModuleType:
    """Import an optional module, or say how to install it; its warnings at import are dropped.

    whisper-normalizer has invalid escapes that the compiler complains about once, and OpenJTalk warns when an
    optional model is off. Neither means anything to the user.
    """
    there = sys.modules.get(module)
    if there is not None:
        return there
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return require(module)


def encodable(text: str) -> str:
    """Put U+FFFD in place of half surrogate pairs, which no package that is not written in Python can take."""
    return _HALF_PAIR.sub("\ufffd", text)
