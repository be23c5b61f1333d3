"""What widgets refuse, in words: ``refusals.md``."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from speechlab import metrics, widgets
from speechlab.audio import AudioClip
from support.samples import tone
from support.texts import check_refusals


@pytest.mark.slow
def test_refusals_of_widgets(tmp_path, voices_lab):
    def file(text):
        (tmp_path / "marks.csv").write_text(text, "utf-8")
        return tmp_path / "marks.csv"

    texts = pd.DataFrame({"text": ["a cat", "a dog"], "hypothesis": ["a hat", "a dog"], "language": "en"})
    systems = [(item, system, tone(0.5)) for item in "abc" for system in ("one", "two", "original")]
    names = {name: getattr(widgets, name) for name in widgets.__all__}
    names |= {"AudioClip": AudioClip, "file": file, "here": tmp_path, "lab": voices_lab, "np": np, "pd": pd}
    names |= {"clip": tone(1.0), "rows": texts.assign(audio=[tone(0.3)] * 2), "scored": metrics.score(texts)}
    names |= {"sounds": pd.DataFrame(systems, columns=["item", "system", "audio"])}
    check_refusals(Path(__file__).with_name("refusals.md"), "widgets", folder=tmp_path, **names)
