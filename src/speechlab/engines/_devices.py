"""The choice of a device: the CPU, or a GPU that this machine has and the installed libraries can use.

CUDA's libraries come from the system or from pip (the extra ``gpu``). Those of pip are not on the system's search
path, so they are loaded by their paths before an inference library looks for them by name.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from speechlab._require import require
from speechlab.errors import ConfigurationError

_DEVICE = re.compile(r"(?P<kind>auto|cpu|cuda)(?::(?P<index>\d{1,2}))?")
_DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
# Libraries that CTranslate2 looks for by name, in the order of their dependencies.
_CUBLAS = (
    ("cublasLt64_12.dll", "cublas64_12.dll")
    if sys.platform == "win32"
    else ("libcublasLt.so.12", "libcublas.so.12")
)


@dataclass(frozen=True, slots=True)
class Device:
    """A device for an engine.

    Attributes:
        kind: ``"cpu"`` or ``"cuda"``.
        index: Number of the GPU.
        problem: Why a GPU of this machine is not used, and what to do; empty if there is none, or it is used.
    """

    kind: str = "cpu"
    index: int = 0
    problem: str = ""


def choose_device(wanted: str, find_problem: Callable[[], str]) -> Device:
    """Choose the device for one inference library.

    Args:
        wanted: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
        find_problem: Says why the library cannot use a GPU; empty if it can. Called only if there is a GPU.

    Raises:
        ConfigurationError: The device does not exist, or a GPU is demanded and cannot be used.
    """
    match = _DEVICE.fullmatch(wanted)
    if match is None or (match["index"] and match["kind"] != "cuda"):
        raise ConfigurationError(f"there is no device {wanted!r}; choose 'auto', 'cpu', 'cuda' or 'cuda:1'")
    kind, index = match["kind"], int(match["index"] or 0)
    if kind == "cpu":
        return Device()
    gpus = list_gpus()
    if kind == "auto" and not gpus:
        return Device()
    if index >= len(gpus):
        has = ", ".join(f"cuda:{number} ({name})" for number, name in enumerate(gpus)) or "no NVIDIA GPU"
        raise ConfigurationError(f"there is no device {wanted!r}: this machine has {has}; device='cpu' works")
    problem = find_problem()
    if problem and kind == "cuda":
        raise ConfigurationError(f"the device {wanted!r} cannot be used: {problem}; device='cpu' works")
    return Device("cpu", problem=problem) if problem else Device("cuda", index)


@cache
def list_gpus() -> tuple[str, ...]:
    """Return the names of the NVIDIA GPUs that the driver shows to this process."""
    try:
        driver = ctypes.CDLL(_DRIVER)
        count, names = ctypes.c_int(), []
        if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
            return ()
        for index in range(count.value):
            device, name = ctypes.c_int(), ctypes.create_string_buffer(128)
            driver.cuDeviceGet(ctypes.byref(device), index)
            driver.cuDeviceGetName(name, len(name), device)
            names.append(name.value.decode("utf-8", "replace") or f"GPU {index}")
    except (OSError, AttributeError):
        return ()
    return tuple(names)


def find_ctranslate2_problem() -> str:
    """Return why CTranslate2 cannot use a GPU of this machine; empty if it can."""
    if not _load_cublas():
        return "cuBLAS 12 was not found; pip install 'speechlab[gpu]'"
    if require("ctranslate2").get_cuda_device_count() < 1:
        return "this build of ctranslate2 is for the CPU, or the driver is too old for CUDA 12"
    return ""


def find_onnxruntime_problem() -> str:
    """Return why ONNX Runtime cannot use a GPU of this machine; empty if it can."""
    runtime = require("onnxruntime")
    if "CUDAExecutionProvider" not in runtime.get_available_providers():
        return (
            "this build of onnxruntime is for the CPU; pip uninstall onnxruntime, then "
            "pip install 'onnxruntime-gpu[cuda,cudnn]'"
        )
    runtime.preload_dlls()
    return ""


def find_llama_problem() -> str:
    """Return why llama.cpp cannot use a GPU of this machine; empty if it can."""
    library = require("xllamacpp")
    if any(device["type"].name.endswith("TYPE_GPU") for device in library.get_device_info()):
        return ""
    return (
        "this build of xllamacpp is for the CPU; install one for CUDA from "
        "https://xorbitsai.github.io/xllamacpp/whl/cu128"
    )


def describe_gpus() -> str:
    """Return one sentence on the GPUs of this machine, and what is missing for their use."""
    gpus = list_gpus()
    if not gpus:
        return "no NVIDIA GPU was found; the engines use the CPU"
    problems = []
    for module, find_problem in (
        ("ctranslate2", find_ctranslate2_problem),
        ("onnxruntime", find_onnxruntime_problem),
        ("xllamacpp", find_llama_problem),
    ):
        if find_spec(module) is None:
            continue
        try:
            problem = find_problem()
        except Exception as error:  # noqa: BLE001 - a library for another system or driver may raise anything
            problem = f"{module} cannot be loaded ({error})"
        problems += [problem] if problem else []
    return "; ".join([", ".join(gpus), *(problems or ["the engines use it"])])


@cache
def _load_cublas() -> bool:
    """Load cuBLAS from the packages of pip, or else from the system; return whether it is there."""
    loaded = False
    for name in _CUBLAS:
        loaded = any(_load_library(str(path)) for path in _find_packaged_libraries(name)) or _load_library(
            name
        )
    return loaded


def _find_packaged_libraries(name: str) -> list[Path]:
    try:
        spec = find_spec("nvidia")
    except (ImportError, ValueError):
        return []
    roots = list((spec.submodule_search_locations or ()) if spec is not None else ())
    return [
        path for root in roots for folder in ("lib", "bin") for path in Path(root).glob(f"*/{folder}/{name}")
    ]


def _load_library(path: str) -> bool:
    try:
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return False
    return True
