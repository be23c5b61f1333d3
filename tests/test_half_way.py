"""Messages that meet people half way: each says what was likely meant, or what to do."""

import pandas as pd
import pytest

import speechlab as sl
from speechlab.errors import InvalidRequestError

FRAME = pd.DataFrame(
    {
        "row": ["1", "2"],
        "file": ["a/1.wav", "a/2.wav"],
        "said": ["The train is late.", "Two cats sat there."],
        "lg": ["en", "en"],
    }
)


def test_each_door_proposes_the_likely_column():
    lab = sl.system("half", transcribe=lambda clip: "yes", translate=lambda text, **_: text, version="1")
    doors = [
        lambda: sl.evaluate.recognition(lab, FRAME, progress=False),
        lambda: sl.batch.translate(FRAME, lab, source_lang="en", target_lang="ja", progress=False),
        lambda: sl.metrics.error_rate(FRAME, reference="text", hypothesis="row"),
        lambda: sl.datasets.apply_corrections(FRAME, pd.DataFrame()),
    ]
    for door in doors:
        with pytest.raises(InvalidRequestError, match=r"'said' for 'text'|text='said'"):
            door()


def test_an_unquoted_comma_says_so(tmp_path):
    lab = sl.system("half", translate=lambda text, **_: text, version="1")
    options = {"source_lang": "en", "target_lang": "ja", "progress": False}
    path = tmp_path / "a.csv"
    path.write_text("text,speaker\na,1\nb, and c,2\n")
    told = "line 3 has 3 cells, and the first line 2 names; put texts with commas into quotes"
    with pytest.raises(InvalidRequestError, match=told):
        sl.batch.translate(path, lab, **options)


def test_speech_without_a_voice_says_to_choose_one():
    lab = sl.system("half", synthesize=lambda text, voice: ([0.0] * 800, 8_000), version="1")
    with pytest.raises(
        InvalidRequestError, match=r"choose a voice: .* lab\.voices\(\)\.find\(language='en'\)\[0\]"
    ):
        lab.synthesize("Hi")
