"""The language of texts, by script and frequent words."""

from speechlab import datasets
from speechlab.text import guess_language


def test_a_language_is_guessed_and_no_other_taken_for_english():
    for language in ("en", "ja"):
        assert guess_language(datasets.prompts(language)["text"]) == language
    for text, language in (
        ("the cat sat, and you saw it", "en"),
        ("It’s not what they don’t have", "en"),
        ("你好，世界", "zh"),
        ("会議は三時です", "ja"),
        ("Die Katze ist in dem Haus, und was will er?", None),
        ("Le chat est sur la table et il est content", None),
        ("De kat is in het huis, of op de mat", None),
        ("12 34", None),
        ("", None),
    ):
        assert guess_language([text]) == language, text
