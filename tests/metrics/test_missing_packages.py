"""Results without optional packages, and with unusual text."""

import subprocess
import sys

import pandas as pd
import pytest

from speechlab.metrics import attribute, error_rate, score
from speechlab.text import normalizer


def test_without_opencc_the_chinese_normalizer_has_another_name():
    # In a process of its own, since a normalizer is made once.
    code = """
import sys
sys.modules["opencc"] = None
from speechlab.text import normalizer
rules = normalizer("zh")
assert rules.id == "zh-unconverted-v7", rules
assert rules("語音，2024年") == "語音二千零二十四年"
assert normalizer("zh-unconverted-v7") is rules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_openjtalk_japanese_rows_have_no_readings(monkeypatch):
    for package in ("pyopenjtalk", "pypinyin"):
        monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    frame = pd.DataFrame({"text": ["精度"], "hypothesis": ["制度"]})
    scored = score(frame, language="ja")
    assert scored["cer"].tolist() == [0.5]
    assert not {"reading_cer", "tolerant_cer", "notation_differences"} & set(scored)
    assert "pinyin_error_rate" not in score(frame, language="zh")
    for language in ("ja", "zh"):
        found = attribute(frame.assign(voice="x"), language=language).voices
        assert found[["own_errors", "homophone_errors"]].to_numpy().tolist() == [[1, 0]]


def test_lone_surrogates_are_scored():
    pytest.importorskip("opencc")
    said, heard = ["今日\ud83d a", "\udc00", "b"], ["昨日\ud83d a", "", "c"]
    for language in ("en", "ja", "zh", "th"):
        assert score(said, heard, language=language)["errors"].notna().all()
        assert score(["\ud800 a"], ["\ud800 a"], language=language)["errors"].tolist() == [0]
        assert normalizer(language)("\ud83d") is not None
        assert error_rate("\ud83d", "x", unit="char", language=language).alignments[0].html
