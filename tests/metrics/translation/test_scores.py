"""Translation scores are sacrebleu's own, with a tokenizer that fits the language."""

from __future__ import annotations

import pytest

from speechlab.errors import InvalidRequestError
from speechlab.metrics import score_translations


def test_ends_of_the_scale():
    same = score_translations(
        ["It is raining cats and dogs."], ["It is raining cats and dogs."], language="en"
    )
    assert (round(same.chrf), round(same.bleu)) == (100, 100)
    assert score_translations(["abc"], ["xyz"]).chrf == 0


def test_references_and_translations_must_be_equal_in_number():
    for references, hypotheses in [([], []), (["a"], []), (["a"], ["a", "b"])]:
        with pytest.raises(InvalidRequestError, match="do not fit"):
            score_translations(references, hypotheses)


def test_a_missing_language_warns_where_bleu_would_be_zero():
    with pytest.warns(UserWarning, match="name the language"):
        score_translations(["今日は良い天気です。"] * 2, ["今日は良い天気だ。"] * 2)
    assert score_translations(["今日は良い天気です。"], ["今日は良い天気です。"], tokenize="char").bleu > 99
    assert score_translations(["Guten Tag, Schülerinnen"], ["Guten Tag, Schülerinnen"]).chrf == 100
