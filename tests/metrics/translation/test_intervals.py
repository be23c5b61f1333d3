"""Intervals, tokenizers, tables and glossaries of translations."""

import random
import sys
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
import sacrebleu

from speechlab.errors import InvalidRequestError
from speechlab.metrics import glossary_terms, score_translations

WORDS = [*"abcdefgh", "cat", "dog", "house", "sees", "finds", "red", "old", "today"]


def corpus(n, seed=0, hard=0.3):
    random_ = random.Random(seed)
    references = [" ".join(random_.choices(WORDS, k=random_.randrange(4, 20))) for _ in range(n)]
    hypotheses = [
        " ".join(random_.choice(WORDS) if random_.random() < hard else word for word in text.split())
        for text in references
    ]
    return references, hypotheses


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
def test_intervals_are_close_to_those_of_sacrebleu(metric):
    references, hypotheses = corpus(200)
    low, high = score_translations(references, hypotheses).confidence_interval(metric, draws=2_000)
    theirs = getattr(sacrebleu, metric.upper())()
    score = theirs.corpus_score(hypotheses, [references], n_bootstrap=2_000)
    assert (high - low) / 2 == pytest.approx(score._ci, rel=0.1)
    assert low < score.score < high


def test_intervals_are_repeatable_and_blocks_widen_them():
    references, hypotheses = [], []
    for document in range(30):
        one, other = corpus(10, seed=document, hard=0.6 if document % 2 else 0.1)
        references += one
        hypotheses += other
    score = score_translations(references, hypotheses)
    assert score.confidence_interval("bleu", seed=3) == score.confidence_interval("bleu", seed=3)
    low, high = score.confidence_interval("bleu")
    wide = score.confidence_interval("bleu", groups=[i // 10 for i in range(300)])
    assert wide.high - wide.low > 1.5 * (high - low)
    assert np.isnan(score_translations(["a b"], ["a c"]).confidence_interval()).all()


@pytest.mark.slow
def test_intervals_cover_the_truth():
    how = {"metrics": ["chrf"], "options": {"chrf": {"char_order": 3}}}
    truth = score_translations(*corpus(2_000, seed=99), **how).chrf
    inside = 0
    for seed in range(50):
        score = score_translations(*corpus(50, seed=seed), **how)
        low, high = score.confidence_interval("chrf", draws=200, seed=seed)
        inside += low <= truth <= high
    assert inside >= 41  # 47 or 48 expected


def test_tokenizers_fit_the_language():
    texts = (["สวัสดีครับวันนี้อากาศดี"], ["สวัสดีค่ะวันนี้อากาศดี"])
    assert score_translations(*texts, language="th").bleu > 30
    japanese = "ja-mecab" if find_spec("MeCab") else "char"
    for language, tokenizer in {"th": "char", "ja": japanese, "zh-TW": "zh", "en": "13a"}.items():
        assert f"|tok:{tokenizer}|" in score_translations(*texts, language=language).signatures["bleu"]
    with pytest.warns(UserWarning, match="name the language"):  # where BLEU would be zero
        score_translations(["今日は良い天気です。"] * 2, ["今日は良い天気だ。"] * 2)


def test_mecab_is_used_where_it_is_installed(monkeypatch, tmp_path):
    """Modules that stand in for it, with the dictionary that sacrebleu wants."""
    texts = ["今日は晴れです"], ["今日は雨です"]
    assert "tok:char" in score_translations(*texts, language="ja").signatures["bleu"]
    (tmp_path / "ipadic.py").write_text("MECAB_ARGS = ''")
    (tmp_path / "MeCab.py").write_text(
        "from types import SimpleNamespace\n"
        "class Tagger:\n"
        "    def __init__(self, options): pass\n"
        "    def dictionary_info(self): return SimpleNamespace(size=392126, next=None)\n"
        "    def parse(self, line): return ' '.join(line)\n"
        "    def version(self): return '0'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("MeCab", "ipadic", "sacrebleu.tokenizers.tokenizer_ja_mecab"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert "tok:ja-mecab" in score_translations(*texts, language="ja-JP").signatures["bleu"]


@pytest.fixture
def table():
    return pd.DataFrame(
        {
            "text": ["Meeting room A", "The API", None, "Big API"],
            "reference": ["会議室A", "そのAPI", "x", "大きなAPI"],
            "translation": ["会議室A", "そのエーピーアイ", "x", None],
            "target_lang": ["ja", "ja", "en", "ja"],
            "model": ["m", "m", "m", "n"],
        },
        index=[5, 6, 7, 8],
    )


def test_tables_are_scored_by_group_and_language(table):
    scores = score_translations(table, by="model", tokenize="char", draws=100)
    assert scores[["model", "language", "utterances", "utterances_scored"]].to_numpy().tolist() == [
        ["m", "en", 1, 1],
        ["m", "ja", 2, 2],
        ["n", "ja", 1, 0],
    ]
    alone = score_translations(table.iloc[:2], language="ja", tokenize="char")
    assert scores["chrf"].tolist()[1] == alone.chrf
    assert scores["chrf"].isna().tolist() == [False, False, True]
    assert scores["bleu"].dtype == "Float64"
    assert len(score_translations(table.iloc[:0], by=())) == 0


def test_glossary_by_source_terms(table):
    japanese = table[table["target_lang"] == "ja"]
    glossary = {"meeting room": ["会議室", "ミーティングルーム"], "API": "API", "cat": "猫"}
    score = score_translations(
        japanese, language="ja", glossary=glossary, source_language="en", tokenize="char"
    )
    rows = score.glossary.set_index("term")
    assert rows[["expected", "found", "missed"]].to_numpy().tolist() == [[1, 1, 0], [1, 0, 1], [0, 0, 0]]
    assert rows["preserved"].isna().tolist() == [False, False, True]
    named = glossary_terms(japanese, glossary=glossary, language="ja", source_language="en")
    assert named["missed_in"].tolist() == [[], [6], []]
    assert named["target"].tolist()[0] == "会議室 | ミーティングルーム"


def test_glossary_by_references():
    references = ["The Cat, the cat and a concatenation", "dog"]
    table = glossary_terms(references, ["the cat!", "cat dog"], ["cat", "dog", "bird"], language="en")
    assert table[["expected", "found"]].values.tolist() == [[2, 1], [1, 1], [0, 0]]
    assert table["missed_in"].tolist() == [[0], [], []]


SOURCES = ["会議室は三階です。", "会議室を予約した。", "明日は雨です。"]
HEARD = ["The meeting room is on the third floor.", "I booked a room.", "It will rain."]
GLOSSARY = {"会議室": ["meeting room", "conference room"], "雨": "rain"}


def test_sources_and_a_glossary_need_no_references():
    how = {"glossary": GLOSSARY, "language": "en", "source_language": "ja"}
    of_lists = glossary_terms(None, HEARD, sources=SOURCES, **how)
    assert of_lists[["term", "expected", "found"]].values.tolist() == [["会議室", 2, 1], ["雨", 1, 1]]
    table = pd.DataFrame({"text": SOURCES, "translation": HEARD}, index=["a", "b", "c"])
    of_table = glossary_terms(table, **how)
    assert of_table["missed_in"].tolist() == [["b"], []]
    pd.testing.assert_frame_equal(glossary_terms(table.assign(reference=""), **how), of_table)
    with pytest.raises(InvalidRequestError, match=r"no references; give them, or sources="):
        glossary_terms(None, HEARD, glossary=["rain"])


def test_errors_name_the_value():
    for call, hint in [
        (lambda: glossary_terms(["a"], ["a"], ["!"]), "nothing is left of the glossary term '!'"),
        (lambda: score_translations(["a"], ["a", "b"]), "do not fit"),
        (lambda: score_translations(["a"], ["b"], draws=9), "draws is for by="),
        (lambda: score_translations(["a"], ["b"], beta=2), "no argument 'beta'; use one of 'level', 'draws'"),
    ]:
        with pytest.raises(InvalidRequestError, match=hint):
            call()
