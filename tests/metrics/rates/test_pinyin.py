"""Chinese by sound."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.errors import InvalidRequestError
from speechlab.metrics import error_rate
from speechlab.text import pinyin

pytest.importorskip("pypinyin")
pytest.importorskip("opencc")


def test_homophones_and_tones_are_distinguished():
    # 试 shi4 and 是 shi4 sound alike; 买 mai3 and 卖 mai4 but for the tone.
    rates = {
        pair: tuple(
            error_rate(*pair, unit=unit, language="zh").rate for unit in ("char", "pinyin", "toneless")
        )
        for pair in [("他是", "她是"), ("买书", "卖书"), ("买书", "看书"), ("語音", "语音")]
    }
    assert rates["他是", "她是"] == (0.5, 0.0, 0.0)
    assert rates["买书", "卖书"] == (0.5, 0.5, 0.0)
    assert rates["买书", "看书"] == (0.5, 0.5, 0.5)
    assert rates["語音", "语音"] == (0.0, 0.0, 0.0)


def test_context_decides_the_sound():
    assert pinyin("银行行长") == ["yin2", "hang2", "hang2", "zhang3"]
    assert pinyin("ok 好") == ["ok", "hao3"]


@settings(deadline=None, max_examples=50)
@given(st.text("银行 a1😀\u3000。", max_size=10))
def test_every_text_has_syllables(text):
    assert all(item == item.strip() and item for item in pinyin(text))
    assert error_rate(text, text, unit="pinyin").rate == 0.0


def test_only_for_chinese():
    with pytest.raises(InvalidRequestError, match="Chinese"):
        error_rate("a", "b", unit="pinyin", language="ja")
    result = error_rate("买书", "卖书", unit="pinyin", language="zh")
    assert "pypinyin" in result.signature
    assert result.alignments[0].text == "[-mai3-]{+mai4+} shu1"
    assert result.edits()["reference_start"].isna().all()
    assert "with tone" in result._repr_html_()
