"""ONNX models of a few hundred bytes for sherpa-onnx: a recognizer that hears two tones, and a voice that hums."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from speechlab.engines._weights.onnx_header import encode_field, encode_metadata, encode_varint

FLOAT, INT64 = 1, 7
RATE = 16_000
LETTERS = "abcdefghijklmnopqrstuvwxyzäöüß .,"


def number(field: int, value: int) -> bytes:
    return encode_varint(field << 3) + encode_varint(value)


def text(field: int, value: str) -> bytes:
    return encode_field(field, value.encode())


def node(operation: str, inputs: Sequence[str], output: str, attributes: bytes = b"") -> bytes:
    names = b"".join(text(1, name) for name in inputs) + text(2, output)
    return encode_field(1, names + text(4, operation) + attributes)


def integers(name: str, values: Sequence[int]) -> bytes:
    """An attribute."""
    return encode_field(5, text(1, name) + b"".join(number(8, value) for value in values) + number(20, 7))


def constant(name: str, values: np.ndarray) -> bytes:
    kind = INT64 if values.dtype == np.int64 else FLOAT
    dims = b"".join(number(1, size) for size in values.shape)
    return encode_field(5, dims + number(2, kind) + text(8, name) + encode_field(9, values.tobytes()))


def value(field: int, name: str, kind: int, dims: Sequence[str]) -> bytes:
    """An input (11) or output (12) of the graph."""
    shape = b"".join(encode_field(1, text(2, dim)) for dim in dims)
    tensor = number(1, kind) + encode_field(2, shape)
    return encode_field(field, text(1, name) + encode_field(2, encode_field(1, tensor)))


def model(graph: bytes, metadata: Mapping[str, str]) -> bytes:
    head = number(1, 8) + encode_field(8, number(2, 13))
    return head + encode_field(7, graph + text(2, "tiny")) + encode_metadata(metadata)


def write_tone_recognizer(folder: Path, **changed: str) -> Path:
    """Write a CTC model as NeMo's: " low" for 500 Hz, " high" for 2,000 Hz, and nothing for silence."""
    folder.mkdir(exist_ok=True)
    weights = np.zeros((80, 3), dtype=np.float32)
    weights[11:16, 0] = 1 / 5  # mel bands around 500 Hz
    weights[43:48, 1] = 1 / 5  # around 2,000 Hz
    graph = b"".join(
        (
            node("Transpose", ["audio_signal"], "frames", integers("perm", [0, 2, 1])),
            node("MatMul", ["frames", "weights"], "scores"),
            node("Add", ["scores", "blank"], "raised"),
            node("LogSoftmax", ["raised"], "logprobs"),
            constant("weights", weights),
            constant("blank", np.array([0.0, 0.0, -4.0], dtype=np.float32)),
            value(11, "audio_signal", FLOAT, "BCT"),
            value(11, "length", INT64, "B"),
            value(12, "logprobs", FLOAT, "BTV"),
        )
    )
    metadata = {
        "model_type": "EncDecCTCModelBPE",
        "vocab_size": "3",
        "subsampling_factor": "1",
        "normalize_type": "",
    }
    (folder / "model.onnx").write_bytes(
        model(graph, {k: v for k, v in (metadata | changed).items() if v != "-"})
    )
    (folder / "tokens.txt").write_text("▁low 0\n▁high 1\n<blk> 2\n", encoding="utf-8")
    return folder


def write_stub(
    folder: Path, *names: str, metadata: dict[str, str] | None = None, inputs: Sequence[str] = ()
) -> Path:
    """Write files of these names alone: graphs with these inputs and metadata, and symbols."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    graph = b"".join(value(11, name, FLOAT, "B") for name in inputs) + value(12, "y", FLOAT, "B")
    for name in names:
        content = model(graph, metadata or {}) if name.endswith(".onnx") else b"a 0\n"
        (folder / name).write_bytes(content)
    return folder


def _build_hum_graph(names: Sequence[str]) -> bytes:
    """A tenth of a second of humming for each number in the first input, by the speaker in the last one."""
    wave = 0.01 * np.sin(2 * np.pi * 400 * np.arange(RATE // 10) / RATE)
    to_float = encode_field(5, text(1, "to") + number(3, FLOAT) + number(20, 2))
    kinds = [INT64 if name in {"x", "x_length", "sid"} else FLOAT for name in names]
    inputs = [
        value(11, name, kind, "NL" if name == "x" else "N") for name, kind in zip(names, kinds, strict=True)
    ]
    return b"".join(
        (
            node("Add", ["sid", "one"], "loudness"),
            node("Mul", ["x", "loudness"], "louder"),
            node("Cast", ["louder"], "numbers", to_float),
            node("Transpose", ["numbers"], "column", integers("perm", [1, 0])),
            node("MatMul", ["column", "wave"], "y"),
            constant("one", np.array([1], dtype=np.int64)),
            constant("wave", wave.astype(np.float32)[np.newaxis]),
            *inputs,
            value(12, "y", FLOAT, "LT"),
        )
    )


def write_hum_voice(folder: Path, **changed: str) -> Path:
    """Write a VITS model of two speakers that hums a tenth of a second for each letter; the second one is louder."""
    folder.mkdir(exist_ok=True)
    graph = _build_hum_graph(["x", "x_length", "noise_scale", "length_scale", "noise_scale_w", "sid"])
    metadata = {
        "model_type": "vits", "comment": "tiny", "language": "German", "frontend": "characters", "n_speakers": "2",
        "sample_rate": str(RATE), "add_blank": "0", "use_eos_bos": "0", "punctuation": ". ,",
    }  # fmt: skip
    (folder / "model.onnx").write_bytes(
        model(graph, {k: v for k, v in (metadata | changed).items() if v != "-"})
    )
    lines = [f"{letter} {place + 1}\n" for place, letter in enumerate(LETTERS)]
    (folder / "tokens.txt").write_text("".join(lines), encoding="utf-8")
    return folder


def write_piper_voice(folder: Path) -> Path:
    """Write the same voice as Piper publishes one: without metadata, beside a configuration."""
    folder.mkdir(exist_ok=True)
    path = folder / "de_DE-hum-low.onnx"
    path.write_bytes(model(_build_hum_graph(["x", "x_length", "scales", "sid"]), {}))
    marks = {mark: [place] for place, mark in enumerate(["_", "^", "$", *LETTERS])}
    configuration = {
        "audio": {"sample_rate": RATE}, "phoneme_type": "text", "phoneme_id_map": marks, "num_speakers": 2,
        "speaker_id_map": {"anna": 0, "emil": 1}, "language": {"code": "de_DE"},
    }  # fmt: skip
    path.with_name(f"{path.name}.json").write_text(json.dumps(configuration), encoding="utf-8")
    return path
