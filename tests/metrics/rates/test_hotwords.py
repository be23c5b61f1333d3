"""Recall and precision of the words that matter."""

import pandas as pd
import pytest

from speechlab.errors import InvalidRequestError
from speechlab.metrics import hotword_recall, score


def scored(pairs, language="en"):
    return score(pd.DataFrame(pairs, columns=["text", "hypothesis"]), language=language)


def test_recall_and_precision():
    table = hotword_recall(
        scored(
            [("Ask Ada and Ada.", "ask Ada and Aida"), ("nobody", "Ada"), ("Adam", "Adam"), ("Ada", None)]
        ),
        ["Ada", "Zoe"],
    )
    ada, zoe = table.iloc[0], table.iloc[1]
    assert (ada["in_reference"], ada["in_hypothesis"], ada["hits"]) == (2, 2, 1)
    assert (ada["recall"], ada["precision"]) == (0.5, 0.5)
    assert pd.isna(zoe["recall"])
    assert table["hotword"].tolist() == ["Ada", "Zoe"]


def test_aliases_and_phrases_count_as_the_word():
    table = hotword_recall(
        scored([("I use GitHub", "I use Git Hub"), ("New York, York", "new york York")]),
        {"GitHub": ["Git Hub"], "New York": [], "York": []},
    )
    assert table["recall"].tolist() == [1.0, 1.0, 1.0]
    assert table["in_reference"].tolist() == [1, 1, 1]


def test_japanese_is_searched_without_spaces_and_after_normalisation():
    table = hotword_recall(
        scored([("東京タワーへ行く", "東京たわーへ行く"), ("３時", "三時")], "ja"), ["東京タワー", "三時"]
    )
    assert table["recall"].tolist() == [0.0, 1.0]


def test_refusals():
    table = scored([("a", "a")])
    for hotwords, hint in [("Ada", "list"), (["..."], "nothing is left"), (["Ada", "ADA"], "are both")]:
        with pytest.raises(InvalidRequestError, match=hint):
            hotword_recall(table, hotwords)
    with pytest.raises(InvalidRequestError, match="'unit'"):
        hotword_recall(pd.DataFrame(), ["a"])
    assert len(hotword_recall(table, [])) == 0
