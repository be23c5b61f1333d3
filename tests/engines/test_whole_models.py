"""Files of models that end early, as after an interrupted copy: refused before they are loaded."""

from __future__ import annotations

import struct

import pytest

from speechlab.engines import create
from speechlab.engines._weights.completeness import check_model_file
from speechlab.errors import ModelError

OTHERS = ("config.json", "tokenizer.json", "vocabulary.json")


def pack_text(layout, text):
    return struct.pack(f"<{layout}", len(text)) + text


def pack_ctranslate2():
    variable = pack_text("H", b"encoder\0") + struct.pack("<B2IBI", 2, 3, 4, 0, 48) + bytes(48)
    alias = pack_text("H", b"a\0") + pack_text("H", b"encoder\0")
    return (
        struct.pack("<I", 6)
        + pack_text("H", b"WhisperSpec\0")
        + struct.pack("<II", 3, 1)
        + variable
        + (struct.pack("<I", 1) + alias)
    )


def pack_gguf():
    words = struct.pack("<IIQ", 9, 8, 2) + pack_text("Q", b"a") + pack_text("Q", b"bc")
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 2) + pack_text("Q", b"tokens") + words
    head += pack_text("Q", b"general.alignment") + struct.pack("<II", 4, 64)
    head += pack_text("Q", b"weights") + struct.pack("<I2QIQ", 2, 256, 2, 12, 0)
    return head + bytes(-len(head) % 64) + bytes(2 * 144)


@pytest.mark.parametrize(
    ("name", "data"),
    [("model.bin", pack_ctranslate2()), ("a.gguf", pack_gguf()), ("tokenizer.json", b'{"a": [1]}')],
)
def test_a_file_that_ends_early_is_refused_before_it_is_loaded(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    check_model_file(path)
    for length in (*range(0, len(data), 17), len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(ModelError, match="is not a whole model"):
            check_model_file(path)


@pytest.mark.parametrize("engine", ["whisper", "llama"])
def test_a_folder_with_half_a_model_is_refused_as_it_is_found(tmp_path, engine):
    files = {"model.bin": pack_ctranslate2()[:-1]} | dict.fromkeys(OTHERS, b"{}")
    if engine == "llama":
        files = {"a.gguf": pack_gguf()[:-1]}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(ModelError, match=f"the model '{tmp_path}' cannot be used: .* is not a whole model"):
        create(engine, model=str(tmp_path)).find_model()
