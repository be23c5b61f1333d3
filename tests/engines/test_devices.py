"""The choice of a device, with stand-ins for the driver and the libraries: no GPU is needed."""

import sys
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import numpy as np
import pytest

from speechlab.engines import _devices, create
from speechlab.engines._devices import Device, choose_device, describe_gpus
from speechlab.engines._recognition.decoding import load_whisper_model
from speechlab.engines._speech.kokoro_model import load_shared_model
from speechlab.engines._translation.llama import _start_server
from speechlab.errors import ConfigurationError, ModelError

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


def test_a_device_is_chosen_or_refused_by_name(machine):
    for wanted, gpus, problem, chosen in (
        ("auto", 0, "", Device()),
        ("auto", 1, "", Device("cuda")),
        ("auto", 2, CUBLAS, Device("cpu", 0, CUBLAS)),
        ("cpu", 2, "", Device()),
        ("cuda:1", 2, "", Device("cuda", 1)),
    ):
        machine(["T4"] * gpus)
        assert choose_device(wanted, lambda problem=problem: problem) == chosen
    for wanted, gpus, problem, reason in (
        ("gpu", 1, "", "choose 'auto', 'cpu', 'cuda' or 'cuda:1'"),
        ("cuda", 0, "", "this machine has no NVIDIA GPU; device='cpu' works"),
        ("cuda:2", 2, "", r"has cuda:0 \(T4\), cuda:1 \(T4\)"),
        ("cuda", 1, CUBLAS, r"cannot be used: cuBLAS 12 was not found; pip install 'speechlab\[gpu\]'"),
    ):
        machine(["T4"] * gpus)
        with pytest.raises(ConfigurationError, match=reason):
            choose_device(wanted, lambda problem=problem: problem)


def test_an_engine_refuses_a_device_before_it_loads(machine):
    machine(())
    for engine in ("whisper", "kokoro", "gemma"):
        with pytest.raises(ConfigurationError, match="no NVIDIA GPU"):
            create(engine, device="cuda").find_model()


def test_what_is_missing_is_one_sentence(machine):
    machine(())
    assert describe_gpus() == "no NVIDIA GPU was found; the engines use the CPU"
    machine(["T4"], cublas=False)
    assert describe_gpus().startswith(
        f"T4; {CUBLAS}; this build of onnxruntime is for the CPU; pip uninstall"
    )
    machine(["T4"], providers=["CUDAExecutionProvider"], devices=["CPU", "GPU"])
    assert describe_gpus() == "T4; the engines use it"


def test_the_type_of_numbers_follows_the_device(machine, monkeypatch, tmp_path):
    machine()
    take = {"__init__": lambda self, _folder, **options: vars(self).update(options)}
    library = SimpleNamespace(WhisperModel=type("WhisperModel", (), take))
    monkeypatch.setitem(sys.modules, "faster_whisper", library)
    for device, given, numbers in (
        (Device(), None, "int8"),
        (Device("cuda", 1), None, "float16"),
        (Device("cuda"), "int8_float16", "int8_float16"),
    ):
        made = load_whisper_model(tmp_path, 2, given, device)
        assert (made.device, made.device_index, made.compute_type) == (device.kind, device.index, numbers)


@pytest.mark.skipif(sys.platform != "linux", reason="the names of the libraries are those of Linux")
def test_cublas_is_found_among_the_packages_of_pip(tmp_path, monkeypatch):
    folder = tmp_path / "nvidia" / "cublas" / "lib"
    folder.mkdir(parents=True)
    (folder / "libcublas.so.12").write_bytes(b"no library")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    assert folder / "libcublas.so.12" in _devices._find_packaged_libraries("libcublas.so.12")
    assert not _devices._load_library(str(folder / "libcublas.so.12"))


def test_a_translator_has_all_its_layers_on_the_gpu(monkeypatch, tmp_path):
    def make_parameters():
        parts = {name: SimpleNamespace() for name in ("model", "cpuparams", "cpuparams_batch")}
        return SimpleNamespace(**parts, split_mode="layer", main_gpu=0)

    modes = SimpleNamespace(LLAMA_SPLIT_MODE_NONE="none")
    library = SimpleNamespace(
        CommonParams=make_parameters, Server=lambda params: params, llama_split_mode=modes
    )
    monkeypatch.setitem(sys.modules, "xllamacpp", library)
    for device, given, layers, split in (
        (Device(), None, 0, "layer"),
        (Device("cuda", 1), None, 999, "none"),
        (Device("cuda"), 12, 12, "layer"),
    ):
        params = _start_server(tmp_path / "m.gguf", 2, 512, device, given)
        assert (params.n_gpu_layers, params.split_mode, params.main_gpu) == (layers, split, device.index)


@pytest.mark.parametrize("taken", [True, False])
def test_kokoro_is_made_for_the_gpu_and_checked_to_be_there(taken, monkeypatch, tmp_path):
    asked = []
    kinds = {"input_ids": "tensor(int64)", "style": "tensor(float16)", "speed": "tensor(int32)"}

    class InferenceSession:
        def __init__(self, _path, _options, providers):
            asked.extend(providers)

        def get_providers(self):
            return ["CUDAExecutionProvider"] if taken else ["CPUExecutionProvider"]

        def get_inputs(self):
            return [SimpleNamespace(name=name, type=kind) for name, kind in kinds.items()]

        def run(self, _, inputs):
            asked.append({name: (value.dtype.name, value.shape) for name, value in inputs.items()})
            return [np.ones((1, 4), dtype=np.float32)]

    options = SimpleNamespace(add_session_config_entry=lambda *_: None)
    runtime = SimpleNamespace(SessionOptions=lambda: options, InferenceSession=InferenceSession)
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    (tmp_path / "tokenizer.json").write_text('{"model": {"vocab": {"a": 1}}}')
    files = (tmp_path / "model.onnx", tmp_path / "tokenizer.json")
    providers = [("CUDAExecutionProvider", {"device_id": 1}), "CPUExecutionProvider"]
    if taken:
        model = load_shared_model(*files, 2, Device("cuda", 1))
        assert (model.vocabulary, "input_ids" in model.inputs) == ({"a": 1}, True)
        assert model.synthesize_tokens([1, 2], np.zeros(256, dtype=np.float32)).shape == (4,)
        inputs = {"input_ids": ("int64", (1, 4)), "style": ("float16", (1, 256)), "speed": ("int32", (1,))}
        assert asked == [*providers, inputs]
    else:
        with pytest.raises(ModelError, match=r"did not take the GPU for model\.onnx"):
            load_shared_model(*files, 2, Device("cuda", 1))
        assert asked == providers
