"""Recall and precision of hotwords."""

import pandas as pd
import pytest

from speechlab.errors import InvalidRequestError
from speechlab.metrics import (
    error_rate,
    hotword_counts,
    hotword_error_rates,
    hotword_scores,
    score,
    summarize,
)


def scored(pairs, language="en"):
    return score(pd.DataFrame(pairs, columns=["text", "hypothesis"]), language=language)


def test_recall_and_precision():
    pairs = [("Ask Ada and Ada.", "ask Ada and Aida"), ("nobody", "Ada"), ("Adam", "Adam"), ("Ada", None)]
    table = hotword_scores(scored(pairs), hotwords=["Ada", "Zoe"])
    names = ["hotword", "in_reference", "in_hypothesis", "hits", "recall", "precision", "f1"]
    assert table[names].iloc[0].tolist() == ["Ada", 2, 2, 1, 0.5, 0.5, 0.5]
    assert (table["hotword"][1], pd.isna(table["recall"][1])) == ("Zoe", True)


def test_aliases_and_phrases_count_as_the_word():
    table = hotword_scores(
        scored([("I use GitHub", "I use Git Hub"), ("New York, York", "new york York")]),
        hotwords={"GitHub": ["Git Hub"], "New York": [], "York": []},
    )
    assert table["in_reference"].tolist() == [1, 1, 2]  # one York is in New York
    assert (table[["recall", "f1"]] == 1).all(axis=None)
    japanese = scored([("東京タワーへ行く", "東京たわーへ行く"), ("３時", "三時")], "ja")
    assert hotword_scores(japanese, hotwords=["東京タワー", "三時"])["recall"].tolist() == [0.0, 1.0]
    with pytest.raises(InvalidRequestError, match="are both"):
        hotword_scores(japanese, hotwords=["Ada", "ADA"])


def test_all_words_together():
    table = hotword_scores(
        ["Ada and Bob", "Bob"], ["Ada and Rob", "Bob"], hotwords=["Ada", "Bob"], together=True, language="en"
    )
    assert table[["in_reference", "hits"]].to_numpy().tolist() == [[3, 2]]
    assert table["f1"][0] == pytest.approx(0.8)
    assert "hotword" not in table


def test_biased_and_unbiased_errors_add_up_to_all_errors():
    pairs = [("call Ada Byron now", "call Ada Biron Smith now"), ("the cat", "a cat Ada"), ("x y", "x")]
    table = scored(pairs)
    rates = hotword_error_rates(table, hotwords=["Ada", "Ada Byron"]).set_index("words")
    biased, unbiased = rates.loc["biased"], rates.loc["unbiased"]
    assert (biased["reference_length"], biased["substitutions"], biased["insertions"]) == (2, 1, 1)
    assert (biased["error_rate"], biased["hits"]) == (1.0, 1)
    assert (unbiased["reference_length"], unbiased["errors"]) == (6, 3)
    total = summarize(table).iloc[0]
    for name in ("errors", "hits", "substitutions", "deletions", "insertions", "reference_length"):
        assert biased[name] + unbiased[name] == total[name]
    assert rates["error_rate_low"].le(rates["error_rate"]).all()


def test_biased_errors_of_japanese_are_characters():
    rate = error_rate(["東京タワーへ"], ["東京タワヘ"], unit="char", language="ja")
    rates = hotword_error_rates(rate, hotwords=["東京タワー"])[["words", "reference_length", "errors"]]
    assert rates.to_numpy().tolist() == [["biased", 5, 1], ["unbiased", 1, 1]]


def test_hotword_counts_do_not_depend_on_other_rows():
    frame = pd.DataFrame(
        {
            "text": ["ask Ada now", "Adaに聞く", None],
            "hypothesis": ["ask Aida now", "Aidaに聞く", "x"],
            "language": ["en", "ja", "en"],
        }
    )
    scored = score(frame, normalize=None)
    counts = hotword_counts(scored, hotwords=["Ada"])
    assert counts.fillna(-1).to_numpy().tolist() == [[1, 0, 0, 0, 2], [1, 0, 0, 1, 3], [-1] * 5]
    alone = hotword_counts(scored.iloc[[1]], hotwords=["Ada"])
    pd.testing.assert_frame_equal(alone, counts.loc[[1]])
    assert hotword_counts(score(frame, unit="reading", language="ja"), hotwords=["Ada"]).isna().all(axis=None)
