"""What the prompts promise: counts, form, readings, translations."""

import re
import unicodedata

import pytest

from speechlab import errors
from speechlab.datasets import datasheet, prompts

LANGUAGES = ("ja", "en", "zh")
CATEGORIES = (
    "numbers", "names", "dates", "homophones", "loanwords", "questions", "short", "long", "everyday", "technical",
)  # fmt: skip
REQUIRED = ("numbers", "names", "dates", "homophones", "loanwords", "questions", "short", "long")
WRONG = ("no", 1, 0.0, [True], {}, b"en", float("nan"), object())


def test_every_language_has_enough_of_everything():
    for language in LANGUAGES:
        frame = prompts(language)
        assert len(frame) >= 48
        assert set(frame["language"]) == {language}
        counts = frame["category"].value_counts()
        assert all(counts[category] >= 4 for category in CATEGORIES), counts
        assert set(REQUIRED) <= set(CATEGORIES)


def test_quick_rows_are_short_clear_and_varied():
    for language in LANGUAGES:
        frame = prompts(language, quick=True)
        assert len(frame) >= 6
        assert frame["category"].nunique() >= 4
        spoken = {"ja": "reading", "en": "text", "zh": "pinyin"}[language]
        units = frame[spoken].str.len() if language == "ja" else frame[spoken].str.split().str.len()
        low, high = {"ja": (18, 40), "en": (6, 16), "zh": (11, 24)}[language]
        assert units.between(low, high).all(), units.tolist()


def test_ids_and_texts_are_unique_and_ids_are_in_order():
    frame = prompts()
    assert frame["id"].is_unique
    assert frame["text"].is_unique
    for language in LANGUAGES:
        ids = prompts(language)["id"].tolist()
        assert ids == [f"{language}-{number:03d}" for number in range(1, len(ids) + 1)]


def test_cells_are_clean():
    frame = prompts()
    for column in frame.select_dtypes("string"):
        for value in frame[column].dropna():
            assert value == value.strip(), value
            assert value, column
            assert unicodedata.is_normalized("NFC", value), value
            assert not re.search(r"[\x00-\x1f\x7f\u200b-\u200f\ufeff\ufffd]|  ", value), value


def test_sentences_end_as_sentences():
    for text in prompts()["text"]:
        assert text[-1] in ".?!。？！", text


def test_japanese_readings_are_katakana_only():
    frame = prompts("ja")
    for text, reading in zip(frame["text"], frame["reading"], strict=True):
        assert re.fullmatch("[ァ-ヴー]+", reading), text
        assert not re.search("[ヲヂヅヮ]", reading), text


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_japanese_readings_agree_with_openjtalk():
    openjtalk = pytest.importorskip("pyopenjtalk")
    frame = prompts("ja")
    differing = set()
    for row in frame.itertuples():
        spoken = re.sub("[^ァ-ヴー]", "", openjtalk.g2p(row.text, kana=True)).replace("ヲ", "オ")
        if spoken != row.reading:
            differing.add(row.id)
    noted = set(frame.loc[frame["note"].str.contains("OpenJTalk", na=False), "id"])
    assert differing == noted


def test_chinese_pinyin_has_one_syllable_for_each_character():
    for row in prompts("zh").itertuples():
        syllables = row.pinyin.split()
        for syllable in syllables:
            assert re.fullmatch("[a-zü]+[1-5]|[A-Z]+|Wi-Fi", syllable), (row.id, syllable)
        if not re.search("[0-9A-Za-z]", row.text):
            characters = len(re.findall("[一-鿿]", row.text)) - row.text.count("点儿")
            assert len(syllables) == characters, row.id


def test_chinese_is_simplified():
    opencc = pytest.importorskip("opencc")
    convert = opencc.OpenCC("t2s").convert
    for text in prompts("zh")["text"]:
        assert convert(text) == text


def test_translations_are_there_and_in_the_right_language():
    frame = prompts()
    english = frame["language"] == "en"
    assert frame.loc[english, "translation_ja"].notna().all()
    assert frame.loc[~english, "translation_en"].notna().all()
    assert frame.loc[english, "translation_en"].isna().all()
    for text in frame.loc[~english, "translation_en"]:
        assert not re.search("[぀-ヿ一-鿿]", text), text
    for text in frame.loc[english, "translation_ja"]:
        assert re.search("[ぁ-ゖ]", text), text
        assert text[-1] in "。？！", text


def test_columns_of_one_language_are_empty_elsewhere():
    frame = prompts()
    assert frame["reading"].notna().equals(frame["language"] == "ja")
    assert frame["pinyin"].notna().equals(frame["language"] == "zh")


def test_dtypes_survive_filtering():
    whole = prompts()
    for part in (
        prompts("ja"),
        prompts(category="dates"),
        prompts("zh", "short", quick=False),
        prompts(quick=True),
    ):
        assert part.dtypes.equals(whole.dtypes)
        assert part.index.tolist() == list(range(len(part)))
    assert str(whole["text"].dtype).startswith("string")
    assert whole["quick"].dtype == bool
    assert tuple(whole["language"].cat.categories) == LANGUAGES
    assert tuple(whole["category"].cat.categories) == CATEGORIES


def test_filters_add_up_to_the_whole():
    whole = prompts()
    assert len(whole) == len(prompts(quick=True)) + len(prompts(quick=False))
    assert whole["id"].tolist() == [i for language in LANGUAGES for i in prompts(language)["id"]]
    assert prompts().equals(prompts())


def test_a_result_belongs_to_the_caller():
    frame = prompts("en")
    frame.loc[:, "text"] = "changed"
    assert "changed" not in set(prompts("en")["text"])


def test_values_of_another_kind_are_refused():
    for wrong in WRONG:
        for parameter in ("language", "category", "quick"):
            with pytest.raises(errors.InvalidRequestError, match=f"{parameter} must be one of") as caught:
                prompts(**{parameter: wrong})
            assert caught.value.parameter == parameter
        with pytest.raises(errors.InvalidRequestError, match="name must be one of 'prompts', 'zh-speech'"):
            datasheet(wrong)
