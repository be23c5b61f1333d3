"""Differences of English, Japanese and Chinese texts: classes, and rates that forgive notation and sound."""

import pypinyin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.metrics import classify_differences, error_rate, score, summarize
from speechlab.text import pinyin, words

for package in ("pyopenjtalk", "pypinyin", "opencc"):
    pytest.importorskip(package)

NAMES = [f"{kind}_differences" for kind in ("notation", "homophone", "tone", "filler", "recognition")]
ENGLISH = words(
    """4719 4 7 1 9 twenty five 10:35 p.m. pm $5 five dollars May 29th the of 1/2 half e-mail email their there
    it's its don't do not uh um, km 5km % ( ) ' - a 2024-05-29 2024-13-45 0/0 13/13/2024 half past 0
    $99999999999999999999 ½ ii é 十 🙂 \u00a0"""
)
TEXTS = {
    "en": st.lists(st.sampled_from(ENGLISH), max_size=7).map(" ".join),
    "ja": st.text("今日明は箸橋三3時ーサバaA 。きょう😀", max_size=12),
    "zh": st.text("他她买卖书树银行航的地一1。 aA😀\u3000語语", max_size=12),
}


@pytest.mark.parametrize(
    ("language", "reference", "hypothesis", "expected"),
    [
        (
            "en-GB",
            "They're here at 10:35.",
            "There here at ten thirty five!",
            [("homophone", "They're", "There", 0), ("notation", "10:35", "ten thirty five", 16)],
        ),
        (
            "en-GB",
            "send 5km of rope",
            "send five kilometres rope",
            [("notation", "km", "kilometres", 6), ("recognition", "of", "", 9)],
        ),
        ("en", "er, a cat", "a hat", [("filler", "er", "", 0), ("recognition", "cat", "hat", 6)]),
        ("en", "of 2/3", "of 3/2", [("recognition", "2/3", "3/2", 3)]),
        (
            "ja",
            "明日の会議は精度について三時から",
            "あすの会議は制度について四時から",
            [
                ("notation", "明日", "あす", 0),
                ("homophone", "精度", "制度", 6),
                ("recognition", "三", "四", 12),
            ],
        ),
        (
            "zh",
            "他想买书",
            "她想卖花",
            [("homophone", "他", "她", 0), ("tone", "买", "卖", 2), ("recognition", "书", "花", 3)],
        ),
        ("zh", "北京天气", "南宁天气", [("recognition", "北京", "南宁", 0)]),
        ("zh", "语音识别", "語音識別。", []),
        ("zh", "他们得走", "他们的走", [("tone", "得", "的", 2)]),  # děi
        ("zh", "重两千克", "重2kg", [("notation", "二千克", "两公斤", 1)]),
        ("zh", "乾安县", "干安县", [("recognition", "乾", "干", 0)]),
    ],
)
def test_each_difference_has_its_class_and_is_given_as_written(language, reference, hypothesis, expected):
    found = classify_differences(reference, hypothesis, language)
    assert [tuple(difference) for difference in found.differences] == expected


def test_a_tolerant_text_forgives_notation_alone():
    found = classify_differences("明日の会議は精度について三時から", "あすの会議は制度について四時から", "ja")
    assert (found.tolerant, found.tolerant_errors) == ("明日の会議は制度について四時から", 2)


@pytest.mark.slow
@pytest.mark.parametrize("language", TEXTS)
@settings(max_examples=30)
@given(st.data())
def test_differences_account_for_all_errors(language, data):
    one, other = data.draw(TEXTS[language]), data.draw(TEXTS[language])
    found, back = (classify_differences(*pair, language) for pair in ((one, other), (other, one)))
    differences = found.differences
    assert [d.kind for d in differences] == [d.kind for d in back.differences]
    rebuilt, done = "", 0
    for difference in differences:
        end = difference.start + len(difference.reference)
        assert found.reference[difference.start : end] == difference.reference
        rebuilt += found.reference[done : difference.start] + difference.hypothesis
        done = end
    if language == "en":
        assert all(difference.hypothesis in other for difference in differences)
        scored = score([one], [other], language="en").iloc[0]
        assert 0 <= scored["tolerant_errors"] <= scored["errors"]
        assert scored["tolerant_wer"] == scored["tolerant_errors"] / max(scored["word_length"], 1)
        if differences and {d.kind for d in differences} <= {"notation", "filler"}:
            assert scored["tolerant_errors"] == 0
        return
    assert (found.reference == found.hypothesis) == (not differences)
    assert rebuilt + found.reference[done:] == found.hypothesis
    if language == "ja":
        swapped = [(d.kind, d.hypothesis, d.reference) for d in back.differences]
        assert [(d.kind, d.reference, d.hypothesis) for d in differences] == swapped
        assert found.tolerant_errors <= max(len(found.reference), len(found.hypothesis))
        if found.count("notation") == len(differences):
            assert found.tolerant == found.reference
        if not found.count("notation"):
            assert found.tolerant == found.hypothesis


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "pairs", "counts", "figures"),
    [
        (
            "ja",
            [("明日の精度", "あすの制度"), ("三時", "四時")],
            [[1, 1, 0], [0, 0, 1]],
            {"tolerant_cer": [0.2, 0.5], "cer": [0.6, 0.5]},
        ),
        (
            "zh",
            [("他想买书", "她想卖花"), ("看书", "看树")],
            [[0, 1, 1, 0, 1], [0, 0, 1, 0, 0]],
            {
                "tolerant_cer": [0.75, 0.5],
                "cer": [0.75, 0.5],
                "pinyin_error_rate": [0.5, 0.5],
                "toneless_error_rate": [0.25, 0.0],
            },
        ),
    ],
)
def test_scores_have_the_counts_and_the_tolerant_rates(language, pairs, counts, figures):
    said, heard = map(list, zip(*pairs, ("x", None), strict=True))
    scored = score(said, heard, language=language)
    names = [name for name in NAMES if name in scored]
    assert scored[names].iloc[:2].to_numpy().tolist() == counts
    assert scored[[*names, *figures]].iloc[2].isna().all()
    for name, values in figures.items():
        assert scored[name].tolist()[:2] == values
    table = summarize(scored).iloc[0]
    assert table[names].tolist() == [sum(column) for column in zip(*counts, strict=True)]
    rate = scored["tolerant_errors"].sum() / scored["char_length"].sum()
    assert table["tolerant_cer"] == pytest.approx(rate)
    assert not {*names, "tolerant_cer"} & set(score(said, heard, language=language, normalize=None))


def test_fillers_are_counted_apart():
    said = ["uh yes", "er, a cat", "a rope of 30 mm", "yes"]
    scored = score(said, ["yes", "a hat", "a rope of 30 millimetres", "um yes, 5"], language="en")
    assert scored["filler_differences"].tolist() == [1, 1, 0, 1]
    assert scored["recognition_differences"].tolist() == [0, 1, 0, 1]
    assert scored["tolerant_errors"].tolist() == [0, 1, 0, 1]
    assert summarize(scored)[["filler_differences", "tolerant_wer"]].values.tolist() == [[3, 2 / 9]]


@pytest.mark.slow
@pytest.mark.timeout(20)
def test_long_texts_take_no_more_than_their_length(monkeypatch):
    for piece in [
        *("a", "twenty-", "1,", "5/", "10:", "'s", "(", "-1"),
        *(f"{part} " for part in ("word", "one", "$5", "May 1")),
    ]:
        text = piece * 1_000
        found = classify_differences(f"{text}.", f"x {text}!", "en")
        assert "recognition" in {difference.kind for difference in found.differences}
    # Nor is a text read again for each difference.
    read, read_syllables = [], pypinyin.lazy_pinyin
    monkeypatch.setattr(
        pypinyin, "lazy_pinyin", lambda text, **how: read.append(len(text)) or read_syllables(text, **how)
    )
    said = "".join(f"他想买书{a}" for a in "天地人山水火木金土日月星" * 20)
    assert classify_differences(said, said.replace("买", "卖"), "zh").count("tone") == 240
    assert len(said) <= sum(read) < 20 * len(said)


def test_chinese_homophones_and_tones_are_distinguished():
    # 试 shi4 and 是 shi4 sound alike; 买 mai3 and 卖 mai4 but for the tone.
    for pair, rates in {
        ("他是", "她是"): [0.5, 0.0, 0.0],
        ("买书", "卖书"): [0.5, 0.5, 0.0],
        ("买书", "看书"): [0.5, 0.5, 0.5],
        ("語音", "语音"): [0.0, 0.0, 0.0],
    }.items():
        units = ("char", "pinyin", "toneless")
        assert [error_rate(*pair, unit=unit, language="zh").rate for unit in units] == rates
    assert pinyin("ok 银行行长") == ["ok", "yin2", "hang2", "hang2", "zhang3"]  # by the context


@settings(max_examples=50)
@given(st.text("银行 a1😀\u3000。", max_size=10))
def test_every_text_has_syllables(text):
    assert all(item == item.strip() and item for item in pinyin(text))
    assert error_rate(text, text, unit="pinyin").rate == 0.0
