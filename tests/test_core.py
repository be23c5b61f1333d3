"""The core works where its five packages alone are installed, and says in a sentence what else is needed."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from speechlab._require import EXTRAS

ROOT = Path(__file__).parents[1]
SCORED = """
import sys

sys.modules.update(dict.fromkeys(MISSING))  # each import of them fails
import pandas as pd
import speechlab as sl

assert sl.metrics.error_rate(["the color of it's fine"], ["the colour of it is"], language="en").errors == 1
assert sl.metrics.error_rate(["橋を渡る"], ["端を渡る"], language="ja", unit="char").errors == 1
assert sl.metrics.error_rate(["今天天气好"], ["今天天汽好"], language="zh", unit="char").errors == 1
assert sl.metrics.classify_differences("I'll pay ten dollars", "I will pay $10", "en").tolerant_errors == 0
texts = pd.DataFrame({"text": ["a b c", "d e f"] * 12, "hypothesis": ["a b c", "d e x"] * 12, "language": "en"})
assert sl.metrics.score(texts)["errors"].sum() == 12
segments = sl.segments.frame([(0, 1, "one"), (2, 3, "two")], file="a.wav")
for name in ("a.srt", "a.csv"):
    sl.segments.write(segments, name)
    assert sl.segments.read(name, file="a.wav")["text"].tolist() == ["one", "two"]
assert sl.segments.score(segments, segments).frame()["miss_s"].eq(0).all()
assert len(sl.datasets.prompts("ja")) > 60
clip = sl.AudioClip([0.0] * 24, 24_000)
for use in (
    lambda: sl.connect, lambda: sl.evaluate.audit, lambda: sl.widgets.Player, lambda: sl.plots.timeline,
    lambda: sl.batch.synthesize, lambda: clip.save("a.flac"), lambda: sl.segments.write(segments, "a.parquet"),
    lambda: sl.metrics.from_jiwer(None), lambda: sl.metrics.score_translations(["a"], ["a"], language="en"),
):
    try:
        use()
    except sl.MissingDependencyError as error:
        assert "pip install 'speechlab[toolkit]'" in str(error), error
    else:
        raise SystemExit("nothing was missed")
"""


@pytest.mark.slow
def test_the_core_scores_and_names_what_is_missing(tmp_path):
    missing = {module for module in EXTRAS if module not in {"opencc", "pypinyin"}}
    ran = subprocess.run(
        [sys.executable, "-c", f"MISSING = {missing!r}\n{SCORED}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


def test_packages_of_the_toolkit_are_those_that_errors_name():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    modules = {"ipython": "IPython", "pillow": "PIL"}
    packages = {re.split("[<>=]", requirement)[0] for requirement in extras["toolkit"]}
    named = {module for module, extra in EXTRAS.items() if extra == "toolkit"}
    assert {modules.get(name, name) for name in packages} == named
