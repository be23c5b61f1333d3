"""Chinese by sound, and classes of its differences."""

import pandas as pd
import pypinyin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.errors import InvalidRequestError
from speechlab.metrics import classify_differences, error_rate, score, summarize
from speechlab.text import pinyin

pytest.importorskip("pypinyin")
pytest.importorskip("opencc")


def test_each_difference_has_its_own_class():
    for reference, hypothesis, expected in [
        (
            "他想买书",
            "她想卖花",
            [("homophone", "他", "她", 0), ("tone", "买", "卖", 2), ("recognition", "书", "花", 3)],
        ),
        ("权利很大", "权力很大", [("homophone", "利", "力", 1)]),
        ("北京天气", "南宁天气", [("recognition", "北京", "南宁", 0)]),
        ("天气很好", "天气好", [("recognition", "很", "", 2)]),
        ("", "好", [("recognition", "", "好", 0)]),
        ("语音识别", "語音識別。", []),
        *(
            (f"{before}{one}{behind}", f"{before}{other}{behind}", [("homophone", one, other, len(before))])
            for before, one, other, behind in [
                ("开心", "得", "地", "不得了"),
                ("开心", "得", "的", "不得了"),
                ("跑", "得", "地", "快"),
                ("慢慢", "地", "的", ""),
                ("轻轻", "地", "得", ""),
                ("高高", "地", "的", "挂着"),
                ("耐心", "地", "的", "等"),
            ]
        ),
        ("他们得走", "他们的走", [("tone", "得", "的", 2)]),  # děi
        ("土地很大", "土的很大", [("recognition", "地", "的", 1)]),
        ("重两千克", "重2kg", [("notation", "二千克", "两公斤", 1)]),
        ("乾安县", "干安县", [("recognition", "乾", "干", 0)]),
        ("银行", "银航", [("homophone", "行", "航", 1)]),  # 行 is xing2 when it stands alone
    ]:
        found = classify_differences(reference, hypothesis, "zh")
        assert [tuple(difference) for difference in found.differences] == expected
        assert found.frame()["start"].tolist() == [start for *_, start in expected]
        assert found.count("tone") == sum(kind == "tone" for kind, *_ in expected)


@settings(max_examples=60)
@given(*[st.text("他她买卖书树银行航的地一1。 aA😀\u3000語语", max_size=12)] * 2)
def test_differences_account_for_all_errors(one, other):
    found = classify_differences(one, other, "zh")
    assert (found.reference == found.hypothesis) == (not found.differences)
    rebuilt, done = "", 0
    for difference in found.differences:
        end = difference.start + len(difference.reference)
        assert found.reference[difference.start : end] == difference.reference
        rebuilt += found.reference[done : difference.start] + difference.hypothesis
        done = end
    back = classify_differences(other, one, "zh").differences
    assert [d.kind for d in found.differences] == [d.kind for d in back]
    assert rebuilt + found.reference[done:] == found.hypothesis


@pytest.mark.slow
def test_scores_have_the_counts_and_the_three_rates():
    frame = pd.DataFrame({"text": ["他想买书", "看书", "x"], "hypothesis": ["她想卖花", "看树", None]})
    scored = score(frame, language="zh")
    names = ["homophone_differences", "tone_differences", "recognition_differences"]
    assert scored[names].iloc[:2].to_numpy().tolist() == [[1, 1, 1], [0, 1, 0]]
    assert scored[names].iloc[2].isna().all()
    assert scored["notation_differences"].tolist()[:2] == [0, 0]
    assert scored["tolerant_cer"].tolist()[:2] == [0.75, 0.5]
    rates = scored[["cer", "pinyin_error_rate", "toneless_error_rate"]]
    assert rates.iloc[:2].to_numpy().tolist() == [[0.75, 0.5, 0.25], [0.5, 0.5, 0.0]]
    table = summarize(scored).iloc[0]
    assert table[names].tolist() == [1, 2, 1]
    assert table["toneless_error_rate"] == pytest.approx(1 / 6)
    assert not set(names) & set(score(frame, language="zh", normalize=None))


def test_a_long_text_is_not_read_again_for_each_difference(monkeypatch):
    read, read_syllables = [], pypinyin.lazy_pinyin
    monkeypatch.setattr(
        pypinyin, "lazy_pinyin", lambda text, **how: read.append(len(text)) or read_syllables(text, **how)
    )
    said = "".join(f"他想买书{a}" for a in "天地人山水火木金土日月星" * 20)
    comparison = classify_differences(said, said.replace("买", "卖"), "zh")
    assert comparison.count("tone") == 240
    assert len(said) <= sum(read) < 20 * len(said)


def test_homophones_and_tones_are_distinguished():
    # 试 shi4 and 是 shi4 sound alike; 买 mai3 and 卖 mai4 but for the tone.
    for pair, rates in {
        ("他是", "她是"): [0.5, 0.0, 0.0],
        ("买书", "卖书"): [0.5, 0.5, 0.0],
        ("买书", "看书"): [0.5, 0.5, 0.5],
        ("語音", "语音"): [0.0, 0.0, 0.0],
    }.items():
        units = ("char", "pinyin", "toneless")
        assert [error_rate(*pair, unit=unit, language="zh").rate for unit in units] == rates
    with pytest.raises(InvalidRequestError, match="Chinese"):
        error_rate("a", "b", unit="pinyin", language="ja")
    assert pinyin("ok 银行行长") == ["ok", "yin2", "hang2", "hang2", "zhang3"]  # by the context
    result = error_rate("买书", "卖书", unit="pinyin", language="zh")
    assert "pypinyin" in result.signature
    assert result.alignments[0].text == "[-mai3-]{+mai4+} shu1"
    assert result.edits()["reference_start"].isna().all()
    assert "with tone" in result._repr_html_()


@settings(max_examples=50)
@given(st.text("银行 a1😀\u3000。", max_size=10))
def test_every_text_has_syllables(text):
    assert all(item == item.strip() and item for item in pinyin(text))
    assert error_rate(text, text, unit="pinyin").rate == 0.0
