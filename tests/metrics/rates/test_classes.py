"""Classes of differences on pairs that were written down with theirs, and columns that agree with each other."""

import csv
import random
import re

import pandas as pd
import pytest

from speechlab.metrics import error_rate, score
from support import differences

pytest.importorskip("pyopenjtalk")
pytest.importorskip("pypinyin")
pytest.importorskip("opencc")


@pytest.mark.slow
def test_right_classes_are_those_of_right_md_and_docs():
    page = differences.page()
    assert page == differences.RIGHT.read_text(encoding="utf-8"), "`poe classes` writes it anew"
    guide = differences.GUIDE.read_text(encoding="utf-8")
    for share in re.findall(r"^\| (\d+ of \d+) right \|", page, re.MULTILINE):
        assert share in guide
    for right, count in map(differences.right_of, differences.SETS):
        assert right / count >= differences.FLOOR


@pytest.mark.parametrize(("language", "least"), [("en", 40), ("ja", 160), ("zh", 140)])
def test_nearly_all_classes_of_real_transcripts_are_right(language, least):
    rows = differences.spoken(language)
    assert len(rows) >= least
    right = sum(row["class"] == row["found"] for row in rows)
    assert right / len(rows) >= 0.9
    assert all(row["reason"] for row in rows if row["class"] != row["found"])


@pytest.mark.parametrize("language", ["en", "ja", "zh"])
def test_numbers_and_readings_have_their_class_on_both_sides(language):
    """Numbers, units, fractions, years, spellings and readings as the world writes them."""
    path = differences.PAIRS.with_name("numbers_and_words.tsv")
    wrong = [
        (kind, *sides, found)
        for code, kind, *sides in csv.reader(path.read_text("utf-8").splitlines(), delimiter="\t")
        if code == language
        for found in {differences.class_of(*order, language) for order in (sides, sides[::-1])}
        if not differences.is_right(kind, found)
    ]
    assert not wrong


COUNTED = ("homophone", "tone", "recognition")
BASES = {"en": "word", "ja": "char", "zh": "char"}


def mixed(language, rows=100, seed=7):
    """Pairs of the files, joined, exchanged and with parts left out."""
    chance = random.Random(f"{language} {seed}")
    pairs = [
        (pair["reference"], pair["hypothesis"])
        for name in differences.SETS
        if name.startswith(language)
        for pair in differences.pairs(name)
    ]
    blank = " " if language == "en" else ""

    def shorten(text):
        parts = text.split() if blank else list(text)
        place = chance.randrange(len(parts) or 1)
        return blank.join([*parts[:place], *parts[place + 1 :]])

    for _ in range(rows):
        (one, other), (third, fourth) = chance.sample(pairs, 2)
        yield chance.choice(
            [
                (one, other),
                (one, fourth),
                (one + blank + third, other + blank + fourth),
                (one + blank + third, shorten(other) + blank + shorten(fourth)),
                (shorten(one), shorten(other)),
            ]
        )


@pytest.mark.slow
@pytest.mark.parametrize("language", BASES)
def test_no_column_contradicts_another(language):
    texts = pd.DataFrame(
        [pair for pair in mixed(language) if pair[0].strip()], columns=["text", "hypothesis"]
    )
    table = score(texts, language=language)
    assert not table["score_error"].notna().any()
    kinds = [kind for kind in COUNTED if f"{kind}_differences" in table]
    counted = table[[f"{kind}_differences" for kind in kinds]].sum(axis=1)
    harmless = table["notation_differences"] + table.get("filler_differences", 0)
    errors = table[f"{BASES[language]}_errors"]
    rules = {
        "no tolerant error without a counted difference": (table["tolerant_errors"] == 0) == (counted == 0),
        "each counted difference costs an error": counted <= table["tolerant_errors"],
        "forgiving adds none": table["tolerant_errors"] <= errors,
        "an error is a difference": (errors == 0) | (counted + harmless > 0),
        "a difference is an error": (errors > 0) | (counted + table["notation_differences"] == 0),
    }
    if language == "ja":
        # 10、2 and 12 are two numbers and one, and sound alike.
        apart = table[["reference_normalized", "hypothesis_normalized"]].apply(
            lambda side: side.str.contains("・")
        )
        sounds = (table["reading_errors"] == 0) == (table["recognition_differences"] == 0)
        rules["what sounds different is recognition"] = sounds | apart.any(axis=1)
    if language == "zh":
        fillers = table["filler_differences"] > 0
        tones = table["tone_differences"] + table["recognition_differences"]
        rules["another syllable is recognition"] = fillers | (
            (table["toneless_errors"] == 0) == (table["recognition_differences"] == 0)
        )
        rules["another tone is a tone or recognition"] = fillers | (
            (table["pinyin_errors"] == 0) == (tones == 0)
        )
    for rule, holds in rules.items():
        assert holds.all(), (rule, table[~holds].iloc[0].to_dict())


def test_a_reading_that_nobody_would_mean_is_no_error():
    for reference, hypothesis, errors, uncertain in [
        ("気温が上がる", "起温が上がる", 0, 6),  # オコリヌル by the dictionary
        ("明日は晴れ", "あすは晴れ", 0, 2),  # アシタ, as あした; あす is a reading of it, too
        ("気温が上がる", "湿度が上がる", 3, 0),
        ("精度", "制度", 0, 0),
    ]:
        row = score([reference], [hypothesis], language="ja").iloc[0]
        assert (row["reading_errors"], row["uncertain_reading_errors"]) == (errors, uncertain)
        assert error_rate(reference, hypothesis, unit="reading", language="ja").errors == errors
