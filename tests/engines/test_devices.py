"""The choice of a device, with stand-ins for the driver and the libraries: no GPU is needed."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import pytest

from speechlab.engines import _devices, create
from speechlab.engines._devices import Device, choose_device, describe_gpus
from speechlab.engines._recognition.decoding import load_whisper_model
from speechlab.errors import ConfigurationError

CUBLAS = "cuBLAS 12 was not found; pip install 'speechlab[gpu]'"


@pytest.fixture
def machine(monkeypatch):
    """Gives a machine GPUs, and its libraries what they say of themselves."""

    def build(gpus=("NVIDIA T4", "NVIDIA T4"), *, cublas=True, count=2, providers=(), devices=("CPU",)):
        monkeypatch.setattr(_devices, "list_gpus", lambda: tuple(gpus))
        monkeypatch.setattr(_devices, "_load_cublas", lambda: cublas)
        types = {"float32", "float16", "int8"}
        library = SimpleNamespace(
            get_cuda_device_count=lambda: count, get_supported_compute_types=lambda *_: types
        )
        runtime = SimpleNamespace(get_available_providers=lambda: list(providers), preload_dlls=lambda: None)
        kinds = [{"type": SimpleNamespace(name=f"GGML_BACKEND_DEVICE_TYPE_{name}")} for name in devices]
        llama = SimpleNamespace(get_device_info=lambda: kinds)
        for name, module in {"ctranslate2": library, "onnxruntime": runtime, "xllamacpp": llama}.items():
            module.__spec__ = ModuleSpec(name, None)
            monkeypatch.setitem(sys.modules, name, module)

    return build


@pytest.mark.parametrize(
    ("wanted", "gpus", "problem", "chosen"),
    [
        ("auto", 0, "", Device()),
        ("auto", 1, "", Device("cuda")),
        ("auto", 2, CUBLAS, Device("cpu", 0, CUBLAS)),
        ("cpu", 2, "", Device()),
        ("cuda", 2, "", Device("cuda")),
        ("cuda:1", 2, "", Device("cuda", 1)),
    ],
)
def test_a_device_is_chosen(wanted, gpus, problem, chosen, machine):
    machine(["T4"] * gpus)
    assert choose_device(wanted, lambda: problem) == chosen


@pytest.mark.parametrize(
    ("wanted", "gpus", "problem", "reason"),
    [
        ("gpu", 1, "", "choose 'auto', 'cpu', 'cuda' or 'cuda:1'"),
        ("cpu:1", 1, "", "choose 'auto'"),
        ("cuda", 0, "", "this machine has no NVIDIA GPU; device='cpu' works"),
        ("cuda:2", 2, "", r"has cuda:0 \(T4\), cuda:1 \(T4\)"),
        ("cuda", 1, CUBLAS, r"cannot be used: cuBLAS 12 was not found; pip install 'speechlab\[gpu\]'"),
    ],
)
def test_a_device_that_cannot_be_used_is_refused_by_name(wanted, gpus, problem, reason, machine):
    machine(["T4"] * gpus)
    with pytest.raises(ConfigurationError, match=reason):
        choose_device(wanted, lambda: problem)


@pytest.mark.parametrize("engine", ["whisper", "kokoro", "gemma"])
def test_an_engine_refuses_a_device_before_it_loads(engine, machine):
    machine(())
    with pytest.raises(ConfigurationError, match="no NVIDIA GPU"):
        create(engine, device="cuda").find_model()


def test_what_is_missing_is_one_sentence(machine):
    machine(())
    assert describe_gpus() == "no NVIDIA GPU was found; the engines use the CPU"
    machine(["T4"], cublas=False)
    assert describe_gpus().startswith(
        f"T4; {CUBLAS}; this build of onnxruntime is for the CPU; pip uninstall"
    )
    machine(["T4"], count=0)
    assert "this build of ctranslate2 is for the CPU" in describe_gpus()
    machine(["T4"], providers=["CUDAExecutionProvider"], devices=["CPU", "GPU"])
    assert describe_gpus() == "T4; the engines use it"


@pytest.mark.parametrize(
    ("device", "given", "numbers"),
    [
        (Device(), None, "int8"),
        (Device("cuda", 1), None, "float16"),
        (Device("cuda"), "int8_float16", "int8_float16"),
    ],
)
def test_the_type_of_numbers_follows_the_device(device, given, numbers, machine, monkeypatch, tmp_path):
    machine()
    made = {}

    class WhisperModel:
        def __init__(self, folder, **options):
            made.update(options, folder=folder)

    monkeypatch.setitem(sys.modules, "faster_whisper", SimpleNamespace(WhisperModel=WhisperModel))
    load_whisper_model(tmp_path, 2, given, device)
    assert made == {
        "folder": str(tmp_path),
        "device": device.kind,
        "device_index": device.index,
        "compute_type": numbers,
        "cpu_threads": 2,
    }
