"""Translation scores are sacrebleu's own, with a tokenizer that fits the language."""

from __future__ import annotations

import pytest
import sacrebleu

from speechlab.errors import InvalidRequestError
from speechlab.metrics import score_translations

REFERENCES = ["今日はとても良い天気ですね。", "明日は会議があります。"]
HYPOTHESES = ["今日は良い天気ですね。", "明日会議があります。"]


def test_a_japanese_sentence_is_not_scored_as_one_word():
    score = score_translations(REFERENCES, HYPOTHESES, language="ja", tokenize="char")
    assert score.chrf == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert score.bleu == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize="char").score
    assert score.bleu > 30
    assert sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score < 1
    assert "tok:char" in score.signatures["bleu"]
    assert score.signatures["chrf"].startswith("nrefs:1")


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
