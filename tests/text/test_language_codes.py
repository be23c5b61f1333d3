"""Languages by code and by name, and which are written without spaces."""

import pytest

from speechlab.errors import InvalidRequestError
from speechlab.text import (
    get_language_name,
    language_code,
    list_language_codes,
    parse_primary_language,
    writes_without_spaces,
)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("ja", "ja"),
        ("ja-JP", "ja"),
        ("EN_gb", "en"),
        ("zh-Hant-TW", "zh"),
        ("Mandarin", "zh"),
        ("日本語", "ja"),
    ],
)
def test_a_tag_or_name_becomes_a_code(given, code):
    assert language_code(given) == parse_primary_language(given) == code


@pytest.mark.parametrize("given", ["jp", "cn", "klingon", "", "x"])
def test_unknown_languages_are_refused_where_a_language_is_needed(given):
    assert parse_primary_language(given) == given
    with pytest.raises(InvalidRequestError, match="is not a language"):
        language_code(given)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("ja, en", {"ja", "en"}),
        ("Japanese / English (US)", {"ja", "en", "us"}),
        ("japanese-english", {"ja", "en"}),
        ("日本語・英語", {"ja", "en"}),
        ("Java", {"java"}),
        ("", set()),
    ],
)
def test_codes_and_names_are_found_in_free_text(text, codes):
    assert list_language_codes(text) == codes


def test_a_language_that_is_much_spoken_has_an_english_name():
    assert [get_language_name(code) for code in ("en", "ja", "zh-Hant", "de", "gv")] == [
        "English",
        "Japanese",
        "Chinese",
        "German",
        "gv",
    ]
    assert language_code(get_language_name("sw")) == "sw"


@pytest.mark.parametrize(
    ("language", "yes"),
    [
        *((code, True) for code in ("bo", "ja", "km", "lo", "my", "th", "yue", "zh", "zh-CN", "Japanese")),
        *((code, False) for code in ("en", "ko", "de-AT", "", "?")),
    ],
)
def test_languages_without_spaces_between_words(language, yes):
    assert writes_without_spaces(language) is yes
