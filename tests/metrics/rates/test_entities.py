"""Rates of names, numbers and dates, by class."""

import json

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.errors import InvalidRequestError
from speechlab.metrics import entity_scores, error_rate

COUNTS = ["entities", "not_found", "hits", "misses", "insertions", "errors", "reference_length"]
WORDS = st.lists(st.sampled_from(["anna", "bob", "york", "new", "x"]), min_size=1, max_size=6)


def named(text, kind="name"):
    return {"text": text, "class": kind}


def scores(reference, hypothesis, entities, language="en", **how):
    table = entity_scores([reference], [hypothesis], entities=[entities], language=language, **how)
    return table.set_index("class")


def test_known_counts():
    for reference, hypothesis, entities, language, counts in [
        ("Ask Anna Li now", "ask Anna Lee now", ["Anna Li"], "en", [1, 0, 0, 1, 0, 1, 2]),
        ("Ask Anna Li now", "ask Anna X Li now", ["Anna Li"], "en", [1, 0, 0, 1, 0, 1, 2]),
        # a word added beside an entity is not its error
        ("Ask Anna Li now", "ask the Anna Li now", ["Anna Li"], "en", [1, 0, 1, 0, 0, 0, 2]),
        ("Ask Anna", "Anna ask Anna", ["Anna"], "en", [1, 0, 1, 0, 1, 0, 1]),
        ("Anna and Anna", "Anna and Hanna", ["Anna", "Anna"], "en", [2, 0, 1, 1, 0, 1, 2]),
        ("Anna came", "Anna came", ["Bob"], "en", [1, 1, 0, 0, 0, 0, 0]),
        # another notation is right
        ("at 10:35 p.m.", "at 10.35 pm", ["10:35 p.m."], "en", [1, 0, 1, 0, 0, 0, 4]),
        # a code without its zeros is another one
        ("the code is 007123", "the code is 7123", ["007123"], "en", [1, 0, 0, 1, 0, 1, 1]),
        ("長谷川さんは三時に来る", "長谷川さんは3時に来る", ["長谷川", "三時"], "ja", [2, 0, 2, 0, 0, 0, 5]),
        ("長谷川さん", "鮭川さん", ["長谷川"], "ja", [1, 0, 0, 1, 0, 2, 3]),
        ("我们去呼和浩特", "我们去忽和浩特", ["呼和浩特"], "zh", [1, 0, 0, 1, 0, 1, 4]),
    ]:
        found = scores(reference, hypothesis, [named(text) for text in entities], language)
        assert found.loc["name", COUNTS].tolist() == counts
        assert found.loc["all", COUNTS].tolist() == found.loc["name", COUNTS].tolist()


def test_notation_counts_where_it_is_asked_to():
    pair = "at 10:35 p.m.", "at 10.35 pm", [named("10:35 p.m.", "time")]
    assert [scores(*pair, tolerant=way).loc["time", "hits"] for way in (True, False)] == [1, 0]


def test_classes_have_their_own_rates_and_the_last_row_has_all():
    table = pd.DataFrame(
        {
            "text": ["Anna paid $5", "Bob paid $6", "nobody paid"],
            "hypothesis": ["Anna paid $5", "Rob paid $6", "Bob paid"],
            "entities": [
                [named("Anna"), named("$5", "number")],
                json.dumps([named("Bob"), named("$6", "number")]),
                None,
            ],
            "speaker": ["a", "b", "c"],
        }
    )
    found = entity_scores(table, language="en", groups="speaker").set_index("class")
    assert found.index.tolist() == ["name", "number", "all"]
    assert found.loc["name", ["recall", "precision", "f1", "error_rate"]].tolist() == [0.5, 0.5, 0.5, 0.5]
    assert found.loc["number", ["recall", "precision", "f1", "error_rate"]].tolist() == [1, 1, 1, 0]
    assert found.loc["all", "f1"] == pytest.approx(2 * 3 / (2 * 3 + 1 + 1))


@pytest.mark.slow
@settings(max_examples=40)
@given(WORDS, WORDS, st.data())
def test_counts_follow_the_alignment(said, heard, data):
    start = data.draw(st.integers(0, len(said) - 1))
    end = data.draw(st.integers(start + 1, len(said)))
    reference, hypothesis = " ".join(said), " ".join(heard)
    row = scores(reference, hypothesis, [named(" ".join(said[start:end]))], tolerant=False).loc["all"]
    assert row["hits"] + row["misses"] + row["not_found"] == row["entities"] == 1
    assert (row["errors"] == 0) == (row["hits"] == 1)
    assert row["reference_length"] == end - start
    assert row["errors"] <= error_rate(reference, hypothesis).errors
    assert scores(reference, reference, [named(" ".join(said[start:end]))]).loc["all", "f1"] == 1


def test_other_forms_are_refused_with_the_row():
    wrong = ["Anna", [{"text": "Anna"}], [named("a", "all")]]
    for entities, problem in (*(([None, cell], "row 1") for cell in wrong), ([None], "each of 2 rows")):
        with pytest.raises(InvalidRequestError, match=problem):
            entity_scores(["a", "b"], ["a", "b"], entities=entities, language="en")
