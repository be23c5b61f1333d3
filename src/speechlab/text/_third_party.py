"""Third-party packages: imports without their warnings, and texts that they can encode."""

from __future__ import annotations

import re
import sys
import warnings
from types import ModuleType

from speechlab._require import require

_HALF_PAIR = re.compile("[\ud800-\udfff]")


def load_optional_module(module: str) -> ModuleType:
    """Import an optional module without its import warnings.

    whisper-normalizer has invalid escape sequences, which the compiler reports once. OpenJTalk warns if an optional
    model is off. Neither warning concerns the user.
    """
    loaded = sys.modules.get(module)
    if loaded is not None:
        return loaded
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return require(module)


def replace_lone_surrogates(text: str) -> str:
    """Replace lone surrogates by U+FFFD, because native packages cannot encode them."""
    return _HALF_PAIR.sub("\ufffd", text)
