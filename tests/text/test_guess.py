"""The language of texts, by script and frequent words."""

from __future__ import annotations

import pytest

from speechlab import datasets
from speechlab.text import guess_language


@pytest.mark.parametrize("language", ["en", "ja"])
def test_prompts_have_their_language(language):
    assert guess_language(datasets.prompts(language)["text"]) == language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("the cat sat, and you saw it", "en"),
        ("It’s not what they don’t have", "en"),
        ("你好，世界", "zh"),
        ("会議は三時です", "ja"),
        ("Die Katze ist in dem Haus, und was will er?", None),
        ("Le chat est sur la table et il est content", None),
        ("De kat is in het huis, of op de mat", None),
        ("12 34", None),
        ("", None),
    ],
)
def test_other_languages_are_not_taken_for_english(text, language):
    assert guess_language([text]) == language
