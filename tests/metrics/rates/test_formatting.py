"""Rates of punctuation, capitals and digits."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.errors import InvalidRequestError
from speechlab.metrics import formatting_rates

COUNTS = ["hits", "substitutions", "deletions", "insertions"]
WORDS = st.sampled_from(
    ["Anna", "anna", "BBC", "left", "at", "nine", "9", "10:35", "1,204", "iPhone", "O'Brien"]
)
MARKS = st.sampled_from(["", "", "", ",", ".", "?", "!", ";", ":", "...", '"'])
ENGLISH = st.lists(st.tuples(WORDS, MARKS).map("".join), max_size=8).map(" ".join)
JAPANESE = st.lists(
    st.sampled_from(["三時", "3時", "会議", "、", "。", "API", "です", "，", "！"]), max_size=8
).map("".join)
CHINESE = st.lists(
    st.sampled_from(["三点", "3点", "会议", "，", "。", "、", "T恤", "吗？", "！"]), max_size=8
).map("".join)
PAIRS = st.one_of(
    st.tuples(ENGLISH, ENGLISH, st.just("en")),
    st.tuples(JAPANESE, JAPANESE, st.just("ja")),
    st.tuples(CHINESE, CHINESE, st.just("zh")),
)


# A table with its intervals is made of each example.
FEW = settings(max_examples=40)


def rates(reference, hypothesis, language="en"):
    return formatting_rates([reference], [hypothesis], language=language).set_index("kind")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reference", "hypothesis", "language", "kind", "counts"),
    [
        ("Well, yes.", "well yes.", "en", "punctuation", [1, 0, 1, 0]),
        ("Well, yes.", "Well. Yes!", "en", "punctuation", [0, 2, 0, 0]),
        ("He said yes", 'He said, "yes"', "en", "punctuation", [0, 0, 0, 3]),
        # signs within words and numbers, and full stops of abbreviations
        (
            "10:35 p.m. Dr. No's e-mail, 1,204.5",
            "1035 pm doctor no's email 1204.5",
            "en",
            "punctuation",
            [0, 0, 1, 0],
        ),
        ("Wait... what?", "wait… what?", "en", "punctuation", [2, 0, 0, 0]),
        # what stands in a wrong word is judged by its place
        ("Siobhan, come", "Shavon, come", "en", "punctuation", [1, 0, 0, 0]),
        ("会議は三時、東京で。", "会議は3時，東京で.", "ja", "punctuation", [2, 0, 0, 0]),
        ("「はい」と言った", "はいと言った", "ja", "punctuation", [0, 0, 2, 0]),
        ("苹果、梨，还有桃。", "苹果,梨,还有桃。", "zh", "punctuation", [2, 1, 0, 0]),
        ("Anna met the BBC", "anna met the Bbc", "en", "capitals", [0, 1, 1, 0]),
        ("the iPhone of O'Brien", "The iPhone of O'Brien", "en", "capitals", [2, 0, 0, 1]),
        ("I am", "I AM", "en", "capitals", [1, 0, 0, 1]),
        ("Anna left", "Hanna left", "en", "capitals", [1, 0, 0, 0]),
        ("Anna left", "left", "en", "capitals", [0, 0, 1, 0]),
        ("APIキー", "apiキー", "ja", "capitals", [0, 0, 1, 0]),
        ("把T恤收起来", "把T恤收起来", "zh", "capitals", [1, 0, 0, 0]),
        ("3,650 of them", "three thousand six hundred and fifty of them", "en", "digits", [0, 0, 1, 0]),
        ("three men at 10:35", "3 men at 10.35", "en", "digits", [1, 0, 0, 1]),
        ("2024年5月29日", "二〇二四年5月29日", "ja", "digits", [2, 0, 1, 0]),
        ("三時に会議", "3時に会議", "ja", "digits", [0, 0, 0, 1]),
        ("一共208页", "一共二百零八页", "zh", "digits", [0, 0, 1, 0]),
    ],
)
def test_known_counts(reference, hypothesis, language, kind, counts):
    assert rates(reference, hypothesis, language).loc[kind, COUNTS].tolist() == counts


@pytest.mark.slow
@FEW
@given(PAIRS)
def test_counts_add_up_and_shares_follow_from_them(pair):
    table = rates(*pair)
    for kind in table.index:
        row = table.loc[kind]
        hits, substitutions, deletions, insertions = row[COUNTS]
        assert row["in_reference"] == hits + substitutions + deletions
        assert row["in_hypothesis"] == hits + substitutions + insertions
        assert min(row[COUNTS]) >= 0
        if row["in_reference"]:
            assert row["recall"] == hits / row["in_reference"]
            assert row["error_rate"] == (substitutions + deletions + insertions) / row["in_reference"]
        if row["in_hypothesis"]:
            assert row["precision"] == hits / row["in_hypothesis"]
        if hits:
            assert row["f1"] == pytest.approx(2 / (1 / row["precision"] + 1 / row["recall"]))


@pytest.mark.slow
@FEW
@given(PAIRS)
def test_equal_texts_have_no_errors(pair):
    text, _, language = pair
    assert rates(text, text, language)[COUNTS[1:]].to_numpy().sum() == 0


@pytest.mark.slow
@FEW
@given(ENGLISH)
def test_what_is_removed_everywhere_is_missing_and_nothing_else_is(text):
    plain = "".join(" " if character in ',.?!;:"' else character for character in text.lower())
    table = rates(text, plain)
    assert table["hits"][["punctuation", "capitals"]].sum() == 0
    assert table["insertions"].sum() - table["insertions"]["digits"] == 0


@pytest.mark.slow
@FEW
@given(
    st.text(alphabet=string.printable + "あ。、三3é“”’", max_size=30),
    st.sampled_from(["en", "ja", "zh", "de"]),
)
def test_any_text_can_be_compared(text, language):
    assert (rates(text, text[::-1], language)["utterances"] == 1).all()


def test_tables_have_a_row_for_each_language_and_kind_and_leave_out_what_is_missing():
    import pandas as pd

    table = pd.DataFrame(
        {
            "text": ["Yes.", "はい。", "No."],
            "hypothesis": ["yes", "はい。", None],
            "language": ["en", "ja", "en"],
            "speaker": ["a", "b", "a"],
        }
    )
    found = formatting_rates(table, groups="speaker")
    assert found[["language", "kind"]].drop_duplicates().shape == (6, 2)
    assert found.set_index(["language", "kind"]).loc[("en", "capitals"), "utterances"] == 1
    assert found["error_rate"].tolist()[:2] == [1.0, 1.0]
    assert found["precision"].isna().sum() == 5
    with pytest.raises(InvalidRequestError):
        formatting_rates(table, language="jp")


def test_intervals_hold_the_rate():
    found = formatting_rates(["A b, c."] * 20, ["A b, c.", "a b c."] * 10, language="en").set_index("kind")
    for kind, rate in (("punctuation", 0.25), ("capitals", 0.5)):
        row = found.loc[kind]
        assert row["error_rate"] == rate
        assert row["error_rate_low"] < rate < row["error_rate_high"]
    texts = [*["at 9"] * 3, *["at nine"] * 24]  # three numbers are little evidence, in however many texts
    assert (
        formatting_rates(texts, texts, language="en").set_index("kind").loc["digits", "error_rate_high"] > 0.4
    )
