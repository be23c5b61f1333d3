"""Languages by code, by name and by script, and which are written without spaces."""

from speechlab import datasets
from speechlab.text import (
    guess_language,
    language_code,
    list_language_codes,
    parse_primary_language,
    writes_without_spaces,
)


def test_a_tag_or_name_becomes_a_code():
    codes = {"ja": "ja", "ja-JP": "ja", "EN_gb": "en", "zh-Hant-TW": "zh", "Mandarin": "zh", "日本語": "ja"}
    for given, code in codes.items():
        assert language_code(given) == parse_primary_language(given) == code
    assert parse_primary_language("klingon") == "klingon"


def test_codes_and_names_are_found_in_free_text():
    for text, codes in (
        ("ja, en", {"ja", "en"}),
        ("Japanese / English (US)", {"ja", "en", "us"}),
        ("日本語・英語", {"ja", "en"}),
        ("Java", {"java"}),
    ):
        assert list_language_codes(text) == codes


def test_languages_without_spaces_between_words():
    without = {"bo", "ja", "km", "lo", "my", "th", "yue", "zh", "zh-CN", "Japanese"}
    assert {one for one in without | {"en", "ko", "de-AT", "", "?"} if writes_without_spaces(one)} == without


def test_a_language_is_guessed_and_no_other_taken_for_english():
    for language in ("en", "ja"):
        assert guess_language(datasets.prompts(language)["text"]) == language
    for text, language in (
        ("the cat sat, and you saw it", "en"),
        ("你好，世界", "zh"),
        ("会議は三時です", "ja"),
        ("Die Katze ist in dem Haus, und was will er?", None),
        ("De kat is in het huis, of op de mat", None),
        ("12 34", None),
    ):
        assert guess_language([text]) == language, text
