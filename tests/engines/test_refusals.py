"""What the engines refuse before they load anything, in words: ``refusals.md``."""

import json
from pathlib import Path

import pytest

from speechlab.engines import add_model, catalogue, create
from support.texts import check_refusals
from support.tiny_onnx import write_hum_voice, write_piper_voice, write_stub, write_tone_recognizer

TRANSDUCER = ("encoder.onnx", "decoder.onnx", "joiner.onnx", "tokens.txt")


@pytest.mark.slow
def test_refusals_of_engines(tmp_path):
    def toml(text):
        (tmp_path / "engines.toml").write_text(text)
        return tmp_path / "engines.toml"

    def stub(*names, inputs=(), **metadata):
        return str(write_stub(tmp_path / "x-en", *names, metadata=metadata, inputs=inputs))

    def tones(change):
        file = write_tone_recognizer(tmp_path / "ctc-de") / "model.onnx"
        file.write_bytes(change(file.read_bytes()))
        return str(file.parent)

    def hum(**metadata):
        return str(write_hum_voice(tmp_path / "hum", **metadata))

    def piper(configuration):
        path = write_piper_voice(tmp_path / "piper")
        path.with_name(f"{path.name}.json").write_text(json.dumps(configuration))
        return str(path)

    names = {"add_model": add_model, "catalogue": catalogue, "create": create, "transducer": TRANSDUCER}
    names |= {"toml": toml, "stub": stub, "tones": tones, "hum": hum, "piper": piper}
    check_refusals(Path(__file__).with_name("refusals.md"), "engines", folder=tmp_path, **names)
