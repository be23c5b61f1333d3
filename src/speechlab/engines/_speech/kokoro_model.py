"""Kokoro's model and its voices, loaded from files: the pinned ones, or those of a model that the user names."""

from __future__ import annotations

import json
import re
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._require import require
from speechlab.engines._devices import Device
from speechlab.engines._protocols import EngineVoice
from speechlab.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

STYLE_SIZE = 256
# The loudest voice peaks at 1.1 of full scale. One gain for all keeps the pieces of an utterance at one level.
_GAIN = 0.8
# Types of the inputs of the pinned model, by name; in others the tokens are named ``input_ids``.
_PINNED_INPUTS = {"tokens": "int64", "style": "float32", "speed": "float32"}
_TYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
}
# Voices by the first letter of their names: accent and language. Texts of other languages cannot be read here.
_ACCENTS = {"a": ("American English", "en"), "b": ("British English", "en"), "j": ("Japanese", "ja")}
_VOICE_NAME = re.compile(r"(?P<accent>[abj])(?P<gender>[fm])_(?P<name>\w+)")


@dataclass(slots=True, weakref_slot=True)
class KokoroModel:
    """The loaded model, shared by all engines of a process that use the same files."""

    session: Any
    vocabulary: dict[str, int]
    inputs: Mapping[str, str] = field(default_factory=lambda: _PINNED_INPUTS)

    def synthesize_tokens(self, tokens: Sequence[int], style: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the samples of at most 500 tokens.

        Args:
            tokens: Tokens without the framing zeros.
            style: Style vector, float32, shape (256,).

        Returns:
            Samples, float32, shape (frames,), at 24 kHz, with the model's silence at both ends.
        """
        framed = [[0, *tokens, 0]]
        values = {"style": style.reshape(1, STYLE_SIZE), "speed": np.ones(1)}
        inputs = {
            name: np.asarray(values.get(name, framed), dtype=kind) for name, kind in self.inputs.items()
        }
        return np.asarray(self.session.run(None, inputs)[0], dtype=np.float32).ravel() * np.float32(_GAIN)


_models: weakref.WeakValueDictionary[str, KokoroModel] = weakref.WeakValueDictionary()
_models_lock = threading.Lock()


def load_shared_model(
    path: Path, vocabulary: Path, threads: int, device: Device | None = None
) -> KokoroModel:
    """Load a model, or return it if another engine of this process has loaded it."""
    device = device or Device()
    key = f"{path}|{threads}|{device.kind}{device.index}"
    with _models_lock:
        model = _models.get(key)
        if model is None:
            model = _models[key] = _load_model(path, vocabulary, threads, device)
    return model


def _load_model(path: Path, vocabulary: Path, threads: int, device: Device) -> KokoroModel:
    runtime = require("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    providers: list[Any] = ["CPUExecutionProvider"]
    if device.kind == "cuda":
        providers.insert(0, ("CUDAExecutionProvider", {"device_id": device.index}))
    try:
        session = runtime.InferenceSession(str(path), options, providers=providers)
    except Exception as error:
        # ONNX Runtime raises classes of its own.
        raise ModelError(f"ONNX Runtime cannot load {path}: {error}; fetch or copy the file again") from error
    if device.kind == "cuda" and "CUDAExecutionProvider" not in session.get_providers():
        raise ModelError(
            f"ONNX Runtime did not take the GPU for {path.name}: libraries of CUDA or cuDNN are missing; "
            f"pip install 'onnxruntime-gpu[cuda,cudnn]', or set device='cpu'"
        )
    inputs = {item.name: _TYPES.get(item.type, "") for item in session.get_inputs()}
    if not {"style", "speed"} < set(inputs) or not all(inputs.values()) or len(inputs) != 3:
        raise ModelError(
            f"{path.name} is not a Kokoro model: its inputs are {', '.join(inputs)}; it needs tokens (or input_ids), "
            f"style and speed"
        )
    return KokoroModel(session, _read_vocabulary(vocabulary), inputs)


def _read_vocabulary(path: Path) -> dict[str, int]:
    fields = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = fields.get("vocab") or fields.get("model", {}).get("vocab")
    if not isinstance(vocabulary, dict):
        raise ModelError(f"{path.name} has no vocabulary of phonemes; fetch or copy the file again")
    return vocabulary


def read_styles(files: Mapping[str, Path]) -> dict[str, NDArray[np.float32]]:
    """Read the style tables of a model's voices by name, each of shape (rows, 256)."""
    styles: dict[str, NDArray[np.float32]] = {}
    for path in files.values():
        if path.name in {"tokenizer.json", "vocab.json"} or path.suffix == ".onnx":
            continue
        try:
            if path.suffix == ".npz" or path.name.startswith("voices"):
                with np.load(path) as bundled:
                    tables = {name: bundled[name] for name in bundled.files}
            else:
                tables = {path.stem: np.fromfile(path, dtype="<f4")}
            styles |= {
                name: table.reshape(-1, STYLE_SIZE).astype(np.float32) for name, table in tables.items()
            }
        except (OSError, ValueError) as error:
            raise ModelError(
                f"the voices in {path.name} cannot be read: {error}; fetch the file again"
            ) from error
    return styles


def describe_voices(names: Sequence[str], known: Sequence[EngineVoice]) -> tuple[EngineVoice, ...]:
    """Describe the voices whose languages can be read, from their names; the known ones as they are known."""
    voices = {voice.name: voice for voice in known}
    described = []
    for name in sorted(names):
        match = _VOICE_NAME.fullmatch(name)
        if name in voices:
            described.append(voices[name])
        elif match is not None:
            accent, language = _ACCENTS[match["accent"]]
            gender = {"f": "Female", "m": "Male"}[match["gender"]]
            text = f"Kokoro, {accent}, {match['name'].capitalize()}"
            described.append(EngineVoice(name, (language,), gender, text))
    return tuple(described)
