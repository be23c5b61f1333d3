"""Rates of punctuation, capitals and digits."""

import random
import string

import pandas as pd
import pytest

from speechlab.metrics import formatting_rates

COUNTS = ["hits", "substitutions", "deletions", "insertions"]
PIECES = {
    "en": ["Anna", "anna", "BBC", "left", "at", "nine", "9", "10:35", "1,204", "iPhone", "O'Brien"],
    "ja": ["三時", "3時", "会議", "、", "。", "API", "です", "，", "！"],
    "zh": ["三点", "3点", "会议", "，", "。", "、", "T恤", "吗？", "！"],
}
MARKS = ["", "", "", ",", ".", "?", "!", ";", ":", "...", '"']


def make_texts(language, seed, count=40):
    chance = random.Random(seed)
    blank, marks = (" ", MARKS) if language == "en" else ("", [""])
    return [
        blank.join(chance.choice(PIECES[language]) + chance.choice(marks) for _ in range(chance.randrange(9)))
        for _ in range(count)
    ]


def compute(references, hypotheses, language="en"):
    return formatting_rates(references, hypotheses, language=language, draws=1).set_index("kind")


def test_known_counts():
    for reference, hypothesis, language, kind, counts in [
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
        ("苹果、梨，还有桃。", "苹果,梨,还有桃。", "zh", "punctuation", [2, 1, 0, 0]),
        ("Anna met the BBC", "anna met the Bbc", "en", "capitals", [0, 1, 1, 0]),
        ("the iPhone of O'Brien", "The iPhone of O'Brien", "en", "capitals", [2, 0, 0, 1]),
        ("Anna left", "Hanna left", "en", "capitals", [1, 0, 0, 0]),
        ("APIキー", "apiキー", "ja", "capitals", [0, 0, 1, 0]),
        ("3,650 of them", "three thousand six hundred and fifty of them", "en", "digits", [0, 0, 1, 0]),
        ("three men at 10:35", "3 men at 10.35", "en", "digits", [1, 0, 0, 1]),
        ("2024年5月29日", "二〇二四年5月29日", "ja", "digits", [2, 0, 1, 0]),
        ("一共208页", "一共二百零八页", "zh", "digits", [0, 0, 1, 0]),
    ]:
        assert compute([reference], [hypothesis], language).loc[kind, COUNTS].tolist() == counts


@pytest.mark.slow
@pytest.mark.parametrize("language", PIECES)
def test_counts_add_up_and_shares_follow_from_them(language):
    one, other = make_texts(language, 1), make_texts(language, 2)
    table = compute(one, other, language)
    for _, row in table.iterrows():
        hits, substitutions, deletions, insertions = row[COUNTS]
        assert row["in_reference"] == hits + substitutions + deletions > 0
        assert row["in_hypothesis"] == hits + substitutions + insertions > 0
        assert row["recall"] == hits / row["in_reference"]
        assert row["error_rate"] == (substitutions + deletions + insertions) / row["in_reference"]
        assert row["precision"] == hits / row["in_hypothesis"]
        assert row["f1"] == pytest.approx(2 / (1 / row["precision"] + 1 / row["recall"]))
    assert compute(one, one, language)[COUNTS[1:]].to_numpy().sum() == 0


def test_any_text_can_be_compared():
    chance = random.Random(4)
    letters = string.printable + "あ。、三3é“”’"
    texts = ["".join(chance.choices(letters, k=chance.randrange(31))) for _ in range(40)]
    for language in (*PIECES, "de"):
        table = compute(texts, [text[::-1] for text in texts], language)
        assert (table["utterances"] == 40).all()


def test_formatting_rates_have_a_row_for_language_and_kind():
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
