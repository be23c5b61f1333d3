"""Nothing that speechlab loads reports home."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.engines

LOAD = """
import os, sys
import numpy as np
from speechlab import engines, text
list(engines.create("hibari").synthesize("Hello.", "heart"))
noise = np.random.default_rng(0).normal(0, 0.1, 16000).astype("float32")
engines.create("whisper").recognize(noise, engines.RecognitionOptions())
text.reading("今日は良い天気ですね")
assert "onnxruntime" in sys.modules
"""


def test_onnxruntime_keeps_no_ledger_of_its_use(tmp_path):
    quiet = {"CI", "ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS"}
    kept = {name: value for name, value in os.environ.items() if name not in quiet}
    cache = os.environ.get("SPEECHLAB_CACHE_DIR") or _cache()
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / ".cache"), "SPEECHLAB_CACHE_DIR": cache}
    subprocess.run([sys.executable, "-c", LOAD], check=True, env={**kept, **home}, timeout=120)
    assert not list(tmp_path.rglob("*onnxruntime*"))


def _cache():
    from speechlab.engines import ModelStore

    return str(ModelStore().root.parent)
